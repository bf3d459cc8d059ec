"""Small random runs: programs of a few threads and streams, on a machine that keeps order as a GPU does."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.simulate.recording import Recording, Row

FORWARD = (
    "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNT",
    "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<float>(Params)",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_kernel0_0",
    "void transformer_engine::gated_act_kernel<float>(float*)",
    "_permute_kernel",
)
BACKWARD = (
    "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT",
    "void transformer_engine::normalization::rmsnorm_bwd_tuned_kernel<float>(Params)",
    "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x128x128_kernel0_0",
    "void transformer_engine::dgated_act_kernel<float>(float*)",
)
EXPERTS = ("void deep_ep::intranode::dispatch<8>(int*)", "void deep_ep::intranode::combine<8>(int*)")
COLLECTIVES = (
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
)
ADAM = "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctorMaster<float>>(long)"
MAIN, SECOND, COMM, COPY = 7, 13, 20, 30
"""Streams."""
START = 100_000_000


@dataclass
class Run:
    """A recording, and the window that its reader gives, if any."""

    recording: Recording
    options: dict[str, str] = field(default_factory=dict)


@dataclass
class Machine:
    """One process on one GPU: when its threads are free, when its streams are, and what streams wait for."""

    draw: random.Random
    recording: Recording
    pid: int = 1000
    device: int = 0
    ahead: int = 0
    """How far the host's clock is ahead of the GPU's."""
    skips: float = 0.0
    """Share of the launch rows that are lost."""
    clocks: dict[int, int] = field(default_factory=dict)
    free: dict[int, int] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    events: int = 0

    def span(self, low: int, high: int) -> int:
        """A time, mostly of whole microseconds."""
        return self.draw.randint(low, high) * 1_000 + self.draw.choice((0, 0, 0, 0, 1, 7, 500))

    def take(self, thread: int, length: int) -> tuple[int, int]:
        """A stretch of a thread's time, on its own clock; thread 0 is the main one."""
        start = self.clocks.setdefault(thread, START)
        self.clocks[thread] = start + length
        return start + self.ahead, start + length + self.ahead

    def call(self, api: str, length: int, thread: int = 0) -> int:
        """A call that launches nothing."""
        return self.recording.call(api, *self.take(thread, length), pid=self.pid, tid=self.pid + thread)

    def launch(self, length: int, stream: int, thread: int = 0) -> tuple[int, dict[str, Any]]:
        """A launch call: when its work begins, and where it ran."""
        launch, back = self.take(thread, length)
        arrival = self.draw.choice((0, 1_000, 1_000, 1_000, 2_000))
        if self.draw.random() < 0.05:
            arrival = self.span(3, 30)  # late for a reason that nothing records
        early = launch + 1_000 if self.draw.random() < 0.3 else back
        gap = self.draw.choice((0, 500, 1_000, 1_000, 2_000))
        ready = max(self.free.get(stream, 0), self.held.get(stream, 0))
        where = {"stream": stream, "pid": self.pid, "device": self.device, "tid": self.pid + thread}
        rows = {"launch_ns": launch, "launch_end_ns": back}
        return max(early - self.ahead + arrival, ready + gap), where | rows

    def kernel(self, name: str, length: int, stream: int = 7, thread: int = 0, blocks: int = 4_000) -> None:
        """A kernel and its launch call."""
        start, where = self.launch(self.draw.choice((1_000, 1_000, 2_000, 3_000)), stream, thread)
        if self.draw.random() < self.skips:
            where["launch_ns"] = None
        self.free[stream] = start + length
        self.recording.kernel(name, start, start + length, grid=(blocks, 1, 1), **where)

    def graph(self, names: list[str], whole: bool) -> None:
        """One replay of a graph, by node or whole."""
        start, where = self.launch(2_000, MAIN)
        if whole:
            self.free[MAIN] = start + self.span(20, 60)
            self.recording.graph_replay(start, self.free[MAIN], **where)
            return
        begin, back = where.pop("launch_ns"), where.pop("launch_end_ns")
        api = "cudaGraphLaunch_v10000"
        where["correlation_id"] = self.recording.call(api, begin, back, pid=self.pid, tid=self.pid)
        for node, name in enumerate(names, start=1):
            self.free[MAIN] = start + self.span(3, 20)
            where["graph_node_id"] = node
            self.recording.kernel(name, start, self.free[MAIN], grid=(4_000, 1, 1), **where)
            start = self.free[MAIN] + self.draw.choice((0, 1_000, 2_000, 8_000))

    def copy(self, kind: str, size: int, stream: int = MAIN, how: str = "copy") -> None:
        """A copy; one of pageable memory to the host, or by cudaMemcpy, keeps the thread until it ends."""
        start, where = self.launch(2_000, stream)
        self.free[stream] = end = start + 1_000 + size // 50
        if how == "blocking copy" or (how == "pageable" and kind == "d2h"):
            self.clocks[0] = max(self.clocks[0], end + self.draw.choice((2_000, 6_000, 9_000)))
        where["launch_end_ns"] = self.clocks[0] + self.ahead
        where["api"] = "cudaMemcpy_v3020" if how == "blocking copy" else "cudaMemcpyAsync_v3020"
        self.recording.copy(kind, start, end, size_bytes=size, pageable=how == "pageable", **where)

    def memset(self) -> None:
        """A memset on the main stream."""
        start, where = self.launch(1_000, MAIN)
        self.free[MAIN] = start + self.span(0, 3)
        self.recording.memset(start, self.free[MAIN], size_bytes=4_096, **where)

    def wait_event(self, of: int, stream: int) -> None:
        """One stream waits for what another has been given."""
        self.record(of)
        self._waits("stream wait", "cudaStreamWaitEvent_v3020", 1_000, stream, self.events)
        self.held[stream] = max(self.held.get(stream, 0), self.free.get(of, 0))

    def record(self, of: int) -> None:
        """An event recorded on a stream."""
        self.events += 1
        call = self.call("cudaEventRecord_v3020", 1_000)
        self.recording.event_record(1, self.events, of, correlation_id=call, pid=self.pid, device=self.device)

    def synchronise(self, kind: str, stream: int = MAIN) -> None:
        """The main thread waits for a stream, an event on it or all streams."""
        if kind == "event":
            self.record(stream)
        of = self.free.values() if kind == "context" else [self.free.get(stream, 0)]
        start = self.clocks.setdefault(0, START)
        returns = [one + self.draw.choice((1_000, 3_000, 8_000)) for one in of if one > start]
        name = {"stream": "Stream", "event": "Event", "context": "Device"}[kind]
        event = self.events if kind == "event" else None
        on = None if kind == "context" else stream
        length = max([start + 1_000, *returns]) - start
        self._waits(kind, f"cuda{name}Synchronize_v3020", length, on, event)

    def _waits(self, kind: str, api: str, length: int, stream: int | None, event: int | None) -> None:
        call = self.call(api, length)
        end = self.clocks[0] + self.ahead
        self.recording.synchronisation(
            kind, end - length, end, correlation_id=call, stream=stream, event_id=1, sync_id=event,
            pid=self.pid, device=self.device,
        )  # fmt: skip

    def free_memory(self) -> None:
        """A free waits for all work of the GPU."""
        start = self.clocks.setdefault(0, START)
        self.call("cudaFree_v3020", max([start, *self.free.values()]) - start + self.span(2, 20))

    def other(self, table: str, name: str, length: int, pid: int | None = None) -> None:
        """A call of the operating system, or an overhead of the profiler, in this process or another."""
        start, end = self.take(0, length)
        pid = pid or self.pid
        thread = self.recording.global_id(pid, pid)
        row: Row = {"start": start, "end": end, "nameId": name, "globalTid": thread}
        self.recording.rows.setdefault(table, []).append(row)

    def ranged(self, text: str, start: int) -> None:
        """A range of the main thread, from an instant of its own clock until now."""
        end = self.clocks[0] + self.ahead
        self.recording.range(text, start + self.ahead, end, pid=self.pid, tid=self.pid)


