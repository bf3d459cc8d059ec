"""Writes a program: which thread does what, where in the run that is, and every draw that belongs to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from bench.simulate.draws import exponential, spread, uniform, uniforms
from bench.simulate.host_program import (
    AUTOGRAD,
    LOADER,
    MAIN,
    Allocate,
    Await,
    Busy,
    Collective,
    Engine,
    Initialise,
    Launch,
    Machine,
    Operation,
    Part,
    Place,
    Pop,
    Program,
    Push,
    Record,
    Signal,
    Spin,
    StreamWait,
    Synchronise,
    Work,
)
from bench.simulate.kernels import GPUS, kernels_of
from bench.simulate.knobs import Knobs

COMPUTE: Final = 7
EXPERT_PARALLEL: Final = 20
DATA_PARALLEL: Final = 24
TENSOR_PARALLEL: Final = 28
PIPELINE: Final = 32
CONTEXT_PARALLEL: Final = 36
OFFLOAD: Final = 40
RELOAD: Final = 44
SHARED_EXPERT: Final = 48
WEIGHT_GRADIENT: Final = 52
HELPER: Final = 56
"""Stream numbers: PyTorch's default, one per communicator or copy direction, and further ones for compute."""
SCALAR_BYTES: Final = 4

_US: Final = 1_000
_MS: Final = 1_000_000
_FLOOR_NS: Final = 1_500
"""What the smallest kernel takes."""
_KERNEL_SIGMA: Final = 0.03
_HOST_SIGMA: Final = 0.35
_LINK_SIGMA: Final = 0.06
_GRAPH_GAP_FRAC: Final = 0.5
_GRAPH_NODE_US: Final = 0.15
_EVENT_CALL_FRAC: Final = 0.3
"""Recording an event, and a stream's wait, beside a launch call."""
_EARLY_RETURN_NS: Final = 43_000
"""A pageable copy to the device returns so long before it ends (an A100 recording)."""


