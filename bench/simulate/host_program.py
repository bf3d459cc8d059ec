"""What host threads do, said in advance: the program that the engine runs. Times are nanoseconds.

A program is one list of operations per thread. Everything in it is decided before it runs, so an edit of the
program (a handicap taken away) leaves all else as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, Flag
from typing import NamedTuple


class Engine(Enum):
    """What carries out a piece of GPU work."""

    SMS = "sms"
    COMMUNICATION = "communication"
    COPY_TO_DEVICE = "h2d"
    COPY_TO_HOST = "d2h"
    COPY_ON_DEVICE = "d2d"
    FILL = "memset"


class Part(Flag):
    """Why an operation is in the program, where a handicap names that reason; several may hold at once."""

    STEP = 0
    RECOMPUTE = 1
    OFFLOAD = 2
    RETRY = 4
    """Allocator calls that give memory back and ask for it again."""
    READ_BACK = 8
    """A copy of at most 64 KiB to the host, and the call that waits for it or for what it copies."""
    HOST_RESIDENT = 16
    """Copies of what lives in host memory, weights or optimizer state, and what waits for them."""


class Place(NamedTuple):
    """Where in the run a piece of GPU work belongs. Layer -1: outside of layers; step -1: before them all."""

    step: int
    microbatch: int
    layer: int
    phase: str
    operation: str


class Work(NamedTuple):
    """A piece of GPU work. `alone_ns` is its time with nothing beside it and all peers there.

    `kernel` names an entry of `bench.simulate.kernels`. A communication kernel waits `peer_ns` for its
    peers before it moves data. `gap_ns` lies between it and what it follows, on its stream or behind an
    event; `arrival_ns` between its submission and its start on an empty stream. `best_frac` is the part of
    its time that BF16 on tensor cores would take.
    """

    kernel: str
    engine: Engine
    stream: int
    alone_ns: int
    place: Place
    block_count: int = 1
    peer_ns: int = 0
    gap_ns: int = 0
    event_gap_ns: int = 0
    arrival_ns: int = 0
    size_bytes: int = 0
    pageable: bool = False
    graph_node: int | None = None
    best_frac: float = 1.0


class Busy(NamedTuple):
    """Time of a thread without a CUDA call: "python", "gc" or "data"."""

    ns: int
    doing: str = "python"
    part: Part = Part.STEP


class Collective(NamedTuple):
    """The instance of communication between ranks that a launch takes part in.

    Launches of one `group` (global ranks, rising), `name` and `sequence` on different ranks are one instance;
    every rank of the group launches it once. A participant arrives when its kernel starts, and ends
    `transfer_ns`, its own, after the last of them arrived: `alone_ns` and `peer_ns` of its work count for
    nothing. Point-to-point communication has the group of its pair.
    """

    group: tuple[int, ...]
    name: str
    sequence: int
    transfer_ns: int


class Launch(NamedTuple):
    """A call that submits work after `api_ns` and returns `tail_ns` later. Several works: one graph.

    `returns_with` "d2h": it returns `return_ns` after the end of its copy, "h2d": before it. `mark` is an
    event done when its last work ends, without a call of its own (`Spin`). With a `collective` its only work
    is communication.
    """

    api: str
    works: tuple[Work, ...]
    api_ns: int
    tail_ns: int = 0
    part: Part = Part.STEP
    returns_with: str | None = None
    return_ns: int = 0
    mark: int | None = None
    collective: Collective | None = None


class Record(NamedTuple):
    """Record an event on a stream, once: a wait follows the only record of its event."""

    event: int
    stream: int
    api_ns: int
    part: Part = Part.STEP


class StreamWait(NamedTuple):
    """Let a stream wait for an event."""

    event: int
    stream: int
    api_ns: int
    part: Part = Part.STEP


class Synchronise(NamedTuple):
    """A call that waits for a stream, an event or the whole device, and returns `return_ns` after it."""

    scope: str
    target: int
    api_ns: int
    return_ns: int
    part: Part = Part.STEP


class Allocate(NamedTuple):
    """cudaMalloc, or cudaFree, which first waits for the whole device; `own_ns` is its own cost."""

    own_ns: int
    size_bytes: int
    frees: bool
    part: Part = Part.STEP


class Initialise(NamedTuple):
    """A call that loads a module or the like: it takes its own time and waits for nothing."""

    api: str
    own_ns: int
    part: Part = Part.STEP


class Signal(NamedTuple):
    """Tell the other threads that a flag is up."""

    flag: int


class Await(NamedTuple):
    """Wait for a flag without any CUDA call; the thread goes on `wake_ns` after it was up."""

    flag: int
    wake_ns: int


class Spin(NamedTuple):
    """Read host memory until the GPU wrote it: no call; it goes on `poll_ns` after the mark, or at once."""

    mark: int
    poll_ns: int
    part: Part = Part.READ_BACK


class Push(NamedTuple):
    """Begin a range. `kind` is "step", "layer", "node", "loader" or "gc"."""

    text: str
    kind: str
    part: Part = Part.STEP


class Pop(NamedTuple):
    """End the innermost open range of the thread."""

    part: Part = Part.STEP


Operation = (
    Busy | Launch | Record | StreamWait | Synchronise | Allocate | Initialise | Signal | Await | Spin
    | Push | Pop
)  # fmt: skip

MAIN = "main"
AUTOGRAD = "autograd"
LOADER = "loader"
"""A helper: it makes batches ahead on streams of its own. No step waits for it, nor it for one's GPU work."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The GPU and its driver. `beside_comm_frac`: rate compute loses to traffic, beside the SMs it loses."""

    sm_count: int
    queue_launches: int = 1022
    beside_comm_frac: float = 0.0


@dataclass(frozen=True, slots=True)
class Program:
    """Operations by thread, on a machine."""

    machine: Machine
    threads: Mapping[str, Sequence[Operation]]
