"""Two sequences held against each other place by place: what of one side stands where what of the
other.

Of all ways to pair their places in order, the one with the highest score: so much for each pair, by
how alike it is, less `OPENED` for each stretch between pairs. All of it is exact; nothing is cut.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.arrays import IntArray
from traces.frozen import frozen
from traces.limits import Limit

OPENED: Final = Limit(
    1,
    "points a stretch",
    "ours: of ways that pair equally many, the one whose rest stands together: attention that is "
    "not fused "
    "is one stretch between the products before and after it",
)
Scores = NDArray[np.int32]
Block = tuple[range, range]
"""Places of base and of new that stand against each other: one of each for a pair, else what is
between."""
_NEVER: Final = np.int32(-(1 << 28))
_FROM_BETWEEN, _ABOVE, _AFTER_PAIR = np.uint8(1), np.uint8(2), np.uint8(4)


def align(base: Sequence[int], new: Sequence[int], scores: Scores) -> Iterator[Block]:
    """Both sequences as blocks, in order; every place is in exactly one.

    `scores`, shape (kinds of base, kinds of new): what a pair is worth; those worth nothing are no
    pair.
    """
    rows, columns = np.array(base, dtype=np.int64), np.array(new, dtype=np.int64)
    first = _alike_first(rows, columns, scores)
    rows, columns = rows[first:], columns[first:]
    last = _alike_first(rows[::-1], columns[::-1], scores)
    count, their_count = len(rows) - last, len(columns) - last
    traced = _traced(rows[:count], columns[:their_count], scores)
    yield from _beside(0, 0, first)
    at = to = 0
    for row, column in (*reversed(list(_pairs(traced))), (count, their_count)):
        if row > at or column > to:
            yield range(first + at, first + row), range(first + to, first + column)
        if row < count:
            yield from _beside(first + row, first + column, 1)
        at, to = row + 1, column + 1
    yield from _beside(first + count, first + their_count, last)


def _beside(row: int, column: int, count: int) -> Iterator[Block]:
    """Pairs that follow each other."""
    for at in range(count):
        yield range(row + at, row + at + 1), range(column + at, column + at + 1)


def _alike_first(rows: IntArray, columns: IntArray, scores: Scores) -> int:
    """How many first places are worth the most that a pair can be: no way does better."""
    least = min(len(rows), len(columns))
    most = scores.max(initial=1)  # what is worth nothing is no pair
    return int(np.logical_and.accumulate(scores[rows[:least], columns[:least]] == most).sum())


@frozen
class _Traced:
    """Where the best way to each pair of places came from, shape (rows, columns + 1): a byte of
    flags.

    `ends_paired`: whether the best of all ends with a pair.
    """

    came: NDArray[np.uint8]
    ends_paired: bool


def _traced(rows: IntArray, columns: IntArray, scores: Scores) -> _Traced:
    """Row by row the best score of all that ends with a pair, and of all that ends in a stretch
    between.

    Within a row a stretch only grows: its best is the largest so far.
    """
    opened, count = np.int32(OPENED.whole), len(columns) + 1
    came = np.zeros((len(rows), count), dtype=np.uint8)
    paired, between = np.full(count, _NEVER), np.full(count, -opened)
    paired[0], between[0] = 0, _NEVER  # before the first of both
    for place, row in enumerate(rows.tolist()):
        worth, now = scores[row][columns], np.full(count, _NEVER)
        from_between = between[:-1] > paired[:-1]
        now[1:] = np.where(worth > 0, np.maximum(between[:-1], paired[:-1]) + worth, _NEVER)
        opens_here = paired - opened
        above, beside = np.maximum(between, opens_here), np.full(count, _NEVER)
        beside[1:] = now[:-1] - opened
        grown = np.maximum.accumulate(np.maximum(above, beside))
        is_above = above == grown
        after_pair = np.where(is_above, opens_here >= between, beside == grown)
        came[place] = is_above * _ABOVE | after_pair * _AFTER_PAIR
        came[place, 1:] |= from_between * _FROM_BETWEEN
        paired, between = now, grown
    return _Traced(came, bool(paired[-1] >= between[-1]))


def _pairs(traced: _Traced) -> Iterator[tuple[int, int]]:
    """The pairs of the best way, from the last."""
    row, column = traced.came.shape[0], traced.came.shape[1] - 1
    is_paired = traced.ends_paired
    while row and (column or not is_paired):
        came = int(traced.came[row - 1, column])
        if is_paired:
            row, column = row - 1, column - 1
            yield row, column
            is_paired = not came & _FROM_BETWEEN
        elif came & _ABOVE:
            row, is_paired = row - 1, bool(came & _AFTER_PAIR)
        else:
            column, is_paired = column - 1, bool(came & _AFTER_PAIR)
