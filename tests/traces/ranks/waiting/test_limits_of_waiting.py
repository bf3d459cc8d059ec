"""Waiting and moving, votes, nodes, pauses and experts: at each limit a case, and one just below."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.recordings.ranks import US, Part, array, summary_of
from traces.arrays import FloatArray
from traces.ranks.matching.match import Matched, match
from traces.ranks.one_run.align import Aligned, Clocks
from traces.ranks.summaries.summary import UNKNOWN, Group, GroupSource
from traces.ranks.waiting.charge import _folded, charge, lay_by_step
from traces.ranks.waiting.routing import _hot
from traces.ranks.waiting.side_by_side import Excess, Grid, slowness_before
from traces.ranks.waiting.turns import counted_from_one_step
from traces.ranks.waiting.waits import Waits, ends_at_once, measure_waits

ONE_CLOCK = Clocks(True, 0, ())


def measured(*ranks: Sequence[Part], groups: Sequence[Group] | None = None) -> tuple[Matched, Aligned, Waits]:
    """Ranks of one group of all, or of `groups`, on one clock."""
    several = groups or [Group(GroupSource.COMMUNICATOR, 7, len(ranks))]
    matched = match([summary_of(rank, parts, several) for rank, parts in enumerate(ranks)])
    aligned = Aligned(matched.start_ns, matched.end_ns, ONE_CLOCK)
    return matched, aligned, measure_waits(matched, aligned)


def grid_of(steps: int = 4, *, ranks: int = 4, step_us: float = 10_000, **tables: FloatArray) -> Grid:
    names = ("length_ns", "compute_ns", "grouped_ns", "exposed_comm_ns", "host_ns", "loader_ns", "pace_ns")
    usual = {name: np.zeros((ranks, steps)) for name in names} | {
        "length_ns": np.full((ranks, steps), step_us * US)
    }
    return Grid(array([0] * ranks), **usual | tables)


def test_who_started_last_by_more_than_clocks_and_a_percent_is_the_last() -> None:
    """Of 1 ms a percent is 10 us: who is 10 us longer may be last, who is 11 us longer may not."""
    for longer, last in ((10, 1), (11, 0)):
        _, _, waits = measured([Part(0, 0, 0, 1_000)], [Part(0, 0, 5, 1_005 + longer)])
        assert waits.last.tolist() == [last]


def test_of_steps_that_share_a_column_the_mean_of_those_known_stands_in_it() -> None:
    table = np.array([[1.0, 3, np.nan, 5, 9], [np.nan, np.nan, 2, 4, np.nan]])
    expected = np.array([[2.0, 5, 9], [np.nan, 3, np.nan]])
    assert np.array_equal(_folded(table, 2), expected, equal_nan=True)
    assert _folded(table, 1) is table


def test_numbers_are_counted_from_the_latest_step_in_which_a_group_begins() -> None:
    groups = [Group(GroupSource.COMMUNICATOR, key, 2) for key in (1, 2)]
    parts = [Part(0, 7 + n, 100 * n, 100 * n + 10, step=n // 2) for n in range(6)]
    parts += [Part(1, 3 + n, 100 * n + 50, 100 * n + 60, step=n // 2) for n in range(3, 6)]
    matched, _, _ = measured(parts, parts, groups=groups)
    step = matched.step[matched.first[:-1]]
    turned = counted_from_one_step(matched, grid_of(3, ranks=2), step)
    assert turned.sequence.tolist() == [-2, -1, 0, 1, 2, 3, 0, 1, 2]
    nowhere = counted_from_one_step(matched, grid_of(3, ranks=2), step * 0 + UNKNOWN)
    assert nowhere is matched


def test_a_gpu_is_as_slow_as_always_or_as_in_that_step_where_that_is_more() -> None:
    """Of 6 us of dense compute 2 are beyond like ranks, of the last 6 us 3; the second is always slower."""
    parts = [Part(0, step + 1, 20 * step, 20 * step + 9, step=step) for step in (0, 1, UNKNOWN)]
    matched, _, _ = measured(parts, parts)
    compute, grouped = np.full((2, 2), 10.0), np.array([[4, np.nan], [4, 4]])
    grid = grid_of(2, ranks=2, compute_ns=compute, grouped_ns=grouped)
    excess = Excess(np.array([[2.0, 0], [0, 3]]), *[np.full((2, 2), 9.0)] * 3)
    found = slowness_before(matched, grid, excess, np.array([np.nan, 1.5]))
    assert found.tolist() == [1, 1.5, 1.5, 1.5, 1, 2]


def test_many_steps_share_columns_on_a_page_and_those_of_many_ranks_sooner() -> None:
    matched, _, waits = measured([Part(0, 0, 0, 10, step=0)], [Part(0, 0, 5, 10, step=0)])
    for steps, ranks, each in ((48, 4, 1), (49, 4, 2), (24, 2_730, 1), (25, 2_730, 2), (1, 70_000, 1)):
        grid = grid_of(steps, ranks=ranks, step_us=0.5)
        table = lay_by_step(matched, waits, charge(matched, waits, grid, array([0])), grid)
        assert (table.steps_per_column, table.waited_ns.shape) == (each, (ranks, -(-steps // each)))


def test_one_rank_is_hot_with_four_fifths_in_each_group_half_as_uneven_as_the_worst() -> None:
    matched: Any = SimpleNamespace(group=array([0, 0, 1]), place=array([0, 1, 2]))
    for above, half, hot in ((8.0, 0.2, (0, 2)), (8.0, 0.19, (0,)), (7.9, 0.2, ()), (0.0, 0.0, ())):
        above_ns = np.array([above, 2.0, 5.0]) * (above > 0)
        assert _hot(matched, array([0, 1, 2]), above_ns, np.array([0.4, half])) == hot


def test_transfers_end_at_once_within_ten_microseconds_or_a_percent() -> None:
    moving = array([0, 10_000, 0, 10_001, 2_000_000, 1_980_000, 2_000_000, 1_979_999])
    assert ends_at_once(moving, array([0, 2, 4, 6, 8])).tolist() == [True, False, True, False]
