"""Figures by part, what came last before a time, and clocks: each the same by plain loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.recordings.ranks import ALIKE, array
from traces.arrays import IntArray, sums_before
from traces.ranks.clocks.clock_fit import ClockFit, Fits, fit_clocks, scatter_ns
from traces.ranks.matching.gathered import JoinedSequences, best_of
from traces.ranks.rows import parts
from traces.ranks.rows.ends import NO_ROW, ByTime
from traces.ranks.waiting.side_by_side import (
    Alike,
    excess,
    means,
    middles,
    over_others,
    ratio,
    rounded,
    times_usual,
)

VALUES = st.integers(-9, 9)
PARTS = st.lists(st.lists(VALUES, min_size=1, max_size=5), min_size=1, max_size=6)


def flat(several: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    return array([one for each in several for one in each]), sums_before(array(list(map(len, several))))


def middle(values: Sequence[int]) -> int:
    return int(median(values) // 1) if values else 0


@given(PARTS)
@example([[5, 1, 3], [4]])
def test_figures_of_parts_are_those_of_each_part_alone(several: list[list[int]]) -> None:
    values, first = flat(several)
    assert first.tolist() == [sum(map(len, several[:place])) for place in range(len(several) + 1)]
    ways: list[tuple[Callable[[IntArray, IntArray], IntArray], Callable[[list[int]], int]]] = [
        (parts.most, max), (parts.least, min), (parts.total, sum), (parts.median, middle),
    ]  # fmt: skip
    for together, alone in ways:
        assert together(values, first).tolist() == list(map(alone, several))
    number = [place for place, each in enumerate(several) for _ in each]
    assert parts.numbers(first).tolist() == parts.spread(np.arange(len(several)), first).tolist() == number
    tops = [max(each) for each in several]
    at = [first[place] + each.index(tops[place]) for place, each in enumerate(several)]
    assert parts.first_most(values, first).tolist() == at
    assert parts.begins_of(array(number)).tolist() == first.tolist()


@given(st.lists(st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=5), min_size=1, max_size=6))
def test_medians_of_what_is_wanted_are_those_of_the_wanted_alone(
    several: list[list[tuple[int, bool]]],
) -> None:
    values, first = flat([[value for value, _ in each] for each in several])
    wanted = np.array([is_wanted for each in several for _, is_wanted in each])
    some = [[value for value, is_wanted in each if is_wanted] for each in several]
    assert parts.median(values, first, wanted).tolist() == list(map(middle, some))
    number = parts.numbers(first)
    found, has = parts.medians(values[wanted][::-1], number[wanted][::-1], len(several) + 1)
    assert (found.tolist(), has.tolist()) == ([*map(middle, some), 0], [*map(bool, some), False])
    summed = parts.sums(values[wanted], number[wanted], len(several) + 1)
    assert summed.tolist() == [*map(sum, some), 0]


@given(st.lists(st.integers(0, 6), max_size=12), st.sampled_from([7, 1 << 16, 1 << 60]))
def test_rows_by_part_number_keep_their_order(part: list[int], count: int) -> None:
    some = array([one * (count // 7) for one in part])
    assert parts.order_of(some, count).tolist() == sorted(range(len(part)), key=part.__getitem__)


@given(st.lists(st.sets(st.integers(0, 7), min_size=1, max_size=3), max_size=6))
def test_values_in_one_part_have_one_number(several: list[set[int]]) -> None:
    values, first = flat([sorted(each) for each in several])
    leader = list(range(8))
    for each in several:
        mine = {leader[one] for one in each}
        leader = [min(mine) if one in mine else one for one in leader]
    assert parts.joined(values, first, 8).tolist() == leader


@given(
    st.lists(st.tuples(st.integers(0, 2), VALUES), max_size=9),
    st.lists(st.tuples(st.integers(0, 2), st.integers(-12, 12)), min_size=1, max_size=9),
)
def test_the_last_row_of_a_place_by_a_time_is_that_of_a_loop(
    rows: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    by_time = ByTime(array([place for place, _ in rows]), array([ns for _, ns in rows]))
    in_order = sorted(range(len(rows)), key=lambda row: rows[row])
    assert by_time.rows.tolist() == in_order
    before = [
        [NO_ROW, *(row for row in in_order if rows[row][0] == place and rows[row][1] <= ns)][-1]
        for place, ns in asked
    ]
    found = by_time.before(array([place for place, _ in asked]), array([ns for _, ns in asked]))
    assert found.tolist() == before


@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=6))
def test_a_rank_is_held_beside_the_median_of_the_others_that_are_like_it(rows: list[list[int]]) -> None:
    """The first rank is like nobody; a 9 stands for what is not known."""
    table = np.where(np.array(rows) == 9, np.nan, rows).astype(np.float64)
    alike = (Alike(ALIKE, (0,)), Alike(ALIKE, tuple(range(1, len(rows)))))
    expected = np.full((2, *table.shape), np.nan)
    for rank in range(1, len(rows)):
        for step in range(4):
            others = [table[one, step] for one in range(1, len(rows)) if one != rank]
            others = [one for one in others if not np.isnan(one)]
            if others and not np.isnan(table[rank, step]):
                expected[0, rank, step] = table[rank, step] - median(others)
                if median(others):
                    expected[1, rank, step] = table[rank, step] / median(others)
    assert np.array_equal(excess(table, alike), expected[0], equal_nan=True)
    assert np.array_equal(ratio(table, alike), expected[1], equal_nan=True)
    known = [[int(one) for one in row if not np.isnan(one)] for row in table]
    assert rounded(means(table)) == [sum(row) // len(row) if row else None for row in known]
    assert rounded(middles(table)) == [middle(row) if row else None for row in known]


def test_of_no_steps_there_is_no_median_and_of_no_others_nothing_is_usual() -> None:
    assert rounded(middles(np.zeros((2, 0)))) == [None, None]
    assert np.isnan(over_others(np.array([5.0]))).all()
    took, beyond = np.array([12.0, 10, 10, 2]), np.array([2.0, 0, 10, 1])
    assert np.array_equal(times_usual(took, beyond), [1.2, 1.0, np.nan, 2], equal_nan=True)


def test_a_clock_that_is_ahead_and_gains_is_put_back_by_both() -> None:
    """At its 1 s it is 500 ns ahead; a second later it has gained 10 us more."""
    fit = ClockFit(0, 1_000_000_000, 500, 10.0)
    own = [1_000_000_000, 2_000_000_000, 0]
    assert fit.times_of(array(own)).tolist() == [999_999_500, 1_999_989_500, 9_500]


@pytest.mark.parametrize("base_ns", [0, 1 << 50])
def test_how_far_times_of_two_clocks_scatter_does_not_count_offset_and_drift(base_ns: int) -> None:
    own = base_ns + np.arange(0, 1_000_000, 100_000)
    other = own + 700 + np.arange(10) * 10  # 10 ns each 100 us: 100 ppm
    other[::5] += 40
    assert scatter_ns(own, other) == 0
    assert scatter_ns(own, other + 70 * (np.arange(10) % 2)) == pytest.approx(35, abs=5)
    assert scatter_ns(array([5, 5, 5]), array([9, 9, 12])) == 0  # at one time, no drift
    assert scatter_ns(array([0, 1]), array([0, 2])) == pytest.approx((1 - 2e-4) / 2)  # no clock drifts more
    assert scatter_ns(own - base_ns, own - base_ns + (own - base_ns) // 1_000) > 0  # faster than clocks drift


def fitted(times: Sequence[float], clock: Sequence[int], size: int = 2) -> Fits:
    first = np.arange(0, len(times) + 1, size)
    return fit_clocks(np.array(times, dtype=np.float64), np.array(clock), first, max(clock) + 1)


def test_clocks_are_fitted_together_and_those_that_too_few_moments_tie_are_not_known() -> None:
    """Clock 1 is 300 ns behind, 2 gains 20 ppm: in each of ten moments; 3 has two with 2."""
    true = np.repeat(np.arange(10) * 1e8, 3)
    clock = np.tile([0, 1, 2], 10)
    end = np.where(clock == 1, true - 300, np.where(clock == 2, true / (1 - 2e-5), true))
    found = fitted(end.tolist(), clock.tolist(), 3)
    at_begin = found.times_of(np.zeros(3), np.arange(3))
    assert at_begin == pytest.approx([0, 300, 0], abs=1)
    assert found.slope == pytest.approx([0, 0, -2e-5], abs=1e-9)
    more = fitted([*end[clock > 0], *end[clock == 2][:2], 1.0, 2.0][:24], [1, 2] * 10 + [2, 3] * 2)
    assert more.known.tolist() == [False, True, True, False]
    assert [*more.clocks([7, 8, 9, 6], array([0, 0, 0, 0]))] == [8, 9]


def test_most_of_the_moments_decide_whichever_tie_the_clocks_first() -> None:
    """Of clocks 0 and 1 five of thirteen moments are 30 ms off; 2 meets 0 in wrong ones, 1 in right ones."""
    at = np.arange(13) * 1e6
    off = np.where(np.arange(13) % 3 == 0, 3e7, 0.0)
    wrong, right = np.stack((at, at + off), axis=1), np.stack((at, at), axis=1)
    times = np.concatenate((wrong, wrong[off > 0, ::-1], right)).ravel().tolist()
    found = fitted(times, [0, 1] * 13 + [0, 2] * 5 + [1, 2] * 13)
    assert found.times_of(np.full(3, 6e6), np.arange(3)) == pytest.approx([6e6] * 3, abs=5_000)


def test_over_a_short_time_half_of_what_looks_like_drift_is_scatter() -> None:
    """Of 20 ppm half are left where squares of times add up to 1e11: two ends are 2 ns off, two 1, five 0."""
    at = np.array([-2e5, -1e5, 0, 0, 0, 0, 0, 1e5, 2e5])
    found = fitted(np.stack((at, at * (1 + 2e-5)), axis=1).ravel().tolist(), [0, 1] * 9)
    assert found.slope == pytest.approx([0, -1e-5], rel=1e-3)
    assert found.within_ns == pytest.approx([0, 2], rel=1e-3)  # twice the sixth of nine
    assert found.slope_within == pytest.approx([0, 3 / 1e11**0.5], rel=1e-3)


def test_groups_that_come_together_keep_their_shifts_against_each_other() -> None:
    """0 and 1 are two apart, 2 and 3 five; 3 is one ahead of 1, so that 2 is four behind it."""
    gathered = JoinedSequences(5)
    gathered.join(0, 1, 2)
    gathered.join(2, 3, 5)
    gathered.join(1, 3, 1)
    gathered.join(0, 3, 9)  # they are one already
    assert gathered.groups() == [[(0, 0), (1, 2), (2, -2), (3, 3)], [(4, 0)]]
    assert best_of({(0, 1): (5.0, 0), (1, 2): (3.0, 1)}, 4) == [5, 3, 3, float("inf")]
