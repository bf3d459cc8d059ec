"""Whether a replay means anything: two proofs, and what is refused or doubted where they fail.

What an overhead or a change costs is a ceiling. The host's time may be waiting for GPU work though
no call is known to wait for it: by how much is told with it.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from traces.account.calls import NONE
from traces.account.waits import RETURNS
from traces.arrays import PLACE, BoolArray, IntArray, last_at, order_of
from traces.cures import cure
from traces.frozen import frozen
from traces.groups import mask_of, passing
from traces.intervals import Spans, covered_ns, ns_in
from traces.limits import NEARLY_ALL, WALL, Limit
from traces.missing import Missing
from traces.patterns import compiled
from traces.replay.graph import Graph
from traces.spelling import percent
from traces.texts import Texts
from traces.timeline import Activities, RankTimeline


@frozen
class Cost:
    """One overhead's ceiling.

    `by_kind_ns`: each kind taken away alone, so they need not add up; kinds that give nothing are
    left out. `step_ns`: of each replayed step in order, times what it stands for
    (`traces.steps.sample`); empty where there are no steps.
    """

    ns: int
    by_kind_ns: Mapping[str, int]
    step_ns: tuple[int, ...]

    def of_kinds_ns(self, kinds: Texts) -> int:
        """What some of its kinds cost together, at most all of it; all of it where it was not
        split.
        """
        if not self.by_kind_ns:
            return self.ns
        return min(self.ns, sum(ns for kind, ns in self.by_kind_ns.items() if kind in kinds))


_ASKING: Final = compiled("EventQuery|StreamQuery")


def may_wait_ns(rank: RankTimeline, graph: Graph, windows: Spans) -> int:
    """The host's time in some windows that may be waiting unseen: pauses, and calls not known to
    wait.
    """
    calls, since_ns = graph.calls, graph.calls.start_ns - graph.timing.pause_ns
    known = mask_of(graph.timing.waits.call, len(calls))
    mine = passing(_ASKING.search, rank.columns.call_names)[rank.calls.name[calls.row]]
    asks = mine & (calls.before != NONE)
    asks[asks] = mine[calls.before[asks]]  # directly after another that asks
    paused = asks | _follows(graph.rows, since_ns, calls.start_ns)
    within = asks | (_follows(graph.rows, calls.start_ns, calls.end_ns) & ~known)
    waiting = covered_ns(since_ns, calls.start_ns, windows)[paused].sum()
    return int(waiting + ns_in(calls, windows)[within].sum())


def _follows(rows: Activities, begins_ns: IntArray, ends_ns: IntArray) -> BoolArray:
    """Which stretches of time end just after work that ended in them and was launched before
    them.
    """
    by_end = order_of(rows.end_ns).astype(PLACE)
    ended_ns = rows.end_ns[by_end]
    last = last_at(ended_ns, ends_ns)
    ends = (last >= 0) & (ended_ns[last] > np.maximum(begins_ns, ends_ns - RETURNS.value))
    return ends & (rows.launched_ns[by_end[last]] < begins_ns)


ELASTIC: Final = Limit(
    0.4,
    "fraction saved when all GPU work halves",
    "measurement.md: where a busy window shrinks less, the host's waits are not understood; real "
    "recordings gave 0.43 to 0.50 where they were, 0.06 where not",
)


@frozen
class Proofs:
    """Whether the replay means anything.

    `residual_free_error_frac`: by how much the window is missed when waits over 2 us that no
    constraint explains are set to none; `unexplained_frac`: those waits, as part of the window.
    `elastic_frac`: how much the window shrinks when all GPU work halves. `unseen_frac`: the most of
    the host's time, as part of the window, that may be waiting for GPU work unseen.
    """

    residual_free_error_frac: float
    elastic_frac: float
    unexplained_frac: float
    unseen_frac: float = 0.0

    @property
    def held_by_host(self) -> bool:
        """Whether a window that hardly shrinks with GPU work is held by what the host itself
        does.
        """
        return max(self.unseen_frac, self.unexplained_frac) < WALL.value


def refusal(proofs: Proofs, kind: str) -> Missing | None:
    """Set where the first proof fails: costs are then not to be used. `kind`: of the trace.

    A replay that is off by a wall without its unexplained waits explains too little for the cost of
    one.
    """
    if proofs.residual_free_error_frac <= WALL.value:
        return None
    reason = (
        "a replay without unexplained waits misses the window by "
        f"{percent(proofs.residual_free_error_frac)}: what GPU work waits for is not in the trace"
    )
    return Missing("replay", reason, cure("events", kind))


def doubt(proofs: Proofs, busy_frac: float, kind: str) -> Missing | None:
    """Set where the second proof fails: a busy GPU's window that hardly shrinks with its work.

    Then some of the host's time may be waiting unseen, so that a small cost is not known to be
    small; not where the host's own work is seen to take that time.
    """
    if busy_frac < NEARLY_ALL.value or proofs.elastic_frac >= ELASTIC.value or proofs.held_by_host:
        return None
    reason = (
        f"the GPU is busy {percent(busy_frac)} of the window, yet a replay with all GPU work "
        f"halved saves "
        f"only {percent(proofs.elastic_frac)} of it: what waits for what is not understood"
    )
    return Missing("replay", reason, cure("host_waits", kind))
