"""What the step would lose if one overhead vanished, by replay: a ceiling, in ns of the windows."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from itertools import accumulate, pairwise
from typing import Any, Final

import numpy as np

from traces.account.account import Account
from traces.account.calls import NONE
from traces.account.device import Queueing
from traces.account.inferred import UNEXPLAINED
from traces.account.producers import Producers
from traces.arrays import PLACE, BoolArray, IntArray, listed, summed
from traces.columns import COPY_KINDS, NULL
from traces.frozen import frozen
from traces.intervals import Spans, instants_in, intersect, union
from traces.limits import HALF_A_WALL, WALL
from traces.missing import Missing
from traces.progress import report
from traces.replay.changes.change import Change, ChangesTogether
from traces.replay.changes.measure import MeasuredChanges, measure_changes
from traces.replay.edits import Edits, Subject
from traces.replay.graph import Timing, build_graph, happens_in
from traces.replay.proofs import Cost, Proofs, doubt, may_wait_ns, refusal
from traces.replay.run import ReplayBorders, replay
from traces.replay.without import without_unexplained
from traces.steps.sample import sample_of
from traces.timeline import Activities, Bucket, Source

_PLACES: Final = ("recomputed", "offloaded", "resident", "apart", "simt")
"""Fields of a subject that are places in its activities."""


def part_of(subject: Subject, queueing: Queueing, stretches: Spans) -> tuple[Subject, Queueing]:
    """A subject with only what happens in some stretches, and what that waits for; places are among
    those.
    """
    happens, producers = happens_in(subject.rank.activities, stretches.pairs()), queueing.producers
    mask = np.append(happens, False)
    for places in (*producers.place[happens].T, producers.room[happens]):
        mask[places] = True
    mask[NONE] = False  # the last place stands for no producer
    kept = _Kept(np.flatnonzero(mask), np.where(mask, np.cumsum(mask) - 1, NONE).astype(PLACE))
    kept_producers = Producers(
        kept.now[producers.place[kept.place]],
        producers.inferred[kept.place],
        kept.now[producers.room[kept.place]],
    )
    rows = _rows(subject.rank.activities, kept.place, happens)
    of_subject: dict[str, Any] = {name: kept.of(getattr(subject, name)) for name in _PLACES}
    part = replace(
        subject,
        rank=replace(subject.rank, activities=rows),
        **of_subject,
        wide=tuple(replace(wide, places=kept.of(wide.places)) for wide in subject.wide),
    )
    return part, replace(queueing, producers=kept_producers)


@frozen
class _Kept:
    """Places that are kept, in order, and where each place stands `now`: -1 where it is gone, and
    for -1.
    """

    place: IntArray
    now: IntArray

    def of(self, places: IntArray) -> IntArray:
        now = self.now[places]
        return now[now != NONE]


def _rows(rows: Activities, places: IntArray, happens: BoolArray) -> Activities:
    """Work that does not happen is kept for its end alone: what it was part of is not there
    whole.
    """
    kept, other = rows.take(places), ~happens[places]
    kept.bucket[other], kept.source[other], kept.row[other] = Bucket.COPY, Source.COPY, 0
    kept.key[other] = COPY_KINDS.index("memset")
    kept.name[other], kept.call[other], kept.launch_ns[other] = NONE, NONE, NULL
    return Activities(*(getattr(kept, column.name) for column in fields(Activities)))


@frozen
class Without:
    """The run without one wall's overhead, and what the others cost in it; these costs have no
    kinds.

    `window_ns` is what is left of the windows.
    """

    window_ns: int
    costs: Mapping[str, Cost]


@frozen
class Costs:
    """What each overhead costs one rank; `compute` is None where no launch shape was recorded.

    `without`: by each wall that costs a tenth of the windows or more, the run without it; not the
    host's where the account holds it well below its replay. `changes`: what single changes of the
    run would give; `together` replays several of them at once. `replayed_ns`: how much of the
    windows was replayed, and stands for the rest. Where `refused` is set, the first proof failed,
    and the costs are not to be used. Where `at_least` is set, the second did: the host may wait for
    the GPU in ways unseen, so the costs may be larger, never smaller.
    """

    communication: Cost
    host_overhead: Cost
    memory: Cost
    compute: Cost | None
    without: Mapping[str, Without]
    replayed_ns: int
    proofs: Proofs
    refused: Missing | None
    at_least: Missing | None
    changes: tuple[Change, ...] = ()
    together: ChangesTogether | Missing | None = None

    def of(self, wall: str) -> Cost | None:
        return getattr(self, wall)


def measure_costs(
    subject: Subject, account: Account | Missing, queueing: Queueing
) -> Costs | Missing:
    """Costs of one rank over its windows; `Missing` where the account is: a replay needs its
    facts.
    """
    if isinstance(account, Missing):
        return Missing("replay", account.reason, account.cure)
    return _Pricing(subject, account, queueing).costs()


class _Pricing:
    """One rank's graph, replayed with one thing taken away at a time."""

    def __init__(self, subject: Subject, account: Account, queueing: Queueing) -> None:
        sample = sample_of(subject.steps, len(subject.rank.activities))
        windows = subject.steps.windows
        self._account, self._replays, self._window_ns = account, 0, windows.total_ns
        self._windows, self._has_steps = sample.windows, bool(sample.steps)
        if self._windows.total_ns < windows.total_ns:
            subject, queueing = part_of(subject, queueing, sample.stretches)
        self._subject, self._graph = subject, build_graph(subject.rank, sample.stretches, queueing)
        self._timing = without_unexplained(self._graph.timing)
        self._edits = Edits(self._subject, self._graph, self._timing)
        self._borders = ReplayBorders(
            self._graph.rows, sample.pairs_ns, sample.stand_for_ns, sample.apart_ns
        )
        self._recorded = self._lengths_ns(self._graph.timing)
        self._lasting = self._lengths_ns(self._timing)

    def _lengths_ns(self, timing: Timing) -> IntArray:
        """How long each step lasts, replayed with a timing."""
        self._replays += 1
        report(f"measuring {self._subject.rank.columns.info.name}: replay {self._replays}")
        return self._borders.lengths_ns(replay(self._graph, timing))

    def costs(self) -> Costs:
        proofs = self._proofs()
        walls, left, costs = self._edits.walls(), dict[str, IntArray](), dict[str, Cost]()
        for wall, (whole, kinds) in walls.items():
            left[wall] = self._lengths_ns(whole())
            costs[wall] = self._split(left[wall], kinds)
        capped, whole_ns = self._capped(costs["host_overhead"]), self._window_ns
        worth = {wall for wall, cost in costs.items() if cost.ns >= WALL.value * whole_ns}
        if costs["host_overhead"].ns - capped.ns >= HALF_A_WALL.value * whole_ns:
            worth -= {"host_overhead"}  # what is left is not what was replayed
        costs["host_overhead"] = capped
        changed, without = self._changes(costs), dict[str, Without]()
        for wall in costs:
            if wall in worth:
                without[wall] = self._without(wall, walls[wall][0](), left[wall])
        kind = self._subject.rank.columns.info.kind
        busy_ns = instants_in(self._windows, self._graph.rows).total_ns
        return Costs(
            costs["communication"],
            costs["host_overhead"],
            costs["memory"],
            costs.get("compute"),
            without,
            self._windows.total_ns,
            proofs,
            refusal(proofs, kind),
            doubt(proofs, busy_ns / self._windows.total_ns, kind),
            changed.changes,
            changed.together,
        )

    def _changes(self, costs: Mapping[str, Cost]) -> MeasuredChanges:
        lasting_ns, kept = summed(self._lasting), self._graph.timing
        bases = [(self._timing, lasting_ns)]
        if not np.array_equal(kept.residual_ns, self._timing.residual_ns):
            bases.append((kept, summed(self._recorded)))
        worth_ns = round(HALF_A_WALL.value * lasting_ns)
        return measure_changes(self._subject, self._graph, bases, self._borders, costs, worth_ns)

    def _split(self, left: IntArray, kinds: Callable[[], Mapping[str, Timing]]) -> Cost:
        """What an overhead costs; its kinds are edited, and replayed, only where it is enough to be
        split.
        """
        cost = self._cost(self._lasting, left)
        if cost.ns < HALF_A_WALL.value * summed(self._lasting):
            return cost
        by_kind_ns = {}
        for kind, timing in kinds().items():
            if alone_ns := self._cost(self._lasting, self._lengths_ns(timing)).ns:
                by_kind_ns[kind] = min(alone_ns, cost.ns)
        return replace(cost, by_kind_ns=by_kind_ns)

    def _without(self, wall: str, timing: Timing, left: IntArray) -> Without:
        others = {
            other: self._cost(left, self._lengths_ns(whole()))
            for other, (whole, _) in replace(self._edits, timing=timing).walls().items()
            if other != wall
        }
        return Without(summed(left), others)

    def _cost(self, before: IntArray, after: IntArray) -> Cost:
        saved = before - after
        return Cost(max(0, summed(saved)), {}, listed(saved) if self._has_steps else ())

    def _capped(self, cost: Cost) -> Cost:
        """Never more than the account lays on the host, and other kinds not what it lays on data
        loading.

        A host without Python would be early for its next batch too; that wait is still the
        loader's.
        """
        most = self._account.host_most_ns
        others = most - self._account.launch_starved_ns.get("data", 0)
        by_kind = {
            kind: min(ns, most if kind == "data" else others)
            for kind, ns in cost.by_kind_ns.items()
        }
        if cost.ns <= most:
            return replace(cost, by_kind_ns=by_kind)
        ends = [total * most // cost.ns for total in accumulate(cost.step_ns)]
        return Cost(most, by_kind, tuple(end - before for before, end in pairwise((0, *ends))))

    def _proofs(self) -> Proofs:
        recorded, timing = summed(self._recorded), self._graph.timing
        halved = replace(self._timing, duration_ns=self._timing.duration_ns // 2)
        shrunk = self._lasting - self._lengths_ns(halved)
        rows, long = self._graph.rows, timing.residual_ns > UNEXPLAINED.value
        waited = union((rows.start_ns - timing.residual_ns)[long], rows.start_ns[long])
        unexplained = intersect(waited, self._windows).total_ns
        off = abs(summed(self._recorded - self._lasting))
        return Proofs(
            off / recorded if recorded else 0.0,
            float(shrunk.sum()) / recorded if recorded else 0.0,
            unexplained / self._windows.total_ns,
            may_wait_ns(self._subject.rank, self._graph, self._windows) / self._windows.total_ns,
        )
