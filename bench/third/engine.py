"""Runs the programs of all ranks on one true time: a heap of events, streams in order, shared NICs."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

from bench.third.program import LATENCY_US, Do, Moves, Operation
from bench.third.world import World

QUEUE: Final = 1022
"""A launch returns when the one so many before it has ended."""
_ARRIVAL_US, _BEHIND_US, _RETURN_US, _POLL_US, _APART_US = 1.4, 0.9, 4.0, 9.0, 2.5
_STEP_US: Final = 1.5
"""What each hop of a ring adds."""

Resource = tuple[str, int]


class Rates(NamedTuple):
    """Bytes per us of each resource, and how many times longer bytes between two ranks take."""

    of: Callable[[Resource], float]
    times: Callable[[int, int], float]


@dataclass(slots=True, eq=False)
class Transfer:
    """One collective in motion. `bytes_of`: what goes through each resource; `left`: of 1."""

    moves: Moves
    parts: dict[int, Operation] = field(default_factory=dict)
    bytes_of: dict[Resource, float] = field(default_factory=dict)
    fixed_us: float = 0.0
    alone_us: float = 0.0
    left: float = 1.0
    rate: float = 0.0
    since: float = 0.0
    version: int = 0
    last: float = 0.0
    end: float = 0.0


class Engine:
    """Runs when made. `transfers` has every collective; operations keep their times."""

    def __init__(
        self,
        world: World,
        programs: Sequence[Sequence[Operation]],
        rates: Rates,
        work: Callable[[int, Operation], float],
    ) -> None:
        self._world, self._rates, self._work = world, rates, work
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self._now = 0.0
        self._hosts = [_Host(self, rank, one) for rank, one in enumerate(programs)]
        self._moving: set[Transfer] = set()
        self.transfers: dict[object, Transfer] = {}
        self._busy = [0] * len(programs)
        for host in self._hosts:
            self.at(world.random(host.rank, "begin").uniform(0, 400), host.go)
        while self._heap:
            self._now, _, do = heapq.heappop(self._heap)
            do()
        if waiting := [host.rank for host in self._hosts if not host.is_done]:
            raise RuntimeError(f"ranks {waiting} wait for ever in a run of seed {world.seed}")

    def at(self, time: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (max(time, self._now), next(self._number), do))

    @property
    def now(self) -> float:
        return self._now

    def starts(self, rank: int, one: Operation) -> None:
        """A rank's stream has reached an operation."""
        one.start = self._now
        if one.moves is None:
            stretch = 1 + self._world.stretch * (self._busy[rank] > 0)
            self.at(self._now + self._work(rank, one) * stretch, lambda: self._hosts[rank].ends(one))
            return
        transfer = self.transfers.setdefault(one.moves.key, Transfer(one.moves))
        transfer.parts[rank] = one
        if len(transfer.parts) == len(one.moves.ranks):
            self._begins(transfer)

    def _begins(self, transfer: Transfer) -> None:
        """The last is in: data moves."""
        transfer.last = transfer.since = self._now
        self._load(transfer)
        self._moving.add(transfer)
        for rank in transfer.parts:
            self._busy[rank] += 1
        self._share()

    def _load(self, transfer: Transfer) -> None:
        """What each resource carries of a collective, and what it takes at least."""
        moves, layout = transfer.moves, self._world.layout
        size, load = len(moves.ranks), transfer.bytes_of
        transfer.fixed_us = LATENCY_US + _STEP_US * (size - 1 if not moves.sent else 1)
        if moves.sent:
            for rank, part in transfer.parts.items():
                assert part.moves is not None
                for other, sent in zip(moves.ranks, part.moves.sent, strict=True):
                    if other == rank:
                        continue
                    kind = "nvlink" if layout.node(rank) == layout.node(other) else "nic"
                    longer = sent * self._rates.times(rank, other)
                    for way, end in (("out", rank), ("in", other)):
                        key = (f"{kind} {way}", end)
                        load[key] = load.get(key, 0.0) + longer
        else:
            across = len({layout.node(rank) for rank in moves.ranks}) > 1
            whole = 1.0 if moves.call in ("s", "r", "sr") else (size - 1) / size
            slow = max(self._rates.times(one, other) for one in moves.ranks for other in moves.ranks)
            for rank in moves.ranks:
                load[("nic out" if across else "nvlink out", rank)] = moves.ring * whole * slow
        slowest = max((size / self._rates.of(key) for key, size in load.items()), default=0.0)
        draw = self._world.random("moves", moves.key).gauss(1, 0.02)
        transfer.alone_us = transfer.fixed_us + slowest * max(draw, 0.9)

    def _share(self) -> None:
        """New rates for all that moves: a NIC that two use gives each half."""
        users: dict[Resource, int] = {}
        for one in self._moving:
            for key in one.bytes_of:
                users[key] = users.get(key, 0) + 1
        for one in self._moving:
            one.left -= (self._now - one.since) * one.rate
            one.since = self._now
            alone = max((size / self._rates.of(key) for key, size in one.bytes_of.items()), default=0.0)
            shared = max(
                (users[key] * size / self._rates.of(key) for key, size in one.bytes_of.items()), default=0.0
            )
            rate = 1 / (one.alone_us + shared - alone)
            if rate != one.rate:
                one.rate, one.version = rate, one.version + 1
                self.at(self._now + max(one.left, 0.0) / rate, self._arrived(one, one.version))

    def _arrived(self, transfer: Transfer, version: int) -> Callable[[], None]:
        def arrives() -> None:
            if transfer.version == version and transfer in self._moving:
                self._moving.discard(transfer)
                transfer.end = self._now
                draw = self._world.random("end", transfer.moves.key)
                for rank, one in transfer.parts.items():
                    self._busy[rank] -= 1
                    self.at(self._now + draw.uniform(0, _APART_US), self._end_of(rank, one))
                self._share()

        return arrives

    def _end_of(self, rank: int, one: Operation) -> Callable[[], None]:
        return lambda: self._hosts[rank].ends(one)


