"""Steps of all ranks side by side: which step of one is which of another, and what each rank did in it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traces.columns import FloatArray, IntArray
from traces.ranks import parts
from traces.ranks.match import Matched
from traces.ranks.recorded import joined
from traces.ranks.summary import UNKNOWN, RankSummary


@dataclass(frozen=True, slots=True)
class Grid:
    """What each rank did in each step of the run, shape (ranks, steps); NaN where it was not recorded.

    `later` is the number, in the run, of each rank's first step; ranks that share no collective with the
    others have their first step in common with them.
    """

    later: IntArray
    length_ns: FloatArray
    compute_ns: FloatArray
    grouped_ns: FloatArray
    exposed_comm_ns: FloatArray
    host_ns: FloatArray
    loader_ns: FloatArray
    pace_ns: FloatArray

    @property
    def step_count(self) -> int:
        """Steps that any rank recorded."""
        return int(self.length_ns.shape[1])


def grid_of(summaries: Sequence[RankSummary], matched: Matched) -> Grid:
    """Lay the steps of all ranks side by side."""
    lengths = np.array([len(summary.steps) for summary in summaries], dtype=np.int64)
    later = _later(matched, lengths)
    count = int((lengths + later).max(initial=0))
    place = np.repeat(np.arange(len(summaries)), lengths)
    own = np.arange(len(place)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    cell = place, own + later[place]

    def laid(values: IntArray) -> FloatArray:
        table = np.full((len(summaries), count), np.nan)
        table[cell] = np.where(values == UNKNOWN, np.nan, values)
        return table

    names = ("compute_ns", "grouped_ns", "exposed_comm_ns", "host_starved_ns", "loader_ns", "pace_ns")
    columns = {name: joined([summary.steps for summary in summaries], name) for name in (*names, *_BORDERS)}
    length_ns = laid(columns["end_ns"] - columns["start_ns"])
    return Grid(later, length_ns, *(laid(columns[name]) for name in names))


def own_step_of(matched: Matched, grid: Grid) -> IntArray:
    """The step of the run in which each participation started on its own rank, `UNKNOWN` outside of all."""
    return np.where(matched.step != UNKNOWN, matched.step + grid.later[matched.place], UNKNOWN)


def means_of(table: FloatArray) -> list[int | None]:
    """Of each row the mean of the steps that are known, rounded down; None without any."""
    count = (~np.isnan(table)).sum(axis=1)
    mean = np.nansum(table, axis=1) / np.maximum(count, 1)
    return [int(value) if known else None for value, known in zip(mean.tolist(), count.tolist(), strict=True)]


_BORDERS = ("start_ns", "end_ns")


def _later(matched: Matched, lengths: IntArray) -> IntArray:
    """How many steps later each rank began to record, by the collectives that it shares with others."""
    count = len(lengths)
    later, known = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    stepped = matched.step != UNKNOWN
    if not stepped.any():
        return later
    known[matched.place[stepped][0]] = True
    while True:
        anchored = stepped & known[matched.place]
        step = parts.median(matched.step + later[matched.place], matched.first, anchored)
        has = parts.most(anchored, matched.first)
        rows = np.flatnonzero(stepped & ~known[matched.place] & has[matched.instance])
        if not len(rows):
            break
        rows = rows[parts.order_of(matched.place[rows], count)]
        begins = parts.begins_of(matched.place[rows])
        places = matched.place[rows][begins[:-1]]
        later[places] = parts.median(step[matched.instance[rows]] - matched.step[rows], begins)
        known[places] = True
    result: IntArray = later - later.min()
    return result
