"""The true account of a simulated run: from which constraint bound each start, and never from a recording.

Where no compute ran, the next compute kernel's own constraints say why, followed back through what it waited
for: `Activity.bound` names the kind of constraint, the end it waited for names the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from bench.simulate.happened import Activity
from bench.simulate.host_program import LOADER, Allocate, Engine, Launch, Synchronise
from bench.simulate.run import Run
from traces.intervals import Spans, intersect, join, spans, subtract, union

_COPIES: Final = (Engine.COPY_TO_DEVICE, Engine.COPY_TO_HOST, Engine.COPY_ON_DEVICE, Engine.FILL)
_Piece = tuple[int, int, str]
"""Start, end and row."""
REASONS: Final = ("host", "blocking_comm", "blocking_copy", "latency", "trailing")


def account(simulated: Run, windows_ns: Sequence[tuple[int, int]]) -> dict[str, int]:
    """Nanoseconds of some windows by bucket and, where no compute ran, by reason.

    `host`: the kernel that ended the wait was not launched yet, and its thread did not wait for GPU work that
    ran. `blocking_comm`, `blocking_copy`: what it or its thread waited for was such work, and ran. `latency`:
    between launch or producer and start. `trailing`: no compute kernel came any more.
    """
    windows = spans(*windows_ns)
    teller = _Teller(simulated)
    absent = subtract(windows, teller.computing)
    moving = _running([a for a in simulated.activities if a.work.engine is Engine.COMMUNICATION])
    copying = subtract(_running([a for a in simulated.activities if a.work.engine in _COPIES]), moving)
    by_reason: dict[str, list[tuple[int, int]]] = {reason: [] for reason in REASONS}
    for start_ns, end_ns, reason in teller.pieces(windows_ns[-1][1]):
        by_reason[reason].append((start_ns, end_ns))
    buckets = {
        "compute": intersect(windows, teller.computing),
        "exposed_comm": intersect(absent, moving),
        "exposed_copy": intersect(absent, copying),
        "idle": subtract(absent, join(moving, copying)),
    }
    reasons = {reason: intersect(absent, spans(*pairs)) for reason, pairs in by_reason.items()}
    return {row: held.total_ns for row, held in (buckets | reasons).items()}


def _opaque(simulated: Run, activity: Activity) -> bool:
    """Whether it is part of a graph that holds all of a step: such a replay counts as compute."""
    return simulated.knobs.whole_graph and activity.work.graph_node is not None


def _running(activities: Sequence[Activity]) -> Spans:
    if not activities:
        return spans()
    times = np.array([(a.start_ns, a.end_ns) for a in activities], dtype=np.int64)
    return union(times[:, 0], times[:, 1])


class _Wait(NamedTuple):
    """A wait inside a call, and the work it was for; None where none ended with it."""

    start_ns: int
    end_ns: int
    work: Activity | None


class _Teller:
    """Why no compute ran, one interval after the other."""

    def __init__(self, simulated: Run) -> None:
        self._run = simulated
        compute = [a for a in simulated.own if a.work.engine is Engine.SMS and a.end_ns > a.start_ns]
        self._compute = sorted(compute, key=lambda a: a.start_ns)
        every = (a for a in simulated.activities if a.work.engine is Engine.SMS or _opaque(simulated, a))
        self.computing = _running([a for a in every if a.end_ns > a.start_ns])
        self._ending: dict[int, list[Activity]] = {}
        self._before: dict[int, Activity] = {}
        last: dict[int, Activity] = {}
        for activity in simulated.activities:
            self._ending.setdefault(activity.end_ns, []).append(activity)
            if activity.work.stream in last:
                self._before[id(activity)] = last[activity.work.stream]
            last[activity.work.stream] = activity
        self._waits = sorted(self._host_waits(), key=lambda wait: (wait.start_ns, wait.end_ns))

    def pieces(self, until_ns: int) -> Iterator[_Piece]:
        """All time outside compute before `until_ns`, each piece with its reason."""
        last_ns, wait = 0, 0
        for activity in self._compute:
            if activity.start_ns > last_ns:
                launched_ns = min(self._run.executed.calls[activity.call].end_ns, activity.start_ns)
                launched_ns = max(launched_ns, last_ns)
                while wait < len(self._waits) and self._waits[wait].end_ns <= last_ns:
                    wait += 1
                yield from self._unlaunched(last_ns, launched_ns, wait)
                yield from self._behind(activity, launched_ns, activity.start_ns)
            last_ns = max(last_ns, activity.end_ns)
        yield last_ns, max(last_ns, until_ns), "trailing"

    def _unlaunched(self, start_ns: int, end_ns: int, wait: int) -> Iterator[_Piece]:
        """Before a launch returned: the host, but where a thread waited for work that ran."""
        for waited in self._waits[wait:]:
            if waited.start_ns >= end_ns:
                break
            low_ns, high_ns = max(waited.start_ns, start_ns), min(waited.end_ns, end_ns)
            if high_ns <= low_ns:
                continue
            yield start_ns, low_ns, "host"
            told = list(self._running_back(waited.work, low_ns, high_ns)) if waited.work else []
            for piece_start, piece_end, row in told or [(low_ns, high_ns, "host")]:
                yield piece_start, piece_end, "host" if row == "latency" else row
            start_ns = high_ns
        yield start_ns, end_ns, "host"

    def _behind(self, activity: Activity, low_ns: int, high_ns: int) -> Iterator[_Piece]:
        """Before a start: what it was bound by, back to `low_ns`."""
        producer = self._producer(activity)
        if producer is None or producer.end_ns <= low_ns:
            yield low_ns, high_ns, "latency"
            return
        done_ns = min(producer.end_ns, high_ns)
        yield done_ns, high_ns, "latency"
        yield from self._running_back(producer, low_ns, done_ns)

    def _running_back(self, work: Activity, low_ns: int, high_ns: int) -> Iterator[_Piece]:
        """While this work ran, and before that what it was bound by in its turn."""
        began_ns = max(work.start_ns, low_ns)
        if began_ns < high_ns:
            yield began_ns, high_ns, _ROWS.get(work.work.engine, "latency")
        if work.start_ns > low_ns:
            yield from self._behind(work, low_ns, min(work.start_ns, high_ns))

    def _producer(self, activity: Activity) -> Activity | None:
        """The work whose end a start waited for."""
        if activity.bound == "stream":
            return self._before.get(id(activity))
        if activity.bound in ("event", "engine", "room"):
            gap_ns = activity.work.event_gap_ns if activity.bound == "event" else 0
            ending = self._ending.get(activity.start_ns - gap_ns, [])
            return next((one for one in ending if one is not activity), None)
        return None

    def _host_waits(self) -> Iterator[_Wait]:
        """When a thread was inside a call that waited for GPU work, or polled for it without one."""
        for span in self._run.executed.spans:
            if span.kind == "poll":
                yield from self._wait(span.start_ns, span.end_ns)
        launched = {activity.call: activity for activity in self._run.activities}
        for place, call in enumerate(self._run.executed.calls):
            operation, own = call.operation, launched.get(place)
            if call.thread == LOADER:
                continue
            if isinstance(operation, Synchronise):
                yield from self._wait(call.start_ns + operation.api_ns, call.end_ns - operation.return_ns)
            elif isinstance(operation, Allocate) and operation.frees:
                yield from self._wait(call.start_ns, call.end_ns - operation.own_ns)
            elif isinstance(operation, Launch) and own is not None:
                yield from self._wait(call.start_ns + operation.api_ns, own.submit_ns)
                since_ns = own.submit_ns + operation.tail_ns
                if operation.returns_with == "d2h":
                    yield from self._wait(since_ns, call.end_ns - operation.return_ns, own)
                elif operation.returns_with == "h2d":
                    yield from self._wait(since_ns, call.end_ns, own)

    def _wait(self, start_ns: int, end_ns: int, work: Activity | None = None) -> Iterator[_Wait]:
        """A wait, unless it was none, for a call's own work or for what ended with it."""
        if end_ns > start_ns:
            yield _Wait(start_ns, end_ns, work or next(iter(self._ending.get(end_ns, ())), None))


_ROWS: Final = {Engine.COMMUNICATION: "blocking_comm"} | dict.fromkeys(_COPIES, "blocking_copy")
