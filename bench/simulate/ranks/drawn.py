"""Runs of a seed: a layout, knobs and a strength, drawn without a look at any diagnosis.

A cause whose effect is below `LEAST_EFFECT_FRAC` of the run is made stronger until it matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from bench.simulate.draws import between, uniform, uniforms
from bench.simulate.knobs import Knobs
from bench.simulate.ranks.described import Cause, Extent, Hot, Jitter, RanksRun
from bench.simulate.ranks.happened import RanksDone, simulate
from bench.simulate.ranks.layout import Group, Layout
from bench.simulate.ranks.truth import Truth

LEAST_EFFECT_FRAC: Final = 0.04
_STRONGER: Final = 1.5
_TRIES: Final = 8
_MS: Final = 1e-6
_FEW: Final = 16
_WORK_PER_STEP: Final = {True: 8, False: 4}
"""Layers times microbatches of a stage, about, of few ranks and of many, so that 8 ranks take a second."""

_HEAD_FRAC: Final = 0.04
"""The last stage's head, in layers: with more, that stage would be late without any cause."""
BETWEEN_NODES: Final = Layout(expert=8, data=8, ranks_per_host=2)
"""Groups of several nodes: of two nodes nothing tells which one's NIC is slow."""
_HALVES: Final = 4
"""Steps of runs that are held up in some of them."""
_PAUSE_FRAC: Final = (0.02, 0.06)
"""How long a host pauses where many do now and then, as part of a step."""
_EVERY: Final = 2
"""A loader that is not late in every step is late in every second."""

_KNOBS: Final[Mapping[str, tuple[float, float]]] = {
    "attention_us": (50, 220),
    "dense_gemm_us": (70, 260),
    "expert_gemm_us": (120, 500),
    "small_kernel_us": (4, 14),
    "optimizer_us": (150, 800),
    "dispatch_us": (25, 220),
    "gradient_us": (20, 140),
    "tensor_parallel_us": (12, 50),
    "pipeline_us": (12, 60),
    "python_us": (2, 10),
    "api_us": (2, 5),
    "sync_return_us": (5, 20),
    "data_stall_ms": (0.02, 0.3),
}
"""Ranges by factors: the middle of those of `bench.simulate.ranges`, where one cause is to be seen."""
_STRENGTHS: Final[Mapping[Cause, tuple[float, float]]] = {
    Cause.NONE: (1.0, 1.0),
    Cause.SLOW_DEVICE: (1.08, 1.6),
    Cause.SLOW_HOST: (1.5, 5.0),
    Cause.SLOW_LINK: (1.4, 6.0),
    Cause.ROUTING_IMBALANCE: (1.3, 2.5),
    Cause.ROTATING_JITTER: (1.1, 1.8),
    Cause.DATA_LOADER: (0.08, 0.6),
    Cause.PIPELINE_IMBALANCE: (1.0, 1.0),
}
"""`RanksRun.strength`; of what takes milliseconds, parts of a step."""


