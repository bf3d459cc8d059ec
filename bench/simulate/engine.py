"""A discrete-event engine: host threads, streams, events, copy engines, SMs and a bounded launch queue.

It runs one rank, or several that collectives couple: a participant holds its SMs from its own start, and all
of them move their data from the start of the last one on.

It knows nothing of steps, walls or gaps. An activity starts at the latest of: its submission plus arrival,
the end of what precedes it on its stream plus a gap, the end of the events its stream waits for plus a gap.
Compute kernels of several streams that together ask for more SMs than there are never overlap: the one ready
later starts when the other ends. Those that run share the SMs that communication leaves: their rates change
whenever something starts or ends, and the work that is left is integrated. Times are nanoseconds from the
program's start. A thread runs on to its next wait before another moves, so threads must hand over, as
Python's do, and not launch at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from inspect import GEN_CLOSED, getgeneratorstate
from math import ceil
from typing import Final

from bench.simulate.happened import Activity, CallMade, Event, Executed, Span
from bench.simulate.host_program import Collective, Engine, Program
from bench.simulate.host_thread import HostThread, Waits

_COPY_ENGINES: Final = (Engine.COPY_TO_DEVICE, Engine.COPY_TO_HOST)
_ROUNDING: Final = 1e-6


def execute(program: Program) -> Executed:
    """Run a program to its end. Raises ValueError where its threads wait for what never comes."""
    return execute_ranks((program,))[0]


def execute_ranks(programs: Sequence[Program]) -> tuple[Executed, ...]:
    """Run the programs of all ranks together; a program's place is its rank.

    Raises ValueError where a thread, a stream or a participant of a collective waits for what never comes.
    """
    agenda, meetings = _Agenda(), _Meetings()
    ranks = [_Rank(number, program, agenda, meetings) for number, program in enumerate(programs)]
    for rank in ranks:
        rank.begin()
    while agenda:
        now, number, activity = agenda.pop()
        if activity is not None:
            ranks[number].reach(activity, now)
    return tuple(rank.executed() for rank in ranks)


class _Agenda:
    """What happens next, on any rank."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, bool, int, int, int, Activity]] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    def put(self, when_ns: int, rank: int, order: int, activity: Activity) -> None:
        """At one instant work ends before compute starts, and on each rank in the order given."""
        computes = activity.start_ns < 0 and _takes_sms(activity)
        heappush(self._heap, (when_ns, computes, rank, order, activity.version, activity))

    def pop(self) -> tuple[int, int, Activity | None]:
        """Time, rank and activity; None where it was put again since."""
        now, _, rank, _, version, activity = heappop(self._heap)
        return now, rank, activity if version == activity.version else None


class _Meetings:
    """Who has arrived at each collective."""

    def __init__(self) -> None:
        self._arrived: dict[tuple[tuple[int, ...], str, int], dict[_Rank, Activity]] = {}

    def arrive(self, rank: _Rank, activity: Activity, collective: Collective, now: int) -> None:
        """A participant is there; the last one lets all of them move."""
        there = self._arrived.setdefault(collective[:3], {})
        if rank.number not in collective.group or rank in there:
            raise ValueError(f"rank {rank.number} has no part in {collective}, or had it before")
        there[rank] = activity
        if len(there) == len(collective.group):
            for each, waiting in there.items():
                each.move(waiting, now)


class _Marker:
    """An event's place in a stream, or a wait's."""

    __slots__ = ("event", "submit_ns", "waits")

    def __init__(self, event: Event, submit_ns: int, waits: bool) -> None:
        self.event, self.submit_ns, self.waits = event, submit_ns, waits


class _Stream:
    __slots__ = ("busy", "free_ns", "gate_ns", "items")

    def __init__(self) -> None:
        self.items: deque[Activity | _Marker] = deque()
        self.busy, self.free_ns, self.gate_ns = False, -1, -1


class _Waiting:
    """A thread that is ready again when the last of its events is done."""

    __slots__ = ("_count", "_ready", "_thread")

    def __init__(self, thread: Waits, events: tuple[Event, ...], ready: list[Waits]) -> None:
        self._thread, self._ready = thread, ready
        open_events = [event for event in events if event.done_ns is None]
        self._count = len(open_events)
        for event in open_events:
            event.follow(self._one_done)

    def _one_done(self) -> None:
        self._count -= 1
        if not self._count:
            self._ready.append(self._thread)


