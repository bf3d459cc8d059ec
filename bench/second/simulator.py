"""A second simulator, written from the definitions alone: when every call and every piece of GPU work ran.

It shares no code with `bench.simulate.engine` and is built another way: no generators, no heap, no
callbacks. Every piece of work knows what it comes after; a plain loop asks threads, streams, copy engines and
running kernels when something next happens, goes there, and asks again. Many ranks are asked in the same way,
each in turn, by the same clock.

The rules, all times in whole ns:

- a call acts (submits, records, waits) `api_ns` after it began; a launch not before the launch that lies
  `queue_launches` before it has ended whole;
- work is ready at the latest of: its submission + arrival, the end of the work before it on its stream + gap,
  and each event its stream was told to wait for since that work + event gap;
- an event is done when it is recorded and all is done that its stream had been given or told to wait for;
- ready work starts, but copies to the host take turns by the time they were ready, and copies to the device;
- communication takes its peers' time and its own, copies and fills their own;
- a collective arrives when it starts; it ends its own transfer after the last of its group arrived, and holds
  its SMs all that time;
- communication holds an SM per block from start to end, all but one at most; compute kernels ask for an SM
  per block, all at most; where they ask for more than is left, each gets the same part of what it asks for;
- ready compute does not start while it and the compute that runs ask for more SMs than there are, nor before
  other compute that was ready earlier;
- beside communication, moving or waiting, compute is slower by `beside_comm_frac` as well, which is the
  decimal fraction that is written;
- work left is a fraction, never rounded; a compute kernel ends at the first whole ns at which none is left;
- a thread that waits for what is done goes on at once;
- at one instant work ends, then work starts, by submission, then threads go on.

Every event is recorded once, before anything waits for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Final

from bench.second.simulator_parts import Call, Meetings, Past, Piece, Thread, latest, plus
from bench.simulate.host_program import (
    Allocate,
    Await,
    Busy,
    Engine,
    Initialise,
    Launch,
    Operation,
    Pop,
    Program,
    Push,
    Record,
    Signal,
    Spin,
    StreamWait,
    Synchronise,
)

_TAKE_TURNS: Final = (Engine.COPY_TO_DEVICE, Engine.COPY_TO_HOST)


class OneRank:
    """The host and the GPU of one rank. `pieces` are in order of submission, `calls` by thread in order."""

    def __init__(self, program: Program, rank: int, meetings: Meetings) -> None:
        self.pieces: list[Piece] = []
        self._rank, self._meetings = rank, meetings
        self._machine = program.machine
        self._threads = [Thread(name, list(program.threads[name])) for name in program.threads]
        self._now_ns, self._rate = 0, Fraction(1)
        self._launched: list[Past] = []
        self._unfinished: set[Piece] = set()
        self._queued: dict[int, list[Piece]] = defaultdict(list)
        self._running: list[Piece] = []
        self._last: dict[int, Piece] = {}
        self._told: dict[int, frozenset[Past]] = defaultdict(frozenset)
        self._events: dict[int, Past] = {}
        self._flags_ns: dict[int, int] = {}

    @property
    def calls(self) -> dict[str, list[Call]]:
        """CUDA calls by thread, in order."""
        return {thread.name: thread.calls for thread in self._threads}

    @property
    def ranges(self) -> dict[str, list[tuple[int, int, Push]]]:
        """Start, end and text of ranges by thread, in order of their ends."""
        return {thread.name: thread.ranges for thread in self._threads}

    @property
    def is_done(self) -> bool:
        """Whether its program has ended and all its work."""
        return not self._unfinished and all(thread.now_does is None for thread in self._threads)

    # What the loop asks of it

    def go_to(self, now_ns: int) -> None:
        """Work until then, and do all that happens then."""
        self._work_until(now_ns)
        while self._end_what_is_done() or self._start_what_is_ready() or self._let_a_thread_go_on():
            pass

    def next_instant(self) -> int | None:
        """The earliest time at which something is known to happen."""
        times = [self._end_ns(piece) for piece in self._running]
        times += [ready_ns for ready_ns, _ in self._first_of_streams()]
        times += [self._goes_on_ns(thread) for thread in self._threads]
        return min((time for time in times if time is not None and time > self._now_ns), default=None)

    def _first_of_streams(self) -> list[tuple[int, Piece]]:
        """The first work of each stream that did not start, where it is known when it is ready."""
        firsts = [(queue[0].ready_ns(), queue[0]) for queue in self._queued.values() if queue]
        return [(ready_ns, piece) for ready_ns, piece in firsts if ready_ns is not None]

    def _work_until(self, next_ns: int) -> None:
        passed_ns = next_ns - self._now_ns
        for piece in self._running:
            if self._end_ns(piece) == next_ns:
                piece.left_ns = Fraction(0)
            elif piece.work.engine is Engine.SMS:
                piece.left_ns -= self._rate * passed_ns
        self._now_ns = next_ns

    # The GPU

    def _share(self) -> Fraction:
        """What a compute kernel does of its time alone in a ns, beside all that runs now."""
        communication = [piece for piece in self._running if piece.work.engine is Engine.COMMUNICATION]
        free = max(1, self._machine.sm_count - sum(piece.work.block_count for piece in communication))
        asked = self._asked_sms()
        rate = Fraction(free, asked) if asked > free else Fraction(1)
        return rate / (1 + Fraction(str(self._machine.beside_comm_frac))) if communication else rate

    def _asked_sms(self) -> int:
        """SMs that the compute which runs asks for."""
        sm_count = self._machine.sm_count
        computing = (piece.work for piece in self._running if piece.work.engine is Engine.SMS)
        return sum(min(work.block_count, sm_count) for work in computing)

    def _end_ns(self, piece: Piece) -> int | None:
        """When work ends, if all stays as it is; None where it has not started."""
        if piece.end_ns is not None or piece.start_ns is None:
            return piece.end_ns
        if piece.collective is not None:
            return plus(self._meetings.moves_ns(piece.collective), piece.collective.transfer_ns)
        if piece.work.engine is not Engine.SMS:
            return piece.start_ns + piece.work.peer_ns + piece.work.alone_ns
        return self._now_ns + ceil(piece.left_ns / self._rate)

    def _end_what_is_done(self) -> bool:
        done = [piece for piece in self._running if self._end_ns(piece) == self._now_ns]
        for piece in done:
            piece.end_ns = self._now_ns
            self._running.remove(piece)
            self._unfinished.remove(piece)
        if done:
            self._rate = self._share()
        return bool(done)

    def _start_what_is_ready(self) -> bool:
        ready = [first for first in self._first_of_streams() if first[0] <= self._now_ns]
        started = full = False
        for _, piece in sorted(ready, key=lambda first: (first[0], first[1].number)):
            engine = piece.work.engine
            if engine in _TAKE_TURNS and any(other.work.engine is engine for other in self._running):
                continue
            if engine is Engine.SMS and piece.work.alone_ns:
                asked = min(piece.work.block_count, self._machine.sm_count) + self._asked_sms()
                full = full or asked > self._machine.sm_count
                if full:
                    continue
            piece.start_ns, piece.left_ns = self._now_ns, Fraction(piece.work.alone_ns)
            self._queued[piece.work.stream].remove(piece)
            self._running.append(piece)
            if piece.collective is not None:
                self._meetings.arrive(self._rank, piece.collective, self._now_ns)
            self._rate = self._share()
            started = True
        return started

    # The host

    def _let_a_thread_go_on(self) -> bool:
        for thread in self._threads:
            goes_ns = self._goes_on_ns(thread)
            if goes_ns is not None and goes_ns <= self._now_ns:
                if thread.acted_ns is None:
                    self._act(thread)
                else:
                    self._return(thread)
                return True
        return False

    def _goes_on_ns(self, thread: Thread) -> int | None:
        """When a thread's operation acts, or returns once it has acted; None while that is not known."""
        operation = thread.now_does
        if operation is None:
            return None
        if thread.acted_ns is None:
            acts_ns = thread.began_ns + _before_it_acts_ns(operation)
            return acts_ns if not isinstance(operation, Launch) or self._has_room() else None
        return self._returns_ns(thread, operation, thread.acted_ns)

    def _has_room(self) -> bool:
        """Whether the launch so many before the next one has ended."""
        place = len(self._launched) - self._machine.queue_launches
        return place < 0 or self._launched[place].done_ns() is not None

    def _act(self, thread: Thread) -> None:
        operation, thread.acted_ns = thread.now_does, self._now_ns
        match operation:
            case Signal():
                self._flags_ns[operation.flag] = self._now_ns
            case Launch():
                thread.waits_for = self._submit(thread, operation)
            case Record():
                self._events[operation.event] = self._given(operation.stream)
            case StreamWait():
                self._told[operation.stream] |= {self._events[operation.event]}
            case Spin():
                thread.waits_for = self._events[operation.mark]
            case Synchronise():
                thread.waits_for = self._before(operation)
            case Allocate():
                works = self._unfinished if operation.frees else ()
                thread.waits_for = Past(self._now_ns, frozenset(works))

    def _given(self, stream: int) -> Past:
        """What a stream was given last, and was told to wait for since."""
        last = self._last.get(stream)
        return Past(self._now_ns, frozenset(() if last is None else (last,)), self._told[stream])

    def _before(self, operation: Synchronise) -> Past:
        if operation.scope == "device":
            return Past(self._now_ns, frozenset(self._unfinished))
        if operation.scope == "event":
            return self._events[operation.target]
        return self._given(operation.target)

    def _submit(self, thread: Thread, launch: Launch) -> Past:
        pieces = []
        for work in launch.works:
            behind, after = self._last.get(work.stream), self._told.pop(work.stream, frozenset())
            number = len(self.pieces)
            call = len(thread.calls)
            piece = Piece(number, work, thread.name, call, self._now_ns, behind, after, launch.collective)
            self._last[work.stream] = piece
            self._queued[work.stream].append(piece)
            self.pieces.append(piece)
            pieces.append(piece)
        self._unfinished.update(pieces)
        launched = Past(self._now_ns, frozenset(pieces))
        self._launched.append(launched)
        if launch.mark is not None:
            self._events[launch.mark] = launched
        return launched

    def _returns_ns(self, thread: Thread, operation: Operation, acted_ns: int) -> int | None:
        if isinstance(operation, Await):
            up_ns = plus(self._flags_ns.get(operation.flag), operation.wake_ns)
            return latest([acted_ns, up_ns])
        if thread.waits_for is None:
            return acted_ns
        done_ns = thread.waits_for.done_ns()
        match operation:
            case Launch():
                return self._launch_returns_ns(operation, thread.waits_for, acted_ns + operation.tail_ns)
            case Allocate():
                return plus(done_ns, operation.own_ns)
            case Synchronise() | Spin() if done_ns is None or done_ns > acted_ns:
                late_ns = operation.poll_ns if isinstance(operation, Spin) else operation.return_ns
                return plus(done_ns, late_ns)
        return acted_ns

    def _launch_returns_ns(self, launch: Launch, launched: Past, least_ns: int) -> int | None:
        if launch.returns_with is None:
            return least_ns
        if launch.returns_with == "d2h":
            return latest([least_ns, plus(launched.done_ns(), launch.return_ns)])
        (copy,) = launched.works
        return latest([least_ns, copy.start_ns, plus(self._end_ns(copy), -launch.return_ns)])

    def _return(self, thread: Thread) -> None:
        operation = thread.now_does
        if isinstance(operation, Push):
            thread.opened.append((self._now_ns, operation))
        elif isinstance(operation, Pop):
            began_ns, opened = thread.opened.pop()
            thread.ranges.append((began_ns, self._now_ns, opened))
        elif isinstance(operation, Launch | Record | StreamWait | Synchronise | Allocate | Initialise):
            thread.calls.append(Call(thread.name, operation, thread.began_ns, self._now_ns))
        thread.place, thread.began_ns = thread.place + 1, self._now_ns
        thread.acted_ns = thread.waits_for = None


