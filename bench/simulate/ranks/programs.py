"""The programs of all ranks: the steps of `bench.simulate.step`, whose communication couples the ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from bench.simulate.draws import spread, uniform
from bench.simulate.host_program import Collective, Program
from bench.simulate.layer import Layer
from bench.simulate.ranks.described import RanksRun
from bench.simulate.ranks.layout import Group
from bench.simulate.ranks.routing import tokens
from bench.simulate.script import (
    COMPUTE,
    DATA_PARALLEL,
    EXPERT_PARALLEL,
    PIPELINE,
    TENSOR_PARALLEL,
    Script,
)
from bench.simulate.step import Steps

EXPERT_DATA_PARALLEL: Final = 56
WORLD: Final = 60
"""Further streams: PyTorch has one per communicator."""
BYTES_PER_US: Final = 200_000
"""What a transfer moves: 200 GB/s, of the order of NVLink's; ours."""
EXPERT_FRAC: Final = 0.5
"""Of a layer's gradients, those of its experts."""
RINGS: Final = frozenset({"nccl_all_gather", "nccl_reduce_scatter", "nccl_all_reduce"})
"""Kernels in which every rank passes on what every other sends."""

GROUP_ON: Final[Mapping[int, Group]] = {
    COMPUTE: Group.EXPERT,  # HybridEP dispatches on the stream of compute
    EXPERT_PARALLEL: Group.EXPERT,
    DATA_PARALLEL: Group.DATA,
    TENSOR_PARALLEL: Group.TENSOR,
    PIPELINE: Group.PIPELINE,
    EXPERT_DATA_PARALLEL: Group.EXPERT_DATA,
    WORLD: Group.WORLD,
}
_OWN_SIGMA: Final = 0.003
"""How much one participant's transfer differs from another's of the same instance; ours."""


def plain_program(run: RanksRun, rank: int) -> Program:
    """The program of one rank, with layers and tokens as the run has them, and no other cause."""
    return _RankSteps(run, rank).program()


class _RankScript(Script):
    """Communication takes part in a collective of its stream's group; a group of one does not communicate."""

    norms_on = WORLD

    def __init__(self, run: RanksRun, rank: int) -> None:
        super().__init__(run.knobs_of(rank))
        self._run, self._rank = run, rank
        self._sequences: Counter[tuple[Group, tuple[int, ...]]] = Counter()
        self.neighbour: int | None = None

    def imbalance(self) -> float:
        """Tokens of this rank in this layer and microbatch, as a multiple of the mean."""
        return tokens(self._run, self._rank, self.step, self.microbatch, self.layer)

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
        """One part of a collective: `us` to move its data, of which all participants have the same draw."""
        kind = GROUP_ON[stream]
        group = self._run.layout.group(kind, self._rank)
        if kind is Group.PIPELINE and self.neighbour is not None:
            group = (min(self._rank, self.neighbour), max(self._rank, self.neighbour))
        if len(group) == 1:
            return
        sequence = self._sequences[kind, group]
        self._sequences[kind, group] += 1
        if kind is Group.EXPERT:  # `us` is for the tokens it gets; it sends the mean in any case
            us /= self.imbalance()
            times = 1.0 if part in RINGS else max(self.imbalance(), 1.0)
        else:
            times = 1.0
        draw = self.draws(name or part)
        shared = uniform(f"{self._run.seed}/transfer/{kind.value}/{group}/{sequence}")
        transfer_ns = round(self.moving_ns(us * times, shared) * spread(draw[0], _OWN_SIGMA))
        self._communication(
            part, stream, transfer_ns, draw, name or part, mark=mark,
            collective=Collective(group, kind.value, sequence, transfer_ns),
            size_bytes=round(us * BYTES_PER_US),
        )  # fmt: skip


class _RankSteps(Steps):
    """Steps of one rank of a pipeline: one forward, one backward, and messages to its neighbours between."""

    gradients_on = (DATA_PARALLEL, EXPERT_DATA_PARALLEL)

    def __init__(self, run: RanksRun, rank: int) -> None:
        script = _RankScript(run, rank)
        super().__init__(script.knobs, script)
        self._rank_script, self._run = script, run
        self._stage, self._last = run.layout.stage(rank), run.layout.pipeline - 1
        self._before = rank - run.layout.stage_size if self._stage else None
        self._behind = rank + run.layout.stage_size if self._stage < self._last else None

    def _microbatches(self) -> None:
        if not self._last:
            super()._microbatches()
            return
        count = self.knobs.microbatch_count
        warm = min(self._last - self._stage, count)
        for ahead in range(warm):
            self._message(self._before, "receive_forward", ahead)
            self._forward(ahead)
            self._message(self._behind, "send_forward", ahead)
        if warm < count:
            self._message(self._before, "receive_forward", warm)
        for behind in range(count - warm):
            self._forward(behind + warm)
            self._message(self._behind, "send_forward_receive_backward", behind + warm)
            self._backward(behind)
            last = behind == count - warm - 1
            name = "send_backward" if last else "send_backward_receive_forward"
            self._message(self._before, name, behind)
        for behind in range(count - warm, count):
            self._message(self._behind, "receive_backward", behind)
            self._backward(behind)
            self._message(self._before, "send_backward", behind)

    def _message(self, peer: int | None, name: str, microbatch: int) -> None:
        """Meet a neighbour; compute goes on behind it, as behind Megatron-Core's batched messages."""
        if peer is None:
            return
        script = self._rank_script
        self._outside("backward" if name.endswith("backward") else "forward", microbatch)
        script.neighbour = peer
        script.after(COMPUTE, PIPELINE)
        script.communicate("nccl_send_recv", self._run.knobs.pipeline_us, PIPELINE, name=name)
        script.after(PIPELINE, COMPUTE)
        if self._run.device_syncs:
            script.synchronise("device")

    def _embed(self, microbatch: int) -> None:
        if not self._stage:
            super()._embed(microbatch)

    def _embed_backward(self, microbatch: int) -> None:
        if not self._stage:
            super()._embed_backward(microbatch)

    def _head(self, microbatch: int) -> None:
        if self._stage == self._last:
            super()._head(microbatch)

    def _head_backward(self, microbatch: int) -> None:
        if self._stage == self._last:
            super()._head_backward(microbatch)

    def _gather_parameters(self) -> None:
        super()._gather_parameters()
        self._of_experts("nccl_all_gather", "expert_parameters")

    def _reduce_layer(self, layer: Layer) -> None:
        super()._reduce_layer(layer)
        self.script.after(COMPUTE, EXPERT_DATA_PARALLEL)
        self._of_experts("nccl_reduce_scatter", "expert_gradients")

    def _of_experts(self, kernel: str, name: str) -> None:
        us = self.knobs.gradient_us * EXPERT_FRAC
        self.script.communicate(kernel, us, EXPERT_DATA_PARALLEL, name=name)
