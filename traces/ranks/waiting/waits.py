"""Who waited for whom: each participation is waiting for the last rank to arrive, then moving
data.
"""

from typing import Final

import numpy as np

from traces.arrays import FOREVER, BoolArray, IntArray
from traces.frozen import frozen
from traces.limits import Limit
from traces.ranks.matching.match import Matched
from traces.ranks.one_run.align import Aligned
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import Operation, sizes_of

_ALIKE: Final = Limit(
    0.01,
    "fraction of the transfer",
    "ours: what moves on all ranks together ends within a percent on each",
)
NOBODY: Final = -1
"""No rank: nobody waited, or without one clock nobody can tell who was last."""


@frozen
class Waits:
    """Waiting in collectives. `transfer_ns` and `last` are of each instance, shape (n,); `wait_ns`
    is of each participation, shape (p,), and so is `moving_ns`, its own time after the last rank
    had arrived.

    The transfer is the shortest participant's time. `last` is the participation, a row, that
    arrived last: all waiting of the instance is charged to it; `NOBODY` where nobody waited, clocks
    are apart, or a rank of a group of known size was not recorded: that one may have been later.
    """

    transfer_ns: IntArray
    last: IntArray
    wait_ns: IntArray
    moving_ns: IntArray


def measure_waits(matched: Matched, aligned: Aligned) -> Waits:
    """Split every participation into waiting and moving.

    Where all ranks end together, waiting is what a participation takes beyond the shortest: no
    clock enters. An exchange ends on each rank by itself, so that there, on one clock, a rank waits
    until the last start. Of several that are nearly the shortest, the one that started last by that
    clock was the last.
    """
    first = matched.first
    lasts_ns = matched.length_ns
    transfer_ns = parts.least(lasts_ns, first)
    beyond_ns = lasts_ns - parts.spread(transfer_ns, first)
    if not aligned.clocks.aligned:
        return Waits(transfer_ns, np.full(len(matched), NOBODY), beyond_ns, lasts_ns - beyond_ns)
    together = parts.spread(matched.ends_together, first)
    arrived_ns = parts.spread(parts.most(aligned.start_ns, first), first)
    wait_ns = np.where(together, beyond_ns, np.minimum(arrived_ns - aligned.start_ns, lasts_ns))
    last = parts.first_most(aligned.start_ns, first)
    near_ns = np.maximum(aligned.clocks.residual_ns or 0, _ALIKE.value * transfer_ns)
    shortest = beyond_ns <= parts.spread(near_ns, first)
    latest = parts.first_most(np.where(shortest, aligned.start_ns, ~FOREVER), first)
    last = np.where(matched.ends_together, latest, last)
    waited = (parts.total(wait_ns, first) > 0) & complete(matched, True)
    return Waits(transfer_ns, np.where(waited, last, NOBODY), wait_ns, lasts_ns - wait_ns)


def ends_at_once(moving_ns: IntArray, first: IntArray) -> BoolArray:
    """Which transfers, shape (n,), end on all ranks when that of the slowest does."""
    shortest_ns, longest_ns = parts.least(moving_ns, first), parts.most(moving_ns, first)
    return longest_ns - shortest_ns <= np.maximum(LASTS.value, _ALIKE.value * longest_ns)


def complete(matched: Matched, all_ranks_seen: bool) -> BoolArray:
    """Which instances were recorded by every rank of their group."""
    sizes = sizes_of(matched.groups)[matched.group]
    return np.where(sizes > 0, matched.sizes >= sizes, all_ranks_seen)


EXCHANGES: Final = (Operation.EXCHANGE, Operation.DISPATCH, Operation.COMBINE)
"""What each rank ends by itself, when its own data is there."""
LASTS: Final = Limit(
    10_000,
    "ns",
    "ours: below it a transfer is latency, of which a slow link may have no more than others",
)
