"""What still helps a full GPU that nothing removable holds back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER, fixes_of
from heuristics.judging.judgement import judge
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan
from heuristics.result.judged import Room
from tests.doubles.opinions import COMPUTE, NOBODY, a_fix, account, budget, catalogue_of, costs, paying, rank
from traces.missing import Missing
from traces.settings.knobs import MICRO_BATCH
from traces.settings.settings import settings

LEVERS = [number for number in WALL_ORDER["compute"] if CATALOGUE[number].lever]
SEEN = [number for number in LEVERS if CATALOGUE[number].lever != "known_off"]
"""Levers of a run of which no file tells what it does without."""
BLIND = Missing("replay", "clock offset: 3 ms", "record again")


def test_without_a_wall_there_are_levers_where_they_are_asked_for_and_no_fixes() -> None:
    levers = catalogue_of(*(a_fix(one, "compute", lever="lever") for one in LEVERS))
    run = paying("compute", {"gemm": 10})
    plan = make_plan(run, [], levers, levers=COMPUTE)
    assert (plan.fixes, plan.refused) == ((), ())
    assert [one.fix.id for one in plan.levers] == LEVERS
    assert make_plan(run, [], levers) == Plan((), (), ())
    assert make_plan(run, ["compute"], levers, levers=COMPUTE).levers == ()


def test_levers_are_for_a_run_bound_by_compute_whose_walls_could_all_be_priced() -> None:
    # filled SMs are nothing to remove: a compute wall that could not be priced holds no lever back
    assert [one.fix.id for one in judge([rank(costs(compute=None))]).plan.levers] == SEEN
    assert [one.fix.id for one in judge([rank()]).plan.levers] == SEEN
    no_price = (rank(unseen=NOBODY), rank(BLIND))
    waits = rank(budget=budget(400), account=account({"python": 600}))
    stalls = rank(budget=budget(400))
    for one in (*no_price, waits, stalls):
        assert judge([one]).plan == Plan((), (), ())


def test_a_lever_that_does_not_fit_into_memory_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "heuristics.plan.refusals.room_for",
        lambda run, changes: Room(None, None, MICRO_BATCH not in changes, "too much"),
    )
    run = replace(paying("compute", {"gemm": 0}), settings=settings({MICRO_BATCH: 1}, "run.sh"))
    plan = make_plan(run, [], CATALOGUE, levers=COMPUTE)
    assert [one.fix.id for one in plan.levers] == ["CMP-3"]
    assert [(one.fix.id, one.because) for one in plan.refused] == [("CMP-4", "needs memory first: too much")]


@pytest.mark.parametrize(
    ("wide_frac", "levers"),
    [(0.5, ["CMP-9", "CMP-2", "CMP-4"]), (0.05, ["CMP-2", "CMP-4", "CMP-9"]), (0.0, ["CMP-2", "CMP-4"])],
)
def test_much_matrix_work_in_fp32_comes_first_among_the_levers(wide_frac: float, levers: list[str]) -> None:
    seen = Observed(wide_frac=wide_frac, tensor_cores=True)
    run = replace(paying("compute", {"gemm": 0}), framework="pytorch", observed=seen)
    plan = make_plan(run, [], fixes_of("pytorch"), levers=COMPUTE)
    assert [one.fix.id for one in plan.levers] == levers
