from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from traces.statistics.permutation import Shift, least_p, shifts_of
from traces.statistics.student import student

WHOLE: int = 420
"""Divided by 1 to 7 it is whole, and so are all means of a few multiples."""

few = some.lists(some.integers(0, 40).map(WHOLE.__mul__), min_size=4, max_size=6)


def chances_by_trying(base_ns: list[int], new_ns: list[int], shift_ns: int = 0) -> tuple[Fraction, Fraction]:
    """Of all ways to share out the steps, new less a shift, in how many new is as long, or as short."""
    shifted = [one - shift_ns for one in new_ns]
    whole, recorded = [*base_ns, *shifted], sum(shifted)
    sums = [sum(way) for way in combinations(whole, len(new_ns))]
    return (
        Fraction(sum(one >= recorded for one in sums), len(sums)),
        Fraction(sum(one <= recorded for one in sums), len(sums)),
    )


def found(base_ns: list[int], new_ns: list[int]) -> Shift:
    return shifts_of(base_ns, new_ns, 0.95)


def test_four_against_four_without_overlap_are_one_of_35_and_the_interval_ends_where_they_would_touch() -> (
    None
):
    shift = found([10, 11, 12, 13], [20, 21, 22, 25])
    assert (shift.p, shift.ways, shift.is_exact) == (Fraction(1, 35), 70, True)
    assert (shift.low_ns, shift.high_ns) == (20 - 13, 25 - 10)


@pytest.mark.parametrize(("counts", "least"), [((3, 3), 10), ((4, 4), 35), ((3, 5), 28), ((2, 2), 3)])
def test_the_least_p_is_that_of_steps_which_do_not_overlap(counts: tuple[int, int], least: int) -> None:
    assert least_p(*counts) == Fraction(1, least)


@settings(max_examples=60)
@given(few, few)
def test_p_is_what_trying_every_way_gives(base_ns: list[int], new_ns: list[int]) -> None:
    longer, shorter = chances_by_trying(base_ns, new_ns)
    assert found(base_ns, new_ns).p == min(1, 2 * min(longer, shorter))


@settings(max_examples=60)
@given(few, few)
def test_the_interval_holds_the_shifts_that_are_not_refused_and_no_other(
    base: list[int], new: list[int]
) -> None:
    """Equal counts, where nothing widens it: at each end the test still takes both for one, beyond not."""
    count = min(len(base), len(new))
    base, new = base[:count], new[:count]
    shift = found(base, new)
    for end, beyond in ((shift.low_ns, -1), (shift.high_ns, 1)):
        assert min(chances_by_trying(base, new, end)) > Fraction(1, 40)
        assert min(chances_by_trying(base, new, end + beyond)) <= Fraction(1, 40)


def test_with_other_counts_the_interval_is_no_narrower_than_welch_s() -> None:
    """4 steps of mean 5 and variance 20/3 against 8 that never vary: 3 degrees, t = 3.182, error 1.291."""
    shift = found([0] * 8, [2, 4, 6, 8])
    assert (shift.low_ns, shift.high_ns, shift.by_spread) == (5 - 5, 5 + 5, True)
    assert shift.p == Fraction(2, 495)


def test_too_many_ways_are_drawn_and_agree_with_all_of_them() -> None:
    rng = Random(3)
    base_ns, new_ns = ([rng.randrange(10**6) for _ in range(count)] for count in (40, 5))
    drawn = found(base_ns, new_ns)
    assert (drawn.is_exact, drawn.ways) == (False, 20_001)
    longer, shorter = chances_by_trying(base_ns, new_ns)
    assert float(drawn.p) == pytest.approx(float(2 * min(longer, shorter)), abs=0.02)


def test_counts_that_can_refuse_nothing_raise() -> None:
    with pytest.raises(ValueError, match="3 and 3 steps"):
        found([1, 2, 3], [7, 8, 9])


@pytest.mark.parametrize(
    ("freedom", "t"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (7, 2.3646), (30, 2.0423)]
)
def test_student_s_t_is_that_of_the_tables(freedom: int, t: float) -> None:
    assert student(0.95, freedom) == pytest.approx(t, abs=1e-4)
