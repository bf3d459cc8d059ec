"""MoE steps written another way than `bench.simulate.script` does, straight from a program's operations.

What differs: host threads (one for all; autograd's own; one that only launches communication, while the other
goes on), streams (one for all communication, one each, or compute's own), parameters gathered layer by layer,
one layer ahead, in forward and backward, and gradients scattered per layer, or both once a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bench.simulate.draws import between, spread, uniform, uniforms
from bench.simulate.handicaps import Handicap
from bench.simulate.host_program import (
    AUTOGRAD,
    MAIN,
    Await,
    Busy,
    Collective,
    Engine,
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
    StreamWait,
    Synchronise,
    Work,
)
from bench.simulate.kernels import GPUS, kernels_of

GPU: Final = "H100"
SMS: Final = GPUS[GPU].sm_count
COMPUTE: Final = 7
_KERNELS: Final = kernels_of(GPU, False, True)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run. Times in us are those of one kernel of a layer, forward; `expert_blocks` of an expert GEMM."""

    seed: int
    threads: str = "one"
    streams: str = "each"
    sharded: bool = False
    exchange: str = "nccl_send_recv"
    step_count: int = 3
    microbatch_count: int = 2
    layer_count: int = 3
    gemm_us: float = 150.0
    small_us: float = 15.0
    expert_blocks: int = SMS
    shared_expert: bool = False
    exchange_us: float = 40.0
    late_us: float = 4.0
    gradient_us: float = 40.0
    python_us: float = 3.0
    reads_counts: bool = False
    recompute: str = "none"


