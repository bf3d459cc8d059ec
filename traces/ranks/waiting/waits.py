"""Who waited for whom: each participation is waiting for the last rank to arrive, then moving data.

A slow link makes a ring slow for all that are in it, and an exchange mostly for its own rank. So a rank's
link counts as slow only where all its groups are: its neighbours are in other groups too, that are not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, distinct
from traces.groups import group_of
from traces.limits import Limit
from traces.ranks.matching.match import Matched, together
from traces.ranks.one_run.align import Aligned
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import Operation
from traces.ranks.waiting.side_by_side import Alike, over_others, ratio

_NEVER: Final = np.iinfo(np.int64).min
_ALIKE: Final = Limit(
    0.01, "fraction of the transfer", "ours: what moves on all ranks together ends within a percent on each"
)
NOBODY: Final = -1
"""No rank: nobody waited, or without one clock nobody can tell who was last."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Waiting in collectives. `transfer_ns` and `last` are of each instance, shape (n,); `wait_ns` is of each
    participation, shape (p,), and so is `moving_ns`, its own time after the last rank had arrived.

    The transfer is the shortest participant's time. `last` is the participation, a row, that arrived last:
    all waiting of the instance is charged to it; `NOBODY` where nobody waited, clocks are apart, or a rank of
    the group was not recorded, since that one may have been later.
    """

    transfer_ns: IntArray
    last: IntArray
    wait_ns: IntArray
    moving_ns: IntArray

    def of_instance_ns(self, first: IntArray) -> IntArray:
        return parts.total(self.wait_ns, first)


def measure_waits(matched: Matched, aligned: Aligned, *, all_ranks_seen: bool) -> Waits:
    """Split every participation into waiting and moving.

    `all_ranks_seen`: no rank of the run is missing, so that groups of unknown size are complete too.

    Where all ranks end together, waiting is what a participation takes beyond the shortest: no clock enters.
    An exchange ends on each rank by itself, so that there, on one clock, a rank waits until the last start.
    Of several that are nearly the shortest, the one that started last by that clock was the last.
    """
    first = matched.first
    lasts_ns = matched.end_ns - matched.start_ns
    transfer_ns = parts.least(lasts_ns, first)
    beyond_ns = lasts_ns - parts.spread(transfer_ns, first)
    if not aligned.clocks.aligned:
        nobody = np.full(len(matched), NOBODY, dtype=np.int64)
        return Waits(transfer_ns, nobody, beyond_ns, lasts_ns - beyond_ns)
    together = parts.spread(matched.ends_together, first)
    arrived_ns = parts.spread(parts.most(aligned.start_ns, first), first)
    wait_ns = np.where(together, beyond_ns, np.minimum(arrived_ns - aligned.start_ns, lasts_ns))
    last = parts.first_where(aligned.start_ns == arrived_ns, first)
    near_ns = np.maximum(aligned.clocks.residual_ns or 0, _ALIKE.value * transfer_ns)
    shortest = beyond_ns <= parts.spread(near_ns, first)
    latest_ns = parts.spread(parts.most(np.where(shortest, aligned.start_ns, _NEVER), first), first)
    latest = parts.first_where(shortest & (aligned.start_ns == latest_ns), first)
    last = np.where(matched.ends_together, latest, last)
    waited = (parts.total(wait_ns, first) > 0) & complete(matched, all_ranks_seen)
    return Waits(transfer_ns, np.where(waited, last, NOBODY), wait_ns, lasts_ns - wait_ns)


def ends_at_once(moving_ns: IntArray, first: IntArray) -> BoolArray:
    """Which transfers, shape (n,), end on all ranks when that of the slowest does."""
    shortest_ns, longest_ns = parts.least(moving_ns, first), parts.most(moving_ns, first)
    return longest_ns - shortest_ns <= np.maximum(LASTS.value, _ALIKE.value * longest_ns)


def complete(matched: Matched, all_ranks_seen: bool) -> BoolArray:
    """Which instances were recorded by every rank of their group."""
    sizes = matched.group_sizes
    return np.where(sizes > 0, matched.sizes >= sizes, all_ranks_seen)


EXCHANGES: Final = (Operation.EXCHANGE, Operation.DISPATCH, Operation.COMBINE)
"""What each rank ends by itself, when its own data is there."""
LASTS: Final = Limit(
    10_000, "ns", "ours: below it a transfer is latency, of which a slow link may have no more than others"
)
LEAST: Final = 6
"""Transfers of a kind, from which on their mean says something."""


@dataclass(frozen=True, slots=True)
class Links:
    """Of each rank, shape (ranks,): how many times as long its data moves as that of ranks like it, the least
    over its kinds of communication, and how much time that costs in all. `most` is the largest of its kinds,
    with what an exchange hides of it. NaN where nothing can be compared.
    """

    factor: FloatArray
    most: FloatArray
    cost_ns: FloatArray


def measure_links(matched: Matched, waits: Waits, alike: Sequence[Alike], count: int) -> Links:
    """Compare the links of all ranks."""
    about = matched.kind[matched.first[:-1]]
    kind = group_of(matched.operation, about, matched.purposes, matched.sizes).astype(np.int64)
    kinds = int(kind.max()) + 1
    cell = matched.place * kinds + kind[matched.instance]
    took = np.bincount(cell, minlength=count * kinds).reshape(count, kinds)
    moved = parts.sums(waits.moving_ns, cell, count * kinds).reshape(count, kinds)
    mean = np.where(took >= LEAST, moved / np.maximum(took, 1), np.nan)
    lasts = np.array([_median(column[~np.isnan(column)]) for column in mean.T])
    mean = np.where(lasts >= LASTS.value, mean, np.nan)
    tells = np.stack([_tells(matched, kind == one, alike, count) for one in range(kinds)], axis=1)
    hidden = np.array([_exchanged_by(matched, kind == one, alike, count) for one in range(kinds)])
    return _compared(mean, tells, moved, hidden, alike)


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else 0.0


def _exchanged_by(matched: Matched, which: BoolArray, alike: Sequence[Alike], count: int) -> int:
    """How many ranks exchange, where all like ranks are in one exchange; else 0."""
    if not (which.any() and _are_exchanges(matched, which)) or _apart(matched, which, alike, count).any():
        return 0
    return int(matched.sizes[which][0])


def _compared(
    mean: FloatArray, tells: BoolArray, moved: FloatArray, hidden: IntArray, alike: Sequence[Alike]
) -> Links:
    """From the mean time of each rank's kinds, which of them show its link, and how long they moved in all,
    shape (ranks, kinds).

    `hidden`, shape (kinds,): of how many ranks an exchange is in which all are slower by part of their data.
    What other kinds cost a link is seen beside all ranks of the run.
    """
    ratios = ratio(np.where(tells, mean, np.nan), alike)
    told = ~np.isnan(ratios).all(axis=1)
    factor = np.full(len(mean), np.nan)
    factor[told] = np.nanmin(ratios[told], axis=1)
    most = np.full(len(mean), np.nan)
    most[told] = np.nanmax(slowness(ratios, hidden)[told], axis=1)
    seen = np.where(np.isnan(ratios), over_others(mean), ratios)
    beyond = np.where(np.isnan(seen), 0.0, 1 - 1 / np.maximum(seen, 1e-9))
    return Links(factor, most, np.where(told, (moved * beyond).sum(axis=1), np.nan))


def slowness(seen: FloatArray, size: IntArray, behind: IntArray | int = 1) -> FloatArray:
    """How slow a link is that moves `seen` times as long as the others of an exchange of `size` ranks.

    Of n ranks k are `behind` it: each of the others sends k / (n - 1) of its data by that link, and these
    (n - k) / (n - 1). A size of 0: nothing is hidden.
    """
    left = size - behind - seen * behind
    real = np.divide((seen - 1) * (size - 1), left, out=seen - 1, where=(size > 2) & (left > 0)) + 1
    return np.maximum(seen, np.minimum(real, 2 * seen + size))


def _tells(matched: Matched, which: BoolArray, alike: Sequence[Alike], count: int) -> BoolArray:
    """Of which ranks a kind of instances shows the link, shape (count,).

    Of all in exchanges of several; in rings and pairs where ranks like them are not all together in one.
    """
    if _are_exchanges(matched, which):
        return np.ones(count, dtype=np.bool_)
    return _apart(matched, which, alike, count)


def _apart(matched: Matched, which: BoolArray, alike: Sequence[Alike], count: int) -> BoolArray:
    """Ranks that are not all together with those like them in these instances, shape (count,)."""
    part, result = together(matched, which, count), np.zeros(count, dtype=np.bool_)
    for places in (list(group.places) for group in alike):
        result[places] = len(distinct(part[places])) > 1
    return result


def _are_exchanges(matched: Matched, which: BoolArray) -> bool:
    return bool((np.isin(matched.operation[which], EXCHANGES) & (matched.sizes[which] > 2)).all())
