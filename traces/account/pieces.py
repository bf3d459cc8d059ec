"""Pieces of time with a reason, and the cutting of pieces by what happens in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from traces.columns import BoolArray, IntArray

BEGINNING: Final = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True)
class Pieces:
    """Disjoint pieces of time, shape (n,): [start, end) of interval `gap`, judged for `kernel`."""

    start_ns: IntArray
    end_ns: IntArray
    gap: IntArray
    kernel: IntArray

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, which: BoolArray | IntArray) -> Pieces:
        """Some of the pieces, by mask or index."""
        return Pieces(self.start_ns[which], self.end_ns[which], self.gap[which], self.kernel[which])

    def clipped(self, low_ns: IntArray, high_ns: IntArray) -> Pieces:
        """The part of each piece within [low, high), shape (n,); pieces without such a part are left out."""
        start = np.maximum(self.start_ns, low_ns)
        end = np.minimum(self.end_ns, high_ns)
        return replace(self, start_ns=start, end_ns=end).take(end > start)


def joined(*parts: Pieces) -> Pieces:
    """The pieces of several parts, one after the other."""
    return Pieces(*(np.concatenate([getattr(part, field) for part in parts]) for field in Pieces.__slots__))


@dataclass(frozen=True, slots=True)
class Tiling:
    """All time in tiles: tile k begins at `start_ns[k]`, the first at `BEGINNING`; shape (n,)."""

    start_ns: IntArray
    label: IntArray


def tile(start_ns: IntArray, end_ns: IntArray, label: IntArray, otherwise: int) -> Tiling:
    """A tiling from spans that may nest, shape (n,); where several hold an instant, the innermost labels it.

    Spans of one thread nest: the innermost is the one that started last among those that have not ended.
    Exact for two levels (a driver call within a runtime call); deeper, the outermost labels what the
    innermost leaves.
    """
    order = np.lexsort((-end_ns, start_ns))
    start, end, label = start_ns[order], end_ns[order], label[order]
    cuts = np.sort(np.concatenate((start, end)))
    cuts = cuts[np.concatenate(([True], cuts[1:] != cuts[:-1]))] if len(cuts) else cuts
    if not len(cuts):
        return Tiling(np.array([BEGINNING]), np.array([otherwise]))
    latest = np.searchsorted(start, cuts, side="right") - 1
    longest = _running_argmax(end)[np.maximum(latest, 0)]
    innermost = np.where(end[latest] > cuts, latest, longest)
    held = (latest >= 0) & (end[innermost] > cuts)
    labels = np.where(held, label[innermost], otherwise)
    return Tiling(np.concatenate(([BEGINNING], cuts)), np.concatenate(([otherwise], labels)))


def cut(pieces: Pieces, tiling: Tiling) -> tuple[Pieces, IntArray, IntArray]:
    """Cut pieces at the tiles' borders; of each result the piece it comes from, and its tile's label."""
    first = np.searchsorted(tiling.start_ns, pieces.start_ns, side="right") - 1
    last = np.searchsorted(tiling.start_ns, pieces.end_ns, side="left") - 1
    count = last - first + 1
    of = np.repeat(np.arange(len(pieces)), count)
    within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    at = first[of] + within
    tile_end = np.append(tiling.start_ns[1:], np.iinfo(np.int64).max)
    result = Pieces(
        np.maximum(pieces.start_ns[of], tiling.start_ns[at]),
        np.minimum(pieces.end_ns[of], tile_end[at]),
        pieces.gap[of],
        pieces.kernel[of],
    )
    return result, of, tiling.label[at]


def _running_argmax(values: IntArray) -> IntArray:
    """For each place the place of the largest value so far (the first of equals)."""
    largest = np.maximum.accumulate(values)
    is_new = np.concatenate(([True], largest[1:] > largest[:-1]))
    result: IntArray = np.maximum.accumulate(np.where(is_new, np.arange(len(values)), 0))
    return result
