"""A run as files: each node by its own clock, each session from its own zero, windows even or ragged."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from math import ceil
from pathlib import Path
from random import Random
from typing import Final

from bench.simulate.export import SESSION_START_NS, write_export
from bench.simulate.kernels import GPUS, Kernel, kernels_of
from bench.simulate.recording import Recording
from bench.third.program import Do, Moves, Operation
from bench.third.run import Done
from bench.third.world import Group, World
from tests.recordings.payloads import collective, send, with_payloads_of_rows

KERNELS: Final[Mapping[str, Kernel]] = kernels_of("H100", False, True)
_PID: Final = 20_000
_DRIFT_PPM: Final = 40.0
_OFFSET_NS: Final = (2_000, 800_000_000)
_COPIES: Final = {"copy": "d2h", "batch": "h2d"}
_BLOCKS: Final = {"router": 64, "head": 528}
"""Products of other shapes than those of layers."""
_CARVED_US: Final = 60.0
"""A window opens a little before a step."""


class Ranges(Enum):
    """What NVTX ranges are recorded; payloads are those of NCCL's ranges."""

    NONE = "none"
    STEPS = "iter"
    NCCL = "nccl"
    STEPS_NCCL = "iter+nccl"
    PAYLOADS = "payload"
    STEPS_PAYLOADS = "iter+payload"

    @property
    def steps(self) -> bool:
        return "iter" in self.value

    @property
    def nccl(self) -> bool:
        return "nccl" in self.value or self.payloads

    @property
    def payloads(self) -> bool:
        return "payload" in self.value


@dataclass(frozen=True)
class Clock:
    """A node's clock and what a session's zero shows on it, in ns."""

    offset_ns: float
    drift_ppm: float
    zero_ns: float = 0.0

    def of(self, us: float) -> int:
        """What a recording shows at a true time."""
        return round(us * 1_000 * (1 + self.drift_ppm * 1e-6) + self.offset_ns - self.zero_ns)


@dataclass(frozen=True)
class Style:
    """How a run is recorded. `by_node`: one file a node; `window_us` by rank, in true time."""

    ranges: Ranges
    by_node: bool
    ragged: bool
    events: bool
    windows_us: tuple[tuple[float, float], ...]
    clocks: tuple[Clock, ...]
    """By rank."""


@dataclass
class _File:
    recording: Recording = field(default_factory=Recording)
    payloads: dict[int, bytes] = field(default_factory=dict)


def draw_style(world: World, done: Done, ranges: Ranges | None = None, ragged: bool | None = None) -> Style:
    """How a run of this world is recorded, or as asked for."""
    draw = Random(f"third style {world.seed}")
    ranges = ranges or draw.choice(tuple(Ranges))
    ragged = draw.random() < 0.3 if ragged is None else ragged
    by_node, events = draw.random() < 0.5, draw.random() < 0.5
    nodes = []
    for _ in range(world.layout.node(world.layout.size - 1) + 1):
        low, high = _OFFSET_NS
        offset_ns = draw.choice((-1, 1)) * low * (high / low) ** draw.random()
        nodes.append(Clock(offset_ns, draw.uniform(-_DRIFT_PPM, _DRIFT_PPM)))
    windows, clocks, zeros = [], [], dict[int, float]()
    for rank, operations in enumerate(done.operations):
        node = world.layout.node(rank)
        windows.append(_window(world, operations, ragged, Random(f"third window {world.seed} {rank}")))
        zero_ns = -draw.uniform(1.5e9, 4e9)
        if by_node:
            zero_ns = zeros.setdefault(node, zero_ns)
        clocks.append(Clock(nodes[node].offset_ns, nodes[node].drift_ppm, zero_ns))
    return Style(ranges, by_node, ragged, events, tuple(windows), tuple(clocks))


def _window(world: World, operations: Sequence[Operation], ragged: bool, draw: Random) -> tuple[float, float]:
    """The steps of the host after the first, or from somewhere within a step to somewhere within one."""
    begins = [one.called for one in operations if one.do is Do.STEP]
    end = max(one.end for one in operations) + 100
    first, last = begins[1] - draw.uniform(0, _CARVED_US), end
    if not ragged:
        return first, last
    step = (last - first) / world.steps
    return first + draw.uniform(-0.4, 0.4) * step, last - draw.uniform(0.0, 0.4) * step


