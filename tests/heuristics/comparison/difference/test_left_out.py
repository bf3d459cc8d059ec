"""Where a side leaves out many steps as hiccups, a difference has to hold with them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from heuristics.comparison.difference.left_out import (
    counted_too,
    counts_hiccups,
    leaves_out_many,
    left_out_alike,
)
from heuristics.comparison.size import _left_out
from traces.statistics.interval import Interval, interval_of


def rank(lengths_ns: Sequence[int], slow: Sequence[int] = ()) -> Any:
    """A rank with these steps, of which some are left out as hiccups, and a warm-up left out before them."""
    steps = [SimpleNamespace(index=place, length_ns=ns)
        for place, ns in enumerate(lengths_ns)]  # fmt: skip
    used = [one for one in steps if one.index not in slow]
    dropped = [SimpleNamespace(index=-1, length_ns=999), *(one for one in steps if one.index in slow)]
    used_ns = tuple(one.length_ns for one in used)  # all of them in kernels, one a step
    return SimpleNamespace(
        steps=SimpleNamespace(used=used, dropped=dropped, slow=tuple(slow)), lengths_ns=used_ns,
        budget_ns=SimpleNamespace(compute=sum(used_ns)),
        totals=SimpleNamespace(kernel_count=len(steps), kernel_work_ns=sum(lengths_ns)),
    )  # fmt: skip


def found(base: Any, new: Any) -> Interval:
    one, other = ([step.length_ns for step in side.steps.used] for side in (base, new))
    interval = interval_of(one, other)
    assert interval is not None
    return interval


QUICK, LATE = [100, 101, 99, 100] * 5, [100, 101, 99, 100, 200] * 8
ALL_USED, LEFT_OUT = rank(LATE), rank(LATE, slow=range(4, 40, 5))


def test_a_run_beside_itself_is_no_faster_for_leaving_out_what_the_other_counts() -> None:
    alone = found(ALL_USED, LEFT_OUT)
    assert alone.high_ns < 0
    both = counted_too(alone, ALL_USED, LEFT_OUT)
    whole = found(ALL_USED, ALL_USED)
    assert (both.low_ns, both.high_ns) == (min(alone.low_ns, whole.low_ns), whole.high_ns)
    assert both.high_ns >= 0
    assert both.method.endswith("; with and without the hiccups of each side")


def test_few_hiccups_are_left_out_as_they_were() -> None:
    """From three on, and from more than a tenth of the steps."""
    many = {(used, slow): leaves_out_many(rank([100] * (used + slow), slow=range(slow))) for used, slow in (
        *((20, 1), (8, 2), (2, 2), (27, 3), (26, 3), (1, 3), (100, 11), (98, 11)),
    )}  # fmt: skip
    assert [key for key, is_many in many.items() if is_many] == [(26, 3), (1, 3), (98, 11)]
    one = rank([*QUICK, 900], slow=(20,))
    alone = found(one, rank(QUICK))
    assert counted_too(alone, one, rank(QUICK)) == alone
    assert counted_too(found(ALL_USED, LEFT_OUT), LEFT_OUT, ALL_USED) != found(ALL_USED, LEFT_OUT)


def test_a_hiccup_counts_where_with_it_the_same_kernels_take_as_long_in_sum() -> None:
    """20 steps of 100 and one of 300 are as much as 21 of 110; one of 150 is less by most of it."""
    for hiccup, counts in ((300, True), (150, False)):
        base, new = rank([*[100] * 20, hiccup], slow=(20,)), rank([110] * 21)
        assert (counts_hiccups(base, new), counts_hiccups(new, base)) == (counts, counts)


def test_the_hiccups_of_both_sides_are_said_where_one_leaves_out_many_and_steps_give_the_interval() -> None:
    many, few = rank(LATE, slow=range(4, 40, 5)), rank(QUICK)
    said = "8 of 40 steps in base and 0 of 20 in new"
    sizes: list[Any] = [SimpleNamespace(source=source, ends_ns=ends, delta_frac=-1 / 6, between_runs=None)
        for source, ends in (("trace", (1, 9)), ("trace", None), ("log", (1, 9)))]  # fmt: skip
    assert [said in "".join(_left_out(size, many, few)) for size in sizes] == [True, False, False]
    assert [len([*_left_out(sizes[0], *sides)]) for sides in ((many, few), (few, few))] == [1, 0]


@pytest.mark.parametrize(("delta_frac", "is_said"), [(0.205, False), (0.18, True), (-0.001, True)])
def test_the_difference_with_steps_left_out_is_said_where_it_matters_or_has_another_sign(
    delta_frac: float, is_said: bool
) -> None:
    size: Any = SimpleNamespace(source="trace", ends_ns=None, delta_frac=delta_frac, between_runs=None)
    said = "with the steps left out, 0 of 3 steps in base and 1 of 3 in new: +20 %"
    assert [*_left_out(size, rank([100] * 3), rank([100, 160, 100], slow=(1,)))] == [said] * is_said


def test_both_sides_leave_out_what_is_as_long_as_the_shortest_hiccup_of_either_and_as_many_at_most() -> None:
    """Three times the usual step is 60 of 20. Of few both leave out the longest, or neither does."""
    even, one_late = rank([10, 11, 12, 10]), rank([10, 10, 30, 10], slow=(2,))
    eight_late = rank([10, 10, 30, 10] * 2, slow=(2, 6))
    for base, new, left in (
        (one_late, even, ((2,), (2,))),
        (one_late, rank([10, 12]), ((), ())),
        (eight_late, rank([20, 60, 20, 20] * 2), ((2, 6), (1, 5))),
        (eight_late, rank([20, 59, 20, 20] * 2), ((2, 6), ())),
        (one_late, rank([10, 30, 10, 31, 10, 32, 10, 10]), ((2,), (3, 5))),
        (rank([10] * 8 + [20, 40], slow=(8, 9)), rank([10, 25, 10, 10, 10], slow=(1,)), ((8, 9), (1,))),
        (rank([]), even, ((), ())),
    ):
        assert [sorted(side) for side in left_out_alike(base.steps, new.steps)] == [*map(list, left)]
        assert [sorted(side) for side in left_out_alike(new.steps, base.steps)] == [*map(list, left[::-1])]
