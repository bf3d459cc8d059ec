"""What each rank's host does, drawn once: launches, reads, polls, pauses, in Megatron's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random
from typing import Final, NamedTuple

from bench.third.world import MIB, Group, World

COMPUTE: Final = 7
NORM, ADD, SMALL = 0.15, 0.12, 0.06
LATENCY_US: Final = 6.0
_EXPERTS, _DENSE = 0.8, 0.3
"""Of a layer's gradients, as drawn, what experts have, and all else; parameters take half the bytes."""
_LAYERS_GATHERED: Final = 2
"""One gather of parameters brings so many layers' half."""
_CONTEXT: Final = 0.3
"""Of the tokens' bytes, keys and values that ranks of a context group gather."""
_SENT: Final = 2.0
"""Each token goes to so many ranks of its group."""


class Do(Enum):
    """What a host's operation is."""

    LAUNCH = auto()
    READ = auto()
    POLL = auto()
    PAUSE = auto()
    FREE = auto()
    STEP = auto()


class Moves(NamedTuple):
    """A collective as one rank joins it: `sent` are bytes to each member, `ring` those of a ring."""

    group: Group
    ranks: tuple[int, ...]
    sequence: int
    call: str
    sent: tuple[float, ...] = ()
    ring: float = 0.0

    @property
    def key(self) -> tuple[Group, tuple[int, ...], int]:
        return self.group, self.ranks, self.sequence


@dataclass(slots=True, eq=False)
class Operation:
    """One operation of a host. `gap_us` is Python before it, `call_us` the call; times are set when it runs.

    `work_us` is that of its kernel alone; `tokens`: its part that grows with the tokens a rank got.
    """

    do: Do
    step: int
    gap_us: float
    call_us: float
    kernel: str = ""
    stream: int = COMPUTE
    work_us: float = 0.0
    moves: Moves | None = None
    after: list[Operation] = field(default_factory=list)
    backward: bool = False
    where: str = ""
    called: float = 0.0
    returned: float = 0.0
    start: float = 0.0
    end: float = -1.0
    ready: float = 0.0
    missing: int = 0
    before: list[Operation] = field(default_factory=list)


