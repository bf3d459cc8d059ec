"""What the second simulator moves about: pieces of GPU work, what lies before them, calls and threads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from bench.simulate.host_program import Collective, Operation, Push, Work


@dataclass(eq=False, slots=True)
class Piece:
    """A piece of GPU work. `left_ns` is what is left of a compute kernel's time alone."""

    number: int
    work: Work
    thread: str
    call: int
    submit_ns: int
    behind: Piece | None
    after: frozenset[Past]
    collective: Collective | None = None
    left_ns: Fraction = Fraction(0)
    start_ns: int | None = None
    end_ns: int | None = None
    known_ready_ns: int | None = None

    def ready_ns(self) -> int | None:
        """When it could start; None while something before it has not ended."""
        if self.known_ready_ns is None:
            self.known_ready_ns = self._ready_ns()
        return self.known_ready_ns

    def _ready_ns(self) -> int | None:
        times: list[int | None] = [self.submit_ns + self.work.arrival_ns]
        if self.behind is not None:
            if self.behind.end_ns is None:
                return None
            times.append(self.behind.end_ns + self.work.gap_ns)
        times += [plus(event.done_ns(), self.work.event_gap_ns) for event in self.after]
        return latest(times)


@dataclass(eq=False, slots=True)
class Past:
    """Works and earlier events, and when a thread looked at them: what an event or a wait stands for."""

    since_ns: int
    works: frozenset[Piece]
    events: frozenset[Past] = frozenset()
    known_ns: int | None = None

    def done_ns(self) -> int | None:
        """When all of it was done, not before it was looked at; None while it is not known."""
        if self.known_ns is None:
            ends = [work.end_ns for work in self.works] + [one.done_ns() for one in self.events]
            self.known_ns = latest([self.since_ns, *ends])
        return self.known_ns


def plus(time_ns: int | None, more_ns: int) -> int | None:
    return None if time_ns is None else time_ns + more_ns


def latest(times: Iterable[int | None]) -> int | None:
    """The latest of some times; None if one of them is not known."""
    known = list(times)
    return None if None in known else max(time for time in known if time is not None)


@dataclass(frozen=True, slots=True)
class Call:
    """A CUDA call of a thread."""

    thread: str
    operation: Operation
    start_ns: int
    end_ns: int


@dataclass(slots=True)
class Thread:
    """A thread and how far it is: its operation began, and perhaps acted and waits."""

    name: str
    operations: list[Operation]
    place: int = 0
    began_ns: int = 0
    acted_ns: int | None = None
    waits_for: Past | None = None
    calls: list[Call] = field(default_factory=list)
    opened: list[tuple[int, Push]] = field(default_factory=list)
    ranges: list[tuple[int, int, Push]] = field(default_factory=list)

    @property
    def now_does(self) -> Operation | None:
        return self.operations[self.place] if self.place < len(self.operations) else None


Instance = tuple[tuple[int, ...], str, int]


@dataclass(slots=True)
class Meetings:
    """When each rank arrived at each instance of a collective."""

    arrivals_ns: dict[Instance, dict[int, int]] = field(default_factory=dict)
    _just_met: set[int] = field(default_factory=set)

    def arrive(self, rank: int, collective: Collective, now_ns: int) -> None:
        """Raises ValueError where a rank is not of the group, or was there already."""
        instance = instance_of(collective)
        there = self.arrivals_ns.setdefault(instance, {})
        if rank not in collective.group or rank in there:
            raise ValueError(f"rank {rank} cannot arrive at {instance}")
        there[rank] = now_ns
        if len(there) == len(collective.group):
            self._just_met.update(there)

    def met(self) -> set[int]:
        """The ranks whose groups became whole since this was asked last."""
        met, self._just_met = self._just_met, set()
        return met

    def moves_ns(self, collective: Collective) -> int | None:
        """When its data moves: from the last arrival on; None before that."""
        there = self.arrivals_ns.get(instance_of(collective), {})
        return max(there.values()) if len(there) == len(collective.group) else None


def instance_of(collective: Collective) -> Instance:
    """What its participants share: group, name and number; the time to move the data is each rank's own."""
    return collective.group, collective.name, collective.sequence