class _Host:
    """One rank: the host's place in its program, and its streams."""

    def __init__(self, engine: Engine, rank: int, operations: Sequence[Operation]) -> None:
        self._engine, self.rank, self._operations = engine, rank, operations
        self._place, self._time = 0, 0.0
        self._launched: deque[Operation] = deque()
        self._last: dict[int, Operation] = {}
        self._blocked: list[Operation] = []

    @property
    def is_done(self) -> bool:
        return self._place == len(self._operations) and not self._launched

    def go(self) -> None:
        """On with the program until it must wait for GPU work."""
        self._time = max(self._time, self._engine.now)
        while self._place < len(self._operations):
            one = self._operations[self._place]
            waits = self._waits_for(one)
            if waits:
                self._blocked = waits
                if one.called == 0.0:
                    one.called = self._time + one.gap_us
                return
            self._do(one)
            self._place += 1

    def _waits_for(self, one: Operation) -> list[Operation]:
        """GPU work that an operation returns after."""
        if one.do in (Do.READ, Do.POLL):
            return [each for each in one.after if each.end < 0]
        if one.do is Do.FREE:
            return [each for each in self._last.values() if each.end < 0]
        if one.do is Do.LAUNCH:
            while self._launched and self._launched[0].end >= 0:
                self._launched.popleft()
            return [self._launched[0]] if len(self._launched) >= QUEUE else []
        return []

    def _do(self, one: Operation) -> None:
        begins = one.called or self._time + one.gap_us
        one.called = begins
        if one.do in (Do.READ, Do.POLL):
            ended = max((each.end for each in one.after), default=0.0)
            begins = max(begins, ended) + (_RETURN_US if one.do is Do.READ else _POLL_US)
        elif one.do is Do.FREE:
            begins = max(begins, *(each.end for each in self._last.values()), 0.0) if self._last else begins
        elif one.do is Do.LAUNCH:
            begins = max(begins, self._time)
        one.returned = begins + one.call_us
        self._time = one.returned
        if one.do is Do.LAUNCH:
            self._launch(one)

    def _launch(self, one: Operation) -> None:
        self._launched.append(one)
        one.ready = one.returned + _ARRIVAL_US
        behind = [*one.after]
        if one.stream in self._last:
            behind.append(self._last[one.stream])
        self._last[one.stream] = one
        for each in behind:
            if each.end >= 0:
                one.ready = max(one.ready, each.end + _BEHIND_US)
            else:
                one.missing += 1
                each.before.append(one)
        if not one.missing:
            self._engine.at(one.ready, lambda: self._engine.starts(self.rank, one))

    def ends(self, one: Operation) -> None:
        one.end = self._engine.now
        for each in one.before:
            each.missing -= 1
            each.ready = max(each.ready, one.end + _BEHIND_US)
            if not each.missing:
                self._engine.at(each.ready, self._starter(each))
        if self._blocked and all(each.end >= 0 for each in self._blocked):
            self._blocked = []
            self.go()
        while self._launched and self._launched[0].end >= 0:
            self._launched.popleft()

    def _starter(self, one: Operation) -> Callable[[], None]:
        return lambda: self._engine.starts(self.rank, one)


def waits_of(transfers: Mapping[object, Transfer]) -> list[tuple[Transfer, int, float]]:
    """Each collective, who arrived last, and how long all others waited for it."""
    found = []
    for one in transfers.values():
        last = max(one.parts, key=lambda rank: one.parts[rank].start)
        found.append((one, last, sum(one.last - part.start for part in one.parts.values())))
    return found
