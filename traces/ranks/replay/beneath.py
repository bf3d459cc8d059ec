"""Communication beneath compute: what of it held up nothing, and how much it slowed the compute
above it.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, ints, none_of, zeros
from traces.frozen import frozen
from traces.groups import group_of
from traces.limits import MOST, Limit
from traces.names.kernels import COMM_KINDS
from traces.ranks.matching.match import Matched
from traces.ranks.one_run.align import Aligned
from traces.ranks.rows.ends import NO_ROW, ByTime
from traces.ranks.summaries.summary import UNKNOWN, kinds_of

BENEATH: Final = Limit(
    0.35,
    "of a collective's time without compute",
    "ours: gradients that hold nothing up are exposed by a third now and then, what is waited for "
    "by half",
)
BESIDE: Final = kinds_of("dp_reduce_scatter", "dp_all_gather")
"""Kinds that run beside the work of layers, so that work before them is counted already."""
GRADIENTS: Final = (*BESIDE, *kinds_of("all_reduce"))
"""Without a sharded optimizer they are reduced to all ranks."""
EVERY_KIND: Final = tuple(range(len(COMM_KINDS)))
THROUGH: Final = Limit(
    0.95,
    "of the time since",
    "ours: between kernels that follow each other lie some us, so a few percent",
)
_FULL: Final = Limit(
    0.9,
    "of the work since",
    "ours: compute that ends with the communication beneath it was slowed all the time; from there "
    "on longer communication slows it no more",
)
_SURE: Final = Limit(
    3.0,
    "standard errors",
    "statistics: one slope in 740 of stretches that nothing slows is as far above 0",
)


@frozen
class Slowed:
    """Work that communication beneath it slowed: of each participation, shape (p,), the row
    `beneath` that ended last, `lead_ns` from the end of what it comes after to that row's begin,
    and `frac` of the time beneath by which the work takes longer. `NO_ROW` where nothing is
    beneath.
    """

    beneath: IntArray
    lead_ns: IntArray
    frac: float

    def longer_ns(
        self, rows: IntArray, since_ns: IntArray, end_ns: IntArray, own_ns: IntArray
    ) -> IntArray:
        """How much longer the work of these rows takes that begins at `since_ns` and alone takes
        `own_ns`.

        `end_ns`: of all participations, and one value more. It is slowed no longer than it lasts.
        """
        beneath = self.beneath[rows]
        ended_ns = np.where(beneath == NO_ROW, since_ns, end_ns[beneath])
        beside_ns = np.maximum(ended_ns - since_ns - self.lead_ns[rows], 0)
        longest_ns = np.floor(self.frac / (1 - self.frac) * np.maximum(own_ns, 0)) + 1
        return ints(np.minimum(np.rint(self.frac * beside_ns), longest_ns))


def comes_after(
    matched: Matched,
    aligned: Aligned,
    role: IntArray,
    behind: IntArray,
    last: IntArray,
    skipped: Sequence[int],
) -> tuple[IntArray, Slowed | None]:
    """The row that each participation comes after, shape (p,): the `last` of its rank that had
    ended. Where compute ran all the time since the one `behind` which it lies, the last that no
    compute hid, or whose kind is not `skipped`.

    Only where that is so on most of like ranks. With what slowed the work since, if anything.
    """
    end_ns = aligned.end_ns
    own = matched.exposed_ns <= BENEATH.value * matched.length_ns
    beneath = own | _mostly(own, role)
    beneath &= np.isin(matched.kind, skipped)
    rows = np.flatnonzero((behind != NO_ROW) & beneath[last])
    if not len(rows):
        return last, None
    first, held = behind[rows], _held_up(matched, aligned, rows, behind, ~beneath)
    since_ns = aligned.start_ns[rows] - end_ns[held]
    apart_ns = np.where(held == first, 0, end_ns[held] - end_ns[first] - matched.exposed_ns[held])
    # at least so much of it since then
    compute_ns = matched.compute_ns[rows] - np.maximum(apart_ns, 0)
    through = none_of(len(last))
    through[rows] = compute_ns >= np.maximum(1, THROUGH.value * since_ns)
    if not through.any():
        return last, None
    most = _mostly(through, group_of(role, np.where(last == NO_ROW, UNKNOWN, role[last])))[rows]
    after = last.copy()
    after[rows] = np.where(most & (through[rows] | own[last[rows]]), held, last[rows])
    return after, _slowed(aligned, role, after, np.where(after == last, NO_ROW, last))


def _mostly(which: BoolArray, number: IntArray) -> BoolArray:
    """Whether it holds for most of the rows of the same number."""
    share = np.bincount(number, weights=which) / np.bincount(number)
    return (share > MOST.value)[number]


def _held_up(
    matched: Matched, aligned: Aligned, rows: IntArray, behind: IntArray, alone: BoolArray
) -> IntArray:
    """Of these rows the last before that no compute hid, or the one `behind` which each lies."""
    lone = np.flatnonzero(alone)
    row = ByTime(matched.place[lone], aligned.end_ns[lone]).before(
        matched.place[rows], aligned.start_ns[rows]
    )
    row = np.append(lone, NO_ROW)[row]  # what there is none of is the last
    later = (row != NO_ROW) & (aligned.end_ns[row] > aligned.end_ns[behind[rows]])
    return np.where(later, row, behind[rows])


def _slowed(aligned: Aligned, role: IntArray, after: IntArray, beneath: IntArray) -> Slowed | None:
    """What communication beneath slowed, by stretches of one role that had more of it beneath and
    less.
    """
    rows = np.flatnonzero(beneath != NO_ROW)
    begin_ns = aligned.end_ns[after[rows]]
    own_ns = aligned.start_ns[rows] - begin_ns
    lead_ns = np.maximum(aligned.start_ns[beneath[rows]] - begin_ns, 0)
    beside_ns = aligned.end_ns[beneath[rows]] - begin_ns - lead_ns
    is_partial = beside_ns < _FULL.value * own_ns
    frac, error = slope(
        beside_ns[is_partial].astype(np.float64),
        own_ns[is_partial].astype(np.float64),
        group_of(role[rows][is_partial]),
    )
    if not frac > _SURE.value * error:
        return None
    leads_ns = zeros(len(after))
    leads_ns[rows] = lead_ns
    return Slowed(beneath, leads_ns, min(frac, MOST.value))


def slope(x: FloatArray, y: FloatArray, group: IntArray) -> tuple[float, float]:
    """By how much y rises with x within groups, and the standard error of that; NaN where nothing
    tells.

    Least squares with a constant of each group.
    """
    count = np.bincount(group)
    free = len(x) - len(count) - 1
    apart_x = x - (np.bincount(group, x) / count)[group]
    apart_y = y - (np.bincount(group, y) / count)[group]
    spread = float(apart_x @ apart_x)
    if free < 1 or not spread:
        return np.nan, np.nan
    rises = float(apart_x @ apart_y) / spread
    left = apart_y - rises * apart_x
    return rises, float(np.sqrt(left @ left / free / spread))
