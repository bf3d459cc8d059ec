"""Interval algebra, in one home: everything that measures time composes these.

An interval is half open, [start, end), in integer nanoseconds.
"""

from typing import Final, Protocol

import numpy as np

from traces.arrays import (
    BoolArray,
    IntArray,
    Lasting,
    columns_of,
    ranges_of,
    summed,
    sums_before,
    zeros,
)
from traces.frozen import frozen

_EVER: Final = np.iinfo(np.int64)


@frozen
class Spans(Lasting):
    """A set of instants: disjoint intervals in order, none empty, none touching. Arrays of shape
    (n,).
    """

    start_ns: IntArray
    end_ns: IntArray

    @property
    def total_ns(self) -> int:
        return summed(self.length_ns)

    def pairs(self) -> list[list[int]]:
        return np.column_stack((self.start_ns, self.end_ns)).tolist()

    def hold(self, time_ns: IntArray) -> BoolArray:
        """Which instants are in the set, shape (n,)."""
        return covered_ns(time_ns, time_ns + 1, self) > 0


class Timed(Protocol):
    """Rows that each last from start to end, shape (n,)."""

    @property
    def start_ns(self) -> IntArray: ...
    @property
    def end_ns(self) -> IntArray: ...


def instants_of(rows: Timed, which: BoolArray | IntArray | slice = slice(None)) -> Spans:
    """Instants at which any of some rows lasts."""
    return union(rows.start_ns[which], rows.end_ns[which])


def instants_in(
    windows: Spans, rows: Timed, which: BoolArray | IntArray | slice = slice(None)
) -> Spans:
    """Instants of some windows at which any of some rows lasts."""
    return intersect(instants_of(rows, which), windows)


def ns_in(rows: Timed, by: Spans) -> IntArray:
    """Of each row, shape (n,), how many nanoseconds lie in `by`."""
    return covered_ns(rows.start_ns, rows.end_ns, by)


def union(start_ns: IntArray, end_ns: IntArray) -> Spans:
    """Instants that any of the intervals holds; shape (n,) each, any order, empty ones allowed."""
    real = end_ns > start_ns
    start, end = start_ns[real], end_ns[real]
    if not len(start):
        return Spans(start, end)
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start)
        start, end = start[order], end[order]
    end = np.maximum.accumulate(end)
    first = np.append(True, start[1:] > end[:-1])
    return Spans(start[first], end[np.append(first[1:], True)])


def spans(*pairs: tuple[int, int]) -> Spans:
    """The union of intervals written out."""
    return union(*columns_of(pairs, 2))


def intersect(a: Spans, b: Spans) -> Spans:
    """Instants in both sets."""
    if len(a) > len(b):
        a, b = b, a
    first = np.searchsorted(b.end_ns, a.start_ns, "right")
    count = np.searchsorted(b.start_ns, a.end_ns) - first
    of = np.repeat(np.arange(len(a)), count)
    met = ranges_of(first, first + count)
    return Spans(
        np.maximum(a.start_ns[of], b.start_ns[met]), np.minimum(a.end_ns[of], b.end_ns[met])
    )


def subtract(a: Spans, b: Spans) -> Spans:
    """Instants in `a` and not in `b`."""
    return intersect(a, Spans(np.append(_EVER.min, b.end_ns), np.append(b.start_ns, _EVER.max)))


def join(a: Spans, b: Spans) -> Spans:
    """Instants in either set."""
    return union(np.concatenate((a.start_ns, b.start_ns)), np.concatenate((a.end_ns, b.end_ns)))


def covered_ns(start_ns: IntArray, end_ns: IntArray, by: Spans) -> IntArray:
    """Of each interval [start, end), shape (n,), how many nanoseconds lie in `by`."""
    if len(by) == 1:  # most often one window
        only = by.start_ns[0], by.end_ns[0]
        return np.clip(end_ns, *only) - np.clip(start_ns, *only)
    return _held_before(by, end_ns) - _held_before(by, start_ns)


def first_come(start_ns: IntArray, end_ns: IntArray) -> IntArray:
    """Give each instant to the interval that comes first: where each interval's own part begins.

    Intervals of shape (n,) stand in order of precedence, which must be an order of start. Interval
    i owns [result[i], end[i]), empty where result[i] >= end[i]: the instants when all before it
    have ended. The owned parts are disjoint, in order, and their union is the union of the
    intervals.
    """
    if not len(start_ns):
        return start_ns.copy()
    covered_until = np.maximum.accumulate(end_ns)
    own_start = start_ns.copy()
    own_start[1:] = np.maximum(start_ns[1:], covered_until[:-1])
    return own_start


def _held_before(held: Spans, time_ns: IntArray) -> IntArray:
    """How many nanoseconds of `held` lie before each time."""
    if not len(held):
        return zeros(len(time_ns))
    lengths = sums_before(held.length_ns)
    index = np.searchsorted(held.start_ns, time_ns, "right")
    running_over = np.where(index > 0, held.end_ns[index - 1] - time_ns, 0)
    return lengths[index] - np.maximum(running_over, 0)
