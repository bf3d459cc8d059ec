"""Waiting and moving, by figures one can add in the head."""

from __future__ import annotations

from tests.recordings.ranks import US, Part, summary_of
from traces.arrays import IntArray
from traces.ranks.clocks import Aligned, Clocks
from traces.ranks.match import Matched, match
from traces.ranks.summary import Group, GroupSource, Operation
from traces.ranks.waits import NOBODY, Waits, measure_waits

ONE_CLOCK = Clocks(True, 0, ())


def waits_of(
    times_us: list[tuple[float, float]],
    operation: Operation = Operation.ALL_REDUCE,
    *,
    size: int | None = None,
    aligned: bool = True,
    all_seen: bool = True,
) -> tuple[Matched, Waits]:
    group = [Group(GroupSource.COMMUNICATOR, 1, size)]
    ranks = [summary_of(n, [Part(0, 0, *each, operation)], group) for n, each in enumerate(times_us)]
    matched = match(ranks)
    clocks = ONE_CLOCK if aligned else Clocks(False, None, ())
    return matched, measure_waits(
        matched, Aligned(matched.start_ns, matched.end_ns, clocks), all_ranks_seen=all_seen
    )


def in_us(values: IntArray) -> list[float]:
    return [value / US for value in values.tolist()]


def test_the_shortest_takes_the_transfer_and_the_others_waited() -> None:
    _, waits = waits_of([(0, 130), (100, 130), (40, 130)])
    assert (in_us(waits.transfer_ns), in_us(waits.wait_ns)) == ([30], [100, 0, 60])
    assert in_us(waits.moving_ns) == [30, 30, 30]
    assert waits.last.tolist() == [1]


def test_in_an_exchange_each_waits_until_the_last_is_there_and_moves_for_itself() -> None:
    _, waits = waits_of([(0, 60), (10, 120), (20, 60)], Operation.EXCHANGE)
    assert (in_us(waits.wait_ns), in_us(waits.moving_ns)) == ([20, 10, 0], [40, 100, 40])
    assert waits.last.tolist() == [2]


def test_of_those_that_move_nearly_as_long_who_started_last_is_the_last() -> None:
    _, waits = waits_of([(0, 1500), (500, 1500), (501, 1505)])
    assert (in_us(waits.transfer_ns), waits.last.tolist()) == ([1000], [2])


def test_without_one_clock_durations_stay_and_nobody_is_late() -> None:
    _, waits = waits_of([(0, 130), (900, 930), (40, 130)], aligned=False)
    assert (in_us(waits.wait_ns), waits.last.tolist()) == ([100, 0, 60], [NOBODY])


def test_nobody_is_late_where_a_rank_of_the_group_was_not_recorded() -> None:
    times: list[tuple[float, float]] = [(0, 50), (40, 50)]
    assert waits_of(times, size=3)[1].last.tolist() == [NOBODY]
    assert waits_of(times, all_seen=False)[1].last.tolist() == [NOBODY]
    assert waits_of(times, size=2, all_seen=False)[1].last.tolist() == [1]


def test_nobody_is_late_where_nobody_waited() -> None:
    assert waits_of([(0, 50), (0, 50)])[1].last.tolist() == [NOBODY]


def test_of_several_that_came_last_the_first_is_named() -> None:
    assert waits_of([(0, 50), (40, 50), (40, 50)])[1].last.tolist() == [1]
