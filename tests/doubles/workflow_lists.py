"""Rows of the workflow that no configuration kept in test_kept_configurations reaches."""

from __future__ import annotations

from typing import Final

from tests.doubles.workflow import Config, Row, log_of, run_with
from traces.settings.settings import Framework

OVERLAP: Config = {"overlap_moe_expert_parallel_comm": True}
BRIDGE: Framework = "megatron_bridge"
LEFT_OFF: Config = {"comm_overlap.overlap_moe_expert_parallel_comm": False}
DEEPEP: Config = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"}
HYBRIDEP: Config = {
    "moe_token_dispatcher_type": "flex",
    "moe_flex_dispatcher_backend": "hybridep",
    "expert_model_parallel_size": 32,
}
GRAPHS: Config = {"num_moe_experts": 64, "moe_expert_capacity_factor": None}
PARTS: Config = {
    **GRAPHS,
    "cuda_graph_impl": "transformer_engine",
    "cuda_graph_modules": ("moe_router", "moe_preprocess"),
}
WHOLE: Config = {**GRAPHS, "cuda_graph_impl": "full_iteration", "cuda_graph_modules": ()}
FP8: Config = {"fp8": "e4m3", "fp8_recipe": "blockwise"}
RANKS: Final = "env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"
CUT: Config = {
    "tensor_model_parallel_size": 4, "context_parallel_size": 2, "pipeline_model_parallel_size": 4,
    "expert_model_parallel_size": 8, "expert_tensor_parallel_size": 1, "num_moe_experts": 64,
    "world_size": 256,
}  # fmt: skip
"""The documents' example: 256 GPUs, TP4 CP2 DP8 PP4."""
FAKE: Config = {"fake_process_group": True}
LONG: Config = {"seq_length": 65_536, "context_parallel_size": 1}
STAGES: Config = {**OVERLAP, "pipeline_model_parallel_size": 4}
UNBOUND: Config = {"launcher.numa_binding": False, "cuda_graph_impl": "none"}
GB200 = {"gpu": "GB200"}
ROWS: tuple[Row, ...] = (
    Row("003", "fit-first", "met", run_with(log=log_of(steps=3))),
    Row("002", "fit-smallest-model-parallel", "met", run_with(CUT, log=log_of(steps=3, peak_gib=51))),
    Row("002", "fit-smallest-model-parallel", "violated", run_with(CUT, log=log_of(steps=3, peak_gib=50))),
    Row("002", "fit-offload-last", "unknown", run_with({"fine_grained_activation_offloading": True})),
    Row("002", "fit-single-gpu-sanity", "met", run_with({**FAKE, "moe_token_dispatcher_type": "alltoall"})),
    Row("002", "fit-single-gpu-sanity", "violated", run_with({**FAKE, "moe_token_dispatcher_type": "flex"})),
    Row("003", "scale-cp-long-context", "violated", run_with(LONG)),
    Row("004", "ep-overlap-virtual-stages", "unknown", run_with(STAGES)),
    Row("004", "flex-backend-inert", "unknown", run_with({"moe_flex_dispatcher_backend": "hybridep"})),
    Row("000", "hybridep-domain", "met", run_with({**HYBRIDEP, RANKS: "32"}, given=GB200)),
    Row("000", "hybridep-domain", "violated", run_with({**HYBRIDEP, RANKS: "8"}, given=GB200)),
    Row("000", "hybridep-domain", "met", run_with({**HYBRIDEP, RANKS: "8"}, given={"gpu": "H100"})),
    Row("003", "graphs-full-recompute", "unknown", run_with(PARTS)),
    Row("003", "graphs-full-recompute", "not_applicable", run_with(WHOLE)),
    Row("003", "profile-throughput", "met", run_with(FP8, log=log_of(steps=3))),
    Row("000", "profile-platform", "met", run_with({"launcher.numa_binding": True}, given=GB200)),
    Row("000", "profile-platform", "violated", run_with(UNBOUND, given={"gpu": "GB300"})),
    Row("002", "profile-dispatcher-as-fix", "unknown", run_with(DEEPEP)),
    Row("003", "profile-visible-exchanges", "unknown", run_with(ep_share=0.2)),
    Row("004", "profile-recipe-default", "unknown", run_with(LEFT_OFF, framework=BRIDGE)),
)
