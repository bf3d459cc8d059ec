"""Rows of the workflow's lists of what must hold first: a rule, what it says, and of which run."""

from __future__ import annotations

from collections.abc import Mapping

from heuristics.run.run import Run
from tests.doubles.workflow import Config, Row, log_of, rows, run_with
from traces.settings.settings import Framework, Value

OVERLAP: Config = {"overlap_moe_expert_parallel_comm": True}
BRIDGE: Framework = "megatron_bridge"
LEFT_OFF: Config = {"comm_overlap.overlap_moe_expert_parallel_comm": False}
DEEPEP: Config = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"}
HYBRIDEP: Config = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep"}
ALLTOALL: Config = {"moe_token_dispatcher_type": "alltoall"}
PARTS: Config = {
    "cuda_graph_impl": "transformer_engine",
    "cuda_graph_modules": ("moe_router", "moe_preprocess"),
    "num_moe_experts": 64,
    "moe_expert_capacity_factor": None,
}
WHOLE: Config = {
    "cuda_graph_impl": "full_iteration",
    "cuda_graph_modules": (),
    "num_moe_experts": 64,
    "moe_expert_capacity_factor": None,
}
FP8: Config = {"fp8": "e4m3", "fp8_recipe": "blockwise"}
BF16 = run_with({"fp8": None, "fp4": None, "bf16": True})
RANKS = "env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"


def with_overlap(knobs: Mapping[str, Value] | None = None, **given: object) -> Run:
    return run_with({**OVERLAP, **(knobs or {})}, given=given)


EP_OVERLAP: tuple[Row, ...] = (
    *rows(
        "001",
        "ep-overlap-torch",
        met=with_overlap(torch_version="2.6.0"),
        violated=with_overlap(torch_version="2.5.1"),
        unknown=with_overlap(),
    ),
    *rows(
        "004",
        "ep-overlap-virtual-stages",
        met=with_overlap({"pipeline_model_parallel_size": 4, "virtual_pipeline_model_parallel_size": 2}),
        violated=with_overlap(
            {"pipeline_model_parallel_size": 4, "virtual_pipeline_model_parallel_size": None}
        ),
        unknown=with_overlap({"pipeline_model_parallel_size": 4}),
    ),
    Row("001", "ep-overlap-virtual-stages", "met", with_overlap({"pipeline_model_parallel_size": 1})),
)
DISPATCHER: tuple[Row, ...] = (
    *rows(
        "004",
        "flex-backend-inert",
        met=run_with(HYBRIDEP),
        violated=run_with({**HYBRIDEP, "moe_token_dispatcher_type": "alltoall"}),
        unknown=run_with({"moe_flex_dispatcher_backend": "hybridep"}),
        not_applicable=run_with({**ALLTOALL, "moe_flex_dispatcher_backend": "deepep"}),
    ),
    *rows(
        "000",
        "hybridep-domain",
        met=run_with({**HYBRIDEP, RANKS: "32", "expert_model_parallel_size": 32}, given={"gpu": "GB200"}),
        violated=run_with({**HYBRIDEP, RANKS: "8", "expert_model_parallel_size": 32}, given={"gpu": "GB200"}),
        unknown=run_with({**HYBRIDEP, "expert_model_parallel_size": 32}, given={"gpu": "GB200"}),
        not_applicable=run_with(DEEPEP),
    ),
    Row(
        "000",
        "hybridep-domain",
        "met",
        run_with({**HYBRIDEP, RANKS: "8", "expert_model_parallel_size": 32}, given={"gpu": "H100"}),
    ),
)
GRAPHS: tuple[Row, ...] = (
    *rows(
        "003",
        "graphs-memory",
        met=run_with(PARTS, given={"memory_tight": False}),
        violated=run_with(PARTS, log=log_of(oom=1)),
        unknown=run_with(PARTS),
    ),
    *rows(
        "003",
        "graphs-full-recompute",
        met=run_with({**PARTS, "recompute_granularity": "selective"}),
        violated=run_with({**PARTS, "recompute_granularity": "full"}),
        unknown=run_with(PARTS),
        not_applicable=run_with(WHOLE),
    ),
)
PRECISION: tuple[Row, ...] = (
    Row("003", "profile-throughput", "met", run_with(FP8, log=log_of(steps=3))),
    Row("003", "profile-throughput", "unknown", run_with(FP8)),
    Row("003", "profile-throughput", "not_applicable", BF16),
)
PROFILE: tuple[Row, ...] = (
    *rows(
        "003",
        "profile-order",
        met=run_with(PARTS, log=log_of(steps=3)),
        violated=run_with(PARTS, log=log_of(oom=1)),
    ),
    *rows(
        "000",
        "profile-platform",
        met=run_with({"launcher.numa_binding": True}, given={"gpu": "GB200"}),
        violated=run_with(
            {"launcher.numa_binding": False, "cuda_graph_impl": "none"}, given={"gpu": "GB300"}
        ),
        not_applicable=run_with(given={"gpu": "H100"}),
    ),
    *rows(
        "002",
        "profile-dispatcher-as-fix",
        met=run_with(DEEPEP, ep_share=0.2),
        violated=run_with(DEEPEP, given={"stage": "bring_up"}),
        unknown=run_with(DEEPEP),
    ),
    Row("003", "profile-dispatcher-as-fix", "met", run_with(ALLTOALL)),
    *rows(
        "003",
        "profile-visible-exchanges",
        met=run_with(OVERLAP, ep_share=0.2),
        violated=run_with({"overlap_moe_expert_parallel_comm": False}, ep_share=0.2),
        unknown=run_with(ep_share=0.2),
        not_applicable=run_with(ep_share=0.05),
    ),
    *rows(
        "004",
        "profile-recipe-default",
        met=run_with({"comm_overlap.overlap_moe_expert_parallel_comm": True}, framework=BRIDGE),
        violated=run_with(LEFT_OFF, ep_share=0.2, framework=BRIDGE),
        unknown=run_with(LEFT_OFF, framework=BRIDGE),
        not_applicable=run_with({"expert_model_parallel_size": 1}),
    ),
    Row("000", "profile-routing-mode", "met", run_with({"moe_router_force_load_balancing": True})),
    Row("000", "profile-routing-mode", "unknown", Run()),
)
ROWS = (*EP_OVERLAP, *DISPATCHER, *GRAPHS, *PRECISION, *PROFILE)
