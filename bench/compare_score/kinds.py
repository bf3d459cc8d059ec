"""Kinds of pairs beside single causes: what real pairs differ in, each with its truth, written down first.

What a pair truly is comes from the simulator: its true difference, and whether there is any. Which rows may
stand first and which suspects are not false stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from bench.compare_score.causes import COMPUTE_KERNELS, SHAPES
from bench.compare_score.sides import Side
from bench.score.scenario import Scenario, perturbed
from bench.simulate.draws import between, uniform
from bench.simulate.knobs import Knobs

Made = Callable[["Drawn"], tuple[Side, Side]]
"""What draws a pair -> base and new."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Draws of one pair, by name."""

    seed: int

    def at(self, name: str, low: float, high: float, *, by_factors: bool = False) -> float:
        """A value of this range."""
        return between(uniform(f"{self.seed}/{name}"), low, high, by_factors=by_factors)

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number of this range, ends included."""
        return low + int(uniform(f"{self.seed}/{name}") * (high - low + 1))

    def one(self, name: str, *of: str) -> str:
        """One of these."""
        return of[int(uniform(f"{self.seed}/{name}") * len(of))]

    def shape(self, *names: str, **fixed: object) -> Knobs:
        """The knobs of one of these shapes, drawn a little anew, with some fixed."""
        name = self.one("shape", *names)
        return replace(
            perturbed(Scenario(name, None, ALL_SHAPES[name]), self.seed),
            **fixed,  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of pair. `rows`: patterns, one of which fits the row that may stand first; empty: not asked.

    `suspects`: patterns of what may stand first. `changes`: whether the new side differs at all; `steps`: the
    fewest and the most a side; `times`: how many pairs of it are scored. `ranges`: what the recording needs;
    `truths`: seeds on which the true difference is found, more where it hangs on chance. `more`: further
    recordings of what base is. `decided_from`: true differences that have to be decided, of a step; 1 asks
    for none: means of steps that vary so hide it, and a wrong way is wrong all the same.
    """

    family: str
    name: str
    made: Made
    rows: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    changes: bool = True
    steps: tuple[int, int] = (8, 12)
    times: int = 6
    ranges: str = ""
    truths: int = 3
    decided_from: float = 0.05
    more: Callable[[Drawn], tuple[Side, ...]] | None = None


ALL_SHAPES: Final = {
    **SHAPES,
    "dense": replace(SHAPES["tuned"], dispatcher="none", layer_count=3),
    "experts apart": replace(SHAPES["tuned"], grouped_gemm=False, layer_count=2, local_expert_count=2),
    "short": replace(
        SHAPES["small kernels"], dispatcher="none", layer_count=1, end_of_step="read_back", python_us=1.0
    ),
    "gradients": replace(SHAPES["tuned"], gradient_us=140.0, layer_count=4),
}
_SMALL: Final = (
    "norm_fwd", "norm_bwd", "norm_bwd_finalize", "rope_fwd", "rope_bwd", "add", "permute", "unpermute",
    "unpermute_bwd", "sort_chunks", "activation_fwd", "activation_bwd",
)  # fmt: skip
_MATRICES: Final = (
    "gemm_fwd", "gemm_dgrad", "gemm_wgrad", "expert_gemm_fwd", "expert_gemm_dgrad", "expert_gemm_wgrad",
)  # fmt: skip
_BITS: Final = ("lower_precision", "kernels_exchanged.*")
_FUSED: Final = ("fusion_lost", "kernels_exchanged.*", "kernels_more.*", "kernels_number.*")
_BUCKETS: Final = (
    "buckets.dp",
    "buckets.all_reduce",
    "comm_more.dp",
    "comm_more.all_reduce",
    "overlap_lost.dp",
    "overlap_lost.all_reduce",
)
_SMALL_ROWS: Final = (
    "compute.elementwise", "compute.norm", "compute.rope", "compute.activation", "launch_*", "idle",
)  # fmt: skip


def _turned(made: Made) -> Made:
    """The same pair with its sides swapped."""

    def swapped(drawn: Drawn) -> tuple[Side, Side]:
        base, new = made(drawn)
        return new, base

    return swapped