def draw_run(
    seed: int,
    cause: Cause,
    rank_count: int = 8,
    *,
    step_count: int | None = None,
    hot: Hot | None = None,
    extent: Extent = Extent.RANK,
    least_effect_frac: float = LEAST_EFFECT_FRAC,
) -> Truth:
    """A run of a seed with this cause, simulated with it and without.

    Raises ValueError where no layout has so many ranks, or the cause cannot be made to matter.
    """
    if step_count is None and extent in (Extent.STEPS, Extent.PAUSES):
        step_count = _HALVES
    plain = _plain(seed, cause, rank_count, step_count)
    if extent is Extent.NODE:
        hosts = min(plain.layout.ranks_per_host, rank_count // 2)
        layout = BETWEEN_NODES if cause is Cause.SLOW_LINK else replace(plain.layout, ranks_per_host=hosts)
        plain = replace(plain, layout=layout)
    if extent is Extent.PAUSES:  # a host that is far ahead hides them
        plain = replace(plain, knobs=replace(plain.knobs, token_sync=True))
    mended = simulate(plain)
    run = _with_cause(plain, cause, mended, hot, extent)
    for _ in range(_TRIES):
        truth = Truth(simulate(run), mended)
        if cause is Cause.NONE or truth.effect_frac >= least_effect_frac:
            return truth
        run = _stronger(run)
    raise ValueError(f"{cause.value} of seed {seed} does not matter however strong it is")


def layouts(rank_count: int, cause: Cause) -> list[Layout]:
    """All layouts of so many ranks in which this cause can be: tensor 1 or 2, up to four stages."""
    found = []
    for pipeline in (1, 2, 4):
        for tensor in (1, 2):
            data, rest = divmod(rank_count, pipeline * tensor)
            for expert in (2, 4, 8, 16) if not rest else ():
                fits = data > 1 and data * tensor % expert == 0
                if fits and (pipeline > 1 or cause is not Cause.PIPELINE_IMBALANCE):
                    found.append(Layout(tensor, expert, pipeline, data))
    return found


def _plain(seed: int, cause: Cause, rank_count: int, step_count: int | None) -> RanksRun:
    def share(what: str) -> float:
        return uniform(f"{seed}/{what}")

    possible = layouts(rank_count, cause)
    if not possible:
        raise ValueError(f"no layout of {rank_count} ranks can have {cause.value}")
    layout = possible[int(share("layout") * len(possible))]
    hosts = 4 if rank_count == 8 and share("hosts") < 0.3 else 8
    stages = layout.pipeline
    microbatches = stages * (1 + (share("microbatches") < 0.5)) if stages > 1 else 1 + int(2 * share("mb"))
    movable = cause is Cause.PIPELINE_IMBALANCE  # its stages need layers to move
    layers = min(max(_WORK_PER_STEP[rank_count <= _FEW] // microbatches, 2 + movable), 3 + movable)
    drawn = {name: between(share(name), *ends, by_factors=True) for name, ends in _KNOBS.items()}
    dispatchers = ("alltoall", "alltoall", "alltoall", "deepep", "hybridep", "allgather")
    knobs = Knobs(
        **drawn,  # type: ignore[arg-type]
        seed=seed,
        head_us=_HEAD_FRAC * _layer_us(drawn) if stages > 1 else 200.0,
        dispatcher=dispatchers[int(share("dispatcher") * len(dispatchers))],
        step_count=step_count or 3 + int(3 * share("steps")) * (rank_count <= _FEW),
        microbatch_count=microbatches,
        layer_count=layers,
        beside_comm_frac=between(share("beside"), 0.0, 0.08),
        token_sync=share("token_sync") < 0.6,
        end_of_step="read_back" if share("end") < 0.5 else "none",
        gradient_overlap=share("overlap") < 0.7,
        ep_overlap=stages == 1 and microbatches > 1 and share("ep_overlap") < 0.3,
        peer_late_us=0.0,
    )
    return RanksRun(
        seed, replace(layout, ranks_per_host=hosts), knobs, device_syncs=stages > 1 and share("syncs") < 0.3
    )


def _with_cause(
    plain: RanksRun, cause: Cause, mended: RanksDone, hot: Hot | None, extent: Extent
) -> RanksRun:
    layout, drawn = plain.layout, uniforms(f"{plain.seed}/{cause.value}")
    jitter = Jitter.HOST if drawn[0] < 0.5 or extent is Extent.PAUSES else Jitter.DEVICE
    strength = between(drawn[1], *_STRENGTHS[cause], by_factors=True)
    lasts = cause is Cause.ROTATING_JITTER and jitter is Jitter.HOST
    if lasts or cause is Cause.DATA_LOADER:
        low, high = _PAUSE_FRAC if extent is Extent.PAUSES else _STRENGTHS[Cause.DATA_LOADER]
        step_ms = mended.whole_ns / plain.knobs.step_count * _MS
        strength = step_ms * between(drawn[1], low, high, by_factors=True)
    if cause is Cause.ROUTING_IMBALANCE:  # of two ranks, one cannot have more than all
        strength = min(strength, 0.8 * len(layout.group(Group.EXPERT, 0)))
    rare = drawn[5] < 0.5 and plain.knobs.step_count >= 2 * _EVERY
    levels = tuple(Hot)
    return replace(
        plain,
        cause=cause,
        rank=int(drawn[2] * layout.world_size) if _has_rank(cause) else None,
        stage=int(drawn[3] * layout.pipeline) if cause is Cause.PIPELINE_IMBALANCE else None,
        strength=strength,
        hot=hot or levels[int(drawn[4] * len(levels))],
        jitter=jitter,
        every=_EVERY if cause is Cause.DATA_LOADER and rare else 1,
        extent=extent,
    )


def _layer_us(drawn: Mapping[str, float]) -> float:
    return drawn["attention_us"] + drawn["dense_gemm_us"] + drawn["expert_gemm_us"]


def _has_rank(cause: Cause) -> bool:
    return cause not in (Cause.NONE, Cause.ROTATING_JITTER, Cause.PIPELINE_IMBALANCE)


def _stronger(run: RanksRun) -> RanksRun:
    """The same with more of its cause."""
    if run.cause is Cause.PIPELINE_IMBALANCE:
        if run.strength + 1 >= run.knobs.layer_count:
            raise ValueError(f"no layers are left to move in {run}")
        return replace(run, strength=run.strength + 1)
    milliseconds = run.cause is Cause.DATA_LOADER or (
        run.cause is Cause.ROTATING_JITTER and run.jitter is Jitter.HOST
    )
    if milliseconds:
        return replace(run, strength=run.strength * _STRONGER)
    stronger = 1 + (run.strength - 1) * _STRONGER
    if run.cause is Cause.ROUTING_IMBALANCE:
        stronger = min(stronger, 0.95 * len(run.layout.group(Group.EXPERT, 0)))
    return replace(run, strength=stronger)
