"""Figures of rows by part: rows of one part stand together, and `first` says where each part
begins.
"""

from typing import TypeVar

import numpy as np

from traces.arrays import FOREVER, BoolArray, FloatArray, IntArray, sums_before, zeros
from traces.groups import begins, sorted_within

T = TypeVar("T", IntArray, FloatArray, BoolArray)
"""Figures, whole or not, and marks."""


def begins_of(*key: IntArray) -> IntArray:
    """Where each run of equal keys begins, and the end of the last, shape (parts + 1,)."""
    return np.append(np.flatnonzero(begins(*key)), len(key[0]))


def numbers(first: IntArray) -> IntArray:
    """The number of each row's part."""
    return np.repeat(np.arange(len(first) - 1), np.diff(first))


def order_of(part: IntArray, count: int) -> IntArray:
    """The rows by part number (below `count`), those of one part in their order.

    Small numbers sort fastest; larger ones are told apart by their rows, which any sort then keeps
    in order.
    """
    if count < 1 << 16:
        return np.argsort(part.astype(np.uint16), kind="stable")
    if count * len(part) < 1 << 62:
        return np.argsort(part * len(part) + np.arange(len(part)))
    return np.argsort(part, kind="stable")


def spread(values: T, first: IntArray) -> T:
    """A value of each part, for each of its rows."""
    return np.repeat(values, np.diff(first))


def most(values: T, first: IntArray) -> T:
    """The largest value of each part; parts are never empty."""
    return np.maximum.reduceat(values, first[:-1])


def least(values: T, first: IntArray) -> T:
    """The smallest value of each part; parts are never empty."""
    return np.minimum.reduceat(values, first[:-1])


def varies(values: T, first: IntArray) -> BoolArray:
    """Which parts have several values; parts are never empty."""
    return most(values, first) != least(values, first)


def total(values: T, first: IntArray) -> T:
    """The sum of each part; parts are never empty."""
    return np.add.reduceat(values, first[:-1])


def mean(values: IntArray | FloatArray, first: IntArray) -> FloatArray:
    """The mean of each part; parts are never empty."""
    return np.add.reduceat(values, first[:-1]) / np.diff(first)


def median(values: IntArray, first: IntArray, wanted: BoolArray | None = None) -> IntArray:
    """The median of each part (of an even number the mean of the two, rounded down), of the rows
    wanted.

    Where a part has no wanted row, 0.
    """
    if wanted is not None and not wanted.all():
        low = least(np.where(wanted, values, FOREVER), first)
        high = most(np.where(wanted, values, ~FOREVER), first)
        if (low >= high).all():  # sorting takes several times as long
            return np.where(low == high, low, 0)
        return medians(values[wanted], numbers(first)[wanted], len(first) - 1)[0]
    if _any_differ(values, first):
        values = sorted_within(numbers(first), values)
    return _middle(values, first)


def _any_differ(values: IntArray, first: IntArray) -> bool:
    other = values[1:] != values[:-1]
    other[first[1:-1] - 1] = False
    return bool(other.any())


def medians(values: IntArray, part: IntArray, count: int) -> tuple[IntArray, BoolArray]:
    """The median by part number, shape (count,), for rows in any order, and which parts have
    rows.
    """
    lengths = np.bincount(part, minlength=count)
    has = lengths > 0
    result = zeros(count)
    result[has] = _middle(sorted_within(part, values), sums_before(lengths[has]))
    return result, has


def _middle(values: IntArray, first: IntArray) -> IntArray:
    begin, count = first[:-1], np.diff(first)
    low, high = values[begin + (count - 1) // 2], values[begin + count // 2]
    return low + (high - low) // 2


def over(values: FloatArray, of: FloatArray, otherwise: float = np.nan) -> FloatArray:
    """Each over the other; `otherwise` where that is not above 0."""
    return np.divide(values, of, out=np.full(values.shape, otherwise), where=of > 0)


def first_most(values: T, first: IntArray) -> IntArray:
    """The first row of each part that has its largest value; parts are never empty."""
    rows = np.flatnonzero(values == spread(most(values, first), first))
    return rows[np.searchsorted(rows, first[:-1])]


def turns(first: IntArray) -> IntArray:
    """The place of each row in its part, from 0."""
    return np.arange(first[-1]) - spread(first[:-1], first)


def sums(values: FloatArray | IntArray, part: IntArray, count: int) -> FloatArray:
    """Sums by part number, shape (count,), for rows in any order."""
    return np.bincount(part, weights=values, minlength=count).astype(np.float64)


def joined(values: IntArray, first: IntArray, count: int) -> IntArray:
    """A number for each of the values 0 to `count` - 1, the same for all that parts hold
    together.
    """
    number = np.arange(count)
    while len(values):
        lowest = spread(least(number[values], first), first)
        lower = number.copy()
        np.minimum.at(lower, values, lowest)
        lower = lower[lower]
        if (lower == number).all():
            break
        number = lower
    return number