def _to_bf16(precision: str, least: float, most: float) -> Made:
    """GEMMs and attention in more bits take so many times as long, small kernels move twice the bytes."""

    def made(drawn: Drawn) -> tuple[Side, Side]:
        knobs = drawn.shape("dense", "experts apart", layer_count=2)
        heavy = drawn.at("gemm", least, most)
        attention = drawn.at("attention", 1.8, 3.2)
        longer = (
            *((kernel, heavy) for kernel in _MATRICES),
            *((kernel, attention) for kernel in ("attention_fwd", "attention_bwd")),
            *((kernel, drawn.at("small", 1.6, 2.0)) for kernel in _SMALL),
        )
        return Side(replace(knobs, precision=precision), longer), Side(replace(knobs, autocast=True))

    return made


def _to_fp8(drawn: Drawn) -> tuple[Side, Side]:
    knobs = drawn.shape("dense", "tuned", layer_count=2)
    return Side(knobs), Side(replace(knobs, fp8=True))


def _norms_fused(drawn: Drawn) -> tuple[Side, Side]:
    knobs = drawn.shape("dense", "tuned", "late launches", layer_count=2)
    return Side(replace(knobs, unfused=True)), Side(knobs)


def _adam_fused(drawn: Drawn) -> tuple[Side, Side]:
    knobs = drawn.shape("dense", "tuned", layer_count=2, optimizer_us=drawn.at("adam", 500, 1500))
    return Side(replace(knobs, adam="foreach", adam_launches=drawn.whole("chunks", 2, 6))), Side(knobs)


def _adam_in_twelve(drawn: Drawn) -> tuple[Side, Side]:
    """Twice as many kernels of Adam, of one name, that take longer in all and less each."""
    knobs = drawn.shape("dense", "tuned", layer_count=2, optimizer_us=drawn.at("adam", 800, 1600))
    more = knobs.optimizer_us * drawn.at("more", 1.3, 1.7)
    return Side(knobs), Side(replace(knobs, adam_launches=12, optimizer_us=more))


def _renamed(container: str, *, slower: bool) -> Made:
    def made(drawn: Drawn) -> tuple[Side, Side]:
        knobs = drawn.shape("dense", "tuned", "DeepEP", layer_count=2)
        new = replace(knobs, container=container)
        longer = drawn.at("slower", 1.3, 1.6) if slower else 1.0
        return Side(knobs), Side(replace(new, dense_gemm_us=new.dense_gemm_us * longer))

    return made


def _held_up(knobs: Knobs, drawn: Drawn, side: str) -> Knobs:
    """One to three steps of this side are held up, by half a step to five."""
    held_up_ms = drawn.at("held up", 0.8, 8.0, by_factors=True)
    return replace(knobs, hiccup_count=drawn.whole(f"{side} hiccups", 1, 3), hiccup_ms=held_up_ms)


def _hiccups(*, slower: bool, late: bool = False) -> Made:
    """Steps held up on base, on new or on both, beside GEMMs that cost 2 to 3 % of the step, or nothing.

    `late`: every fourth or fifth step waits for its batch as well, by a quarter of a step.
    """

    def made(drawn: Drawn) -> tuple[Side, Side]:
        knobs = drawn.shape("short")
        if late:
            knobs = replace(knobs, late_batch_frac=drawn.at("late", 0.2, 0.25), data_stall_ms=0.35)
        where = drawn.one("where", "base", "new", "both")
        base = _held_up(knobs, drawn, "base") if where != "new" else knobs
        new = _held_up(knobs, drawn, "new") if where != "base" else knobs
        longer = drawn.at("slower", 1.045, 1.055) if slower else 1.0
        return Side(base), Side(new, tuple((kernel, longer) for kernel in (*_MATRICES, "attention_bwd")))

    return made


def _buckets(base: int, new: int) -> Made:
    def made(drawn: Drawn) -> tuple[Side, Side]:
        gradients = drawn.one("gradients", "sharded", "all_reduce")
        knobs = drawn.shape("gradients", gradients=gradients)
        one, other = (replace(knobs, bucket_layers=layers) for layers in (base, new))
        return Side(one), Side(other)

    return made


def _buffers(drawn: Drawn) -> tuple[Side, Side]:
    knobs = drawn.shape(
        "gradients", layer_count=2, gradients="all_reduce", buffer_count=drawn.whole("count", 30, 60)
    )
    return Side(knobs), Side(replace(knobs, buffer_count=0))


def _runs(drawn: Drawn, *runs: str) -> tuple[Side, ...]:
    """Runs of one thing: clocks and the place of host threads differ from run to run."""
    side = Side(drawn.shape("dense", "tuned", "late launches", layer_count=2))
    return tuple(shifted(side, f"{drawn.seed}/{run}") for run in runs)