def draw(seed: int) -> Run:
    """A run of 5 to about 60 kernels."""
    dice = random.Random(seed)
    run = Run(Recording())
    for _ in range(2):
        run.recording.gpu()
    for number in range(2 if dice.random() < 0.1 else 1):
        device = number if dice.random() < 0.7 else 0
        machine = Machine(dice, run.recording, 1000 + 1000 * number, device)
        if dice.random() < 0.04:
            machine.ahead = dice.choice((-156_000_000, 325_000_000, 40_000))
        if dice.random() < 0.06:
            machine.skips = 0.1
        _program(machine)
    if dice.random() < 0.15:
        _cut_ends(dice, run.recording.rows)
    if dice.random() < 0.2:
        _own_window(dice, run)
    return run


_HAVE_KERNELS = ("forward", "backward", "expert", "collective", "aside", "graph", "zero", "twins")
_OPS = re.findall(
    r"[^,]+",
    "forward,forward,forward,forward,forward,expert,expert,collective,collective,aside,backward,graph,zero,"
    "twins,copy,copy,memset,event,stream,context,allocator,python,os,flush,other flush,data,gc,lazy,offload,"
    "read,p2p,blocking copy,pageable",
)


def _program(machine: Machine) -> None:
    """The same few operations in each step, of other lengths; now and then one is missing."""
    dice = machine.draw
    named, adam = dice.random() < 0.6, dice.random() < 0.6
    ops = [
        (dice.choice(_OPS), dice.randint(0, 1 << 20), dice.random() < 0.7) for _ in range(dice.randint(2, 9))
    ]
    loads = [op for op in ops if op[0] == "data"]
    ops = [op for op in ops if op[0] != "data"] + loads[:1]  # one batch a step
    fits = max(1, 50 // max(1, sum(op[0] in _HAVE_KERNELS for op in ops)))
    count = min(dice.choice((1, 2, 2, 3, 3, 4, 6, 9, 12)), fits)
    if dice.random() < 0.2:
        for _ in range(dice.randint(1, 3)):
            machine.kernel(FORWARD[3], machine.span(2, 9))
    for step in range(count):
        start = machine.clocks.setdefault(0, START)
        machine.kernel(FORWARD[0], machine.span(20, 40))
        for what, luck, ordered in ops:
            if dice.random() > 0.02 and (what != "lazy" or not step):
                _do(machine, what, luck, ordered)
        if adam:
            machine.kernel(ADAM, machine.span(10, 20))
            if ops[0][0] == "collective":
                machine.wait_event(MAIN, COMM)
                machine.kernel(COLLECTIVES[2], machine.span(5, 25), COMM)
                machine.wait_event(COMM, MAIN)
        if named:
            machine.ranged(f"iteration {step}", start)
        if dice.random() < 0.3:
            machine.take(0, machine.span(1, 30))
        if dice.random() < 0.05:
            machine.take(0, machine.span(200, 3_000))


def _do(machine: Machine, what: str, luck: int, ordered: bool) -> None:
    """One operation of a program; `luck` chooses what stays the same in each step."""
    take, span, kernel, copy, call = machine.take, machine.span, machine.kernel, machine.copy, machine.call
    forward = [FORWARD[(luck + place) % len(FORWARD)] for place in range(3)]
    kind, stream, start = ("h2d", "d2h", "d2d")[luck % 3], (MAIN, COPY)[luck % 2], machine.clocks[0]
    if what == "backward":
        machine.clocks[1] = start + 2_000
        for place in range(2):
            kernel(BACKWARD[(luck + place) % len(BACKWARD)], span(2, 30), thread=1)
        machine.clocks[0] = machine.clocks[1] + 2_000
    elif what in ("expert", "collective"):
        names = EXPERTS if what == "expert" else COLLECTIVES
        machine.wait_event(MAIN, COMM)
        kernel(names[luck % len(names)], span(5, 40), COMM, blocks=24)
        if ordered:
            machine.wait_event(COMM, MAIN)
    elif what == "twins":
        machine.clocks[1] = start
        machine.free[MAIN] = machine.free[SECOND] = max(machine.free.get(s, 0) for s in (MAIN, SECOND))
        kernel(forward[0], 5_000)
        kernel(forward[1], 5_000, SECOND, thread=1)
    elif what in ("event", "stream", "context"):
        machine.synchronise(what, (MAIN, MAIN, COMM, COPY)[luck % 4])
    elif what == "read":
        copy("d2h", 1_024)
        machine.synchronise("stream")
    elif what == "os":
        take(0, 1_000)
        machine.other("OSRT_API", "pthread_cond_wait", span(5, 80))
    elif what == "data":
        take(0, machine.draw.choice((span(30, 90), span(2_100, 2_500))))
        machine.ranged("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start)
        copy("h2d", 40_000)
    elif what == "gc":
        take(0, span(20, 90))
        machine.ranged("gc.collect", start)
    elif what == "allocator" and not luck % 3:
        machine.free_memory()
    else:
        simple: dict[str, Callable[[], object]] = {
            "forward": lambda: kernel(forward[0], span(2, 40), blocks=4_000 if luck % 3 else 60),
            "aside": lambda: kernel(forward[0], span(2, 40), SECOND),
            "graph": lambda: machine.graph(forward, whole=luck % 8 == 0),
            "zero": lambda: kernel(forward[0], 0),
            "memset": machine.memset,
            "allocator": lambda: call(("cudaMalloc_v3020", "cuMemCreate")[luck % 2], span(2, 40)),
            "lazy": lambda: call("cuModuleLoadData", span(5, 60)),
            "copy": lambda: copy(kind, (1_000, 50_000, 2 << 20)[luck % 7 % 3], stream),
            "blocking copy": lambda: copy(kind, 2 << 20, stream, what),
            "pageable": lambda: copy(kind, 2 << 20, stream, what),
            "p2p": lambda: copy("p2p", 1 << 20, COMM),
            "offload": lambda: copy("d2h", 2 << 20, COPY),
            "python": lambda: take(0, span(2, 120)),
            "flush": lambda: machine.other("PROFILER_OVERHEAD", "CUPTI buffer flush", span(5, 80)),
            "other flush": lambda: machine.other("PROFILER_OVERHEAD", "CUPTI flush", span(5, 80), 4_000),
        }
        simple[what]()


def _starts(rows: Mapping[str, list[Row]]) -> list[int]:
    kernels = rows["CUPTI_ACTIVITY_KIND_KERNEL"]
    return sorted(start for row in kernels if isinstance(start := row["start"], int))


def _cut_ends(dice: random.Random, rows: dict[str, list[Row]]) -> None:
    """The recording begins or ends within a step."""
    times = _starts(rows)[2:-2]
    if not times:
        return
    cut, late = dice.choice(times), dice.random() < 0.5
    for table, several in rows.items():
        spans = [(row, row.get("start"), row.get("end")) for row in several]
        rows[table] = [
            row
            for row, start, end in spans
            if not (isinstance(start, int) and isinstance(end, int)) or (end <= cut if late else start >= cut)
        ]


def _own_window(dice: random.Random, run: Run) -> None:
    """The user gives a window."""
    times = sorted(set(_starts(run.recording.rows)))
    if len(times) > 3:
        start, end = sorted(dice.sample(times, 2))
        run.options = {"start": f"{start}ns", "end": f"{end + dice.randint(0, 9_000)}ns"}
