"""Families of drawn runs that each have one thing that other drawn runs lack: knobs and view of a seed.

Nothing else is held but what would hide it: a host that is far behind, or a view without calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from bench.simulate.draws import between, uniforms
from bench.simulate.knobs import Knobs, draw_knobs, draw_rare
from bench.simulate.recorded import View, draw_view

_AHEAD: Final[dict[str, object]] = {
    "gc_pause_ms": 0.0, "data_stall_ms": 0.0, "retries_per_step": 0.0, "pageable_host": False,
    "token_sync": False,
}  # fmt: skip
"""Nothing holds the host up."""


def _quick(knobs: Knobs) -> Knobs:
    """With a host that is mostly ahead of the GPU."""
    return replace(knobs, python_us=min(knobs.python_us, 5.0), api_us=min(knobs.api_us, 4.0))


def _view(seed: int, **fixed: object) -> View:
    view = replace(draw_view(seed), calls=True, graphs="node", gpu_table=True)
    return replace(view, **fixed)  # type: ignore[arg-type]


def _cut(seed: int, *, flushed: bool) -> View:
    draw = uniforms(f"{seed}/cut")
    begins, ends = (between(share, 0.2, 0.8) for share in draw[:2])
    return _view(seed, begin_frac=begins, end_frac=ends, flushed=flushed)


def sm_room(seed: int) -> tuple[Knobs, View]:
    """Weight gradients, the shared expert or both on streams of their own."""
    knobs = _quick(draw_rare(seed, "delayed_wgrad", "shared_expert_stream", shared_expert=True))
    only = knobs.dispatcher == "none" or not knobs.shared_expert_stream
    return replace(knobs, delayed_wgrad=only or knobs.delayed_wgrad), _view(seed)


def cut_graphs(seed: int) -> tuple[Knobs, View]:
    """A capture that begins and ends within steps, with graph launches that have no rows on both sides."""
    waits = ("loss", "read_back", "device")[int(3 * uniforms(f"{seed}/waits")[0])]
    knobs = draw_knobs(
        seed, **_AHEAD, graph_attention=True, graph_router=True, tensor_parallel_us=0.0,
        context_parallel_us=0.0, end_of_step=waits, step_count=6,
    )  # fmt: skip
    return _quick(knobs), _cut(seed, flushed=False)


def exposed_gather(seed: int) -> tuple[Knobs, View]:
    """Parameters gathered after the optimizer, which alone says where a step ends."""
    long_us = between(uniforms(f"{seed}/gather")[0], 40, 400, by_factors=True)
    return draw_knobs(seed, gradient_overlap=False, gradient_us=long_us), _view(seed, ranges="none")


def host_resident(seed: int) -> tuple[Knobs, View]:
    """Weights that live in host memory, copied to the device layer by layer."""
    return _quick(draw_rare(seed, "resident_mib", offload_mib=0.0)), _view(seed)


def cpu_adam(seed: int) -> tuple[Knobs, View]:
    """Adam on the host for some or all parameters; where none is left on the GPU, ranges name the steps."""
    knobs = draw_rare(seed, "cpu_adam_ms", "cpu_adam_mib", "cpu_adam_frac", offload_mib=0.0)
    view = _view(seed)
    return _quick(knobs), replace(view, ranges="steps") if knobs.cpu_adam_frac == 1.0 else view


def slow_first_step(seed: int) -> tuple[Knobs, View]:
    """Three to seven steps, the first of them slow: it loads code, or Python is slow."""
    few = 3 + int(5 * uniforms(f"{seed}/few")[0])
    knobs = draw_rare(
        seed, "first_step", "first_step_ms", step_count=few, gc_pause_ms=0.0, retries_per_step=0.0
    )
    return _quick(knobs), _view(seed)


def initialisation(seed: int) -> tuple[Knobs, View]:
    """Kernels of initialisation before a first step that is whole."""
    return draw_rare(seed, "initial_kernel_count"), _view(seed, ranges="none")


def far_ahead(seed: int) -> tuple[Knobs, View]:
    """A cut capture in which the GPU is never idle when work is launched; the host waits once a step."""
    draw = uniforms(f"{seed}/far")
    knobs = draw_knobs(
        seed, **_AHEAD, end_of_step="loss", gpu=("A100", "H100")[draw[0] < 0.6], step_count=6,
        python_us=between(draw[1], 0.5, 1.5), api_us=between(draw[2], 1.8, 2.5), small_kernel_us=30.0,
    )  # fmt: skip
    return knobs, _cut(seed, flushed=draw[3] < 0.5)


def poll(seed: int) -> tuple[Knobs, View]:
    """DeepEP's host polls for the token counts of every dispatch, early or late."""
    gpu = ("H100", "GB200")[uniforms(f"{seed}/poll")[0] < 0.4]
    return draw_knobs(seed, dispatcher="deepep", gpu=gpu, token_sync=True), _view(seed)


_STEADY: Final[dict[str, object]] = {
    "gc_pause_ms": 0.0, "retries_per_step": 0.0, "data_stall_ms": 0.0, "microbatch_count": 1,
    "peer_late_us": 1.0, "pipeline_us": 0.0,
}  # fmt: skip
"""Steps alike, and short enough for many of them."""


def _ranges(seed: int) -> str:
    return ("none", "steps")[uniforms(f"{seed}/ranges")[0] < 0.5]


def _waits(seed: int, *ways: str) -> str:
    return ways[int(len(ways) * uniforms(f"{seed}/waits")[0])]


