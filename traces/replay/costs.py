"""What the step would lose if one handicap vanished, by replay: a ceiling, in ns of the windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from traces.account.account import Account
from traces.account.tight import UNEXPLAINED
from traces.columns import IntArray
from traces.intervals import Spans, intersect, union
from traces.limits import Limit
from traces.missing import Missing
from traces.replay.edits import Edits, Subject
from traces.replay.graph import Graph, Timing, build_graph
from traces.replay.run import Replayed, replay
from traces.steps.found import Steps

OFF: Final = Limit(
    0.10,
    "fraction of the window",
    "ours: a replay that is further off without its unexplained waits explains too little to price anything",
)
LONG: Final = Limit(
    500_000, "ns of one pause or call", "ours: Python between two launches takes microseconds to tens of them"
)
HIDDEN: Final = Limit(0.10, "fraction of the window", "ours: as much as a wall, so it could hide one")
WORTH: Final = Limit(0.05, "fraction of the windows", "ours: half a wall; below it nobody asks which kind")
BUSY: Final = Limit(0.9, "fraction of the window", "ours: the step waits for a GPU as busy as that")
ELASTIC: Final = Limit(
    0.4,
    "fraction saved when all GPU work halves",
    "ours: where a busy window shrinks less, the host's waits are not understood; real recordings gave 0.43 "
    "to 0.50 where they were, 0.06 where not",
)


@dataclass(frozen=True, slots=True)
class Cost:
    """One handicap's ceiling.

    `by_kind_ns`: each kind taken away alone, so they need not add up; kinds that give nothing are left out.
    `step_ns`: of each used step, in order; empty where there are no steps.
    """

    ns: int
    by_kind_ns: Mapping[str, int]
    step_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Proofs:
    """Whether the replay means anything.

    `residual_free_error_frac`: by how much the window is missed when waits over 2 us that no constraint
    explains are set to none; `unexplained_frac`: those waits, as part of the window. `elastic_frac`: how much
    the window shrinks when all GPU work halves.
    """

    residual_free_error_frac: float
    elastic_frac: float
    unexplained_frac: float


@dataclass(frozen=True, slots=True)
class Costs:
    """What each handicap costs one rank; `compute` is None where no launch shape was recorded.

    Where `refused` is set, the first proof failed, and the costs are not to be used. Where `at_least` is set,
    the second did: the host may wait for the GPU in ways unseen, so the costs may be larger, never smaller.
    """

    communication: Cost
    host_overhead: Cost
    memory: Cost
    compute: Cost | None
    proofs: Proofs
    refused: Missing | None
    at_least: Missing | None


def measure_costs(subject: Subject, steps: Steps, account: Account | Missing) -> Costs | Missing:
    """Costs of one rank over its windows; `Missing` where there is no account: a replay needs the same."""
    if isinstance(account, Missing):
        return Missing("replay", account.reason, account.cure)
    return _Pricing(subject, steps, account).costs()


class _Pricing:
    """One rank's graph, replayed with one thing taken away at a time."""

    def __init__(self, subject: Subject, steps: Steps, account: Account) -> None:
        self._account = account
        self._windows: Spans = steps.windows
        self._graph: Graph = build_graph(subject.rank, steps.windows)
        self._timing = _explained(self._graph.timing)
        self._edits = Edits(subject, self._graph, self._timing)
        used = [(step.start_ns, step.end_ns) for step in steps.used]
        self._has_steps = bool(used)
        pairs = used or list(zip(self._windows.start_ns.tolist(), self._windows.end_ns.tolist(), strict=True))
        self._borders = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        self._recorded = self._lengths(replay(self._graph, self._graph.timing))
        self._lasting = self._lengths(replay(self._graph, self._timing))

    def costs(self) -> Costs:
        edits = self._edits
        proofs = self._proofs()
        compute = edits.filled()
        return Costs(
            self._cost(edits.communication(), edits.communication_kinds),
            self._capped(self._cost(edits.host(), edits.host_kinds)),
            self._cost(edits.memory(), edits.memory_kinds),
            None if compute is None else self._cost(compute, edits.filled_kinds),
            proofs,
            _refusal(proofs),
            self._doubt(proofs),
        )

    def _cost(self, edited: Timing, kinds: Callable[[], Mapping[str, Timing]]) -> Cost:
        """What an edit saves; its kinds are edited, and replayed, only where it saves enough to be split."""
        saved = self._saved(edited)
        total = int(saved.sum())
        by_kind: dict[str, int] = {}
        if total >= WORTH.value * int(self._lasting.sum()):
            alone = {kind: min(total, int(self._saved(timing).sum())) for kind, timing in kinds().items()}
            by_kind = {kind: ns for kind, ns in alone.items() if ns > 0}
        return Cost(max(0, total), by_kind, tuple(saved.tolist()) if self._has_steps else ())

    def _capped(self, cost: Cost) -> Cost:
        """Never more than what the account lays on the host, on latency and on copies to the host.

        Those copies count because small ones that only feed a call go with it, and what they queued behind.
        """
        account, others = self._account, ("allocator", "profiler")
        most = sum(ns for cause, ns in account.launch_starved_ns.items() if cause not in others)
        most += account.arrival_ns + account.kernel_gap_ns + account.masked_ns
        most += account.blocking_ns.get("memcpy_d2h", 0)
        if cost.ns <= most:
            return cost
        by_kind = {kind: min(ns, most) for kind, ns in cost.by_kind_ns.items()}
        steps = tuple(round(ns * most / cost.ns) for ns in cost.step_ns)
        return Cost(most, by_kind, steps)

    def _saved(self, timing: Timing) -> IntArray:
        return self._lasting - self._lengths(replay(self._graph, timing))

    def _lengths(self, done: Replayed) -> IntArray:
        reached = done.reached_ns(self._graph.rows.end_ns, self._borders.ravel()).reshape(-1, 2)
        result: IntArray = reached[:, 1] - reached[:, 0]
        return result

    def _proofs(self) -> Proofs:
        recorded, timing = int(self._recorded.sum()), self._graph.timing
        halved = self._saved(replace(self._timing, duration_ns=self._timing.duration_ns // 2))
        rows, long = self._graph.rows, timing.residual_ns > UNEXPLAINED.value
        waited = union((rows.start_ns - timing.residual_ns)[long], rows.start_ns[long])
        unexplained = intersect(waited, self._windows).total_ns
        off = abs(int((self._recorded - self._lasting).sum()))
        return Proofs(
            off / recorded if recorded else 0.0,
            float(halved.sum()) / recorded if recorded else 0.0,
            unexplained / self._windows.total_ns,
        )

    def _doubt(self, proofs: Proofs) -> Missing | None:
        """Set where a busy GPU's window hardly shrinks with its work, and host time could hide waits."""
        rows, whole_ns = self._graph.rows, self._windows.total_ns
        busy = intersect(union(rows.start_ns, rows.end_ns), self._windows).total_ns / whole_ns
        hidden = self._edits.unexplained_host_ns(int(LONG.value)) / whole_ns
        if busy < BUSY.value or proofs.elastic_frac >= ELASTIC.value or hidden < HIDDEN.value:
            return None
        reason = (
            f"the GPU is busy {busy:.0%} of the window, yet a replay with all GPU work halved saves only "
            f"{proofs.elastic_frac:.0%} of it: what the host waits for is not understood"
        )
        return Missing("replay", reason, "record with --trace=cuda,nvtx,osrt and --cuda-event-trace=true")


def _explained(timing: Timing) -> Timing:
    """The timing without long waits that no constraint explains.

    Kept, they would hold work back in every edit as the recording did: a delay that is a constant explains
    nothing. Without them the window comes back nearly the same where what matters is understood.
    """
    return replace(
        timing, residual_ns=np.where(timing.residual_ns > UNEXPLAINED.value, 0, timing.residual_ns)
    )


def _refusal(proofs: Proofs) -> Missing | None:
    if proofs.residual_free_error_frac <= OFF.value:
        return None
    reason = (
        f"a replay without unexplained waits misses the window by {proofs.residual_free_error_frac:.0%}: "
        "what GPU work waits for is not in the trace"
    )
    return Missing("replay", reason, "record with --cuda-event-trace=true, and more steps")
