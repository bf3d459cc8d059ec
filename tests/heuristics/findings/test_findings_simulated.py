"""A simulated trace beside the configuration of what ran: nothing contradicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.simulate.knobs import Knobs
from heuristics.findings.contradictions import find_contradictions
from heuristics.run.run import Run
from tests.doubles.workflow import Config
from tests.recordings.simulated import observed
from traces.missing import known
from traces.settings.settings import settings

SMALL = Knobs(step_count=3, layer_count=2)
GRAPHED = replace(SMALL, dispatcher="deepep", graph_attention=True, graph_router=True, graph_preprocess=True)
OVERLAPPED = replace(SMALL, ep_overlap=True, microbatch_count=4, dispatch_us=100)
HEAVY = replace(SMALL, recompute="moe", offload_mib=48, retries_per_step=4)
COLLECTING = replace(SMALL, gc_pause_ms=12, gc_per_layer_frac=0.3, end_of_step="read_back")
ASKED: Config = {
    "moe_token_dispatcher_type": "flex",
    "moe_flex_dispatcher_backend": "deepep",
    "cuda_graph_impl": "transformer_engine",
    "cuda_graph_modules": ("moe_router", "moe_preprocess"),
    "moe_grouped_gemm": True,
    "recompute_granularity": None,
}
WHOLE_MOE: Config = {"recompute_granularity": "selective", "recompute_modules": ("moe",)}
OVERLAP = "comm_overlap.overlap_moe_expert_parallel_comm"


@pytest.mark.parametrize(
    ("knobs", "config"),
    [
        (GRAPHED, ASKED),
        (OVERLAPPED, {"moe_token_dispatcher_type": "alltoall", OVERLAP: True}),
        (HEAVY, {**WHOLE_MOE, "cpu_offloading": True}),
        (COLLECTING, {"train.manual_gc": False}),
    ],
)
def test_a_configuration_that_says_what_ran_contradicts_nothing(knobs: Knobs, config: Config) -> None:
    found = observed(knobs)
    costs = {wall.id: dict(known(wall.cost_by_kind_ns) or {}) for wall in found.walls}
    run = Run(found.observed, cost_by_kind_ns=costs, window_ns=found.window_ns)
    assert find_contradictions(replace(run, settings=settings(config, "config.yaml:4"))) == ()
