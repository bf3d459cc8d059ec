"""Which ranks share a clock, and clocks put together, or what is not said where they cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.recordings.ranks import MS, US, Part, Work, many, shifted, summary_of, together
from traces.ranks.matching.match import match
from traces.ranks.one_run import align as clocks
from traces.ranks.one_run.align import agreed, align, with_own_clocks
from traces.ranks.one_run.together import put_together
from traces.ranks.replay.run import measure_run
from traces.ranks.summaries.summary import Group, GroupSource, Operation, RankSummary


def ranks_of(collectives: int = 40) -> list[RankSummary]:
    """Four ranks of one recording, the third with a slow device."""
    works = [[Work(compute=130 if rank == 2 else 100, host=2)] * collectives for rank in range(4)]
    kernels = [[13.0] * 3 if rank == 2 else [10.0] * 3 for rank in range(4)]
    ranks = together(works, per_step=10, kernels_us=kernels)
    return [of_file(one, process=100 + place) for place, one in enumerate(ranks)]


def of_file(one: RankSummary, process: int) -> RankSummary:
    return replace(one, identity=replace(one.identity, clock=7, process=process))


def clocks_of(ranks: list[RankSummary]) -> list[int]:
    return [one.identity.clock for one in ranks]


def test_each_process_has_a_clock_and_two_gpus_of_one_process_share_it() -> None:
    ranks = ranks_of()
    assert clocks_of(with_own_clocks(ranks)) == [0, 1, 2, 3]
    ranks[1] = of_file(ranks[1], process=100)
    assert clocks_of(with_own_clocks(ranks)) == [0, 0, 1, 2]


def test_of_few_collectives_the_clock_of_the_recording_is_believed() -> None:
    """Two ends fit no clock; in one recording none is needed, unless they contradict it."""
    ranks = ranks_of(collectives=2)
    assert measure_run(ranks).aligned.clocks.aligned
    alone = [
        replace(one, identity=replace(one.identity, clock=50 + place)) for place, one in enumerate(ranks)
    ]
    apart = measure_run(alone).aligned.clocks
    assert not apart.aligned
    assert apart.missing is not None
    assert "too few" in apart.missing.reason
    ranks[3] = shifted(ranks[3], 500 * MS)
    assert not measure_run(ranks).aligned.clocks.aligned


@pytest.mark.parametrize(("off_us", "clocks"), [(50, [7, 7]), (51, [0, 1])])
def test_processes_have_clocks_of_their_own_where_most_that_ends_on_all_at_once_contradicts_one(
    off_us: int, clocks: list[int]
) -> None:
    """Three reductions of five; each rank ends the exchanges by itself."""
    kinds = [Operation.ALL_REDUCE] * 5 + [Operation.EXCHANGE] * 3
    ranks = []
    for rank in range(2):
        later = [rank * (off_us if number < 3 else 7) for number in range(8)]
        ends = [99 * number + 20 + later[number] for number in range(8)]
        parts = [Part(0, number, 99 * number, ends[number], kind) for number, kind in enumerate(kinds)]
        ranks.append(of_file(summary_of(rank, parts), process=100 + rank))
    assert clocks_of([*put_together(ranks).used]) == clocks


S = 1_000_000_000


def test_of_many_collectives_some_give_the_same_clocks_and_the_few_that_join_groups_all_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranks = [  # two groups of four, with 600 collectives each and five in common
        shifted(one, 7 * place * S, 9.0 * place)
        for place, one in enumerate(many(8, group_size=4, step_count=5, per_step=120, late=3))
    ]
    matched = match(ranks)
    some = align(ranks, matched)
    monkeypatch.setattr(clocks, "MOST_ENDS", replace(clocks.MOST_ENDS, value=1 << 40))
    every = align(ranks, matched)
    assert some.clocks.aligned
    assert every.clocks.aligned
    assert np.abs(some.start_ns - every.start_ns).max() <= 20


def test_clocks_that_hold_together_by_kinds_that_contradict_them_are_not_one() -> None:
    """Two pairs meet a hundred times each, and all four ten times; most of the ten contradict."""
    times = [(0, number, 100.0 * number) for number in range(100)]
    times += [(1, number, 100.0 * (10 * number) + 50) for number in range(10)]
    ranks = []
    for rank in range(4):
        groups = [Group(GroupSource.COMMUNICATOR, rank // 2, 2), Group(GroupSource.COMMUNICATOR, 9, 4)]
        kinds = [Operation.ALL_REDUCE, Operation.ALL_GATHER]
        some = [Part(group, number, at, at + 20, kinds[group]) for group, number, at in times]
        ranks.append(summary_of(rank, some, groups))
    matched = match(ranks)
    aligned = align(ranks, matched)
    assert aligned.clocks.aligned
    of_all = np.flatnonzero(matched.sizes == 4)
    for contradict, holds in ((1, True), (8, False)):
        possible = np.ones(len(matched), dtype=np.bool_)
        possible[of_all[:contradict]] = False
        assert agreed(ranks, matched, aligned, possible).clocks.aligned is holds


def test_three_reductions_counted_from_another_step_weigh_less_than_messages_that_agree() -> None:
    """Two nodes of two ranks; the second's windows begin a step later, so that its reductions are counted so.

    Each node has one clock. Many ranks of a clock take part in a reduction, and it is one end all the same.
    """
    step_us = 1000.0
    ranks = []
    for rank in range(4):
        later = step_us * (rank // 2)
        parts = [
            Part(0, number, step_us * number + later, step_us * number + later + 20) for number in range(3)
        ]
        groups = [Group(GroupSource.COMMUNICATOR, 9, 4)]
        if rank in (1, 2):
            groups.append(Group(GroupSource.COMMUNICATOR, 5, 2, own=rank - 1))
            times = [(number, 300.0 * number + 50) for number in range(12)]
            parts += [Part(1, number, at, at + 20, Operation.EXCHANGE) for number, at in times]
        ranks.append(summary_of(rank, parts, groups))
    for place, rank_of_node in enumerate(ranks):
        object.__setattr__(rank_of_node.identity, "clock", place // 2)
    found = align(ranks, match(ranks)).clocks
    assert found.aligned
    assert all(abs(fit.offset_ns) < US for fit in found.fits)
    assert not align(ranks, replace(match(ranks), agreed=False)).clocks.aligned


def test_a_clock_that_few_ends_leave_unknown_by_much_is_none_though_most_ends_agree() -> None:
    """Four ends, of which one is 20 us off or 40: the clock may be off by twice as much."""
    for off_us, aligned in ((20, True), (40, False)):
        ends = [[1_000.0, 2_000, 3_000, 4_000], [1_000.0, 2_000, 3_000 + off_us, 4_000]]
        parts = [[Part(0, number, end - 90, end) for number, end in enumerate(each)] for each in ends]
        ranks = [summary_of(rank, each) for rank, each in enumerate(parts)]
        assert align(ranks, match(ranks)).clocks.aligned is aligned


@pytest.mark.parametrize(("ppm", "aligned"), [(190, True), (-190, True), (210, False), (-210, False)])
def test_clocks_that_drift_apart_faster_than_clocks_do_are_none_and_those_since_1970_are_exact(
    ppm: float, aligned: bool
) -> None:
    first, second = together([[Work(compute=1_000)] * 40] * 2, per_step=10)
    ranks = [shifted(first, 1_700_000_000 * S), shifted(second, 1_700_000_000 * S, ppm)]
    found = align(ranks, match(ranks))
    assert found.clocks.aligned is aligned
    assert (int(np.ptp(found.end_ns.reshape(-1, 2), axis=1).max()) <= 2) is aligned