class Script:
    """A program in the making. Every method says what the current thread does next."""

    norms_on = DATA_PARALLEL
    """The stream on which the norm of all gradients is summed."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs, self.gpu = knobs, GPUS[knobs.gpu]
        self.kernels = kernels_of(knobs.gpu, knobs.fp8, knobs.grouped_gemm, knobs.precision)
        self._threads: dict[str, list[Operation]] = {MAIN: [], AUTOGRAD: []}
        self._ops = self._threads[MAIN]
        self.step = self.microbatch = 0
        self.layer = -1
        self.phase = "forward"
        self.part = Part.STEP
        self._said: Counter[str] = Counter()
        self._last_event = self._last_flag = 0
        self._computes_on = COMPUTE
        self._graph: list[Work] | None = None
        self._nodes: dict[str, int] = {}
        self.slow_call_us = 0.0

    def program(self) -> Program:
        """All that was said."""
        machine = Machine(self.gpu.sm_count, beside_comm_frac=self.knobs.beside_comm_frac)
        return Program(machine, dict(self._threads))

    @contextmanager
    def on_autograd(self) -> Iterator[None]:
        """Hand over to autograd's thread and wait for it, without any CUDA call; one thread may do it all."""
        if self._ops is not self._threads[MAIN] or not self.knobs.autograd_thread:
            yield
            return
        go, back = self._last_flag + 1, self._last_flag + 2
        self._last_flag = back
        wake_ns = round(self.knobs.thread_wake_us * _US)
        self._ops.append(Signal(go))
        self._ops.append(Await(back, wake_ns))
        self._ops = self._threads[AUTOGRAD]
        self._ops.append(Await(go, wake_ns))
        yield
        self._ops.append(Signal(back))
        self._ops = self._threads[MAIN]

    @contextmanager
    def on_loader(self) -> Iterator[None]:
        """Let a loader's thread do this beside all that follows."""
        self._last_flag += 1
        self._ops.append(Signal(self._last_flag))
        before, self._ops = self._ops, self._threads.setdefault(LOADER, [])
        self._ops.append(Await(self._last_flag, round(self.knobs.thread_wake_us * _US)))
        computes, self._computes_on = self._computes_on, HELPER
        yield
        self._ops, self._computes_on = before, computes

    @contextmanager
    def inside(self, part: Part) -> Iterator[None]:
        """All that is said in here belongs to a part as well."""
        before, self.part = self.part, self.part | part
        yield
        self.part = before

    @contextmanager
    def range(self, text: str, kind: str) -> Iterator[None]:
        """A range of the current thread."""
        self._ops.append(Push(text, kind, self.part))
        yield
        self._ops.append(Pop(self.part))

    @contextmanager
    def graph(self, scope: str, *, captured: bool) -> Iterator[None]:
        """Kernels in here are one graph launch, if captured."""
        if not captured:
            yield
            return
        self._graph = []
        yield
        works, self._graph = self._graph, None
        draw = self.draws(f"graph {scope}")
        self._python(draw[3])
        api_us = 1.6 * self.knobs.api_us + _GRAPH_NODE_US * len(works)
        self._submit("cudaGraphLaunch_v10000", works, api_us, draw[4])

    @contextmanager
    def whole_graph(self, *, captured: bool) -> Iterator[None]:
        """All kernels in here are one graph launch on one stream, if captured: the host does nothing else."""
        if not captured:
            yield
            return
        before, self._ops = self._ops, []
        with self.graph("step", captured=True):
            yield
            self._ops, works = before, self._graph or []
            self._graph = [work._replace(stream=COMPUTE) for work in works]

    @contextmanager
    def aside(self, stream: int | None) -> Iterator[None]:
        """Compute in here runs on this stream, behind what compute was given so far; never in a graph.

        None: where it ran before.
        """
        before = self._computes_on
        if self._graph is None and stream is not None:
            self.after(before, stream)
            self._computes_on = stream
        yield
        self._computes_on = before

    def draws(self, operation: str) -> tuple[float, ...]:
        """Draws of this operation here and now; said again in the same place, it is another occurrence."""
        where = f"{self.step}/{self.microbatch}/{self.layer}/{self.phase}/{operation}"
        self._said[where] += 1
        return uniforms(f"{self.knobs.seed}/{where}/{self._said[where]}")

    def imbalance(self) -> float:
        """How many more tokens than the mean this rank gets in this layer and microbatch."""
        where = f"{self.knobs.seed}/{self.step}/{self.microbatch}/{self.layer}/tokens"
        return spread(uniform(where), 0.08)

    def kernel(self, part: str, us: float, *, blocks: int | None = None, name: str = "") -> None:
        """A compute kernel that takes `us` on all SMs of an H100; fewer blocks than SMs take longer."""
        kernel, sm_count, peaks = self.kernels[part], self.gpu.sm_count, self.gpu.peaks
        draw = self.draws(name or part)
        grid = self.knobs.small_block_count if blocks is None else max(blocks, 1)
        grid = min(grid, sm_count) if kernel.persistent else grid
        filled_ns = us * _US / self.gpu.compute_times * spread(draw[0], _KERNEL_SIGMA)
        alone_ns = _FLOOR_NS + round(filled_ns * sm_count / min(grid, sm_count))
        best_frac = peaks[kernel.multiplies_in] / peaks[kernel.could_in]
        self._work(
            part, Engine.SMS, self._computes_on, alone_ns, draw, grid, name or part, kernel.api,
            best_frac=best_frac,
        )  # fmt: skip

    def communicate(
        self,
        part: str,
        us: float,
        stream: int,
        *,
        name: str = "",
        late_us: float = 0.0,
        mark: int | None = None,
    ) -> None:
        """A communication kernel: `us` to move its data, after the peers are there."""
        draw = self.draws(name or part)
        moving_ns = self.moving_ns(us, draw[0])
        late_ns = round(exponential(draw[5], late_us) * _US)
        self._communication(part, stream, moving_ns, draw, name or part, peer_ns=late_ns, mark=mark)

    @staticmethod
    def moving_ns(us: float, share: float) -> int:
        """What a communication kernel takes to move its data."""
        return _FLOOR_NS + round(us * _US * spread(share, _LINK_SIGMA))

    def _communication(
        self,
        part: str,
        stream: int,
        moving_ns: int,
        draw: Sequence[float],
        name: str,
        *,
        peer_ns: int = 0,
        mark: int | None = None,
        collective: Collective | None = None,
        size_bytes: int = 0,
    ) -> None:
        self._work(
            part, Engine.COMMUNICATION, stream, moving_ns, draw, self.knobs.comm_block_count, name,
            self.kernels[part].api, peer_ns=peer_ns, mark=mark, collective=collective, size_bytes=size_bytes,
        )  # fmt: skip

    def _work(
        self,
        part: str,
        engine: Engine,
        stream: int,
        alone_ns: int,
        draw: Sequence[float],
        blocks: int,
        name: str,
        api: str,
        *,
        peer_ns: int = 0,
        mark: int | None = None,
        collective: Collective | None = None,
        size_bytes: int = 0,
        best_frac: float = 1.0,
    ) -> None:
        gaps = spread(draw[1], 0.12)
        work = Work(
            part,
            engine,
            stream,
            alone_ns,
            Place(self.step, self.microbatch, self.layer, self.phase, name),
            blocks,
            peer_ns,
            round(self.knobs.kernel_gap_us * _US * gaps),
            round(self.knobs.event_gap_us * _US * gaps),
            round(self.knobs.arrival_us * _US * spread(draw[2], 0.2)),
            size_bytes,
            best_frac=best_frac,
        )
        if self._graph is not None:
            node = self._nodes.setdefault(
                f"{self.layer}/{self.phase}/{len(self._graph)}/{name}", len(self._nodes)
            )
            gap_ns = round(work.gap_ns * _GRAPH_GAP_FRAC) if self._graph else work.gap_ns
            self._graph.append(work._replace(graph_node=node + 1, gap_ns=gap_ns))
            return
        self._python(draw[3])
        self._submit(api, [work], self.knobs.api_us, draw[4], mark, collective)

    def _python(self, share: float) -> None:
        self._ops.append(
            Busy(round(self.knobs.python_us * _US * spread(share, _HOST_SIGMA)), "python", self.part)
        )

    def _submit(
        self,
        api: str,
        works: Sequence[Work],
        api_us: float,
        share: float,
        mark: int | None = None,
        collective: Collective | None = None,
    ) -> None:
        call_ns, slow_ns = round(api_us * _US * spread(share, 0.2)), round(self.slow_call_us * _US)
        tail_ns, self.slow_call_us = call_ns // 5, 0.0
        self._ops.append(
            Launch(
                api,
                tuple(works),
                slow_ns + call_ns - tail_ns,
                tail_ns,
                self.part,
                mark=mark,
                collective=collective,
            )
        )

    def copy(
        self, engine: Engine, size_bytes: int, stream: int, name: str, *, blocking: str | None = None
    ) -> None:
        """A copy from or to host memory, or a fill; `blocking` "h2d" or "d2h": from or to pageable memory."""
        draw = self.draws(name)
        on_device = engine in (Engine.FILL, Engine.COPY_ON_DEVICE)
        bytes_per_ns = 2_000.0 if on_device else self.knobs.host_link_gb_per_s
        alone_ns = round(1_000 + size_bytes / bytes_per_ns * spread(draw[0], _LINK_SIGMA))
        place = Place(self.step, self.microbatch, self.layer, self.phase, name)
        work = Work(
            name, engine, stream, alone_ns, place, 0, 0, round(self.knobs.kernel_gap_us * _US),
            round(self.knobs.event_gap_us * _US), round(self.knobs.arrival_us * _US * spread(draw[2], 0.2)),
            size_bytes, blocking is not None,
        )  # fmt: skip
        self._python(draw[3])
        call_ns = round(self.knobs.api_us * _US * spread(draw[4], 0.2))
        api = "cudaMemsetAsync_v3020" if engine is Engine.FILL else "cudaMemcpyAsync_v3020"
        return_ns = _EARLY_RETURN_NS if blocking == "h2d" else round(self.knobs.sync_return_us * _US)
        self._ops.append(
            Launch(api, (work,), call_ns, 0, self.part, returns_with=blocking, return_ns=return_ns)
        )

    def new_event(self) -> int:
        """An event that nothing was recorded in yet."""
        self._last_event += 1
        return self._last_event

    def record(self, stream: int) -> int:
        """Record a new event on a stream."""
        event = self.new_event()
        self._ops.append(Record(event, stream, self._event_call_ns(), self.part))
        return event

    def wait(self, stream: int, event: int) -> None:
        """Let a stream wait for an event."""
        self._ops.append(StreamWait(event, stream, self._event_call_ns(), self.part))

    def after(self, first: int, second: int) -> None:
        """Let a stream wait for all that another was given so far."""
        self.wait(second, self.record(first))

    def _event_call_ns(self) -> int:
        return round(_EVENT_CALL_FRAC * self.knobs.api_us * _US)

    def read_back(self, size_bytes: int, stream: int, name: str, *, pageable: bool = False) -> None:
        """A few numbers to the host, and the host waits for them: in the copy's own call where pageable."""
        with self.inside(Part.READ_BACK):
            blocking = "d2h" if pageable else None
            self.copy(Engine.COPY_TO_HOST, size_bytes, stream, name, blocking=blocking)
            self.synchronise("stream", stream)

    def read_scalar(self, name: str) -> None:
        """A number of compute's to the host, as the loss or the norm of the gradients."""
        self.read_back(SCALAR_BYTES, COMPUTE, name, pageable=self.knobs.pageable_host)

    def synchronise(self, scope: str, target: int = 0) -> None:
        """Wait for a stream, an event or the whole device."""
        draw = self.draws(f"synchronise {scope}")
        return_ns = round(self.knobs.sync_return_us * _US * spread(draw[0], 0.2))
        self._ops.append(Synchronise(scope, target, self._event_call_ns(), return_ns, self.part))

    def spin(self, mark: int) -> None:
        """Poll host memory until the GPU wrote it."""
        draw = self.draws("spin")
        poll_ns = round(self.knobs.sync_return_us * _US * spread(draw[0], 0.2))
        self._ops.append(Spin(mark, poll_ns, self.part | Part.READ_BACK))

    def allocate(self, *, frees: bool, size_bytes: int, name: str) -> None:
        """A call of the caching allocator to the driver."""
        own_us = self.knobs.free_us if frees else self.knobs.malloc_us
        own_ns = round(own_us * _US * spread(self.draws(name)[0], 0.2))
        self._ops.append(Allocate(own_ns, size_bytes, frees, self.part | Part.RETRY))

    def initialise(self, api: str, ms: float) -> None:
        """A call that loads code for what is launched next."""
        self._ops.append(Initialise(api, round(ms * _MS * spread(self.draws(api)[0], 0.2)), self.part))

    def late_launch(self, ms: float) -> None:
        """The next launch call takes so much longer."""
        self.slow_call_us = 1_000 * ms

    def busy(self, ms: float, name: str, doing: str = "python") -> None:
        """Python at work, without a call or a range."""
        self._ops.append(Busy(round(ms * _MS * spread(self.draws(name)[0], 0.1)), doing, self.part))

    def pause(self, ms: float, doing: str, text: str) -> None:
        """Time without a call: garbage collection or a late batch, under a range that says so."""
        with self.range(text, "gc" if doing == "gc" else "loader"):
            self._ops.append(Busy(round(ms * _MS * spread(self.draws(doing)[0], 0.25)), doing, self.part))
