"""Runs of many ranks written another way than `bench.simulate.ranks` does, each with one known cause.

What differs, beside what `bench.second.scenarios` writes another way: a pipeline sends all microbatches
forward before any goes backward, tensor-parallel ranks reduce once a layer and direction, no group holds all
ranks, and each cause is written into the programs as they are made. Shared with the first are the words for
a run (`RanksRun`), who is in which group, how many tokens a rank gets, and whom rotating jitter disturbs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from bench.second.scenarios import GPU, SMS, Scenario, Writer, draw_scenario
from bench.simulate.draws import between, spread, uniform, uniforms
from bench.simulate.host_program import Busy, Collective, Engine, Pop, Program, Push, Work
from bench.simulate.kernels import kernels_of
from bench.simulate.knobs import Knobs
from bench.simulate.ranks.causes import jittered_rank, pauses
from bench.simulate.ranks.described import Cause, Extent, Hot, Jitter, RanksRun
from bench.simulate.ranks.drawn import BETWEEN_NODES
from bench.simulate.ranks.layout import Group, Layout
from bench.simulate.ranks.routing import tokens

LAYOUTS: Final = (
    Layout(expert=8, data=8, ranks_per_host=4),
    Layout(expert=4, data=8, ranks_per_host=8),
    Layout(tensor=2, expert=4, data=4, ranks_per_host=2),
    Layout(expert=2, pipeline=2, data=4, ranks_per_host=4),
    Layout(expert=2, pipeline=4, data=2, ranks_per_host=8),
)
_GROUPS: Final = {1: Group.DATA, 2: Group.EXPERT, 3: Group.PIPELINE, 4: Group.TENSOR}
_RINGS: Final = ("nccl_all_gather", "nccl_reduce_scatter", "nccl_all_reduce")
_OF_TOKENS: Final = ("expert_gemm", "activation", "permute", "unpermute")
_BACKWARD: Final = {"dispatch": "combine_bwd", "combine": "dispatch_bwd"}
_MESSAGE_US: Final = 30.0
_LOADER_US: Final = 60.0
_BYTES_PER_NS: Final = 200
_NS: Final = 1_000_000
"""Of a millisecond."""
_STRENGTHS: Final[Mapping[Cause, tuple[float, float]]] = {
    Cause.SLOW_DEVICE: (1.15, 1.6),
    Cause.SLOW_HOST: (2.0, 6.0),
    Cause.SLOW_LINK: (2.0, 6.0),
    Cause.ROUTING_IMBALANCE: (1.4, 1.9),
    Cause.ROTATING_JITTER: (1.3, 2.0),
    Cause.DATA_LOADER: (1.0, 4.0),
    Cause.PIPELINE_IMBALANCE: (1.0, 2.4),
}
"""As in `RanksRun.strength`."""
_PAUSE_MS: Final = (0.3, 1.0)


def draw_ranks(
    seed: int, cause: Cause, layout: Layout | None = None, extent: Extent = Extent.RANK
) -> tuple[RanksRun, Scenario]:
    """A run of 8 ranks and what each of them does; a pipeline only where `layout` has one, or by its draw."""
    of_extent = f" {extent.value}" if extent is not Extent.RANK else ""
    drawn = uniforms(f"second ranks {seed} {cause.value}{of_extent}")
    possible = [
        one
        for one in LAYOUTS
        if (one.pipeline > 1 or cause is not Cause.PIPELINE_IMBALANCE)
        and (one.ranks_per_host < one.world_size or extent is not Extent.NODE)
    ]
    if cause is Cause.SLOW_LINK and extent is Extent.NODE:
        layout = BETWEEN_NODES
    layout = layout or possible[int(drawn[0] * len(possible))]
    said = draw_scenario(seed)
    layers = 2 + (cause is Cause.PIPELINE_IMBALANCE)
    every = 1 + (cause is Cause.DATA_LOADER and drawn[6] < 0.3)
    some = extent in (Extent.STEPS, Extent.PAUSES)
    said = replace(
        said, step_count=1 + 2 * every + some, layer_count=layers, microbatch_count=layout.pipeline
    )
    if cause is Cause.DATA_LOADER or extent is Extent.PAUSES:  # else a host that is far ahead hides it
        said = replace(said, reads_counts=True)
    strength = between(drawn[1], *_STRENGTHS.get(cause, (1.0, 1.0)))
    if extent is Extent.PAUSES:
        strength = between(drawn[1], *_PAUSE_MS)
    knobs = Knobs(
        seed=seed, gpu=GPU, step_count=said.step_count, microbatch_count=said.microbatch_count,
        layer_count=said.layer_count, dispatcher="deepep" if said.exchange == "deepep" else "alltoall",
    )  # fmt: skip
    run = RanksRun(
        seed, layout, knobs, cause, int(drawn[2] * layout.world_size), int(drawn[3] * layout.pipeline),
        strength, tuple(Hot)[int(drawn[4] * 3)],
        Jitter.HOST if extent is Extent.PAUSES else tuple(Jitter)[drawn[5] < 0.5], every, extent=extent,
    )  # fmt: skip
    return run, said


def stronger(run: RanksRun) -> RanksRun:
    """The same run with more of its cause; of two ranks' tokens or layers one cannot have all."""
    if run.cause is Cause.PIPELINE_IMBALANCE:
        return replace(run, strength=2.0)
    if run.cause is Cause.ROUTING_IMBALANCE:
        most = 0.95 * run.layout.expert
        return replace(run, strength=min(most, 1.5 * run.strength))
    return replace(run, strength=(2.5 if run.cause is Cause.DATA_LOADER else 1.5) * run.strength)


