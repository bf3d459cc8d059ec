"""Each rank in each step of the run: how long it took, what it waited, and what others waited for it."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import FloatArray
from traces.limits import Limit
from traces.ranks import parts
from traces.ranks.charge import Charged
from traces.ranks.grid import Grid
from traces.ranks.match import Matched
from traces.ranks.summary import UNKNOWN
from traces.ranks.waits import NOBODY, Waits

COLUMNS: Final = Limit(48, "columns", "ours: so many fit beside two other maps on a page of 1 MB")
CELLS: Final = Limit(65_536, "ranks x columns", "ours: a document of thousands of ranks stays some MB")


@dataclass(frozen=True, slots=True)
class ByStep:
    """Tables of shape (ranks, columns), NaN where unknown. A column is the mean of `steps_per_column`."""

    length_ns: FloatArray
    waited_ns: FloatArray
    caused_ns: FloatArray
    steps_per_column: int


def lay_by_step(matched: Matched, waits: Waits, charged: Charged, grid: Grid) -> ByStep:
    """Fill the tables, of many steps several in a column."""
    ranks, steps = grid.length_ns.shape
    waited, caused = np.zeros((ranks, steps)), np.zeros((ranks, steps))
    if steps and len(matched):
        of_row = parts.spread(charged.step, matched.first)
        rows = of_row != UNKNOWN
        cell = matched.place[rows] * steps + of_row[rows]
        waited = parts.sums(waits.wait_ns[rows], cell, ranks * steps).reshape(ranks, steps)
        known = np.flatnonzero((charged.step != UNKNOWN) & (waits.last != NOBODY))
        late = matched.place[waits.last[known]]
        cell = late * steps + charged.step[known]
        of_instance_ns = waits.of_instance_ns(matched.first)[known]
        caused = parts.sums(of_instance_ns, cell, ranks * steps).reshape(ranks, steps)
    absent = np.isnan(grid.length_ns)
    waited[absent], caused[absent] = np.nan, np.nan
    most = max(1, min(int(COLUMNS.value), int(CELLS.value) // max(1, ranks)))
    together = max(1, -(-steps // most))
    length, waited, caused = (_folded(table, together) for table in (grid.length_ns, waited, caused))
    return ByStep(length, waited, caused, together)


def _folded(table: FloatArray, together: int) -> FloatArray:
    """Means of so many columns each, of what is known of them."""
    if together == 1:
        return table
    ranks, steps = table.shape
    wide = np.pad(table, ((0, 0), (0, -steps % together)), constant_values=np.nan)
    cut = wide.reshape(ranks, -1, together)
    count = (~np.isnan(cut)).sum(axis=2)
    result: FloatArray = np.where(count > 0, np.nansum(cut, axis=2) / np.maximum(1, count), np.nan)
    return result