class SecondSimulator(OneRank):
    """Runs the program of one rank alone when made.

    Raises ValueError where a thread waits for what never comes.
    """

    def __init__(self, program: Program) -> None:
        meetings = Meetings()
        super().__init__(program, 0, meetings)
        _run({0: self}, meetings)


class SecondRanks:
    """Runs the programs of many ranks together when made. `ranks` by number; `arrivals_ns` at collectives.

    Raises ValueError where a thread waits for what never comes, a rank that never arrives for one.
    """

    def __init__(self, programs: Mapping[int, Program]) -> None:
        meetings = Meetings()
        self.ranks = {rank: OneRank(programs[rank], rank, meetings) for rank in programs}
        self.arrivals_ns = meetings.arrivals_ns
        _run(self.ranks, meetings)


def _run(ranks: Mapping[int, OneRank], meetings: Meetings) -> None:
    """Ask every rank when something next happens, let those go there whose turn it is, and ask them again.

    Only a rank that went, or whose group is whole now, can have another answer than before.
    """
    now_ns, answers = 0, dict.fromkeys(ranks, 0)
    while answers:
        now_ns = min(answers.values())
        turn = {rank for rank, next_ns in answers.items() if next_ns == now_ns}
        while turn:
            for rank in sorted(turn):
                ranks[rank].go_to(now_ns)
                next_ns = ranks[rank].next_instant()
                answers.pop(rank, None)
                answers |= {} if next_ns is None else {rank: next_ns}
            turn = meetings.met()
    if not all(rank.is_done for rank in ranks.values()):
        raise ValueError("a thread waits for what never comes")


def _before_it_acts_ns(operation: Operation) -> int:
    if isinstance(operation, Busy):
        return operation.ns
    if isinstance(operation, Initialise):
        return operation.own_ns
    return operation.api_ns if isinstance(operation, Launch | Record | StreamWait | Synchronise) else 0
