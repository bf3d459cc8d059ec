"""Contradictions from a simulated trace with a configuration: the trace says what ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bench.simulate.knobs import Knobs
from heuristics.config.about import Given
from heuristics.findings.contradictions import find_contradictions
from heuristics.run.run import Run
from tests.doubles.workflow import Config
from tests.recordings.simulated import observed
from traces.missing import known
from traces.settings.settings import Framework, Value, settings

SMALL = Knobs(step_count=3, layer_count=2)
EXPOSED = replace(SMALL, dispatch_us=600)
"""NCCL all-to-all with nothing beside it, BF16, no graphs, nothing recomputed or offloaded."""
GB200 = replace(EXPOSED, gpu="GB200")
GRAPHED = replace(SMALL, dispatcher="deepep", graph_attention=True, graph_router=True, graph_preprocess=True)
OVERLAPPED = replace(SMALL, ep_overlap=True, microbatch_count=4, dispatch_us=100)
HEAVY = replace(SMALL, recompute="moe", offload_mib=48, retries_per_step=4)
COLLECTING = replace(SMALL, gc_pause_ms=12, gc_per_layer_frac=0.3, end_of_step="read_back")
OVERLAP = "overlap_moe_expert_parallel_comm"
DEEPEP: Config = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"}
WHOLE_MOE: Config = {"recompute_granularity": "selective", "recompute_modules": ("moe",)}
GRAPHS: Config = {
    "cuda_graph_impl": "transformer_engine",
    "cuda_graph_modules": ("moe_router", "moe_preprocess"),
}


def run_of(
    knobs: Knobs,
    config: Mapping[str, Value],
    framework: Framework | None = "megatron_bridge",
    **given: object,
) -> Run:
    """What a trace shows, raw, beside a configuration."""
    found = observed(knobs)
    costed = [wall for wall in found.walls if known(wall.cost_ns) is not None]
    return Run(
        found.observed,
        replace(Given(), **given),  # type: ignore[arg-type]
        {wall.id: dict(known(wall.cost_by_kind_ns) or {}) for wall in costed},
        found.window_ns,
        {wall.id: known(wall.cost_ns) or 0 for wall in costed},
        settings=settings(config, "config.yaml:4", framework),
    )


def found(run: Run) -> dict[str, str]:
    return {one.id: one.state for one in find_contradictions(run)}


@pytest.mark.parametrize(
    ("knobs", "config", "name", "state"),
    [
        (EXPOSED, DEEPEP, "CFG-dispatcher-not-active", "requested_not_active"),
        (GRAPHED, {"cuda_graph_impl": "none"}, "CFG-graphs-unasked", "active_not_requested"),
        (
            GRAPHED,
            {"moe_token_dispatcher_type": "alltoall"},
            "CFG-dispatcher-not-active",
            "active_not_requested",
        ),
        (EXPOSED, {OVERLAP: True}, "CFG-ep-overlap-not-active", "requested_not_active"),
        (HEAVY, {"recompute_granularity": None}, "CFG-recompute-unasked", "active_not_requested"),
        (EXPOSED, {"recompute_granularity": "full"}, "CFG-recompute-not-active", "requested_not_active"),
        (EXPOSED, {"cpu_offloading": True}, "CFG-offload-not-active", "requested_not_active"),
        (
            HEAVY,
            {"env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
            "CFG-expandable-segments",
            "requested_not_active",
        ),
        (COLLECTING, {"train.manual_gc": True, "train.manual_gc_interval": 100}, "CFG-manual-gc", "inert"),
        (EXPOSED, {"moe_grouped_gemm": False}, "CFG-grouped-gemm-unasked", "active_not_requested"),
    ],
)
def test_what_the_trace_shows_contradicts_what_was_asked_for(
    knobs: Knobs, config: Mapping[str, Value], name: str, state: str
) -> None:
    assert found(run_of(knobs, config, None)) == {name: state}


@pytest.mark.parametrize(
    ("knobs", "config"),
    [
        (GRAPHED, {**DEEPEP, **GRAPHS, "moe_grouped_gemm": True, "recompute_granularity": None}),
        (OVERLAPPED, {"moe_token_dispatcher_type": "alltoall", f"comm_overlap.{OVERLAP}": True}),
        (HEAVY, {**WHOLE_MOE, "cpu_offloading": True}),
        (COLLECTING, {"train.manual_gc": False}),
    ],
)
def test_a_configuration_that_says_what_ran_contradicts_nothing(
    knobs: Knobs, config: Mapping[str, Value]
) -> None:
    assert found(run_of(knobs, config, None)) == {}
