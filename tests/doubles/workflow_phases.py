"""Rows of the workflow's phases: fit, scale and fold, each a rule, what it says, and of which run."""

from __future__ import annotations

from tests.doubles.workflow import Config, Row, log_of, rows, run_with

H100 = {"gpu": "H100"}
CUT: Config = {
    "tensor_model_parallel_size": 4,
    "context_parallel_size": 2,
    "pipeline_model_parallel_size": 4,
    "expert_model_parallel_size": 8,
    "expert_tensor_parallel_size": 1,
    "num_moe_experts": 64,
    "world_size": 256,
}
"""The documents' example: 256 GPUs, TP4 CP2 DP8 PP4."""
ONE: Config = dict.fromkeys(
    ("tensor_model_parallel_size", "context_parallel_size", "pipeline_model_parallel_size"), 1
)
FIT: tuple[Row, ...] = (
    *rows(
        "002",
        "fit-first",
        met=run_with(log=log_of(steps=3, peak_gib=60)),
        violated=run_with(log=log_of(oom=2)),
    ),
    Row("003", "fit-first", "violated", run_with(log=log_of(steps=3, peak_gib=97))),
    Row("003", "fit-first", "met", run_with(log=log_of(steps=3))),
    *rows(
        "002",
        "fit-smallest-model-parallel",
        met=run_with(CUT, log=log_of(steps=3, peak_gib=51)),
        violated=run_with(CUT, log=log_of(steps=3, peak_gib=50)),
        unknown=run_with(CUT),
    ),
    Row("003", "fit-smallest-model-parallel", "met", run_with(ONE)),
    Row("003", "fit-smallest-model-parallel", "met", run_with(CUT, log=log_of(oom=1, peak_gib=50))),
    *rows(
        "002",
        "fit-selective-before-full",
        met=run_with({"recompute_granularity": "selective"}),
        violated=run_with({"recompute_granularity": "full"}),
    ),
    Row(
        "003",
        "fit-selective-before-full",
        "met",
        run_with({"recompute_granularity": "full"}, log=log_of(oom=1)),
    ),
    *rows(
        "003",
        "fit-recompute-modules",
        met=run_with({"recompute_granularity": "selective", "recompute_modules": ("moe_act", "layernorm")}),
        violated=run_with({"recompute_granularity": "selective", "recompute_modules": ("moe",)}),
        not_applicable=run_with({"recompute_granularity": "full"}),
    ),
    *rows(
        "002",
        "fit-offload-last",
        met=run_with({"cpu_offloading": True, "recompute_granularity": "selective"}),
        violated=run_with({"optimizer.optimizer_cpu_offload": True, "recompute_granularity": None}),
        unknown=run_with({"fine_grained_activation_offloading": True}),
    ),
    *rows(
        "002",
        "fit-single-gpu-sanity",
        met=run_with({"fake_process_group": True, "moe_token_dispatcher_type": "alltoall"}),
        violated=run_with({"fake_process_group": True, "moe_token_dispatcher_type": "flex"}),
        unknown=run_with(CUT),
        not_applicable=run_with(given={"core_version": "0.15.3"}),
    ),
)
SCALE: tuple[Row, ...] = (
    *rows(
        "002",
        "scale-dp-first",
        met=run_with(CUT, log=log_of(steps=1, peak_gib=80)),
        violated=run_with(CUT, log=log_of(steps=1, peak_gib=40)),
        unknown=run_with(CUT),
        not_applicable=run_with(CUT, log=log_of(oom=1)),
    ),
    Row("003", "scale-dp-first", "violated", run_with({**CUT, "ddp.use_distributed_optimizer": False})),
    *rows(
        "002",
        "scale-fast-domain",
        met=run_with(CUT, given=H100),
        violated=run_with({**CUT, "expert_model_parallel_size": 16}, given=H100),
        unknown=run_with(CUT),
    ),
    Row(
        "003",
        "scale-fast-domain",
        "met",
        run_with({**CUT, "expert_model_parallel_size": 64}, given={"gpu": "GB200"}),
    ),
    *rows(
        "002",
        "scale-pp-across-nodes",
        met=run_with(CUT, given=H100),
        violated=run_with({**ONE, "tensor_model_parallel_size": 16, "world_size": 32}, given=H100),
        not_applicable=run_with({**ONE, "world_size": 8}, given=H100),
    ),
    *rows(
        "003",
        "scale-vpp",
        met=run_with({"pipeline_model_parallel_size": 4, "virtual_pipeline_model_parallel_size": 2}),
        violated=run_with({"pipeline_model_parallel_size": 4, "virtual_pipeline_model_parallel_size": None}),
        not_applicable=run_with(ONE),
    ),
    Row(
        "002",
        "scale-vpp",
        "met",
        run_with({"pipeline_model_parallel_size": 8, "pipeline_model_parallel_layout": "Et|(tt|)*30L"}),
    ),
    *rows(
        "002",
        "scale-cp-long-context",
        met=run_with({"seq_length": 32_768, "context_parallel_size": 8}),
        violated=run_with({"seq_length": 4_096, "context_parallel_size": 2}),
        unknown=run_with({"seq_length": 8_192, "context_parallel_size": 1}),
    ),
    Row(
        "003",
        "scale-cp-long-context",
        "violated",
        run_with({"seq_length": 65_536, "context_parallel_size": 1}),
    ),
    Row(
        "003",
        "scale-cp-long-context",
        "violated",
        run_with({"seq_length": 8_192, "context_parallel_size": 1}, given={"memory_tight": True}),
    ),
    Row(
        "003",
        "scale-cp-long-context",
        "met",
        run_with({"seq_length": 8_192, "context_parallel_size": 1}, log=log_of(steps=1, peak_gib=50)),
    ),
)
FOLDING: tuple[Row, ...] = (
    *rows(
        "003",
        "folding-own-layout",
        met=run_with(CUT),
        violated=run_with({**CUT, "expert_tensor_parallel_size": None}),
        not_applicable=run_with({**ONE, "expert_model_parallel_size": 8}),
    ),
    *rows(
        "002",
        "folding-larger-ep",
        met=run_with({**CUT, "expert_model_parallel_size": 64}),
        violated=run_with(CUT, given={"gpu": "GB200"}),
        not_applicable=run_with({**ONE, "expert_model_parallel_size": 8, "world_size": 8}),
    ),
)