def programs(run: RanksRun, said: Scenario) -> dict[int, Program]:
    """What each rank does."""
    return {rank: RankWriter(run, said, rank).program() for rank in range(run.layout.world_size)}


class RankWriter(Writer):
    """Writes what one rank does. Its draws are its own, but for how long data of a collective moves."""

    def __init__(self, run: RanksRun, said: Scenario, rank: int) -> None:
        layers = run.layers_of(run.layout.stage(rank))
        super().__init__(replace(said, seed=1_000 * said.seed + rank, layer_count=layers), None)
        self._run, self._rank, self._peer = run, rank, rank
        self._kind, self._operation = 0, ""
        self._counts: Counter[tuple[Group, tuple[int, ...]]] = Counter()

    def _is_late(self, cause: Cause) -> bool:
        return self._run.is_late(cause, self._rank, self._where[0])

    def _is_jittered(self, jitter: Jitter) -> bool:
        run = self._run
        if run.cause is not Cause.ROTATING_JITTER or run.jitter is not jitter:
            return False
        return run.extent is Extent.RANK and jittered_rank(run, self._where[0]) == self._rank

    def _tokens(self) -> float:
        step, microbatch, layer, _ = self._where
        return tokens(self._run, self._rank, step, microbatch, layer)

    # What a cause makes longer

    def _host_ns(self, us: float, name: str) -> int:
        slow = self._is_late(Cause.SLOW_HOST) and not name.endswith("arrival")
        return super()._host_ns(us * self._run.strength if slow else us, name)

    def _work(self, kernel: str, engine: Engine, stream: int, alone_ns: int) -> Work:
        slow = self._is_late(Cause.SLOW_DEVICE) or self._is_jittered(Jitter.DEVICE)
        product = self._run.extent is not Extent.GEMMS or "gemm" in kernel
        if slow and product and engine is Engine.SMS:
            alone_ns = round(alone_ns * self._run.strength)
        return super()._work(kernel, engine, stream, alone_ns)

    def _kernel(self, kernel: str, us: float, blocks: int = 16 * SMS) -> None:
        super()._kernel(kernel, us * self._tokens() if kernel.startswith(_OF_TOKENS) else us, blocks)

    def _experts(self) -> None:
        """Jitter of a host stops it before the experts of a step's first layer, pauses before any."""
        _, *where = self._where
        run = self._run
        paused = run.extent is Extent.PAUSES and pauses(run, self._rank, *self._where)
        if paused or (where == [0, 0, "forward"] and self._is_jittered(Jitter.HOST)):
            self._say(Busy(round(_NS * run.strength)))
        super()._experts()

    def _embed(self) -> None:
        """The batch is waited for before a step's first launch; before the first step nobody sees it."""
        run, ns = self._run, self._host_ns(_LOADER_US, "data")
        step = self._where[0]
        if self._is_late(Cause.DATA_LOADER) and step and step % run.every == 0:
            ns += round(_NS * run.strength)
        self._say(Push("data loader", "loader"))
        self._say(Busy(ns, "data"))
        self._say(Pop())
        if not run.layout.stage(self._rank):
            super()._embed()

    # Collectives

    def _begin(self, kernel: str, us: float, kind: int, late_us: float = 0.0) -> tuple[int, int]:
        self._kind, self._operation = kind, self._operation or kernel
        begun = super()._begin(kernel, us, kind, late_us)
        self._operation = ""
        return begun

    def _move(self, kernel: str, us: float, stream: int, late_us: float) -> None:
        run, kind = self._run, _GROUPS[self._kind]
        group = run.layout.group(kind, self._rank)
        if kind is Group.PIPELINE:
            group = tuple(sorted((self._rank, self._peer)))
        if len(group) == 1:
            return
        sequence = self._counts[kind, group]
        self._counts[kind, group] += 1
        shared = uniform(f"second {run.seed}/{kind.value}/{group}/{sequence}")
        times = max(self._tokens(), 1.0) if kind is Group.EXPERT else 1.0
        moving_ns = (2_000 + 1_000 * us * spread(shared, 0.05) * times) * self._draw(kernel, 0.003)
        transfer_ns = round(moving_ns * (1 + self._slow_frac(kernel, group)))
        work = self._work(kernel, Engine.COMMUNICATION, stream, transfer_ns)
        work = work._replace(
            block_count=16,
            place=work.place._replace(operation=self._operation),
            size_bytes=round(1_000 * us * _BYTES_PER_NS),
        )
        api = kernels_of(GPU, False, True)[kernel].api
        self._submit(work, api, Collective(group, kind.value, sequence, transfer_ns))

    def _slow_frac(self, kernel: str, group: tuple[int, ...]) -> float:
        """What a slow link adds: all of it along a ring, else by how many of its peers it is between."""
        run = self._run
        late = [one for one in group if one in run.late_ranks]
        if run.cause is not Cause.SLOW_LINK or not late:
            return 0.0
        far = [one for one in group if run.layout.host(one) != run.layout.host(late[0])]
        if run.extent is not Extent.NODE:
            far = [one for one in group if one not in late]
        if kernel in _RINGS:
            return (run.strength - 1) * bool(far)
        behind = far if self._rank in late else late if self._rank in far else []
        return (run.strength - 1) * len(behind) / (len(group) - 1)

    def _exchange(self, name: str) -> tuple[int, int]:
        self._operation = _BACKWARD[name] if self._where[3] == "backward" else name
        return super()._exchange(name)

    # Steps

    def _attention(self) -> None:
        super()._attention()
        self._reduce()

    def _layer_backward(self, microbatch: int) -> None:
        super()._layer_backward(microbatch)
        self._reduce()

    def _reduce(self) -> None:
        if self._run.layout.tensor > 1:
            self._finish(self._begin("nccl_all_reduce", self._is.exchange_us / 2, 4))

    def _microbatches(self) -> None:
        """All forward, then all backward, each between messages of the one neighbour and of the other."""
        if self._run.layout.pipeline == 1:
            super()._microbatches()
            return
        for microbatch in range(self._is.microbatch_count):
            self._message(-1, "receive_forward", microbatch)
            self._pass("forward", microbatch)
            self._head(microbatch)
            self._message(1, "send_forward", microbatch)
        for microbatch in range(self._is.microbatch_count):
            self._message(1, "receive_backward", microbatch)
            self._backward(microbatch)
            self._message(-1, "send_backward", microbatch)

    def _message(self, to: int, name: str, microbatch: int) -> None:
        layout = self._run.layout
        self._peer = self._rank + to * layout.stage_size
        if 0 <= self._peer < layout.world_size:
            self._at(microbatch, -1, name.split("_")[1])
            self._operation = name
            self._finish(self._begin("nccl_send_recv", _MESSAGE_US, 3))

    def _is_last(self) -> bool:
        return self._run.layout.stage(self._rank) == self._run.layout.pipeline - 1

    def _head(self, microbatch: int) -> None:
        if self._is_last():
            super()._head(microbatch)

    def _head_backward(self, microbatch: int) -> None:
        if self._is_last():
            super()._head_backward(microbatch)
