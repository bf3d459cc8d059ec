"""Waiting charged: to the rank that came last, to what was found to make ranks late, and to steps.

Several ranks separate waiting for a late rank from data transfer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, distinct
from traces.groups import mask_of, sums_of
from traces.limits import Limit
from traces.names.kernels import COMM_KINDS
from traces.ranks.matching.match import Matched
from traces.ranks.replay.edit import Edit
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import UNKNOWN, RankSummary, in_steps
from traces.ranks.waiting.side_by_side import Alike, Grid
from traces.ranks.waiting.waits import NOBODY, Waits, complete
from traces.sections.cause import Cause


@dataclass(frozen=True, slots=True)
class Charged:
    """Sums over the collectives in the steps of the run. By place, shape (ranks,): what it waited, and what
    others waited for it. `late_ns` is what is charged to the cause that was found; `transfer_ns` is moving.
    `by_kind_ns`: all waiting by kind of communication, in the words of the document. Of each instance, shape
    (n,): the `step` of the run, whether it is `counted` here, and whether its waiting is of the cause.
    """

    waited_ns: IntArray
    caused_ns: IntArray
    late_ns: int
    transfer_ns: int
    by_kind_ns: Mapping[str, int]
    step: IntArray
    counted: BoolArray
    of_cause: BoolArray


def charged_to(
    matched: Matched, waits: Waits, grid: Grid, step: IntArray, edit: Edit | None, alike: Sequence[Alike]
) -> Charged:
    """Add up the waiting. `step`, shape (n,), of each instance."""
    count = len(grid.later)
    if not len(matched):
        nothing, none = np.zeros(count, dtype=np.int64), np.zeros(0, dtype=np.bool_)
        return Charged(nothing, nothing, 0, 0, {}, np.zeros(0, dtype=np.int64), none, none)
    inside = step != UNKNOWN if grid.step_count else np.ones(len(matched), dtype=np.bool_)
    rows = parts.spread(inside, matched.first)
    waited_ns = sums_of(waits.wait_ns[rows], matched.place[rows], count)
    caused = np.flatnonzero(inside & (waits.last != NOBODY))
    wait_ns, late = waits.of_instance_ns(matched.first)[caused], matched.place[waits.last[caused]]
    caused_ns = sums_of(wait_ns, late, count)
    counts = _counts(edit, late, alike)
    moving_ns = int(waits.moving_ns[rows].sum())
    by_kind = sorted(_by_kind(matched.kind[rows], waits.wait_ns[rows]).items(), key=lambda one: -one[1])
    of_cause = mask_of(caused[counts], len(matched))
    late_ns = int(wait_ns[counts].sum())
    return Charged(waited_ns, caused_ns, late_ns, moving_ns, dict(by_kind), step, inside, of_cause)


def _counts(edit: Edit | None, late: IntArray, alike: Sequence[Alike]) -> BoolArray:
    """Which instances are charged to the cause: those whose last rank it makes late; where that is not one
    rank or stage, all.
    """
    if edit is None:
        return np.zeros(len(late), dtype=np.bool_)
    if edit.places:
        return np.isin(late, edit.places)
    if edit.cause is Cause.PIPELINE_IMBALANCE:
        return np.isin(late, alike[edit.group].places)
    return np.ones(len(late), dtype=np.bool_)


def _by_kind(kind: IntArray, wait_ns: IntArray) -> dict[str, int]:
    """In the order of the kinds, without what takes nothing."""
    codes = [code for code in distinct(kind).tolist() if code != UNKNOWN]
    found = {COMM_KINDS[code]: int(wait_ns[kind == code].sum()) for code in codes}
    return {name: ns for name, ns in found.items() if ns}


@dataclass(frozen=True, slots=True)
class Separated:
    """`late_exposed_ns`: by kind of communication, waiting charged to the cause while surely no compute ran.

    `exposed_ns`: all communication of the ranks in steps, of a recording without steps all of it, while no
    compute ran. `moving_ns`: data transfer by
    kind. `complete_frac`: how much of the recorded communication time is in
    collectives that every rank of their group recorded; None where no communication was recorded.
    """

    late_exposed_ns: Mapping[str, int]
    exposed_ns: int
    moving_ns: Mapping[str, int]
    complete_frac: float | None


def separate(
    summaries: Sequence[RankSummary],
    matched: Matched,
    waits: Waits,
    charged: Charged,
    *,
    all_ranks_seen: bool,
) -> Separated:
    """Add up by kind. `all_ranks_seen`: the number of ranks is known, and none is missing."""
    recorded = matched.recorded
    whole_ns = int((recorded.rows.end_ns - recorded.rows.start_ns).sum())
    if not len(matched):
        return Separated({}, 0, {}, 0.0 if whole_ns else None)
    lasts_ns = matched.end_ns - matched.start_ns
    hidden_ns = lasts_ns - np.clip(matched.exposed_ns, 0, lasts_ns)
    late = parts.spread(charged.of_cause, matched.first)
    inside = parts.spread(charged.counted, matched.first)
    sure_ns = np.where(late, np.maximum(0, waits.wait_ns - hidden_ns), 0)
    whole = all_ranks_seen | complete(matched, False)
    complete_ns = int(lasts_ns[parts.spread(whole, matched.first)].sum())
    return Separated(
        _by_kind(matched.kind, sure_ns),
        int(np.maximum(recorded.rows.exposed_ns, 0)[in_steps(summaries, recorded)].sum()),
        _by_kind(matched.kind[inside], waits.moving_ns[inside]),
        min(1.0, complete_ns / whole_ns) if whole_ns else None,
    )


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
    if steps:
        of_row = parts.spread(charged.step, matched.first)
        rows = of_row != UNKNOWN
        cell = matched.place[rows] * steps + of_row[rows]
        waited = parts.sums(waits.wait_ns[rows], cell, ranks * steps).reshape(ranks, steps)
        known = np.flatnonzero((charged.step != UNKNOWN) & (waits.last != NOBODY))
        cell = matched.place[waits.last[known]] * steps + charged.step[known]
        of_instance_ns = waits.of_instance_ns(matched.first)[known]
        caused = parts.sums(of_instance_ns, cell, ranks * steps).reshape(ranks, steps)
    absent = np.isnan(grid.length_ns)
    waited[absent], caused[absent] = np.nan, np.nan
    most = max(1, min(int(COLUMNS.value), int(CELLS.value) // max(1, ranks)))
    together = max(1, -(-steps // most))
    length, waited, caused = (_folded(table, together) for table in (grid.length_ns, waited, caused))
    return ByStep(length, waited, caused, together)


def _folded(table: FloatArray, together: int) -> FloatArray:
    if together == 1:
        return table
    ranks, steps = table.shape
    wide = np.pad(table, ((0, 0), (0, -steps % together)), constant_values=np.nan)
    cut = wide.reshape(ranks, -1, together)
    count = (~np.isnan(cut)).sum(axis=2)
    return np.where(count > 0, np.nansum(cut, axis=2) / np.maximum(1, count), np.nan)