class Program:
    """Writes what one rank does. `routing` gives the tokens of each rank of a group, by place."""

    def __init__(self, world: World, rank: int, layers: Sequence[int], routing: Routing) -> None:
        self.world, self.rank, self._layers, self._routing = world, rank, layers, routing
        self.operations: list[Operation] = []
        self._last: dict[int, Operation] = {}
        self._counts: dict[tuple[Group, tuple[int, ...]], int] = {}
        self._waits: list[Operation] = []
        self._draw: Random = world.random(rank)
        self._speed = 1 + self._draw.gauss(0, world.rank_sigma)
        self._step, self._backward, self._reduced = 0, False, list[Operation]()
        self._gathered: list[Operation] = []
        layout = world.layout
        self._stage = layout.stage(rank)
        self._first, self._is_last = self._stage == 0, self._stage == layout.pipeline - 1
        for step in range(world.steps + 1):
            self._write_step(step)

    # What a host does

    def _say(self, do: Do, gap_us: float, call_us: float = 0.0, **more: object) -> Operation:
        one = Operation(do, self._step, gap_us, call_us, backward=self._backward, **more)  # type: ignore[arg-type]
        self.operations.append(one)
        return one

    def _gap(self) -> float:
        return self.world.python_us * self._draw.lognormvariate(0, self.world.python_sigma)

    def _call(self) -> float:
        return self.world.call_us * max(0.5, self._draw.gauss(1, 0.15))

    def _kernel(self, kernel: str, gemms: float, where: str = "") -> Operation:
        """A kernel of so many times a GEMM, behind all that the stream was told to wait for."""
        us = self.world.gemm_us * gemms * self._speed * self._draw.gauss(1, self.world.kernel_sigma / 2)
        one = self._say(
            Do.LAUNCH, self._gap(), self._call(), kernel=kernel, work_us=max(us, 1.5), where=where
        )
        one.after, self._waits = self._waits, []
        self._last[COMPUTE] = one
        return one

    def _collective(
        self, group: Group, kernel: str, call: str, *, held: bool = True, **size: object
    ) -> Operation:
        """A collective behind the compute before it. `held`: compute waits for it."""
        ranks = size.pop("ranks", None) or self.world.layout.group(group, self.rank)
        assert isinstance(ranks, tuple)
        key = group, ranks
        sequence = self._counts[key] = self._counts.get(key, -1) + 1
        moves = Moves(group, ranks, sequence, call, **size)  # type: ignore[arg-type]
        one = self._say(
            Do.LAUNCH, self._gap(), self._call() * 1.35, kernel=kernel, stream=group.value, moves=moves
        )
        one.after = [self._last[COMPUTE]] if COMPUTE in self._last else []
        self._last[group.value] = one
        if held:
            self._waits.append(one)
        return one

    def _ring(self, group: Group, kernel: str, size: float, *, held: bool = True) -> Operation | None:
        if len(self.world.layout.group(group, self.rank)) == 1:
            return None
        call = {"nccl_all_gather": "ncclAllGather", "nccl_reduce_scatter": "ncclReduceScatter"}
        return self._collective(group, kernel, call.get(kernel, "ncclAllReduce"), held=held, ring=size)

    def _read(self, size: int) -> None:
        """A copy to the host, and the wait for it."""
        copy = self._say(Do.LAUNCH, self._gap(), self._call(), kernel="copy", work_us=1.5, where=str(size))
        copy.after, self._waits = self._waits, []
        self._last[COMPUTE] = copy
        self._say(Do.READ, 0.0).after = [copy]

    # One step

    def _write_step(self, step: int) -> None:
        world, self._step = self.world, step
        self._draw = world.random(self.rank, step)
        self._say(Do.STEP, 1.0)
        self._say(Do.PAUSE, world.loader_us * self._draw.gauss(1, 0.1), where="loader")
        if world.frees and self._draw.random() < 0.5:
            self._say(Do.FREE, self._gap(), self._draw.uniform(60, 250))
        self._kernel_copy_in()
        self._microbatches()
        self._finish()

    def _kernel_copy_in(self) -> None:
        one = self._say(Do.LAUNCH, self._gap(), self._call(), kernel="batch", work_us=4.1, where="65536")
        self._last[COMPUTE] = one

    def _microbatches(self) -> None:
        """One forward, one backward, each rank ahead by the stages behind it."""
        count, behind = self.world.microbatches, self.world.layout.pipeline - 1 - self._stage
        ahead = min(behind, count)
        for number in range(ahead):
            self._message(-1, "r")
            self._forward(number)
            self._message(1, "s")
        if ahead < count:
            self._message(-1, "r")
        for number in range(ahead, count):
            self._forward(number)
            self._message(1, "sr")
            self._backwards(number - ahead)
            self._message(-1, "s" if number == count - 1 else "sr")
        for number in range(count - ahead, count):
            self._message(1, "r")
            self._backwards(number)
            self._message(-1, "s")

    def _message(self, to: int, call: str) -> None:
        layout = self.world.layout
        if 0 <= self._stage + to < layout.pipeline:
            peer = self.rank + to * layout.stage_size
            ranks = tuple(sorted((self.rank, peer)))
            self._collective(
                Group.PIPELINE, "nccl_send_recv", call, ranks=ranks, ring=self.world.tokens_mib * MIB
            )

    def _pause(self, *place: object) -> None:
        """A garbage collection that may come; a handicap makes it more likely, by the same draw."""
        draw = self.world.random(self.rank, self._step, "pause", *place)
        self._say(Do.PAUSE, self.world.pause_us * draw.uniform(0.7, 1.3), where="gc").work_us = draw.random()

    def _stop(self, *place: object) -> None:
        """Where a handicap may stop the host a little."""
        draw = self.world.random(self.rank, self._step, "stop", self._backward, *place)
        self._say(Do.PAUSE, draw.uniform(0.7, 1.3), where="stop").work_us = draw.random()

    def _forward(self, number: int) -> None:
        self._backward = False
        self._pause(number, "forward")
        if self._first:
            self._kernel("embedding_fwd", 0.3)
        for place, layer in enumerate(self._layers):
            self._draw = self.world.random(self.rank, self._step, number, layer, "forward")
            if place == 0 and number == 0:
                self._waits += [one for one in self._gathered if one not in self._waits]
                self._gathered = []
            self._layer_forward(number, layer)
        if self._is_last:
            self._kernel("norm_fwd", NORM)
            self._kernel("gemm_fwd", self.world.head, "head")
            self._kernel("loss_fwd", self.world.head / 4)

    def _layer_forward(self, number: int, layer: int) -> None:
        size = self.world.tokens_mib * MIB
        self._stop(number, layer)
        self._kernel("norm_fwd", NORM)
        self._ring(Group.TENSOR, "nccl_all_gather", size)
        self._kernel("gemm_fwd", 1.0, "dense")
        self._kernel("rope_fwd", ADD)
        self._ring(Group.CONTEXT, "nccl_all_gather", _CONTEXT * size)
        self._kernel("attention_fwd", 1.2)
        self._kernel("gemm_fwd", 0.7, "dense")
        self._ring(Group.TENSOR, "nccl_reduce_scatter", size)
        self._kernel("add", ADD)
        self._kernel("norm_fwd", NORM)
        self._kernel("gemm_fwd", 0.1, "router")
        self._kernel("topk_fwd", SMALL)
        tokens = self._experts_begin(number, layer)
        self._kernel("expert_gemm_fwd", 2.0 * tokens, "experts")
        self._kernel("activation_fwd", 0.3 * tokens)
        self._kernel("expert_gemm_fwd", 1.0 * tokens, "experts")
        self._combine(number, layer, "combine")
        self._kernel("unpermute", 0.25)
        self._kernel("add", ADD)

    def _experts_begin(self, number: int, layer: int) -> float:
        """Dispatch forward, with the host's wait for counts; how many times the mean tokens came."""
        world, disp = self.world, self.world.dispatcher
        if disp == "deepep":
            self._kernel("permute", 0.22)
            self._kernel("deepep_layout", SMALL)
            notify = self._control("deepep_notify_dispatch")
            self._say(Do.POLL, 0.0).after = [notify]
        else:
            self._ring(Group.EXPERT, "nccl_all_gather", 16_384)
            if disp == "alltoall":
                self._read(1024)
            else:
                self._kernel("hybridep_scan", 0.08)
            self._kernel("permute", 0.22)
            if disp == "hybridep":
                self._control("hybridep_sync")
        weights = self._routing.weights(self.rank, self._step, number, layer)
        self._all_to_all("dispatch", weights, out=True)
        tokens = weights[world.layout.group(Group.EXPERT, self.rank).index(self.rank)]
        if disp == "alltoall":
            self._kernel("sort_chunks", 0.13 * tokens)
        return tokens

    def _control(self, kernel: str) -> Operation:
        return self._collective(Group.EXPERT, kernel, "")

    def _combine(self, number: int, layer: int, name: str) -> None:
        disp = self.world.dispatcher
        weights = self._routing.weights(self.rank, self._step, number, layer)
        if disp == "alltoall":
            self._kernel("sort_chunks", 0.13)
        else:
            self._control("deepep_cached_notify_combine" if disp == "deepep" else "hybridep_sync")
        self._all_to_all(name, weights, out=False)

    def _all_to_all(self, name: str, weights: Sequence[float], *, out: bool) -> None:
        """Tokens to experts (`out`), by the weight of who gets them, or back, by that of who sends."""
        group = self.world.layout.group(Group.EXPERT, self.rank)
        each = _SENT * self.world.tokens_mib * MIB / len(group)
        mine = weights[group.index(self.rank)]
        sent = tuple(each * (weight if out else mine) for weight in weights)
        kernel = {
            "alltoall": "nccl_send_recv",
            "deepep": f"deepep_{name}",
            "hybridep": f"hybridep_{name}_{'bwd' if self._backward else 'fwd'}",
        }[self.world.dispatcher]
        self._collective(Group.EXPERT, kernel, "a2a", sent=sent)

    def _backwards(self, number: int) -> None:
        self._backward = True
        self._pause(number, "backward")
        if self._is_last:
            self._draw = self.world.random(self.rank, self._step, number, "head")
            self._kernel("loss_bwd", self.world.head / 4)
            self._kernel("gemm_dgrad", 2 * self.world.head, "head")
        for layer in reversed(self._layers):
            self._draw = self.world.random(self.rank, self._step, number, layer, "backward")
            self._layer_backward(number, layer)
            if number == self.world.microbatches - 1 and self.world.overlap_reduce:
                self._reduce()
        if self._first:
            self._kernel("embedding_bwd", 0.3)
        self._backward = False

    def _layer_backward(self, number: int, layer: int) -> None:
        size = self.world.tokens_mib * MIB
        weights = self._routing.weights(self.rank, self._step, number, layer)
        tokens = weights[self.world.layout.group(Group.EXPERT, self.rank).index(self.rank)]
        self._stop(number, layer)
        self._kernel("unpermute_bwd", 0.25)
        if self.world.dispatcher != "alltoall":
            self._control(
                "deepep_cached_notify_dispatch" if self.world.dispatcher == "deepep" else "hybridep_sync"
            )
        self._all_to_all("dispatch", weights, out=True)
        self._kernel("expert_gemm_dgrad", 1.0 * tokens, "experts")
        self._kernel("expert_gemm_wgrad", 1.0 * tokens, "experts")
        self._kernel("activation_bwd", 0.4 * tokens)
        self._kernel("expert_gemm_dgrad", 2.0 * tokens, "experts")
        self._kernel("expert_gemm_wgrad", 2.0 * tokens, "experts")
        self._combine(number, layer, "combine")
        self._kernel("permute", 0.25)
        self._kernel("topk_bwd", SMALL)
        self._kernel("gemm_dgrad", 0.1, "router")
        self._kernel("norm_bwd", 0.2)
        self._ring(Group.TENSOR, "nccl_all_gather", size)
        self._kernel("gemm_dgrad", 0.7, "dense")
        self._kernel("gemm_wgrad", 0.7, "dense")
        self._kernel("attention_bwd_dot", 0.1)
        self._kernel("attention_bwd", 2.6)
        self._ring(Group.CONTEXT, "nccl_reduce_scatter", _CONTEXT * size)
        self._kernel("rope_bwd", ADD)
        self._kernel("gemm_dgrad", 1.0, "dense")
        self._ring(Group.TENSOR, "nccl_reduce_scatter", size)
        self._kernel("gemm_wgrad", 1.0, "dense")
        self._kernel("norm_bwd", 0.2)

    def _reduce(self) -> None:
        """Gradients of one layer, over those that hold the same."""
        size = self.world.gradients_mib * MIB
        for group, part in ((Group.EXPERT_DATA, _EXPERTS), (Group.DATA, _DENSE)):
            one = self._ring(group, "nccl_reduce_scatter", part * size, held=False)
            self._reduced += [one] if one else []

    def _finish(self) -> None:
        """Gradients, their norm over all ranks, the optimizer, parameters, the last stage's loss."""
        world = self.world
        self._draw = world.random(self.rank, self._step, "finish")
        if not world.overlap_reduce:
            for _ in self._layers:
                self._reduce()
        self._waits += self._reduced
        self._reduced = []
        self._kernel("l2norm", 0.2)
        self._ring(Group.WORLD, "nccl_all_reduce", 4)
        self._read(4)
        for _ in range(3):
            self._kernel("adam", 0.6)
        for _ in range(0, len(self._layers), _LAYERS_GATHERED):
            for group, part in ((Group.EXPERT_DATA, _EXPERTS), (Group.DATA, _DENSE)):
                size = part / 2 * world.gradients_mib * MIB
                one = self._ring(group, "nccl_all_gather", size, held=not world.overlap_gather)
                self._gathered += [one] if one and world.overlap_gather else []
        if self._is_last:
            self._ring(Group.DATA, "nccl_all_reduce", 8)
        if world.end_reads:
            self._read(4)


class Routing:
    """How many times the mean tokens each rank of an expert group gets, by place of the run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[tuple[object, ...], tuple[float, ...]] = {}

    def weights(self, rank: int, step: int, number: int, layer: int) -> tuple[float, ...]:
        group = self._world.layout.group(Group.EXPERT, rank)
        key = group, step, number, layer
        if key not in self._known:
            draw = self._world.random("routing", *key)
            raw = [draw.lognormvariate(0, self._world.routing_sigma) for _ in group]
            raw = self.changed(raw, draw)
            mean = sum(raw) / len(raw)
            self._known[key] = tuple(one / mean for one in raw)
        return self._known[key]

    def changed(self, raw: list[float], draw: Random) -> list[float]:
        """The weights under a handicap: none here."""
        return raw
