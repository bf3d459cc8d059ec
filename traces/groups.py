"""Numbers for rows that are alike, places among equal ones, and masks of rows."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import numpy as np

from traces.arrays import (
    PLACE,
    BoolArray,
    IntArray,
    bools,
    count_from_0,
    none_of,
    nowhere,
    order_of,
    reach,
    zeros,
)

T = TypeVar("T")


def group_of(*columns: IntArray) -> IntArray:
    """A number for each row, from 0, the same where all columns, shape (n,) each, are the same.

    Numbers rise with the last column, then with the one before it.
    """
    group, count = _numbered(columns[-1])
    for column in columns[-2::-1]:
        numbers, levels = _numbered(column)
        if count * levels > _PACKED**2:
            group, count = _dense(group, count)
        count *= levels
        group = group.astype(PLACE if count <= _PACKED else np.int64, copy=False)
        group *= levels
        group += numbers
    return _dense(group, count)[0]


_PACKED: Final = (1 << 31) - 1  # fits into 32 bits, and two numbers below it into 64 together


def _numbered(column: IntArray) -> tuple[IntArray, int]:
    """The values from 0 in the same order, and how many numbers that takes, at most `_PACKED`."""
    least, most = reach(column)
    if most - least >= _PACKED:
        return _dense(column)
    wide = column if column.dtype.itemsize > PLACE().itemsize else column.astype(PLACE)
    return (wide - least).astype(PLACE, copy=False), most - least + 1


def _dense(column: IntArray, below: int | None = None) -> tuple[IntArray, int]:
    """Each value's place among the distinct ones, and how many these are.

    `below`: the values are not negative, and less than this.
    """
    if below is not None and below <= 4 * len(column):
        seen = none_of(below)
        seen[column] = True
        numbers = np.cumsum(seen, dtype=PLACE) - 1
        return numbers[column], int(numbers[-1]) + 1
    order = np.argsort(column)  # not stable, and several times as fast
    places = np.empty(len(order), dtype=PLACE)
    numbers = np.cumsum(begins(column[order]), dtype=PLACE) - 1
    places[order] = numbers
    return places, int(numbers[-1]) + 1 if len(numbers) else 1


def in_order(places: IntArray, *keys: IntArray) -> IntArray:
    """Some places by the first key of their rows, then by the next; equal ones stay in their
    order.
    """
    return places[np.lexsort([key[places] for key in reversed(keys)])]


def first_of(group: IntArray) -> IntArray:
    """The first row of each group, shape (groups,); groups are numbered from 0 without a hole."""
    first = zeros(count_from_0(group))
    first[group[::-1]] = np.arange(len(group))[::-1]
    return first


def places_of_each(values: IntArray) -> list[tuple[int, IntArray]]:
    """Each distinct value, rising, with its places in their order; by one sort for any number of
    values.
    """
    order = order_of(values)
    first = np.flatnonzero(begins(values[order]))
    return [*zip(values[order[first]].tolist(), np.split(order, first[1:]), strict=False)]


def sorted_within(group: IntArray, values: IntArray) -> IntArray:
    """The values by group and then by size, shape (n,); groups are not negative."""
    least, most = reach(values)
    span = most - least + 1
    if count_from_0(group) * span > _PACKED**2:
        return values[np.lexsort((values, group))]
    packed = group * np.int64(span) + (values - least)  # one key sorts many times as fast as two
    packed.sort()
    packed %= span
    packed += least
    return packed


def place_in_run(*keys: IntArray) -> IntArray:
    """Of each row its place, from 0, in its run of rows with equal keys, shape (n,)."""
    places = np.arange(len(keys[0]))
    return places - np.maximum.accumulate(np.where(begins(*keys), places, 0))


def begins(*keys: IntArray) -> BoolArray:
    """Of each row whether it differs from the row before it in some key, shape (n,); the first
    does.
    """
    new = none_of(len(keys[0]))
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return new


def places_in(order: IntArray) -> IntArray:
    """Of each row its place in an order of all rows, shape (n,)."""
    places = zeros(len(order))
    places[order] = np.arange(len(order))
    return places


def before_of(key: IntArray) -> IntArray:
    """Of each row the last one before it with the same key, shape (n,); -1 for the first."""
    order = order_of(key)
    before = nowhere(len(key))
    same = np.flatnonzero(~begins(key[order]))
    before[order[same]] = order[same - 1]
    return before


def count_before(
    group: IntArray, time_ns: IntArray, until_group: IntArray, until_ns: IntArray
) -> IntArray:
    """How many rows of each `until_group` come before its `until_ns`, shape (m,); rows at that very
    time do not count. The rows stand by group, then by time.
    """
    is_until = np.arange(len(group) + len(until_group)) >= len(group)
    order = np.lexsort((~is_until, np.append(time_ns, until_ns), np.append(group, until_group)))
    before = np.cumsum(~is_until[order])
    asks = is_until[order]
    result = zeros(len(until_group))
    result[order[asks] - len(group)] = before[asks]
    return result


def next_at(mask: BoolArray) -> IntArray:
    """Of each place i, 0 to n, the first place at i or later where the mask holds, n where none; (n
    + 1,).
    """
    count = len(mask)
    here = np.append(np.where(mask, np.arange(count, dtype=PLACE), PLACE(count)), PLACE(count))
    return np.minimum.accumulate(here[::-1])[::-1]


def previous_at(mask: BoolArray) -> IntArray:
    """Of each place i, 0 to n, the last place before i where the mask holds, -1 where none; (n +
    1,).
    """
    here = np.append(PLACE(-1), np.where(mask, np.arange(len(mask), dtype=PLACE), PLACE(-1)))
    return np.maximum.accumulate(here)


def sums_of(values: IntArray, group: IntArray, count: int) -> IntArray:
    """Exact sums by group number, shape (count,), for rows in any order."""
    sums = zeros(count)
    np.add.at(sums, group, values)
    return sums


def mask_of(places: IntArray, count: int) -> BoolArray:
    """Some places as a mask of shape (count,)."""
    mask = none_of(count)
    mask[places] = True
    return mask


def mask_within(start: IntArray, end: IntArray, count: int) -> BoolArray:
    """Mask of `count` places that lie in any of the stretches [start, end)."""
    real = end > start
    change = np.bincount(start[real], minlength=count + 1) - np.bincount(
        end[real], minlength=count + 1
    )
    return np.cumsum(change)[:count] > 0


def passing(test: Callable[[T], object], values: Iterable[T]) -> BoolArray:
    """Which texts or groups pass a test; one more at the end, which does not, for rows without one
    (-1).
    """
    return bools([*(bool(test(value)) for value in values), False])
