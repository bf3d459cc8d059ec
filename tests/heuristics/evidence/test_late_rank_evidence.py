"""A late rank as opinions see it: from the analysis of several ranks."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from heuristics.evidence.evidence import expert_waiting_frac, late_rank, observe
from tests.doubles.opinions import budget, rank
from tests.recordings.ranks import Work, together
from traces.missing import Missing
from traces.ranks.run import analyse_run
from traces.sections.cause import Cause
from traces.sections.run import Late, Run, RunWithout


@pytest.fixture(scope="module")
def run() -> Run:
    works = [[Work(compute=130 if one == 2 else 100, host=2)] * 30 for one in range(4)]
    kernels = [[13.0, 26.0] if one == 2 else [10.0, 20.0] for one in range(4)]
    return analyse_run(together(works, per_step=10, kernels_us=kernels))


def with_cause(run: Run, cause: Cause) -> Run:
    assert isinstance(run.late, Late)
    return replace(run, late=replace(run.late, cause=cause))


def test_what_waits_for_an_arrival_is_taken_from_what_other_changes_may_save(run: Run) -> None:
    found = late_rank(run, ())
    assert found is not None
    assert (found.cause, found.waits_ns) == (Cause.SLOW_DEVICE, run.late_exposed_by_kind_ns)
    assert isinstance(run.without, RunWithout)
    assert found.saved_frac == run.without.saved_frac


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


def test_the_late_rank_is_part_of_what_was_observed(run: Run) -> None:
    ranks = [rank(budget=budget(900, 100))] * 4
    alone, several = observe(ranks), observe(ranks, run)
    assert (alone.late, alone.observed.late_cause) == (None, None)
    assert several.late is not None
    assert several.observed.late_cause == Cause.SLOW_DEVICE
