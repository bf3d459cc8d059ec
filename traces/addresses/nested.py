"""Which of nested spans is the innermost at an instant, exactly and however deep they nest."""

from typing import Final, NamedTuple

import numpy as np

from traces.account.pieces import BEGINNING, Tiling
from traces.arrays import BoolArray, IntArray, zeros

_PASSES: Final = 4  # a span that was rounded past the one around it is cut in one


class _Nest(NamedTuple):
    """Begins and ends of spans in order of time, ends first: the span of each, and whether it
    begins there.

    `parent`: of each span the one that it began in, -1 for none.
    """

    span: IntArray
    begins: BoolArray
    parent: IntArray


def innermost(start_ns: IntArray, end_ns: IntArray, label: IntArray) -> Tiling:
    """A tiling by the label of the innermost span, shape (n,) each; -1 where none lasts.

    Of spans that begin and end together the later row is the inner one. A span that outlives the
    one that it began in ends with it.
    """
    real = np.flatnonzero(end_ns > start_ns)
    order = real[np.lexsort((-end_ns[real], start_ns[real]))]
    start, end = start_ns[order], end_ns[order]
    if not len(start):
        return Tiling(np.array([BEGINNING]), np.array([-1]))
    nest = _nest(start, end)
    for _ in range(_PASSES):
        clipped = np.where(nest.parent >= 0, np.minimum(end, end[nest.parent]), end)
        if (clipped == end).all():
            break
        end = clipped
        nest = _nest(start, end)
    at = np.where(nest.begins, start[nest.span], end[nest.span])
    owner = np.where(nest.begins, nest.span, nest.parent[nest.span])
    owner = np.where((owner >= 0) & (end[owner] > at), owner, -1)
    last = np.append(at[1:] != at[:-1], True)
    owner, at = owner[last], at[last]
    labels = np.where(owner >= 0, label[order][owner], -1)
    return Tiling(np.concatenate(([BEGINNING], at)), np.concatenate(([-1], labels)))


def _nest(start: IntArray, end: IntArray) -> _Nest:
    """Spans in order of start, outer ones first."""
    count = len(start)
    places = np.arange(count)
    begins = np.repeat((False, True), count)
    # of ends at one instant the inner one comes first, of starts the outer one
    order = np.lexsort((np.tile(places, 2), begins, np.concatenate((end[::-1], start))))
    span, begins = np.concatenate((places[::-1], places))[order], begins[order]
    depth = zeros(count)
    depth[span[begins]] = np.cumsum(np.where(begins, 1, -1))[begins]
    by_depth = np.lexsort((places, depth))
    keys = depth[by_depth] * count + by_depth
    before = by_depth[np.searchsorted(keys, (depth - 1) * count + places) - 1]
    holds = (depth > 1) & (depth[before] == depth - 1) & (end[before] > start)
    return _Nest(span, begins, np.where(holds, before, -1))
