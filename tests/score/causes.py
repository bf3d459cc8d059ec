"""Families of drawn runs that each have one thing that other drawn runs lack: knobs and view of a seed.

Nothing else is held but what would hide it: a host that is far behind, or a view without calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from tests.simulate.draws import between, uniforms
from tests.simulate.knobs import Knobs, draw_knobs, draw_rare
from tests.simulate.recorded import View, draw_view

_AHEAD: Final[Mapping[str, object]] = {
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
}
"""By family."""
