"""A run -> what nsys would have recorded of it, under a view: which tables, which ranges, which schema."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from math import ceil, floor
from typing import Final

from bench.simulate.containers import named_in
from bench.simulate.draws import uniforms
from bench.simulate.export import schema_tables
from bench.simulate.happened import Activity, CallMade, Span
from bench.simulate.host_program import (
    AUTOGRAD,
    LOADER,
    MAIN,
    Allocate,
    Engine,
    Initialise,
    Launch,
    Record,
    StreamWait,
    Synchronise,
)
from bench.simulate.kernels import GPUS, GpuModel, kernels_of
from bench.simulate.recording import Recording, Work
from bench.simulate.run import Run
from bench.simulate.samples import samples_of

PID: Final = 4200
START_NS: Final = 400_000_000
"""Where the program begins on the recording's clock: before it lies what was allocated at the start."""
_EVENT_HANDLES: Final = 64
"""PyTorch keeps a pool of events and uses their handles again."""
_SEGMENT_BYTES: Final = 2 << 30
_EVENT_SYNC_FROM: Final = "3.17.1"
_ARMED_NS: Final = 200_000
"""GPU work is recorded so much later than calls; ours."""


@dataclass(frozen=True, slots=True)
class View:
    """What was recorded. `ranges`: none, steps, or layers (with steps); `graphs`: node or graph level.

    Without `calls` (runtime rows) there are neither ranges of events nor memory rows to join. Tables that a
    schema does not have are left out whatever the view says.

    `begin_frac`: of the first step's launches, those before the recording began, as with a delay or a capture
    range; 1: it began with the second step. `end_frac`: of the last step's, those after it ended; 1: it ended
    with the step before. Work launched while it recorded is there to its end, and a range left open
    ends with it. Not `flushed`: the last launches are there without their work, which had not ended when the
    recording did, and the first ones where it began within a step, since calls are recorded before work is.

    `copy_engines`: NCCL exchanged and gathered by copies, under its ranges, in place of kernels.
    """

    schema: str = "3.25.0"
    ranges: str = "steps"
    calls: bool = True
    events: bool = True
    metrics: bool = False
    memory: bool = False
    graphs: str = "node"
    gpu_table: bool = True
    begin_frac: float = 0.0
    end_frac: float = 0.0
    flushed: bool = True
    copy_engines: bool = False


_BY_COPIES: Final = {"nccl_send_recv": "ncclAlltoAll", "nccl_all_gather": "ncclAllGather"}
"""Kernels that copies of NCCL's copy engines stand for, and the calls that launch these."""
_SCHEMAS: Final = ("2.9.1", "3.1.2", "3.4.0", "3.16.1", "3.20.3", "3.24.14", "3.25.0", "3.28.1")


def draw_view(seed: int) -> View:
    """The view of a seed: a schema from 2022 on, step ranges in half of the captures, mostly defaults."""
    draw = uniforms(f"{seed}/view")
    ranges = ("none", "none", "steps", "layers")[int(4 * draw[1])]
    return View(
        schema=_SCHEMAS[int(len(_SCHEMAS) * draw[0])],
        ranges=ranges,
        calls=draw[2] < 0.95,
        events=draw[3] < 0.6,
        metrics=draw[4] < 0.25,
        memory=draw[5] < 0.25,
        graphs="node" if draw[6] < 0.8 else "graph",
        gpu_table=draw[7] < 0.85,
    )


@dataclass(frozen=True, slots=True)
class Process:
    """Who ran: its id, the CUDA device it used, and how many GPUs its machine has."""

    pid: int = PID
    device: int = 0
    gpu_count: int = 1

    def tid(self, thread: str) -> int:
        """The thread that the process gives this part."""
        return self.pid + (MAIN, AUTOGRAD, LOADER).index(thread)


def record(run: Run, view: View, process: Process | None = None) -> Recording:
    """Write a run down as nsys would under this view."""
    return _Recorder(run, view, process or Process()).recording