def helper_threads(seed: int) -> tuple[Knobs, View]:
    """A loader's thread copies, and launches kernels, beside steps of which most wait for their batch."""
    draw = uniforms(f"{seed}/helper")
    stall_ms = between(draw[0], 3.0, 20.0) if draw[1] < 0.7 else 0.0
    knobs = draw_rare(
        seed, "helper", "helper_kernel_us", "batch_mib",
        **_STEADY | {"data_stall_ms": stall_ms, "step_count": 5, "end_of_step": "read_back"},
    )  # fmt: skip
    return _quick(knobs), _view(seed, ranges=_ranges(seed))


def host_ahead(seed: int) -> tuple[Knobs, View]:
    """Steps of few long kernels: the host is done with a step before its GPU work begins."""
    knobs = draw_knobs(
        seed, **_AHEAD | _STEADY, gpu=("A100", "H100")[uniforms(f"{seed}/ahead")[0] < 0.5], step_count=5,
        layer_count=3, dispatcher="none", end_of_step="none", attention_us=400.0, dense_gemm_us=500.0,
        expert_gemm_us=1000.0, recompute="none",
    )  # fmt: skip
    return _quick(knobs), _view(seed, ranges=_ranges(seed))


def warm_up(seed: int) -> tuple[Knobs, View]:
    """Two to ten like steps, the first of them slow: it loads code, takes memory, or Python is slow."""
    count = 2 + int(9 * uniforms(f"{seed}/few")[0])
    fixed = _STEADY | {"step_count": count, "end_of_step": "read_back"}
    knobs = draw_rare(seed, "first_step", "first_step_ms", **fixed)
    return _quick(knobs), _view(seed, ranges=_ranges(seed))


def hiccups(seed: int) -> tuple[Knobs, View]:
    """One step of nine or two of twelve, and more, that something holds up."""
    knobs = draw_rare(seed, "hiccup_count", "hiccup_ms", **_STEADY | {"end_of_step": "read_back"})
    count = 6 + 3 * knobs.hiccup_count + int(4 * uniforms(f"{seed}/steps")[0])
    return _quick(replace(knobs, step_count=count, layer_count=2)), _view(seed, ranges=_ranges(seed))


def data_loading(seed: int) -> tuple[Knobs, View]:
    """One to eight workers, so that each first to eighth step waits; input copies of any kind."""
    knobs = draw_rare(seed, "loader_workers", "batch_mib", **_STEADY)
    stall_ms = between(uniforms(f"{seed}/stall")[0], 3.0, 15.0, by_factors=True)
    knobs = replace(
        knobs, step_count=max(6, 3 * knobs.loader_workers + 1), layer_count=2,
        data_stall_ms=stall_ms * knobs.loader_workers,
        end_of_step=_waits(seed, "read_back", "device", "loss"),
    )  # fmt: skip
    return _quick(knobs), _view(seed, ranges=_ranges(seed))


def bare_recompute(seed: int) -> tuple[Knobs, View]:
    """Activations run again, or not, and neither range nor perhaps thread says what runs backward."""
    mode = _waits(seed, "full", "full", "moe", "core_attn", "norm_act", "none")
    knobs = draw_rare(seed, "autograd_thread", **_AHEAD, recompute=mode, offload_mib=0.0)
    return _quick(knobs), _view(seed, ranges="none")


def low_precision(seed: int) -> tuple[Knobs, View]:
    """Matrices multiplied in FP32 or TF32: attention, GEMMs or convolutions."""
    knobs = draw_rare(
        seed, "precision", **_AHEAD, fp8=False, dispatcher="none", recompute="none", end_of_step="read_back"
    )
    return _quick(knobs), _view(seed, ranges=_ranges(seed))


def opaque_graphs(seed: int) -> tuple[Knobs, View]:
    """Each step one graph that is recorded whole; some wait for their batch between replays."""
    draw = uniforms(f"{seed}/opaque")
    stall_ms = between(draw[0], 3.0, 20.0) if draw[1] < 0.4 else 0.0
    knobs = draw_knobs(
        seed, **_AHEAD | _STEADY | {"data_stall_ms": stall_ms}, dispatcher="none",
        step_count=3 + int(8 * draw[2]), gradient_overlap=False, recompute="none",
        end_of_step=_waits(seed, "read_back", "device"), offload_mib=0.0, tensor_parallel_us=0.0,
        context_parallel_us=0.0, graph_attention=False, graph_router=False, graph_preprocess=False,
    )  # fmt: skip
    knobs = replace(_quick(knobs), whole_graph=True, autograd_thread=False)
    return knobs, _view(seed, graphs="graph", schema="3.25.0", ranges=_ranges(seed))


def start_up(seed: int) -> tuple[Knobs, View]:
    """One-time calls of a second or more before the steps."""
    knobs = draw_rare(seed, "startup_ms", **_STEADY, step_count=2 + int(4 * uniforms(f"{seed}/few")[0]))
    return _quick(knobs), _view(seed, ranges=_ranges(seed))


CAUSES: Final[Mapping[str, Callable[[int], tuple[Knobs, View]]]] = {
    "sm room": sm_room,
    "cut graphs": cut_graphs,
    "exposed gather": exposed_gather,
    "host resident": host_resident,
    "cpu adam": cpu_adam,
    "slow first step": slow_first_step,
    "initialisation": initialisation,
    "far ahead": far_ahead,
    "poll": poll,
    "helper threads": helper_threads,
    "host ahead": host_ahead,
    "warm-up": warm_up,
    "hiccups": hiccups,
    "data loading": data_loading,
    "bare recompute": bare_recompute,
    "low precision": low_precision,
    "opaque graphs": opaque_graphs,
    "start-up": start_up,
}
"""By family."""

KINDS: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "data loading": ("host_overhead", frozenset({"data"})),
    "low precision": ("compute", frozenset({"low_precision_unused", "no_tensor_cores"})),
}
"""Families with a wall of one kind, by name: where that wall is the verdict, its kind is one of these."""