def draw_scenario(seed: int) -> Scenario:
    """A scenario of a seed, wide enough for every wall and for none."""
    draw = uniforms(f"second {seed}")
    more = uniforms(f"second {seed} more")
    return Scenario(
        seed,
        threads=("one", "autograd", "communication")[seed % 3],
        streams=("each", "one", "compute")[seed // 3 % 3],
        sharded=more[0] < 0.4,
        exchange=("nccl_send_recv", "deepep")[more[1] < 0.4],
        microbatch_count=1 + int(3 * more[2]),
        gemm_us=between(draw[0], 40, 400, by_factors=True),
        small_us=between(draw[1], 4, 30, by_factors=True),
        expert_blocks=round(between(draw[2], 30, 4 * SMS, by_factors=True)),
        shared_expert=more[3] < 0.5,
        exchange_us=between(draw[3], 8, 400, by_factors=True),
        late_us=between(draw[4], 1, 40, by_factors=True),
        gradient_us=between(draw[5], 10, 200, by_factors=True),
        python_us=between(draw[6], 1, 40, by_factors=True),
        reads_counts=more[4] < 0.5,
        recompute=("none", "none", "attention", "layer")[int(4 * draw[7])],
    )


def program(scenario: Scenario, without: Handicap | None = None) -> Program:
    """What its threads do; `without` a handicap it is written so that the handicap is not there."""
    return Writer(scenario, without).program()


class Writer:
    """Says what the host threads of one rank do, step by step."""

    def __init__(self, scenario: Scenario, without: Handicap | None) -> None:
        self._is, self._without = scenario, without
        self._threads: dict[str, list[Operation]] = {MAIN: [], AUTOGRAD: []}
        self._now_on = MAIN
        self._where = (0, 0, -1, "forward")
        self._part = Part.STEP
        self._last = 0
        self._scattered: list[tuple[int, int]] = []
        self._said: dict[str, int] = {}

    def program(self) -> Program:
        """The program of all steps."""
        for step in range(self._is.step_count):
            self._step(step)
        return Program(Machine(SMS, beside_comm_frac=0.05), self._threads)

    # Words

    def _say(self, operation: Operation) -> None:
        self._threads[self._now_on].append(operation)

    def _draw(self, name: str, sigma: float) -> float:
        where = f"{self._is.seed}/{self._where}/{name}"
        self._said[where] = self._said.get(where, 0) + 1
        return spread(uniform(f"{where}/{self._said[where]}"), sigma)

    def _host_ns(self, us: float, name: str) -> int:
        host_ns = round(1_000 * us * self._draw(name, 0.3))
        return 0 if self._without is Handicap.HOST_OVERHEAD else host_ns

    def _number(self) -> int:
        self._last += 1
        return self._last

    def _submit(self, work: Work, api: str, collective: Collective | None = None) -> None:
        busy_ns = self._host_ns(self._is.python_us, f"{work.kernel} python")
        if self._without is not Handicap.HOST_OVERHEAD:
            self._say(Busy(busy_ns, part=self._part))
        api_ns = self._host_ns(3.0, f"{work.kernel} call")
        self._say(Launch(api, (work,), api_ns, api_ns // 6, self._part, collective=collective))

    def _work(self, kernel: str, engine: Engine, stream: int, alone_ns: int) -> Work:
        arrival_ns = self._host_ns(2.5, f"{kernel} arrival")
        place = Place(*self._where, kernel)
        return Work(
            kernel, engine, stream, alone_ns, place, gap_ns=800, event_gap_ns=1_100, arrival_ns=arrival_ns
        )

    def _kernel(self, kernel: str, us: float, blocks: int = 16 * SMS) -> None:
        if _KERNELS[kernel].persistent:
            blocks = min(blocks, SMS)
        alone_ns = 1_500 + round(1_000 * us * self._draw(kernel, 0.03) * max(1.0, SMS / blocks))
        if self._without is Handicap.COMPUTE and blocks < SMS:
            alone_ns, blocks = alone_ns * blocks // SMS, SMS
        work = self._work(kernel, Engine.SMS, COMPUTE, alone_ns)
        self._submit(work._replace(block_count=blocks), _KERNELS[kernel].api)

    def _move(self, kernel: str, us: float, stream: int, late_us: float) -> None:
        moving_ns = 2_000 + round(1_000 * us * self._draw(f"{kernel} moves", 0.05))
        peer_ns = round(1_000 * late_us * self._draw(f"{kernel} peers", 0.6))
        if self._without is Handicap.COMMUNICATION:
            work = self._work(kernel, Engine.COMMUNICATION, stream, 0)
        else:
            work = self._work(kernel, Engine.COMMUNICATION, stream, moving_ns)
            work = work._replace(block_count=16, peer_ns=peer_ns)
        self._submit(work, _KERNELS[kernel].api)

    def _record(self, stream: int) -> int:
        event = self._number()
        self._say(Record(event, stream, self._host_ns(0.8, "record"), self._part))
        return event

    def _wait(self, stream: int, event: int) -> None:
        self._say(StreamWait(event, stream, self._host_ns(0.8, "wait"), self._part))

    @contextmanager
    def _handed_over(self, thread: str, *, waits: bool) -> Iterator[int]:
        """What is said in here another thread does. `waits`: this one waits at once for its end, a flag."""
        before, go, back = self._now_on, self._number(), self._number()
        wake_ns = self._host_ns(6.0, "wake")
        self._say(Signal(go))
        self._now_on = thread
        self._say(Await(go, wake_ns))
        yield back
        self._say(Signal(back))
        self._now_on = before
        if waits:
            self._say(Await(back, wake_ns))

    def _begin(self, kernel: str, us: float, kind: int, late_us: float = 0.0) -> tuple[int, int]:
        """Communication behind all compute so far: its event (0 on compute's stream), and a flag to await."""
        stream = {"each": 20 + kind, "one": 20, "compute": COMPUTE}[self._is.streams]
        if stream == COMPUTE:
            self._move(kernel, us, stream, late_us)
            return 0, 0
        behind = self._record(COMPUTE)
        if self._is.threads != "communication":
            self._wait(stream, behind)
            self._move(kernel, us, stream, late_us)
            return self._record(stream), 0
        with self._handed_over(AUTOGRAD, waits=False) as flag:
            self._wait(stream, behind)
            self._move(kernel, us, stream, late_us)
            return self._record(stream), flag

    def _finish(self, begun: tuple[int, int]) -> None:
        """Let compute wait for communication."""
        event, flag = begun
        if flag:
            self._say(Await(flag, self._host_ns(6.0, "back")))
        if event:
            self._wait(COMPUTE, event)

    # Steps

    def _at(self, microbatch: int, layer: int, phase: str) -> None:
        self._where = (self._where[0], microbatch, layer, phase)

    def _step(self, step: int) -> None:
        run = self._is
        self._where = (step, 0, -1, "forward")
        self._say(Push(f"iteration {step}", "step"))
        self._embed()
        self._microbatches()
        self._at(0, -1, "optimizer")
        if not run.sharded:
            whole_us = run.gradient_us * run.layer_count
            self._scattered.append(self._begin("nccl_reduce_scatter", whole_us, 1, run.late_us))
        while self._scattered:
            self._finish(self._scattered.pop(0))
        self._kernel("l2norm", run.small_us)
        for _ in range(3):
            self._kernel("adam", run.gemm_us / 2)
        if not run.sharded:
            self._finish(self._begin("nccl_all_gather", run.gradient_us * run.layer_count, 1))
        self._say(Pop())

    def _embed(self) -> None:
        self._kernel("embedding_fwd", self._is.small_us)

    def _microbatches(self) -> None:
        for microbatch in range(self._is.microbatch_count):
            self._pass("forward", microbatch)
            self._head(microbatch)
            self._backward(microbatch)

    def _head(self, microbatch: int) -> None:
        self._at(microbatch, -1, "forward")
        self._kernel("gemm_fwd", self._is.gemm_us, SMS)
        self._kernel("loss_fwd", self._is.small_us)

    def _backward(self, microbatch: int) -> None:
        if self._is.threads == "autograd":
            with self._handed_over(AUTOGRAD, waits=True):
                self._pass("backward", microbatch)
        else:
            self._pass("backward", microbatch)

    def _head_backward(self, microbatch: int) -> None:
        self._at(microbatch, -1, "backward")
        self._kernel("loss_bwd", self._is.small_us)
        self._backward_gemm(self._is.gemm_us, SMS)

    def _pass(self, phase: str, microbatch: int) -> None:
        layers = list(range(self._is.layer_count))
        if phase == "backward":
            layers.reverse()
            self._head_backward(microbatch)
        coming = self._gather(microbatch, layers[0], phase)
        for layer, following in zip(layers, [*layers[1:], None], strict=True):
            arrived, coming = coming, self._gather(microbatch, following, phase)
            self._finish(arrived)
            self._at(microbatch, layer, phase)
            if phase == "forward":
                self._attention()
                self._experts()
            else:
                self._layer_backward(microbatch)

    def _gather(self, microbatch: int, layer: int | None, phase: str) -> tuple[int, int]:
        if not self._is.sharded or layer is None:
            return 0, 0
        self._at(microbatch, layer, phase)
        return self._begin("nccl_all_gather", self._is.gradient_us, 1)

    def _exchange(self, name: str) -> tuple[int, int]:
        kernel = f"deepep_{name}" if self._is.exchange == "deepep" else self._is.exchange
        return self._begin(kernel, self._is.exchange_us, 2, self._is.late_us)

    def _attention(self) -> None:
        run = self._is
        self._kernel("norm_fwd", run.small_us)
        self._kernel("gemm_fwd", run.gemm_us / 2, SMS)
        self._kernel("attention_fwd", run.gemm_us / 2)
        self._kernel("gemm_fwd", run.gemm_us / 3, SMS)
        self._kernel("add", run.small_us)

    def _read_counts(self) -> None:
        if not self._is.reads_counts:
            return
        before, self._part = self._part, self._part | Part.READ_BACK
        copy = self._work("counts", Engine.COPY_TO_HOST, COMPUTE, 1_500)
        if self._without is not Handicap.HOST_OVERHEAD:
            self._submit(copy._replace(size_bytes=1_024), "cudaMemcpyAsync_v3020")
        api_ns, return_ns = self._host_ns(1.0, "sync"), self._host_ns(10.0, "return")
        self._say(Synchronise("stream", COMPUTE, api_ns, return_ns, self._part))
        self._part = before

    def _experts(self) -> None:
        run = self._is
        self._kernel("gemm_fwd", run.small_us / 2, SMS)
        self._kernel("topk_fwd", run.small_us)
        self._read_counts()
        self._kernel("permute", run.small_us)
        dispatched = self._exchange("dispatch")
        if run.shared_expert:
            self._kernel("gemm_fwd", run.gemm_us / 3, SMS)
        self._finish(dispatched)
        self._kernel("expert_gemm_fwd", run.gemm_us, run.expert_blocks)
        self._kernel("activation_fwd", run.small_us)
        self._kernel("expert_gemm_fwd", run.gemm_us / 2, run.expert_blocks)
        self._finish(self._exchange("combine"))
        self._kernel("unpermute", run.small_us)
        self._kernel("add", run.small_us)

    def _again(self) -> None:
        """The forward that was not kept; without the memory wall there is none."""
        run, (step, microbatch, layer, phase), before = self._is, self._where, self._part
        if run.recompute == "none" or self._without is Handicap.MEMORY:
            return
        self._part |= Part.RECOMPUTE
        self._where = (step, microbatch, layer, "recompute")
        self._attention()
        if run.recompute == "layer":
            self._experts()
        self._part, self._where = before, (step, microbatch, layer, phase)

    def _backward_gemm(self, us: float, blocks: int, kernel: str = "gemm") -> None:
        self._kernel(f"{kernel}_dgrad", us, blocks)
        self._kernel(f"{kernel}_wgrad", us, blocks)

    def _layer_backward(self, microbatch: int) -> None:
        run = self._is
        self._again()
        self._kernel("unpermute_bwd", run.small_us)
        self._finish(self._exchange("dispatch"))
        self._backward_gemm(run.gemm_us / 2, run.expert_blocks, "expert_gemm")
        self._kernel("activation_bwd", run.small_us)
        self._backward_gemm(run.gemm_us, run.expert_blocks, "expert_gemm")
        returned = self._exchange("combine")
        if run.shared_expert:
            self._backward_gemm(run.gemm_us / 3, SMS)
        self._finish(returned)
        self._kernel("topk_bwd", run.small_us)
        self._backward_gemm(run.small_us / 2, SMS)
        self._backward_gemm(run.gemm_us / 3, SMS)
        self._kernel("attention_bwd", run.gemm_us)
        self._backward_gemm(run.gemm_us / 2, SMS)
        self._kernel("norm_bwd", run.small_us)
        if run.sharded and microbatch == run.microbatch_count - 1:
            scattered = self._begin("nccl_reduce_scatter", run.gradient_us, 1, run.late_us)
            self._scattered.append(scattered)
