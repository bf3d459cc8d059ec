"""A late rank as opinions see it: from the analysis of several ranks."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from heuristics.evidence.evidence import expert_waiting_frac, late_rank, without_waits
from heuristics.result.judged import Wall
from heuristics.run.repairs import LateRank
from tests.doubles.result import double
from tests.recordings.ranks import Work, analyse_run, together
from traces.missing import Missing
from traces.sections.cause import Cause
from traces.sections.run import Late, Run


@pytest.fixture(scope="module")
def run() -> Run:
    works = [[Work(compute=130 if one == 2 else 100, host=2)] * 30 for one in range(4)]
    kernels = [[13.0, 26.0] if one == 2 else [10.0, 20.0] for one in range(4)]
    return analyse_run(together(works, per_step=10, kernels_us=kernels))


def with_cause(run: Run, cause: Cause) -> Run:
    assert isinstance(run.late, Late)
    return replace(run, late=replace(run.late, cause=cause))


def test_data_that_moves_slowly_is_no_waiting_for_an_arrival(run: Run) -> None:
    found = late_rank(with_cause(run, Cause.SLOW_LINK), ())
    assert found is not None
    assert found.waits_ns == {}


def test_nobody_late_and_nobody_known_are_no_late_rank(run: Run) -> None:
    assert late_rank(with_cause(run, Cause.NONE), ()) is None
    assert late_rank(replace(run, late=Missing("run.late", "one step", "several")), ()) is None


def test_the_waiting_of_experts_is_that_of_several_ranks_where_they_have_one_clock(run: Run) -> None:
    some = replace(
        run,
        wait_by_kind_ns={"ep_dispatch": 30, "dp_all_gather": 900},
        transfer_by_kind_ns={"ep_dispatch": 10, "dp_all_gather": 100},
    )
    assert expert_waiting_frac(some) == 0.75
    apart = replace(some.clocks, aligned=False)
    assert expert_waiting_frac(replace(some, clocks=apart)) is None
    assert expert_waiting_frac(run) is None


def wall(cost_ns: int | None, **kinds: int) -> Wall:
    frac = None if cost_ns is None else cost_ns / 1_000
    return double(Wall, id="communication", cost_ns=cost_ns, cost_frac=frac, cost_by_kind_ns=kinds)


@pytest.mark.parametrize(
    ("cost", "kinds", "waits", "exposed", "left", "left_kinds"),
    [
        # 100 of 300 ns that are exposed wait for the late rank
        (300, {"tp": 300}, {"tp": 100}, {"tp": 300}, 200, {"tp": 200}),
        # a replay that costs less than what is left stays
        (100, {"tp": 100}, {"tp": 100}, {"tp": 300}, 100, {"tp": 100}),
        # waiting of one kind takes nothing from another, nor more than there is
        (300, {"tp": 200, "cp": 100}, {"tp": 500}, {"tp": 200, "cp": 100}, 100, {"tp": 0, "cp": 100}),
        (300, {"tp": 300}, {}, {"tp": 300}, 300, {"tp": 300}),
    ],
)
def test_what_waits_for_a_late_rank_is_no_cost_that_communication_could_win(
    cost: int, kinds: dict[str, int], waits: dict[str, int], exposed: dict[str, int], left: int,
    left_kinds: dict[str, int],
) -> None:  # fmt: skip
    late = LateRank(Cause.SLOW_HOST, None, waits, exposed)
    found = without_waits(wall(cost, **kinds), late)
    assert (found.cost_ns, found.cost_by_kind_ns) == (left, left_kinds)
    assert found.cost_frac == pytest.approx(left / 1_000)
