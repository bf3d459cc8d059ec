"""Who is late where no steps are known: each collective is a vote, weighed by the waiting that it
was.

It says what its last rank did longer than the others since the group's collective before.
"""

from operator import attrgetter
from typing import Final

import numpy as np

from heuristics.late.beside import COST
from heuristics.late.judge import Tried
from traces.arrays import BoolArray, IntArray, Rows, none_of
from traces.frozen import frozen
from traces.limits import MOST
from traces.ranks.matching.match import Matched
from traces.ranks.one_run.align import Aligned
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import UNKNOWN
from traces.ranks.waiting.waits import NOBODY, Waits
from traces.sections.cause import Cause
from traces.statistics.resampled import CHANCE, drawn_again

REASONS: Final = (Cause.SLOW_DEVICE, Cause.ROUTING_IMBALANCE, Cause.SLOW_HOST, Cause.DATA_LOADER)
"""What can make a rank late before a collective, in the order of `Votes.reason`."""


@frozen
class Votes(Rows):
    """Votes, shape (v,): the `place` that was last, the waiting for it, and why it was late.

    `reason` indexes `REASONS`, `UNKNOWN` where nothing that it did explains half of its lateness.
    """

    place: IntArray
    weight_ns: IntArray
    reason: IntArray


def votes_of(matched: Matched, aligned: Aligned, waits: Waits) -> Votes:
    """One vote for each instance whose last rank is known, and before which its group had
    another.
    """
    first = matched.first
    last = np.where(waits.last == NOBODY, 0, waits.last)
    not_last = ~none_of(len(matched.place))
    not_last[last[waits.last != NOBODY]] = False
    decided = (
        (waits.last != NOBODY) & (matched.compute_ns[last] != UNKNOWN)
        if len(first) > 1
        else not_last[:0]
    )
    late_ns = aligned.start_ns[last] - parts.median(aligned.start_ns, first, not_last)
    grouped = np.maximum(matched.grouped_ns, 0)
    before, at = matched.recorded.rows, matched.at
    spent = matched.compute_ns - grouped, grouped, before.host_ns[at], before.loader_ns[at]
    beyond = np.stack([_beyond(values, last, first, not_last) for values in spent])
    reason = np.argmax(beyond, axis=0)
    explains = beyond.max(axis=0) * 2 >= late_ns
    weight_ns = parts.total(waits.wait_ns, first)
    reason = np.where(explains, reason, UNKNOWN)
    return Votes(matched.place[last], weight_ns, reason).take(decided)


def _beyond(values: IntArray, last: IntArray, first: IntArray, not_last: BoolArray) -> IntArray:
    """How much more of something the last rank did than the median of the others; 0 where it is not
    told.
    """
    known_rows = not_last & (values != UNKNOWN)
    known = parts.most(known_rows, first)
    more = values[last] - parts.median(values, first, known_rows)
    return np.where(known & (values[last] != UNKNOWN), more, 0)


def judged_by_votes(run: MeasuredRun) -> Tried | None:
    """The rank that most of the waiting is charged to, by what made it late."""
    matched, aligned, waits = run.matched, run.aligned, run.waits
    if not len(matched):
        return None
    votes = votes_of(matched, aligned, waits)
    if not len(votes):
        return None
    by_place = np.bincount(votes.place, weights=votes.weight_ns)
    place = int(np.argmax(by_place))
    span_ns = int(aligned.end_ns.max()) - int(aligned.start_ns.min())
    if _least_part(votes, place) <= MOST.value or by_place[place] < COST.value * span_ns:
        return None
    mine = (votes.place == place) & (votes.reason != UNKNOWN)
    if not mine.any():
        return None
    by_reason = np.bincount(
        votes.reason[mine], weights=votes.weight_ns[mine], minlength=len(REASONS)
    )
    cost_ns = float(by_place[place])
    untouched = attrgetter("own_ns", "moving_ns")  # no replay asks: there are no steps
    edit = Edit(REASONS[int(np.argmax(by_reason))], (place,), np.array([cost_ns]), untouched)
    return Tried(edit, None, cost_ns)


def _least_part(votes: Votes, place: int) -> float:
    """What part of the waiting is charged to a rank at least, of votes drawn again."""
    drawn = drawn_again(len(votes))
    weight_ns = votes.weight_ns[drawn]
    mine_ns = np.where(votes.place[drawn] == place, weight_ns, 0).sum(axis=1)
    return float(np.quantile(mine_ns / np.maximum(weight_ns.sum(axis=1), 1), CHANCE.value))
