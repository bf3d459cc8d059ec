"""What a run does already is no step; what still helps a full GPU that nothing removable holds back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER, fixes_of
from heuristics.judging.judgement import judge
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan
from heuristics.result.judged import Room
from heuristics.run.run import Run
from tests.doubles.opinions import (
    BLIND,
    COMPUTE,
    NOBODY,
    WINDOW_NS,
    a_fix,
    account,
    budget,
    catalogue_of,
    costs,
    paying,
    rank,
)
from traces.names.frameworks import Framework
from traces.sections.tables import WallId
from traces.settings.knobs import MICRO_BATCH
from traces.settings.settings import settings


def ids(plan: Plan) -> list[str]:
    return [one.fix.id for one in plan.fixes]


def planned(
    wall: WallId, kind: str, framework: Framework, shown: Observed, given: Given | None = None
) -> Plan:
    run = Run(
        shown,
        given or Given(),
        {wall: {kind: WINDOW_NS // 2}},
        WINDOW_NS,
        {wall: WINDOW_NS // 2},
        framework=framework,
    )
    return make_plan(run, [wall], fixes_of(framework))


@pytest.mark.parametrize("framework", ["pytorch", "megatron"])
@pytest.mark.parametrize(
    ("fix", "wall", "kind", "shown"),
    [
        ("HST-3", "host_overhead", "launch", {"graph_frac": 0.201}),
        ("HST-10", "host_overhead", "data", {"in_use": ("dali",)}),
        ("CMP-9", "compute", "no_tensor_cores", {"precision": "fp8_blockwise", "wide_frac": 0.2}),
    ],
)
def test_what_runs_already_is_no_step_in_any_frameworks_words(
    framework: Framework, fix: str, wall: WallId, kind: str, shown: dict[str, object]
) -> None:
    plan = planned(wall, kind, framework, Observed(capability=(9, 0), **shown))  # type: ignore[arg-type]
    assert fix not in ids(plan)
    assert [one.is_set for one in plan.refused if one.fix.id == fix] == [True]


def test_a_loader_of_its_own_is_asked_for_threads_and_not_for_workers() -> None:
    own = planned("host_overhead", "data", "pytorch", Observed(in_use=("dali",), absent_frac={"data": 0.5}))
    assert ids(own)[0] == "HST-11"
    other = planned("host_overhead", "data", "pytorch", Observed(in_use=(), absent_frac={"data": 0.5}))
    assert ids(other)[0] == "HST-10"


@pytest.mark.parametrize(
    ("shown", "given", "is_planned"),
    [
        ({}, {}, True), ({"in_use": ("rocm",)}, {}, False),
        ({"in_use": ("rocm",)}, {"torch_version": "2.11.0"}, False),
        ({"in_use": ("rocm",)}, {"torch_version": "2.12.0"}, True), ({}, {"gpu": "MI300X"}, False),
        ({"in_use": ("rollout_engine",)}, {}, False), ({"allocator_retries": False}, {}, False),
        ({"allocator_retries": True}, {}, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("framework", ["pytorch", "megatron"])
def test_expandable_segments_are_for_a_caching_allocator_that_has_them(
    framework: Framework, shown: dict[str, object], given: dict[str, object], is_planned: bool
) -> None:
    plan = planned("memory", "allocator", framework, Observed(**shown), Given(**given))  # type: ignore[arg-type]
    assert ("MEM-1" in ids(plan)) == is_planned
    assert ("MEM-18" in ids(plan)) == (shown.get("allocator_retries") is False)


@pytest.mark.parametrize(("shown", "kind"), [("rocm", "absent"), ("rollout_engine", "needs")])
def test_what_the_stack_may_not_have_is_absent_and_what_the_run_forbids_is_not(shown: str, kind: str) -> None:
    refused = planned("memory", "allocator", "pytorch", Observed(in_use=(shown,))).refused
    assert [one.kind for one in refused if one.fix.id == "MEM-1"] == [kind]


LEVERS = [number for number in WALL_ORDER["compute"] if CATALOGUE[number].lever]
SEEN = [number for number in LEVERS if CATALOGUE[number].lever != "known_off"]
"""Levers of a run of which no file tells what it does without."""


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