class _Rank:
    def __init__(self, number: int, program: Program, agenda: _Agenda, meetings: _Meetings) -> None:
        self.number, self._agenda, self._meetings = number, agenda, meetings
        self._machine = program.machine
        self._threads = [
            HostThread(self, name).run(operations) for name, operations in program.threads.items()
        ]
        self._streams: dict[int, _Stream] = {}
        self._events: dict[int, Event] = {}
        self._flags: dict[int, Event] = {}
        self._launched: list[Activity] = []
        self._order = 0
        self._computing: list[Activity] = []
        self._without_room: deque[Activity] = deque()
        self._communicating: list[Activity] = []
        self._copying: dict[Engine, Activity | None] = dict.fromkeys(_COPY_ENGINES)
        self._queued: dict[Engine, deque[Activity]] = {engine: deque() for engine in _COPY_ENGINES}
        self._ready: list[Waits] = list(self._threads)
        self.activities: list[Activity] = []
        self.calls: list[CallMade] = []
        self.spans: list[Span] = []
        self._last_ns = 0

    def begin(self) -> None:
        """Let the host threads do what they can do at once."""
        self._go_on()

    def reach(self, activity: Activity, now: int) -> None:
        """An activity of this rank starts, or ends."""
        self._last_ns = max(self._last_ns, now)
        if activity.start_ns < 0:
            self._reach_start(activity, now)
        else:
            self._end(activity, now)
        self._go_on()

    def executed(self) -> Executed:
        """All that happened, once nothing is left to happen."""
        if any(getgeneratorstate(thread) != GEN_CLOSED for thread in self._threads):
            raise ValueError("a thread of the program waits for an event that never comes")
        if any(activity.end_ns < 0 for activity in self.activities):
            raise ValueError("a stream of the program waits for an event that never comes")
        end_ns = max([self._last_ns, *(call.end_ns for call in self.calls)])
        order = sorted(range(len(self.calls)), key=lambda place: self.calls[place].start_ns)
        places = {before: after for after, before in enumerate(order)}
        for activity in self.activities:
            activity.call = places[activity.call]
        calls = tuple(self.calls[place] for place in order)
        return Executed(tuple(self.activities), calls, tuple(self.spans), end_ns)

    def _go_on(self) -> None:
        """Let every thread that can go on run until it waits again."""
        while self._ready:
            thread = self._ready.pop(0)
            events = next(thread, None)
            if events is not None:
                _Waiting(thread, events, self._ready)

    def stream(self, number: int) -> _Stream:
        return self._streams.setdefault(number, _Stream())

    def event(self, number: int) -> Event:
        return self._events.setdefault(number, Event())

    def flag(self, number: int) -> Event:
        return self._flags.setdefault(number, Event())

    def submit(self, activity: Activity) -> None:
        activity.number = len(self.activities)
        self.activities.append(activity)
        self._put(activity.work.stream, activity)

    def launched(self, last: Activity) -> None:
        self._launched.append(last)

    def room(self) -> Activity | None:
        """The launch whose end makes room for the next one; None where the queue was never that long."""
        length = self._machine.queue_launches
        return self._launched[-length] if len(self._launched) >= length else None

    def mark(self, number: int, event: Event, submit_ns: int, *, waits: bool) -> None:
        self._put(number, _Marker(event, submit_ns, waits))

    def all_streams(self) -> list[int]:
        return list(self._streams)

    def _put(self, number: int, item: Activity | _Marker) -> None:
        stream = self.stream(number)
        stream.items.append(item)
        self._advance(stream)

    def _advance(self, stream: _Stream) -> None:
        """Let the head of a stream take effect until it is work, or waits for an event."""
        while stream.items and not stream.busy:
            item = stream.items[0]
            if isinstance(item, Activity):
                stream.busy = True
                self._at(self._start_of(item, stream), item)
                return
            if item.waits and item.event.done_ns is None:
                item.event.follow(lambda: self._advance(stream))
                return
            stream.items.popleft()
            if item.waits:
                stream.gate_ns = max(stream.gate_ns, item.event.done_ns or 0)
            else:
                item.event.complete(max(stream.free_ns, stream.gate_ns, item.submit_ns))

    def _at(self, when_ns: int, activity: Activity) -> None:
        """Compute starts in order of submission, all else in the order in which it became known."""
        self._order += 1
        computes = activity.start_ns < 0 and _takes_sms(activity)
        self._agenda.put(when_ns, self.number, activity.number if computes else self._order, activity)

    def move(self, activity: Activity, now: int) -> None:
        """All participants of its collective are there."""
        assert activity.collective is not None
        self._at(now + activity.collective.transfer_ns, activity)

    @staticmethod
    def _start_of(activity: Activity, stream: _Stream) -> int:
        work = activity.work
        start_ns, activity.bound = activity.submit_ns + work.arrival_ns, activity.why_late
        if stream.free_ns >= 0 and stream.free_ns + work.gap_ns > start_ns:
            start_ns, activity.bound = stream.free_ns + work.gap_ns, "stream"
        if stream.gate_ns >= 0 and stream.gate_ns + work.event_gap_ns > start_ns:
            start_ns, activity.bound = stream.gate_ns + work.event_gap_ns, "event"
        return start_ns

    def _reach_start(self, activity: Activity, now: int) -> None:
        engine = activity.work.engine
        if _takes_sms(activity):
            self._without_room.append(activity)
            self._fill_sms(now)
            if activity.start_ns < 0:
                activity.bound = "room"
            return
        if engine in self._copying:
            if self._copying[engine] is not None:
                activity.bound = "engine"
                self._queued[engine].append(activity)
                return
            self._copying[engine] = activity
        self._start(activity, now)

    def _fill_sms(self, now: int) -> None:
        """Start what waits for room, in the order in which it was ready, as far as it fits."""
        while self._without_room:
            asked = sum(map(self._blocks, self._computing)) + self._blocks(self._without_room[0])
            if asked > self._machine.sm_count:
                return
            self._start(self._without_room.popleft(), now)

    def _blocks(self, activity: Activity) -> int:
        """How many SMs a kernel asks for, one per block."""
        return min(activity.work.block_count, self._machine.sm_count)

    def _start(self, activity: Activity, now: int) -> None:
        work = activity.work
        activity.start_ns = now
        if _takes_sms(activity):
            activity.left_ns, activity.since_ns = float(work.alone_ns), now
            self._computing.append(activity)
            self._share(now)
            return
        if activity.collective is None:
            end_ns = now + work.peer_ns + work.alone_ns
            self._at(end_ns, activity)
            if activity.returns is not None:
                activity.returns.complete(max(now, end_ns + activity.returns_late_ns))
        if work.engine is Engine.COMMUNICATION:
            self._communicating.append(activity)
            self._share(now)
        if activity.collective is not None:
            self._meetings.arrive(self, activity, activity.collective, now)

    def _share(self, now: int) -> None:
        """Give every running compute kernel its rate of now on, and its end if nothing changes."""
        if not self._computing:
            return
        sm_count = self._machine.sm_count
        taken = sum(map(self._blocks, self._communicating))
        wanted = sum(map(self._blocks, self._computing))
        rate = min(1.0, max(sm_count - taken, 1) / wanted)
        if self._communicating:
            rate /= 1 + self._machine.beside_comm_frac
        for activity in self._computing:
            activity.left_ns -= (now - activity.since_ns) * activity.rate
            activity.since_ns = now
            if activity.rate != rate:
                activity.rate = rate
                activity.version += 1
                self._at(now + max(0, ceil(activity.left_ns / rate - _ROUNDING)), activity)

    def _end(self, activity: Activity, now: int) -> None:
        activity.end_ns = now
        engine = activity.work.engine
        if engine in self._copying:
            self._copying[engine] = None
            if self._queued[engine]:
                follower = self._queued[engine].popleft()
                self._copying[engine] = follower
                self._start(follower, now)
        elif engine is Engine.COMMUNICATION:
            self._communicating.remove(activity)
            self._share(now)
        elif activity in self._computing:
            self._computing.remove(activity)
            self._share(now)
            self._fill_sms(now)
        stream = self.stream(activity.work.stream)
        stream.items.popleft()
        stream.busy, stream.free_ns, stream.gate_ns = False, now, -1
        activity.done.complete(now)
        if activity.mark is not None:
            self.event(activity.mark).complete(now)
        self._advance(stream)


def _takes_sms(activity: Activity) -> bool:
    return activity.work.engine is Engine.SMS and activity.work.alone_ns > 0