def write(world: World, done: Done, style: Style, folder: Path) -> tuple[list[Path], Path]:
    """The files of a run and `map.csv`, which says whose they are."""
    files: dict[int, _File] = {}
    lines = []
    for rank in range(world.layout.size):
        key = world.layout.node(rank) if style.by_node else rank
        file = files.setdefault(key, _File())
        _Rank(world, done, style, rank, file).record()
        lines.append((_name(world, key), _pid(world, rank), rank, world.layout.size))
    for key, file in files.items():
        path = folder / _name(world, key)
        zero_ns = next(
            style.clocks[rank] for rank in range(world.layout.size) if _key(world, style, rank) == key
        ).zero_ns
        write_export(path, file.recording, session_start_ns=SESSION_START_NS + round(zero_ns))
        if file.payloads:
            with_payloads_of_rows(path, file.payloads)
    mapped = folder / "map.csv"
    with mapped.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("file", "process", "rank", "world_size"), *lines])
    return [folder / _name(world, key) for key in files], mapped


def _key(world: World, style: Style, rank: int) -> int:
    return world.layout.node(rank) if style.by_node else rank


def _name(world: World, key: int) -> str:
    """A name that says nothing of ranks, and sorts otherwise."""
    return f"cap_{blake2b(f'{world.seed}/{key}'.encode(), digest_size=4).hexdigest()}.sqlite"


def _pid(world: World, rank: int) -> int:
    return _PID + 1_000 * world.layout.node(rank) + 37 * rank


