"""Transfers that share a rank's way to other nodes: each moves slower while others move beside it."""

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray
from traces.ranks.rows import parts

ROUNDS = 4
"""How often times and shares are found from each other, after which they change by little."""


def shares(
    first: IntArray, place: IntArray, end_ns: IntArray, moving_ns: IntArray, over: BoolArray
) -> FloatArray:
    """Which part of a way each instance has while it moves, on average, shape (n,); 1 if nothing is beside.

    Participations, shape (p,), move for `moving_ns` until `end_ns`. Of k that move at once on the way of one
    rank each has a k-th. Those that are not `over` several nodes, shape (p,), share nothing. All ranks of an
    instance move as the one with the least.
    """
    lasts_ns = np.maximum(moving_ns, 0)
    part = np.ones(len(place))
    rows = np.flatnonzero(over & (lasts_ns > 0))
    if len(rows):
        part[rows] = _parts(place[rows], end_ns[rows] - lasts_ns[rows], end_ns[rows])
    return parts.least(part, first)


def _parts(place: IntArray, begin_ns: IntArray, end_ns: IntArray) -> FloatArray:
    zero_ns = int(begin_ns.min())
    span_ns = int(end_ns.max()) - zero_ns + 1
    shift_ns = place * span_ns - zero_ns  # so that the ranks follow each other
    begin_ns, end_ns = begin_ns + shift_ns, end_ns + shift_ns
    times_ns = np.concatenate((begin_ns, end_ns))
    order = np.argsort(times_ns, kind="stable")
    times_ns = times_ns[order]
    moving = np.cumsum(np.where(order < len(begin_ns), 1, -1))
    alone_ns = np.append(0.0, np.cumsum(np.diff(times_ns) / np.maximum(moving[:-1], 1)))
    whole = alone_ns[np.searchsorted(times_ns, end_ns)] - alone_ns[np.searchsorted(times_ns, begin_ns)]
    result: FloatArray = whole / (end_ns - begin_ns)
    return result
