"""A host thread: runs its operations in order and yields the events it waits for."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from bench.simulate.happened import Activity, CallMade, Event, Span
from bench.simulate.host_program import (
    Allocate,
    Await,
    Busy,
    Engine,
    Initialise,
    Launch,
    Operation,
    Pop,
    Push,
    Record,
    Signal,
    Spin,
    StreamWait,
    Synchronise,
)

Waits = Generator[tuple[Event, ...], None, None]
"""Yields events, and is resumed when all of them are done."""


class Driver(Protocol):
    """What a thread asks of the machine."""

    calls: list[CallMade]
    spans: list[Span]

    def event(self, number: int) -> Event:
        """The event of a number."""

    def flag(self, number: int) -> Event:
        """The flag of a number."""

    def submit(self, activity: Activity) -> None:
        """Put work on its stream."""

    def launched(self, last: Activity) -> None:
        """Count a launch, by its last work."""

    def room(self) -> Activity | None:
        """The launch whose end makes room for the next one; None where the queue was never that long."""

    def mark(self, number: int, event: Event, submit_ns: int, *, waits: bool) -> None:
        """Put an event's record, or a wait for it, on a stream."""

    def all_streams(self) -> list[int]:
        """Streams used so far."""


class HostThread:
    """One thread: runs its operations in order and yields what it waits for."""

    def __init__(self, driver: Driver, name: str) -> None:
        self._driver, self._name = driver, name
        self._now, self._why_late = 0, "launch"
        self._open: list[tuple[int, str, str]] = []

    def run(self, operations: Sequence[Operation]) -> Waits:
        """Do what the operations say, in order."""
        handlers: dict[type, Callable[..., Waits | None]] = {
            Busy: self._busy,
            Launch: self._launch,
            Record: self._record,
            StreamWait: self._stream_wait,
            Synchronise: self._synchronise,
            Allocate: self._allocate,
            Initialise: self._initialise,
            Signal: self._signal,
            Await: self._await,
            Spin: self._spin,
            Push: self._push,
            Pop: self._pop,
        }
        for operation in operations:
            waits = handlers[type(operation)](operation)
            if waits is not None:
                yield from waits

    def _call(self, start_ns: int, operation: Operation) -> None:
        self._driver.calls.append(CallMade(self._name, start_ns, self._now, operation))

    def _busy(self, busy: Busy) -> None:
        if busy.ns:
            self._driver.spans.append(Span(self._name, self._now, self._now + busy.ns, busy.doing, "busy"))
        self._now += busy.ns

    def _wait_for(self, *events: Event) -> Waits:
        """Wait until all are done; the thread's time is then at least the last one's."""
        if any(event.done_ns is None for event in events):
            yield events
        self._now = max(self._now, *(event.done_ns or 0 for event in events), 0)

    def _launch(self, launch: Launch) -> Waits:
        start_ns = self._now
        self._now += launch.api_ns
        room = self._driver.room()
        why_late = self._why_late
        if room is not None:
            before_ns = self._now
            yield from self._wait_for(room.done)
            why_late = "queue" if self._now > before_ns else why_late
        call = len(self._driver.calls)
        self._driver.calls.append(CallMade(self._name, start_ns, -1, launch))
        last = None
        if launch.collective is not None and [work.engine for work in launch.works] != [Engine.COMMUNICATION]:
            raise ValueError(
                f"{launch.api} takes part in a collective by other than one communication kernel"
            )
        for place, work in enumerate(launch.works):
            mark = launch.mark if place == len(launch.works) - 1 else None
            last = Activity(work, call, self._now, why_late, mark)
            last.collective = launch.collective
            if launch.returns_with is not None:
                last.returns = Event()
                last.returns_late_ns = launch.return_ns * (1 if launch.returns_with == "d2h" else -1)
            self._driver.submit(last)
        if last is None:
            raise ValueError(f"{launch.api} launches nothing")
        self._driver.launched(last)
        self._why_late = "launch"
        self._now += launch.tail_ns
        if last.returns is not None:
            yield from self._wait_for(last.returns)
            self._why_late = "sync"
        self._driver.calls[call] = CallMade(self._name, start_ns, self._now, launch)

    def _record(self, record: Record) -> None:
        start_ns = self._now
        self._now += record.api_ns
        self._call(start_ns, record)
        self._driver.mark(record.stream, self._driver.event(record.event), self._now, waits=False)

    def _stream_wait(self, wait: StreamWait) -> None:
        start_ns = self._now
        self._now += wait.api_ns
        self._call(start_ns, wait)
        self._driver.mark(wait.stream, self._driver.event(wait.event), self._now, waits=True)

    def _drained(self, streams: list[int]) -> list[Event]:
        """Events done when all that these streams were given so far has ended."""
        events = []
        for number in streams:
            event = Event()
            self._driver.mark(number, event, self._now, waits=False)
            events.append(event)
        return events

    def _synchronise(self, sync: Synchronise) -> Waits:
        start_ns = self._now
        self._now += sync.api_ns
        if sync.scope == "event":
            events = [self._driver.event(sync.target)]
        else:
            events = self._drained([sync.target] if sync.scope == "stream" else self._driver.all_streams())
        yield from self._wait_until_back(events, sync.return_ns)
        self._call(start_ns, sync)

    def _wait_until_back(self, events: list[Event], return_ns: int) -> Waits:
        """Wait, and come back late, unless all was done already."""
        before_ns = self._now
        yield from self._wait_for(*events)
        if self._now > before_ns:
            self._now += return_ns
            self._why_late = "sync"

    def _allocate(self, allocate: Allocate) -> Waits:
        start_ns = self._now
        if allocate.frees:
            yield from self._wait_for(*self._drained(self._driver.all_streams()))
            self._why_late = "sync"
        self._now += allocate.own_ns
        self._call(start_ns, allocate)

    def _initialise(self, call: Initialise) -> None:
        start_ns = self._now
        self._now += call.own_ns
        self._call(start_ns, call)

    def _signal(self, signal: Signal) -> None:
        self._driver.flag(signal.flag).complete(self._now)

    def _await(self, wait: Await) -> Waits:
        before_ns, flag = self._now, self._driver.flag(wait.flag)
        yield from self._wait_for(flag)
        self._now = max(before_ns, (flag.done_ns or 0) + wait.wake_ns)

    def _spin(self, spin: Spin) -> Waits:
        before_ns = self._now
        yield from self._wait_until_back([self._driver.event(spin.mark)], spin.poll_ns)
        if self._now > before_ns:
            self._driver.spans.append(Span(self._name, before_ns, self._now - spin.poll_ns, "", "poll"))

    def _push(self, push: Push) -> None:
        self._open.append((self._now, push.text, push.kind))

    def _pop(self, pop: Pop) -> None:
        start_ns, text, kind = self._open.pop()
        self._driver.spans.append(Span(self._name, start_ns, self._now, text, kind))