def _again(drawn: Drawn) -> tuple[Side, Side]:
    base, new = _runs(drawn, "base", "new")
    return base, new


def _further(drawn: Drawn) -> tuple[Side, ...]:
    return _runs(drawn, "second", "third", "fourth")


def _again_slower(drawn: Drawn) -> tuple[Side, Side]:
    """The same beside GEMMs that make the step 5 to 12 % longer."""
    base, new = _again(drawn)
    longer = drawn.at("slower", 1.3, 1.5)
    return base, replace(
        new, longer=(*new.longer, *((kernel, longer) for kernel in ("gemm_dgrad", "gemm_wgrad")))
    )


def shifted(side: Side, run: str) -> Side:
    """One run of this side: all of its GPU work 0.5 to 1.5 % longer or shorter, its host twice as much."""
    share = uniform(f"{run}/shift")
    frac = (1 if share < 0.5 else -1) * between(2 * share % 1, 0.005, 0.015)
    host = 1 + 2 * frac
    knobs = replace(side.knobs, python_us=side.knobs.python_us * host, api_us=side.knobs.api_us * host)
    return replace(
        side, knobs=knobs, longer=(*side.longer, *((kernel, 1 + frac) for kernel in COMPUTE_KERNELS))
    )


def _rhythm(*, slower: bool, turns: bool | None = None) -> Made:
    """Batches late in turns, or by chance in 20 to 40 % of the steps; on new they are later still."""

    def made(drawn: Drawn) -> tuple[Side, Side]:
        knobs = drawn.shape("short", data_stall_ms=drawn.at("stall", 0.3, 3.0, by_factors=True))
        in_turns = drawn.one("rhythm", "turns", "chance") == "turns" if turns is None else turns
        if in_turns:
            knobs = replace(knobs, loader_workers=drawn.whole("workers", 2, 4))
        else:
            knobs = replace(knobs, late_batch_frac=drawn.at("late", 0.2, 0.4))
        longer = drawn.at("longer", 2.0, 3.0) if slower else 1.0
        return Side(knobs), Side(replace(knobs, data_stall_ms=knobs.data_stall_ms * longer))

    return made


def _more_workers(drawn: Drawn) -> tuple[Side, Side]:
    """Every batch is late; with more workers one in so many, and the first of all comes later."""
    knobs = drawn.shape("short", data_stall_ms=drawn.at("stall", 1.0, 4.0), initial_kernel_count=4)
    base = replace(knobs, first_batch_ms=drawn.at("first", 10, 40))
    workers = drawn.whole("workers", 2, 4)
    return Side(base), Side(
        replace(base, loader_workers=workers, first_batch_ms=base.first_batch_ms * workers)
    )


def _first(drawn: Drawn) -> tuple[Side, Side]:
    """One side starts slower: its first batch, or its first step."""
    knobs = drawn.shape("dense", "tuned", layer_count=2, initial_kernel_count=4)
    batch = replace(knobs, first_batch_ms=drawn.at("batch", 300, 3000))
    step = replace(
        knobs, first_step_ms=drawn.at("step", 15, 60), first_step=drawn.one("how", "loads", "python")
    )
    late = Side(batch if drawn.one("what", "batch", "step") == "batch" else step)
    return (Side(knobs), late) if drawn.one("where", "new", "base") == "new" else (late, Side(knobs))


def _pinned(drawn: Drawn) -> tuple[Side, Side]:
    """Batches of images through pinned memory, in place of pageable copies that the host waits for."""
    knobs = drawn.shape("dense", layer_count=2, batch_mib=drawn.at("batch", 16, 64), end_of_step="read_back")
    return Side(replace(knobs, pageable_host=True, host_link_gb_per_s=10.0)), Side(knobs)


def _recomputed(drawn: Drawn) -> tuple[Side, Side]:
    knobs = drawn.shape("dense", "tuned", layer_count=2)
    return Side(knobs), Side(replace(knobs, recompute="full"))


_PRECISE_ROWS: Final = ("compute.*",)
_AGAIN_ROWS: Final = ("compute.gemm", "compute.grouped_gemm", "launch_*")
_AGAIN_SUSPECTS: Final = ("kernels_slower.*", "gpu_slower", "host_slower", "host_uncovered")
"""GEMMs, and what differs from run to run: clocks and the host."""
_LOADER_ROWS: Final = ("launch_starved.data",)

