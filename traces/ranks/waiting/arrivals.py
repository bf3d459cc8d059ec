"""Who arrives last, by how long each rank is in the same collectives: no clock enters, and one may
suffice.

All leave a collective together, so that the shortest in it came last: one rank, or several that are
short together, as those of a node. Why they come late is not answered here.
"""

from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, order_of, summed, unknown
from traces.limits import WALL, Limit
from traces.missing import Missing, gap
from traces.ranks.matching.match import Matched
from traces.ranks.summaries.summary import (
    ENDS_TOGETHER,
    GroupSource,
    Instances,
    Summaries,
)
from traces.ranks.waiting.waits import Waits, complete
from traces.sections.cause import Sure
from traces.sections.run import ArrivesLast

SHORT: Final = Limit(
    0.05,
    "of the longest wait",
    "ours: who waits as little as that beside the others came with the last",
)
ABOVE: Final = Limit(
    0.4,
    "of all waiting, above the part of the ranks that they are",
    "ours: of two healthy halves each has half, and one of eight healthy ranks by chance a third",
)
_FEW: Final = 12
"""Collectives, below which one odd stretch decides."""
_LIKE: Final = 3
"""Ranks, from which on a shortest one says something."""


def arrives_last(
    used: Summaries, matched: Matched, waits: Waits, steps: int, *, all_ranks_seen: bool
) -> ArrivesLast | Missing:
    """Who it is; `Missing` where nobody has most of the waiting. `steps`: of the run.

    Where nothing was matched, and nothing names a group, collectives of all ranks are paired by
    their order.
    """
    by_order = not len(matched)
    if by_order:
        table = _by_order(used)
    else:
        among_all = (
            complete(matched, all_ranks_seen) & (matched.sizes == len(used)) & (len(used) >= _LIKE)
        )
        table = _waited(matched, waits, among_all, len(used))
    if table is None:
        return gap(
            "no collective is known to be one of all these ranks",
            "record the same steps on all ranks",
        )
    waited_ns, lasts_ns = table
    caused_ns = _caused(waited_ns)
    places = _few(caused_ns)
    mine_ns, whole_ns = float(caused_ns[list(places)].sum()), float(caused_ns.sum())
    above = mine_ns - len(places) / len(used) * whole_ns
    if not places or above < ABOVE.value * whole_ns or mine_ns < WALL.value * lasts_ns:
        return gap("no rank arrives last more than the others do", "nothing is wrong with that")
    return ArrivesLast(
        indices=places,
        host=None,
        collectives=len(waited_ns),
        wait_ns=round(mine_ns),
        waiting_frac=mine_ns / whole_ns,
        by_order=by_order,
        confidence=_sure(len(waited_ns), steps, by_order=by_order),
    )


def _sure(collectives: int, steps: int, *, by_order: bool) -> Sure:
    if by_order or collectives < _FEW:
        return Sure.LOW
    if steps > 1:
        return Sure.HIGH
    return Sure.MEDIUM


def _waited(
    matched: Matched, waits: Waits, chosen: BoolArray, count: int
) -> tuple[FloatArray, float] | None:
    """What each rank waited in these instances, shape (instances, ranks), and how long all were in
    them.
    """
    rows = np.flatnonzero(chosen[matched.instance])
    if not len(rows):
        return None
    number = np.cumsum(chosen) - 1
    table = unknown((summed(chosen), count))
    table[number[matched.instance[rows]], matched.place[rows]] = waits.wait_ns[rows]
    return table, float(matched.length_ns[rows].sum())


def _by_order(used: Summaries) -> tuple[FloatArray, float] | None:
    """The same where all ranks did the same in one order, and all of it ends on all ranks at
    once.
    """
    tables = [summary.instances for summary in used]
    unnamed = all(group.source is GroupSource.ORDER for summary in used for group in summary.groups)
    lengths = {*map(len, tables)}
    if len(used) < _LIKE or not unnamed or len(lengths) != 1 or lengths == {0}:
        return None
    rows, shape = Instances.joined(*tables), (len(used), -1)
    did = rows.operation.reshape(shape)
    if not (np.isin(did, ENDS_TOGETHER).all() and (did == did[0]).all()):
        return None
    lasts_ns = rows.length_ns.reshape(shape).T.astype(np.float64, order="C")
    return lasts_ns - lasts_ns.min(axis=1, keepdims=True), float(lasts_ns.sum())


def _caused(waited_ns: FloatArray) -> FloatArray:
    """The waiting of each instance, charged to those that waited little beside the others; by
    rank.
    """
    longest = np.nanmax(waited_ns, axis=1, keepdims=True)
    short = (waited_ns <= SHORT.value * longest) & (longest > 0)
    all_ns = np.nansum(waited_ns, axis=1, keepdims=True)
    several = np.maximum(short.sum(axis=1, keepdims=True), 1)
    return np.where(short, all_ns / several, 0.0).sum(axis=0)


def _few(caused_ns: FloatArray) -> tuple[int, ...]:
    """Up to half of the ranks, told by the widest gap from the others."""
    order = order_of(-caused_ns)
    ordered = caused_ns[order]
    half = len(order) // 2
    if half < 1 or ordered[0] <= 0:
        return ()
    cut = int(np.argmax(ordered[:half] - ordered[1 : half + 1])) + 1
    return tuple(sorted(order[:cut].tolist()))
