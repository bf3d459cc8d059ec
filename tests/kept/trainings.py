"""Small random training runs: layers forward, some of them again, backward, an optimizer, copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final

from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from tests.kept.exchanges import AUTOGRAD
from tests.recordings.launches import (
    ADAM,
    ATTENTION,
    FILL,
    GATHER,
    GEMM,
    GROUPED,
    NORM,
    NORM_BACKWARD,
    PERMUTE,
    ROUTER,
    SCATTER,
    SORT,
    UNPERMUTE,
    Line,
)

ACTIVATION: Final = "void transformer_engine::gated_act_kernel<float>(float*)"
ACTIVATION_BACKWARD: Final = "void transformer_engine::dgated_act_kernel<float>(float*)"
ATTENTION_BACKWARD: Final = "void flash::flash_bwd_kernel<Flash_bwd_kernel_traits>"
CAST: Final = "void transformer_engine::cast_fp8_1D_kernel<float>(float*)"
EMBEDDING: Final = "void at::native::indexSelectLargeIndex<c10::BFloat16, long>"
LOSS: Final = "void cunn_SoftMaxForward<4, float>(float*)"
TRITON: Final = ("triton_poi_fused_add_3", "triton_red_fused_mul_native_7", "my_own_kernel")
DISPATCH: Final = "void deep_ep::intranode::dispatch<8>(int*)"
COMBINE: Final = "void deep_ep::intranode::combine<8>(int*)"
GRADIENT: Final = "nvjet_tst_256x128_64x4_1x2_h_bz_NNT"
BACKWARD_OF: Final = {
    NORM: (NORM_BACKWARD,),
    ATTENTION: (ATTENTION_BACKWARD,),
    ACTIVATION: (ACTIVATION_BACKWARD,),
    GEMM: (GEMM, GRADIENT),
    GROUPED: (GROUPED, GROUPED),
    DISPATCH: (COMBINE,),
    COMBINE: (DISPATCH,),
    PERMUTE: (UNPERMUTE,),
    UNPERMUTE: (PERMUTE,),
}
"""What backward runs for what ran forward; others it runs by the same name, or not at all."""
PARTS: Final = (
    *((NORM, GEMM, ATTENTION, GEMM), (NORM, GEMM, ACTIVATION, GEMM)),
    (ROUTER, PERMUTE, DISPATCH, SORT, GROUPED, ACTIVATION, GROUPED, SORT, COMBINE, UNPERMUTE),
    *((ROUTER, DISPATCH, GROUPED, ACTIVATION, GROUPED, COMBINE), (NORM, TRITON[0], GEMM, TRITON[2])),
    (CAST, GEMM, FILL, TRITON[1]),
)
AGAIN: Final = (
    "CheckpointFunctionBackward",
    "recompute",
    "torch/utils/checkpoint.py(512): unpack_hook",
    "backward",
)
COMM, COPY, SIDE = 20, 30, 13
"""Streams."""
MIB: Final = 1 << 20
Operation = Callable[[], None]


class _Training:
    """A line of launches, and how this run computes: the same in each step."""

    def __init__(self, dice: Random) -> None:
        self.dice, self.line = dice, Line()
        self.parts = [dice.choice(PARTS) for _ in range(dice.randint(1, 3))]
        self.layers, self.batches = dice.choice((1, 2, 2, 4)), dice.choice((1, 1, 2, 3))
        self.thread = dice.choice((1000, AUTOGRAD, AUTOGRAD, AUTOGRAD))
        self.again = dice.choice(((), (), tuple(range(len(self.parts))), (0,), (len(self.parts) - 1,)))
        self.within = dice.choice((None, None, *AGAIN))
        self.offloads = dice.choice((0, 0, 0, 2 * MIB, 5 * MIB))
        self.weights = dice.choice((0, 0, 0, 3 * MIB))
        self.inputs = dice.choice((0, 1, 1, 2, 9))
        self.reads = dice.random() < 0.3
        self.interleaved, self.lost = dice.random() < 0.15, dice.choice((0, 0, 0, 0.02))
        self.pageable, self.unnamed = dice.random() < 0.3, dice.random() < 0.2
        self.times: dict[str, float] = {}
        self.late: dict[str, int] = {}
        self.stream = {GATHER: COMM, SCATTER: COMM, DISPATCH: dice.choice((COMM, SIDE)), COMBINE: COMM}

    def step(self) -> None:
        waiting: list[Operation] = []
        for _ in range(self.batches):
            for size in range(self.inputs):
                self.copy("h2d", (1 + size) * MIB)
            self.run(EMBEDDING)
            for _ in range(self.layers):
                self.forward(self.parts)
                waiting.append(self.backward)
            self.run(LOSS)
            if not self.interleaved:
                self.all_of(waiting)
        self.all_of(waiting)
        self.run(SCATTER, self.thread)
        self.run(ADAM)
        self.run(GATHER)
        self.copy("d2h", 4)

    def all_of(self, waiting: list[Operation]) -> None:
        while waiting:
            waiting.pop()()

    def forward(self, parts: Sequence[tuple[str, ...]], thread: int = 1000, *, first: bool = True) -> None:
        if self.weights:
            self.copy("h2d", self.weights)
        for part in parts:
            for name in part:
                self.run(name, thread)
                if self.reads and name == ROUTER:
                    self.copy("d2h", 256, how="cudaMemcpy_v3020")
        if self.offloads and first:
            self.copy("d2h", self.offloads, stream=COPY)

    def backward(self) -> None:
        begin = self.line.now
        if self.offloads:
            self.copy("h2d", self.offloads, stream=COPY)
        if self.again:
            self.forward([self.parts[place] for place in self.again], self.thread, first=False)
        if self.within is not None:
            tid = self.thread
            self.line.recording.range(self.within, begin * 1_000 - 5, self.line.now * 1_000 - 5, tid=tid)
        for part in reversed(self.parts):
            for name in reversed(part):
                for one in BACKWARD_OF.get(name, (name,)):
                    self.run(one, self.thread)

    def run(self, name: str, thread: int = 1000) -> None:
        if self.dice.random() < self.lost:
            return
        self.line.now += self.late.get(name, 0)
        length = self.dice.choice((10, 10, 10, 40)) if name in (GEMM, GROUPED) else 10
        length = int(length * self.times.get(name, 1))
        if self.unnamed and name == ATTENTION:
            name = TRITON[2]
        self.line.run(name, self.stream.get(name, 7), length, thread)

    def copy(self, kind: str, size: int, stream: int = 7, how: str = "cudaMemcpyAsync_v3020") -> None:
        at, took = self.line.now * 1_000, 2_000 + size // 400
        self.line.recording.copy(
            kind, at + 5_000, at + 5_000 + took, size_bytes=size, stream=stream, launch_ns=at + 1_000,
            launch_end_ns=at + (took + 7_000 if how.startswith("cudaMemcpy_") else 3_000), api=how,
            pageable=self.pageable,
        )  # fmt: skip
        self.line.now += 10 + (took // 1_000 if how.startswith("cudaMemcpy_") else 0)


def draw_training(seed: int, path: Path) -> bool:
    """Write one to five steps; whether the threads have names."""
    dice = Random(f"training {seed}")
    training = _Training(dice)
    _steps(training, dice.choice((1, 2, 3, 5)), named=bool(seed % 2))
    write_export(path, training.line.recording)
    return dice.random() < 0.6


def draw_trainings(seed: int) -> tuple[Recording, Recording]:
    """Two runs of which the new one computes up to three things in another way."""
    base, new = (_Training(Random(f"trainings {seed}")) for _ in range(2))
    dice = Random(f"changes {seed}")
    for change in dice.sample(CHANGES, dice.choice((1, 1, 2, 3))):
        change(dice, new)
    count = dice.choice((2, 6, 9))
    for side in (base, new):
        _steps(side, count, named=bool(seed % 2))
    return base.line.recording, new.line.recording


def _steps(training: _Training, count: int, *, named: bool) -> None:
    training.line.recording.gpu()
    for step in range(count):
        begin = training.line.now
        training.step()
        if named:
            training.line.recording.range(f"step {step}", begin * 1_000, training.line.now * 1_000 - 500)


def _again(dice: Random, training: _Training) -> None:
    training.again = dice.choice(((), tuple(range(len(training.parts)))))


def _host(dice: Random, training: _Training) -> None:
    training.inputs, training.pageable = dice.choice((0, 1, 3)), dice.random() < 0.5
    training.reads = dice.random() < 0.5


def _memory(dice: Random, training: _Training) -> None:
    training.offloads, training.weights = dice.choice((0, 2 * MIB)), dice.choice((0, 3 * MIB))


def _more(dice: Random, training: _Training) -> None:
    training.batches += dice.choice((0, 1))
    training.layers += dice.choice((0, 1))


def _other_parts(dice: Random, training: _Training) -> None:
    training.parts = [*training.parts, dice.choice(PARTS)][dice.choice((0, 1)) :]
    training.again = ()


def _slower(dice: Random, training: _Training) -> None:
    names = {name for part in training.parts for name in part}
    training.times = {dice.choice([*sorted(names), SCATTER, GATHER, ADAM]): dice.choice((0.5, 2, 2, 6))}


def _other_streams(dice: Random, training: _Training) -> None:
    training.stream |= {dice.choice((DISPATCH, COMBINE, SCATTER, GATHER)): dice.choice((7, COMM, SIDE))}
    training.thread = dice.choice((1000, AUTOGRAD))


def _late(dice: Random, training: _Training) -> None:
    training.late = {dice.choice((ROUTER, NORM, LOSS, ADAM, EMBEDDING)): dice.choice((30, 200, 2_000))}


CHANGES: Final[tuple[Callable[[Random, _Training], None], ...]] = (
    _again, _host, _memory, _more, _other_parts, _slower, _slower, _slower, _other_streams, _late, _late,
)  # fmt: skip