KINDS: Final = (
    Kind("precision", "FP32 to BF16", _to_bf16("fp32", 3.0, 7.0), _PRECISE_ROWS, _BITS),
    Kind("precision", "TF32 to BF16", _to_bf16("tf32", 1.6, 2.2), _PRECISE_ROWS, _BITS),
    Kind("precision", "BF16 to TF32", _turned(_to_bf16("tf32", 1.6, 2.2)), _PRECISE_ROWS, _BITS),
    Kind("precision", "BF16 to FP8", _to_fp8, _PRECISE_ROWS, _BITS),
    Kind("fusing", "modules fused", _norms_fused, _SMALL_ROWS, _FUSED),
    Kind("fusing", "modules no longer fused", _turned(_norms_fused), _SMALL_ROWS, _FUSED),
    Kind("fusing", "Adam fused", _adam_fused, ("compute.optimizer",), _FUSED),
    Kind("fusing", "Adam in twelve kernels", _adam_in_twelve, ("compute.optimizer",), _FUSED),
    Kind("renamed", "other libraries", _renamed("libraries", slower=False), changes=False),
    Kind("renamed", "another container", _renamed("all", slower=False), changes=False),
    Kind(
        "renamed", "another container, GEMMs slower", _renamed("all", slower=True), ("compute.gemm",),
        ("kernels_exchanged.gemm", "kernels_slower.gemm"),
    ),
    Kind(
        "hiccups", "beside 2 to 3 %", _hiccups(slower=True), ("compute.gemm", "compute.attention"),
        ("kernels_slower.*", "gpu_slower"), steps=(58, 58), decided_from=0.015,
    ),
    Kind("hiccups", "alone", _hiccups(slower=False), changes=False, steps=(58, 58)),
    Kind("buckets", "larger", _buckets(1, 4), ("exposed_comm.*",), _BUCKETS),
    Kind("buckets", "smaller", _buckets(2, 1), ("exposed_comm.*",), _BUCKETS),
    Kind(
        "buckets", "buffers no longer sent", _buffers,
        ("exposed_copy.memcpy_d2d", "exposed_comm.*", "launch_*", "idle"),
        ("buffer_broadcasts", "copies_exposed", "comm_more.*"),
    ),
    Kind("again", "two runs", _again, changes=False, times=12),
    Kind("again", "two runs, GEMMs slower", _again_slower, _AGAIN_ROWS, _AGAIN_SUSPECTS),
    Kind("loader", "a rhythm alone", _rhythm(slower=False), changes=False, steps=(16, 30), ranges="steps"),
    Kind(
        "loader", "a rhythm, later", _rhythm(slower=True, turns=True), _LOADER_ROWS, ("data_loader",),
        steps=(20, 30), ranges="steps",
    ),
    Kind(
        "loader", "more workers", _more_workers, _LOADER_ROWS, ("data_loader", "loader_workers"),
        steps=(20, 30), ranges="steps",
    ),
    Kind("start", "a side starts slower", _first, changes=False, times=12),
    Kind(
        "hiccups", "beside 2 to 3 %, batches late", _hiccups(slower=True, late=True),
        ("compute.gemm", "compute.attention", "launch_starved.data"), ("kernels_slower.*", "gpu_slower"),
        steps=(58, 58), truths=6, decided_from=1.0,
    ),
    Kind("hiccups", "alone, batches late", _hiccups(slower=False, late=True), changes=False, steps=(58, 58)),
    Kind(
        "copies", "batches pinned", _pinned, ("exposed_copy.memcpy_h2d", "launch_starved.*"),
        ("input_pageable", "copies_exposed", "host_syncs"), times=4,
    ),
    Kind(
        "loader", "late by chance, later", _rhythm(slower=True, turns=False), _LOADER_ROWS,
        ("data_loader",), steps=(30, 30), ranges="steps", truths=10, decided_from=1.0,
    ),
    Kind("recompute", "all of it", _recomputed, ("compute.*",), ("recompute_more",), times=4),
    Kind("again", "two runs, three more of base", _again, changes=False, times=12, more=_further),
    Kind(
        "again", "two runs, three more of base, GEMMs slower", _again_slower, _AGAIN_ROWS, _AGAIN_SUSPECTS,
        more=_further, decided_from=0.06,
    ),
)  # fmt: skip
KIND: Final = {f"{kind.family}/{kind.name}": kind for kind in KINDS}
