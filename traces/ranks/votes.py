"""Who is late, collective by collective: each is one vote, weighed by the waiting that it was.

A vote says what its last rank did longer than the others since the group's collective before. It serves where
no steps are known; with steps, whole steps are compared.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.limits import Limit
from traces.ranks import parts
from traces.ranks.cause import Cause
from traces.ranks.clocks import Aligned
from traces.ranks.late import COST, NOTHING, Suspicion
from traces.ranks.match import Matched
from traces.ranks.summary import UNKNOWN
from traces.ranks.waits import NOBODY, Waits

LEAST: Final = Limit(12, "collectives", "ours: of fewer, one odd stretch decides")
MAJORITY: Final = Limit(0.6, "fraction of the waiting", "ours: of two healthy ranks each has about half")

REASONS: Final = (Cause.SLOW_DEVICE, Cause.ROUTING_IMBALANCE, Cause.SLOW_HOST, Cause.DATA_LOADER)
"""What can make a rank late before a collective, in the order of `Votes.reason`."""


@dataclass(frozen=True, slots=True)
class Votes:
    """Votes, shape (v,): the `place` that was last, the waiting for it, and why it was late.

    `reason` indexes `REASONS`, `UNKNOWN` where nothing that it did explains half of its lateness. `kind`
    indexes `traces.names.kinds.COMM_KINDS`.
    """

    place: IntArray
    weight_ns: IntArray
    reason: IntArray
    kind: IntArray


def votes_of(matched: Matched, aligned: Aligned, waits: Waits) -> Votes:
    """One vote for each instance whose last rank is known, and before which its group had another."""
    first = matched.first
    last = np.where(waits.last == NOBODY, 0, waits.last)
    others = np.ones(len(matched.place), dtype=np.bool_)
    others[last[waits.last != NOBODY]] = False
    told = (waits.last != NOBODY) & (matched.compute_ns[last] != UNKNOWN) if len(first) > 1 else others[:0]
    late_ns = aligned.start_ns[last] - parts.median(aligned.start_ns, first, others)
    grouped = np.maximum(matched.grouped_ns, 0)
    beyond = np.stack(
        [
            _beyond(values, last, first, others)
            for values in (matched.compute_ns - grouped, grouped, matched.host_ns, matched.loader_ns)
        ]
    )
    reason = np.argmax(beyond, axis=0)
    explains = beyond.max(axis=0) * 2 >= late_ns
    weight_ns = waits.of_instance_ns(first)
    return Votes(
        matched.place[last][told],
        weight_ns[told],
        np.where(explains, reason, UNKNOWN)[told],
        matched.kind[last][told],
    )


def _beyond(values: IntArray, last: IntArray, first: IntArray, others: BoolArray) -> IntArray:
    """How much more of something the last rank did than the median of the others; 0 where it is not told."""
    told = others & (values != UNKNOWN)
    known = parts.most(told, first)
    more = values[last] - parts.median(values, first, told)
    return np.where(known & (values[last] != UNKNOWN), more, 0)


def find_by_votes(matched: Matched, aligned: Aligned, waits: Waits) -> Suspicion:
    """The rank that most of the waiting is charged to, by what made it late; else `NOTHING`."""
    if not len(matched):
        return NOTHING
    votes = votes_of(matched, aligned, waits)
    if len(votes.place) < LEAST.value:
        return NOTHING
    by_place = np.bincount(votes.place, weights=votes.weight_ns)
    place = int(np.argmax(by_place))
    span_ns = int(aligned.end_ns.max()) - int(aligned.start_ns.min())
    if by_place[place] < MAJORITY.value * by_place.sum() or by_place[place] < COST.value * span_ns:
        return NOTHING
    mine = (votes.place == place) & (votes.reason != UNKNOWN)
    if not mine.any():
        return NOTHING
    by_reason = np.bincount(votes.reason[mine], weights=votes.weight_ns[mine], minlength=len(REASONS))
    cause = REASONS[int(np.argmax(by_reason))]
    return Suspicion(cause, place, float(by_place[place]))
