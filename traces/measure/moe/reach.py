"""The next and the previous place of a kind, from everywhere."""

import numpy as np

from traces.columns import PLACE, BoolArray, IntArray


def next_at(mask: BoolArray) -> IntArray:
    """Of each place i, 0 to n, the first place at i or later where the mask holds, n where none; (n + 1,)."""
    count = len(mask)
    here = np.append(np.where(mask, np.arange(count, dtype=PLACE), PLACE(count)), PLACE(count))
    result: IntArray = np.minimum.accumulate(here[::-1])[::-1]
    return result


def previous_at(mask: BoolArray) -> IntArray:
    """Of each place i, 0 to n, the last place before i where the mask holds, -1 where none; (n + 1,)."""
    here = np.append(PLACE(-1), np.where(mask, np.arange(len(mask), dtype=PLACE), PLACE(-1)))
    result: IntArray = np.maximum.accumulate(here)
    return result


def nth_next(at: IntArray, start: IntArray, nth: IntArray) -> IntArray:
    """From each start the n-th place after it, by `next_at`'s answer `at`; the start itself for 0."""
    found = start
    for turn in range(int(nth.max(initial=0))):
        found = np.where(nth > turn, at[np.minimum(found + 1, len(at) - 1)], found)
    return found


def nth_previous(at: IntArray, start: IntArray, nth: IntArray) -> IntArray:
    """From each start the n-th place before it, by `previous_at`'s answer `at`; -1 where there is none."""
    found = start
    for turn in range(int(nth.max(initial=0))):
        found = np.where(nth > turn, np.where(found < 0, -1, at[found]), found)
    return found


def within(start: IntArray, end: IntArray, count: int) -> BoolArray:
    """Mask of `count` places that lie in any of the disjoint stretches [start, end)."""
    real = end > start
    steps = np.zeros(count + 1, dtype=np.int64)
    np.add.at(steps, start[real], 1)
    np.add.at(steps, end[real], -1)
    result: BoolArray = np.cumsum(steps)[:count] > 0
    return result