def recorded_steps(run: Run, view: View) -> range:
    """The steps of which a view shows every launch, and all that was launched."""
    steps = range(int(view.begin_frac > 0), run.knobs.step_count - int(view.end_frac > 0))
    if view.flushed:
        return steps
    begin_ns, end_ns = _worked_ns(run, view)
    lost = {one.work.place.step for one in run.activities if not _has_row(run, one, begin_ns, end_ns)}
    whole = [step for step in steps if step not in lost]
    return range(whole[0], whole[-1] + 1) if whole else range(0)


def _worked_ns(run: Run, view: View) -> tuple[int, int]:
    """From which launch on, and ended until when, GPU work is recorded."""
    begin_ns, end_ns = recorded_ns(run, view)
    if view.flushed:
        return begin_ns, run.executed.end_ns + 1
    return begin_ns + (_ARMED_NS if view.begin_frac else 0), end_ns


def _has_row(run: Run, activity: Activity, begin_ns: int, end_ns: int) -> bool:
    return run.executed.calls[activity.call].start_ns >= begin_ns and activity.end_ns < end_ns


def recorded_ns(run: Run, view: View) -> tuple[int, int]:
    """From when on the host, and until when, calls are recorded."""
    begin_ns, end_ns = 0, run.executed.end_ns + 1
    starts_ns = sorted(span.start_ns for span in run.executed.spans if span.kind == "step")
    if view.begin_frac:
        launches = _launches_ns(run, 0)
        begin_ns = [*launches, starts_ns[1]][ceil(view.begin_frac * len(launches))]
    if view.end_frac:
        launches = _launches_ns(run, run.knobs.step_count - 1)
        end_ns = [starts_ns[-1], *launches][floor((1 - view.end_frac) * len(launches))]
    return begin_ns, end_ns


def _launches_ns(run: Run, step: int) -> list[int]:
    """When each launch of a step began, in order."""
    calls = {activity.call for activity in run.activities if activity.work.place.step == step}
    return sorted(run.executed.calls[call].start_ns for call in calls)


