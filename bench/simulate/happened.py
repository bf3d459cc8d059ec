"""What happens when a program runs: events, activities, calls and spans. Times are ns from its start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.simulate.host_program import Collective, Operation, Work


class Event:
    """Something that will be done at a time; `done_ns` may lie ahead of the present once it is known."""

    __slots__ = ("_followers", "done_ns")

    def __init__(self) -> None:
        self.done_ns: int | None = None
        self._followers: list[Callable[[], None]] = []

    def follow(self, follower: Callable[[], None]) -> None:
        """Call this once the event is done."""
        self._followers.append(follower)

    def complete(self, when_ns: int) -> None:
        """It is done, or known to be done at a time ahead."""
        self.done_ns = when_ns
        followers, self._followers = self._followers, []
        for follower in followers:
            follower()


class Activity:
    """A piece of work that ran: when it was submitted, started and ended, and what bound its start.

    `bound`: "launch" (submission and arrival), "queue" (its launch call waited for a full queue), "sync" (its
    thread had waited for the GPU since its last launch), "stream" (the previous work), "event" (an event
    wait), "engine" (the copy engine), "room" (compute of another stream left too few SMs free).
    """

    __slots__ = (
        "bound", "call", "collective", "done", "end_ns", "left_ns", "mark", "number", "rate", "returns",
        "returns_late_ns", "since_ns", "start_ns", "submit_ns", "version", "why_late", "work",
    )  # fmt: skip

    def __init__(self, work: Work, call: int, submit_ns: int, why_late: str, mark: int | None) -> None:
        self.work, self.call, self.submit_ns, self.why_late, self.mark = work, call, submit_ns, why_late, mark
        self.collective: Collective | None = None
        self.start_ns = self.end_ns = self.number = -1
        self.bound = ""
        self.returns: Event | None
        self.left_ns, self.rate, self.since_ns, self.version = 0.0, 0.0, 0, 0
        self.done, self.returns, self.returns_late_ns = Event(), None, 0


@dataclass(frozen=True, slots=True)
class CallMade:
    """A CUDA call of a thread; its place in the list is its correlation id."""

    thread: str
    start_ns: int
    end_ns: int
    operation: Operation


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a thread: a range with its text and kind, or time without a call ("busy", "poll")."""

    thread: str
    start_ns: int
    end_ns: int
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Executed:
    """All that happened. `activities` are in order of submission."""

    activities: tuple[Activity, ...]
    calls: tuple[CallMade, ...]
    spans: tuple[Span, ...]
    end_ns: int
