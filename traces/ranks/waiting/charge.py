"""Waiting charged to the rank that came last, by rank, by kind and by step.

Several ranks separate waiting for a late rank from data transfer.
"""

from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, distinct, summed
from traces.frozen import frozen
from traces.groups import sums_of
from traces.limits import Limit
from traces.names.kernels import COMM_KINDS
from traces.ranks.matching.match import Matched
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import UNKNOWN, Summaries, in_steps
from traces.ranks.waiting.side_by_side import Grid, means
from traces.ranks.waiting.waits import NOBODY, Waits, complete

COLUMNS: Final = Limit(48, "columns", "ours: so many fit beside two other maps on a page of 1 MB")
CELLS: Final = Limit(
    65_536, "ranks x columns", "ours: a document of thousands of ranks stays some MB"
)


@frozen
class Charged:
    """By place, shape (ranks,), what each waited in the steps of the run, and what others waited
    for it.

    Of each instance, shape (n,): the `step` of the run, whether it is `counted` here, the waiting
    in it, and the place that came last, `UNKNOWN` where that is nobody.
    """

    waited_ns: IntArray
    caused_ns: IntArray
    step: IntArray
    counted: BoolArray
    wait_ns: IntArray
    last: IntArray


def charge(matched: Matched, waits: Waits, grid: Grid, step: IntArray) -> Charged:
    """Add up the waiting, of a recording without steps all of it. `step`, shape (n,), of each
    instance.
    """
    count = len(grid.later)
    counted = (step != UNKNOWN) | (grid.step_count == 0)
    rows = parts.spread(counted, matched.first)
    waited_ns = sums_of(waits.wait_ns[rows], matched.place[rows], count)
    wait_ns = parts.total(waits.wait_ns, matched.first)
    last = np.full(len(matched), UNKNOWN)
    known = waits.last != NOBODY
    last[known] = matched.place[waits.last[known]]
    known &= counted
    return Charged(
        waited_ns, sums_of(wait_ns[known], last[known], count), step, counted, wait_ns, last
    )


def by_kind(kind: IntArray, time_ns: IntArray) -> dict[str, int]:
    """By kind of communication, in the words of the document, without what takes nothing."""
    taken = {}
    for code in distinct(kind).tolist():
        taken_ns = summed(time_ns[kind == code])
        if code != UNKNOWN and taken_ns:
            taken[COMM_KINDS[code]] = taken_ns
    return taken


def exposed_ns(summaries: Summaries, matched: Matched) -> int:
    """All communication in steps, of a recording without steps all of it, while no compute ran."""
    recorded = matched.recorded
    return summed(np.maximum(recorded.rows.exposed_ns, 0)[in_steps(summaries, recorded)])


def complete_frac(matched: Matched, *, all_ranks_seen: bool) -> float | None:
    """How much of the recorded communication time is in collectives that every rank of their group
    recorded.

    None where no communication was recorded.
    """
    whole_ns = summed(matched.recorded.rows.length_ns)
    if not whole_ns:
        return None
    whole = parts.spread(all_ranks_seen | complete(matched, False), matched.first)
    return summed(matched.length_ns[whole]) / whole_ns


@frozen
class ByStep:
    """Tables of shape (ranks, columns), NaN where unknown. A column is the mean of
    `steps_per_column`.
    """

    length_ns: FloatArray
    waited_ns: FloatArray
    caused_ns: FloatArray
    steps_per_column: int


def lay_by_step(matched: Matched, waits: Waits, charged: Charged, grid: Grid) -> ByStep:
    """Fill the tables, of many steps several in a column."""
    ranks, steps = grid.length_ns.shape
    most = max(1, min(COLUMNS.whole, CELLS.whole // max(1, ranks)))
    together = max(1, -(-steps // most))

    def laid(time_ns: IntArray, place: IntArray, step: IntArray) -> FloatArray:
        is_told = (step != UNKNOWN) & (place != UNKNOWN)
        cell = place[is_told] * steps + step[is_told]
        table = parts.sums(time_ns[is_told], cell, ranks * steps).reshape(ranks, steps)
        return _folded(np.where(np.isnan(grid.length_ns), np.nan, table), together)

    waited = laid(waits.wait_ns, matched.place, parts.spread(charged.step, matched.first))
    caused = laid(charged.wait_ns, charged.last, charged.step)
    return ByStep(_folded(grid.length_ns, together), waited, caused, together)


def _folded(table: FloatArray, together: int) -> FloatArray:
    if together == 1:
        return table
    ranks, steps = table.shape
    wide = np.pad(table, ((0, 0), (0, -steps % together)), constant_values=np.nan)
    return means(wide.reshape(ranks, -1, together))