class _Recorder:
    def __init__(self, run: Run, view: View, process: Process) -> None:
        self.recording, self._process = Recording(), process
        self._pid, self._device = process.pid, process.device
        self._run, self._view = run, view
        self._begin_ns, self._end_ns = recorded_ns(run, view)
        self._model: GpuModel = GPUS[run.knobs.gpu]
        knobs = run.knobs
        here = kernels_of(knobs.gpu, knobs.fp8, knobs.grouped_gemm, knobs.precision)
        self._kernels = named_in(knobs.container, here)
        if view.gpu_table:
            model = self._model
            for _ in range(process.gpu_count):
                self.recording.gpu(model.name, model.sm_count, model.capability, model.memory_bytes)
        self._held: list[int] = []
        self._given_back: list[int] = []
        if view.memory:
            self._reserve()
        if view.calls:
            for number, call in enumerate(run.executed.calls):
                if self._sees(call):
                    self._call(call, number + 1)
        self._work()
        self._ranges()
        if view.events and view.calls:
            self._events()
        if view.metrics:
            self._metrics()
        tables = schema_tables(view.schema)
        self.recording.rows = {name: rows for name, rows in self.recording.rows.items() if name in tables}

    def _sees(self, happened: CallMade | Span) -> bool:
        return self._begin_ns <= happened.start_ns < self._end_ns

    def _call(self, call: CallMade, correlation: int) -> None:
        self.recording.call(
            _api(call),
            START_NS + call.start_ns,
            START_NS + call.end_ns,
            pid=self._pid,
            tid=self._process.tid(call.thread),
            correlation_id=correlation,
        )
        operation = call.operation
        if isinstance(operation, Allocate) and self._view.memory:
            source, target = self._held, self._given_back
            if not operation.frees:
                source, target = target, source
            target.append(source.pop())
            self.recording.memory_use(
                START_NS + call.end_ns,
                size_bytes=operation.size_bytes,
                address=target[-1],
                frees=operation.frees,
                correlation_id=correlation,
                pid=self._pid,
                device=self._device,
            )

    def _work(self) -> None:
        replayed: dict[int, list[Activity]] = {}
        begin_ns, end_ns = _worked_ns(self._run, self._view)
        for activity in self._run.executed.activities:
            seen = self._sees(self._run.executed.calls[activity.call])
            if not seen or not _has_row(self._run, activity, begin_ns, end_ns):
                continue
            if activity.work.graph_node is not None and self._view.graphs == "graph":
                replayed.setdefault(activity.call, []).append(activity)
            else:
                self._activity(activity)
        for call, nodes in replayed.items():
            where = self._where(nodes[0].work.stream, call)
            self.recording.graph_replay(
                START_NS + nodes[0].start_ns,
                START_NS + nodes[-1].end_ns,
                graph_id=nodes[0].work.graph_node or 0,
                **where,
            )

    def _where(self, stream: int, call: int, graph_node: int | None = None) -> Work:
        return Work(
            device=self._device,
            stream=stream,
            pid=self._pid,
            correlation_id=call + 1,
            graph_node_id=graph_node,
        )

    def _activity(self, activity: Activity) -> None:
        work, recording = activity.work, self.recording
        start_ns, end_ns = START_NS + activity.start_ns, START_NS + activity.end_ns
        where = self._where(work.stream, activity.call, work.graph_node)
        if self._view.copy_engines and work.kernel in _BY_COPIES:
            self._copies(activity, where)
        elif work.engine in (Engine.SMS, Engine.COMMUNICATION):
            kernel = self._kernels[work.kernel]
            recording.kernel(
                kernel.name,
                start_ns,
                end_ns,
                grid=(work.block_count, 1, 1),
                block=(kernel.threads, 1, 1),
                registers=kernel.registers,
                dynamic_shared_bytes=kernel.shared_bytes,
                **where,
            )
        elif work.engine is Engine.FILL:
            recording.memset(start_ns, end_ns, size_bytes=work.size_bytes, **where)
        else:
            recording.copy(
                work.engine.value,
                start_ns,
                end_ns,
                size_bytes=work.size_bytes,
                pageable=work.pageable,
                **where,
            )

    def _copies(self, activity: Activity, where: Work) -> None:
        """A flag to the peers, the data, a flag behind it, in turn; NCCL's range around the call."""
        start_ns, end_ns = START_NS + activity.start_ns, START_NS + activity.end_ns
        borders = (start_ns, start_ns + (end_ns - start_ns) // 4, end_ns - (end_ns - start_ns) // 4, end_ns)
        for size_bytes, begin_ns, until_ns in zip((4, 1 << 20, 4), borders, borders[1:], strict=False):
            self.recording.copy("d2d", begin_ns, until_ns, size_bytes=size_bytes, **where)
        call = self._run.executed.calls[activity.call]
        self.recording.range(
            _BY_COPIES[activity.work.kernel],
            START_NS + call.start_ns - 1,
            START_NS + call.end_ns + 1,
            pid=self._pid,
            tid=self._process.tid(call.thread),
            registered=True,
            domain=1,
        )

    def _ranges(self) -> None:
        wanted = {
            "none": set(),
            "steps": {"step", "loader"},
            "layers": {"step", "layer", "node", "loader", "gc"},
        }[self._view.ranges]
        for span in self._run.executed.spans:
            if span.kind in wanted and self._sees(span):
                start_ns, end_ns = START_NS + span.start_ns, START_NS + min(span.end_ns, self._end_ns)
                self.recording.range(
                    span.text, start_ns, end_ns, pid=self._pid, tid=self._process.tid(span.thread)
                )

    def _events(self) -> None:
        """Rows of event records and of waits, joined to their calls."""
        unique = newer(self._view.schema, _EVENT_SYNC_FROM)
        for place, call in enumerate(self._run.executed.calls):
            if not self._sees(call):
                continue
            operation, correlation = call.operation, place + 1
            times = START_NS + call.start_ns, START_NS + call.end_ns
            if isinstance(operation, Record):
                handle = operation.event % _EVENT_HANDLES + 1
                self.recording.event_record(
                    handle,
                    operation.event,
                    operation.stream,
                    correlation_id=correlation,
                    pid=self._pid,
                    device=self._device,
                )
            elif isinstance(operation, StreamWait):
                handle = operation.event % _EVENT_HANDLES + 1
                self.recording.synchronisation(
                    "stream wait",
                    *times,
                    correlation_id=correlation,
                    stream=operation.stream,
                    event_id=handle,
                    sync_id=operation.event if unique else None,
                    pid=self._pid,
                    device=self._device,
                )
            elif isinstance(operation, Synchronise):
                kind = {"stream": "stream", "event": "event", "device": "context"}[operation.scope]
                event = operation.target if operation.scope == "event" else None
                self.recording.synchronisation(
                    kind,
                    *times,
                    correlation_id=correlation,
                    stream=operation.target if operation.scope == "stream" else None,
                    event_id=0 if event is None else event % _EVENT_HANDLES + 1,
                    sync_id=event if unique else None,
                    pid=self._pid,
                    device=self._device,
                )

    def _reserve(self) -> None:
        """What the caching allocator took before the first step."""
        recording = Recording() if self._view.begin_frac else self.recording
        left = int(self._model.memory_bytes * self._run.knobs.reserved_frac)
        for place in range(left // _SEGMENT_BYTES):
            start_ns = 1_000_000 * (place + 1)
            recording.memory_use(
                start_ns,
                size_bytes=_SEGMENT_BYTES,
                address=_SEGMENT_BYTES * (place + 1),
                pid=self._pid,
                device=self._device,
            )
        allocator = (call.operation for call in self._run.executed.calls)
        made = [one for one in allocator if isinstance(one, Allocate)]
        for place, first in enumerate(takewhile(lambda one: one.frees, made)):
            address = _SEGMENT_BYTES * 512 + first.size_bytes * place
            recording.memory_use(
                START_NS - 1_000_000,
                size_bytes=first.size_bytes,
                address=address,
                pid=self._pid,
                device=self._device,
            )
            self._held.append(address)

    def _metrics(self) -> None:
        """Samples of the SMs: active while any kernel runs, issuing and on tensor cores as its kind does."""
        for time_ns, active, issue, tensor in samples_of(self._run):
            if not self._begin_ns <= time_ns < self._end_ns:
                continue
            percent = {
                "SMs Active [Throughput %]": active,
                "SM Issue [Throughput %]": issue,
                "Tensor Active [Throughput %]": tensor,
            }
            self.recording.gpu_metrics(START_NS + time_ns, percent, gpu_id=self._device)


_SYNC_API: Final = {
    "stream": "cudaStreamSynchronize_v3020",
    "event": "cudaEventSynchronize_v3020",
    "device": "cudaDeviceSynchronize_v3020",
}


def _api(call: CallMade) -> str:
    operation = call.operation
    if isinstance(operation, Launch | Initialise):
        return operation.api
    if isinstance(operation, Synchronise):
        return _SYNC_API[operation.scope]
    if isinstance(operation, Allocate):
        return "cudaFree_v3020" if operation.frees else "cudaMalloc_v3020"
    return "cudaEventRecord_v3020" if isinstance(operation, Record) else "cudaStreamWaitEvent_v3020"


def newer(schema: str, least: str) -> bool:
    """Whether a schema version is at least another."""
    if schema == "none":
        return False
    return [int(part) for part in schema.split(".")] >= [int(part) for part in least.split(".")]