class _Rank:
    """Writes the rows of one rank."""

    def __init__(self, world: World, done: Done, style: Style, rank: int, file: _File) -> None:
        self._world, self._style, self._rank, self._file = world, style, rank, file
        self._operations = done.operations[rank]
        self._pid, self._device = _pid(world, rank), rank % world.layout.per_node
        self._clock = style.clocks[rank]
        self._from, self._to = style.windows_us[rank]
        self._events = 0

    def record(self) -> None:
        recording, model = self._file.recording, GPUS["H100"]
        if not recording.gpus:
            for _ in range(self._world.layout.per_node):
                recording.gpu(model.name, model.sm_count, model.capability, model.memory_bytes)
        open_step: Operation | None = None
        for one in self._operations:
            if one.do is Do.STEP and self._style.ranges.steps:
                if open_step is not None:
                    self._range(f"iteration {open_step.step}", open_step.called, one.called)
                open_step = one
            if self._from <= one.called and one.returned <= self._to:
                self._record(one)
        if open_step is not None:
            self._range(f"iteration {open_step.step}", open_step.called, self._operations[-1].returned)

    def _range(self, text: str, begin_us: float, end_us: float) -> None:
        if self._from <= begin_us and end_us <= self._to:
            begin_ns, end_ns = self._clock.of(begin_us), self._clock.of(end_us)
            self._file.recording.range(text, begin_ns, end_ns, pid=self._pid, tid=self._pid)

    def _record(self, one: Operation) -> None:
        match one.do:
            case Do.LAUNCH if one.end <= self._to:
                self._launch(one)
            case Do.READ:
                correlation = self._call("cudaStreamSynchronize_v3020", one)
                begin_ns, end_ns = self._clock.of(one.called), self._clock.of(one.returned)
                self._file.recording.synchronisation(
                    "stream",
                    begin_ns,
                    end_ns,
                    correlation_id=correlation,
                    stream=7,
                    pid=self._pid,
                    device=self._device,
                )
            case Do.FREE:
                self._call("cudaFree_v3020", one)
            case Do.PAUSE if one.where == "loader" and self._style.ranges.steps:
                self._range("dataloader", one.called - one.gap_us, one.called)

    def _call(self, api: str, one: Operation) -> int:
        begin_ns, end_ns = self._clock.of(one.called), self._clock.of(one.returned)
        return self._file.recording.call(api, begin_ns, end_ns, pid=self._pid, tid=self._pid)

    def _launch(self, one: Operation) -> None:
        recording, thread = self._file.recording, self._pid + 700 * one.backward
        times = self._clock.of(one.start), self._clock.of(one.end)
        where = {
            "device": self._device, "stream": one.stream, "pid": self._pid, "tid": thread,
            "launch_ns": self._clock.of(one.called), "launch_end_ns": self._clock.of(one.returned),
        }  # fmt: skip
        if one.kernel in _COPIES:
            recording.copy(_COPIES[one.kernel], *times, size_bytes=int(one.where), **where)  # type: ignore[arg-type]
            return
        if one.moves is not None:
            self._order(one)
        kernel = KERNELS[one.kernel]
        blocks = 16 if one.moves else 132 if kernel.persistent else 2_048 if one.work_us > 8 else 264
        if one.where == "experts" and kernel.persistent:
            blocks = 132
        blocks = _BLOCKS.get(one.where, blocks)
        recording.kernel(
            kernel.name, *times, api=kernel.api, grid=(blocks, 1, 1), block=(kernel.threads, 1, 1),
            registers=kernel.registers, dynamic_shared_bytes=kernel.shared_bytes, **where,  # type: ignore[arg-type]
        )  # fmt: skip

    def _order(self, one: Operation) -> None:
        """Events before a collective, and NCCL's ranges around its call."""
        moves = one.moves
        assert moves is not None
        if self._style.events:
            self._events += 1
            call_ns = self._clock.of(one.called) - 2_000
            recording = self._file.recording
            first = recording.call("cudaEventRecord_v3020", call_ns, call_ns + 700, pid=self._pid)
            about = {"pid": self._pid, "device": self._device}
            recording.event_record(100 + self._events % 32, self._events, 7, correlation_id=first, **about)
            then = recording.call("cudaStreamWaitEvent_v3020", call_ns + 800, call_ns + 1_400, pid=self._pid)
            recording.synchronisation(
                "stream wait", call_ns + 800, call_ns + 1_400, correlation_id=then, stream=one.stream,
                event_id=100 + self._events % 32, sync_id=self._events, **about,
            )  # fmt: skip
        if self._style.ranges.nccl and moves.call:
            self._nccl(one, moves)

    def _nccl(self, one: Operation, moves: Moves) -> None:
        begin_ns, end_ns = self._clock.of(one.called) - 200, self._clock.of(one.returned) + 50
        hashed = communicator(self._world, moves)
        part = len(moves.ranks) if moves.call in ("ncclAllGather", "ncclReduceScatter") else 1
        size = round(moves.ring / part) or 4
        if one.kernel != "nccl_send_recv":
            if one.kernel.startswith("nccl_"):
                self._nccl_range(moves.call, begin_ns, end_ns, one, collective(hashed, size))
            return
        calls = self._calls(moves)
        self._nccl_range(
            "ncclGroupStart", begin_ns - 20 * (len(calls) + 2), begin_ns - 20 * (len(calls) + 1), one
        )
        for place, (name, peer, each) in enumerate(calls):
            at_ns = begin_ns - 20 * (len(calls) - place)
            self._nccl_range(name, at_ns, at_ns + 8, one, send(hashed, each, peer))
        self._nccl_range("ncclGroupEnd", begin_ns, end_ns, one)

    def _calls(self, moves: Moves) -> list[tuple[str, int, int]]:
        """Name, peer and bytes of each message of a group."""
        if moves.sent:
            return [
                (name, peer, ceil(sent))
                for peer, sent in enumerate(moves.sent)
                for name in ("ncclSend", "ncclRecv")
            ]
        whole = self._world.layout.group(Group.PIPELINE, self._rank)
        (other,) = (rank for rank in moves.ranks if rank != self._rank)
        names = {"s": ("ncclSend",), "r": ("ncclRecv",), "sr": ("ncclSend", "ncclRecv")}[moves.call]
        return [(name, whole.index(other), round(moves.ring)) for name in names]

    def _nccl_range(
        self, name: str, begin_ns: int, end_ns: int, one: Operation, payload: bytes | None = None
    ) -> None:
        thread = self._pid + 700 * one.backward
        recording = self._file.recording
        recording.range(name, begin_ns, end_ns, pid=self._pid, tid=thread, registered=True, domain=1)
        if payload is not None and self._style.ranges.payloads:
            self._file.payloads[len(recording.rows["NVTX_EVENTS"]) - 1] = payload


def communicator(world: World, moves: Moves) -> int:
    """The hash of a communicator: messages of a pipeline go over that of all its stages."""
    ranks = moves.ranks
    if moves.group is Group.PIPELINE:
        ranks = world.layout.group(Group.PIPELINE, ranks[0])
    name = f"{world.seed}/{moves.group.value}/{ranks}"
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")
