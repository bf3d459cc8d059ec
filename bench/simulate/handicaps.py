"""The four handicaps, and a program with one of them taken away, in the simulator's own terms."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from bench.simulate.host_program import (
    Allocate,
    Await,
    Busy,
    Engine,
    Initialise,
    Launch,
    Operation,
    Part,
    Program,
    Record,
    Signal,
    Spin,
    StreamWait,
    Synchronise,
    Work,
)


class Handicap(Enum):
    """What can hold a run back and could be gone; the values are the walls' names."""

    COMMUNICATION = "communication"
    HOST_OVERHEAD = "host_overhead"
    MEMORY = "memory"
    COMPUTE = "compute"


def taken_away(program: Program, handicap: Handicap) -> Program:
    """The same program without a handicap; all else, and every draw, stays."""
    return edited(program, _EDITS[handicap](program))


def halved(program: Program) -> Program:
    """The same program with all GPU work in half its time, as the second proof of a replay asks."""
    half = on_works(lambda one: one._replace(alone_ns=one.alone_ns // 2, peer_ns=one.peer_ns // 2))
    return edited(program, half)


Edit = Callable[[Operation], Operation | None]
"""What becomes of an operation; None: it is gone."""


def edited(program: Program, edit: Edit) -> Program:
    """The program with every operation edited."""
    threads = {
        name: [edited for operation in operations if (edited := edit(operation)) is not None]
        for name, operations in program.threads.items()
    }
    return Program(program.machine, threads)


def _no_communication(program: Program) -> Edit:
    """Communication takes no time, no SMs, and waits for no peer; its launches stay."""

    def work(one: Work) -> Work:
        if one.engine is not Engine.COMMUNICATION:
            return one
        return one._replace(alone_ns=0, peer_ns=0, block_count=0)

    return on_works(work)


def _filled_grids(program: Program) -> Edit:
    """Kernels with fewer blocks than SMs take blocks / SMs of their time, on all SMs; those that multiply in
    FP32 or TF32 what they would take in BF16, or SIMT GEMMs in TF32.
    """
    sm_count = program.machine.sm_count

    def work(one: Work) -> Work:
        if one.engine is not Engine.SMS:
            return one
        filled_ns = one.alone_ns * min(one.block_count, sm_count) // sm_count
        best_ns = int(filled_ns * one.best_frac)
        return one._replace(alone_ns=best_ns, block_count=max(one.block_count, sm_count))

    return on_works(work)


def on_works(work: Callable[[Work], Work]) -> Edit:
    """An edit of all GPU work."""

    def edit(operation: Operation) -> Operation:
        if not isinstance(operation, Launch):
            return operation
        return operation._replace(works=tuple(work(one) for one in operation.works))

    return edit


def _nothing_again(program: Program) -> Edit:
    """No recompute, no offload, no copies of what lives on the host, no retries of the allocator.

    All of it is gone whole, launches too.
    """
    gone = Part.RECOMPUTE | Part.OFFLOAD | Part.RETRY | Part.HOST_RESIDENT

    def edit(operation: Operation) -> Operation | None:
        if isinstance(operation, Signal | Await):
            return operation
        return None if operation.part & gone else operation

    return edit


def _no_host_time(program: Program) -> Edit:
    """Host threads take no time of their own, and copies that only feed a synchronising call are gone.

    Allocator calls, waits for the GPU, gaps and the launch queue stay: where such a copy is gone, the call
    waits for what it would have copied.
    """

    def edit(operation: Operation) -> Operation | None:
        if isinstance(operation, Signal | Allocate):
            return operation
        if isinstance(operation, Await):
            return operation._replace(wake_ns=0)
        if isinstance(operation, Busy):
            return None
        if isinstance(operation, Launch):
            if operation.part & Part.READ_BACK:
                return None
            works = tuple(work._replace(arrival_ns=0) for work in operation.works)
            return_ns = operation.return_ns if operation.returns_with == "h2d" else 0
            return operation._replace(works=works, api_ns=0, tail_ns=0, return_ns=return_ns)
        if isinstance(operation, Record | StreamWait):
            return operation._replace(api_ns=0)
        if isinstance(operation, Initialise):
            return operation._replace(own_ns=0)
        if isinstance(operation, Synchronise):
            return operation._replace(api_ns=0, return_ns=0)
        return operation._replace(poll_ns=0) if isinstance(operation, Spin) else operation

    return edit


def without_data_pauses(program: Program) -> Program:
    """The same program in which no step waits for its batch."""
    return edited(program, lambda one: None if isinstance(one, Busy) and one.doing == "data" else one)


_EDITS: Final[dict[Handicap, Callable[[Program], Edit]]] = {
    Handicap.COMMUNICATION: _no_communication,
    Handicap.HOST_OVERHEAD: _no_host_time,
    Handicap.MEMORY: _nothing_again,
    Handicap.COMPUTE: _filled_grids,
}
