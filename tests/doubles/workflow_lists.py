"""Rows of the workflow's lists of what must hold first: a rule, what it says, and of which run."""

from __future__ import annotations

from collections.abc import Mapping

from heuristics.run.run import Run
from tests.doubles.workflow import Config, Row, log_of, rows, run_with
from traces.settings.settings import Framework, Value

OVERLAP: Config = {"overlap_moe_expert_parallel_comm": True}
WGRAD: Config = {"delay_wgrad_compute": True}
GRAPHED_WGRAD: Config = {
    **WGRAD,
    "ddp.overlap_grad_reduce": True,
    "cuda_graph_impl": "transformer_engine",
    "cuda_graph_modules": ("attn",),
}
WGRAD_RELEASES: tuple[tuple[str, Config, str, str], ...] = (
    ("reduce-lm", {**WGRAD, "ddp.overlap_grad_reduce": True}, "2.7.0", "2.8.0"),
    ("reduce-0.14", {**WGRAD, "ddp.overlap_grad_reduce": True}, "2.6.0", "2.7.0"),
    ("reduce-bridge", {**WGRAD, "ddp.overlap_grad_reduce": True}, "2.6.0", "2.7.0"),
    ("fusion-bridge", {**WGRAD, "gradient_accumulation_fusion": True}, "2.6.0", "2.7.0"),
)
"""Need, what asks for it, Transformer Engine before it and with it."""
RELEASES = {"reduce-0.14": "0.14.0"}
"""Megatron-Core where the need is of no later one."""
BRIDGE: Framework = "megatron_bridge"
MXFP8: Config = {"mixed_precision": "bf16_with_mxfp8_mixed"}
LEFT_OFF: Config = {"comm_overlap.overlap_moe_expert_parallel_comm": False}
ASKED_NOTHING = run_with({"overlap_moe_expert_parallel_comm": False, "delay_wgrad_compute": False})
DEEPEP: Config = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"}
HYBRIDEP: Config = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep"}
ALLTOALL: Config = {"moe_token_dispatcher_type": "alltoall"}
SHARED: Config = {"moe_shared_expert_overlap": True, "moe_shared_expert_intermediate_size": 512}
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
NO_GRAPHS = run_with({"cuda_graph_impl": "none"})
FP8: Config = {"fp8": "e4m3", "fp8_recipe": "blockwise"}
BF16 = run_with({"fp8": None, "fp4": None, "bf16": True})
RANKS = "env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"


def with_overlap(knobs: Mapping[str, Value] | None = None, **given: object) -> Run:
    return run_with({**OVERLAP, **(knobs or {})}, given=given)


def overlap_rows(seed: str, name: str, knob: str, good: Value, bad: Value) -> tuple[Row, ...]:
    return rows(
        seed,
        f"ep-overlap-{name}",
        met=with_overlap({knob: good}),
        violated=with_overlap({knob: bad}),
        unknown=with_overlap(),
        not_applicable=ASKED_NOTHING,
    )


EP_OVERLAP: tuple[Row, ...] = (
    *overlap_rows("001", "expert-parallel", "expert_model_parallel_size", 8, 1),
    *overlap_rows("004", "experts", "num_moe_experts", 64, 1),
    *overlap_rows("004", "dispatcher", "moe_token_dispatcher_type", "alltoall", "allgather"),
    Row("001", "ep-overlap-dispatcher", "met", with_overlap(DEEPEP)),
    *rows(
        "001",
        "ep-overlap-precision",
        met=with_overlap({"bf16": True}),
        violated=with_overlap({"bf16": False, "fp16": False}),
        unknown=with_overlap(),
        not_applicable=ASKED_NOTHING,
    ),
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
    *overlap_rows("001", "full-recompute", "recompute_granularity", "selective", "full"),
    *overlap_rows("001", "recompute-method", "recompute_method", None, "uniform"),
    *overlap_rows("001", "recompute-layers", "recompute_num_layers", None, 2),
    *overlap_rows("001", "shared-experts", "moe_shared_expert_overlap", False, True),
    *overlap_rows("001", "mtp-at-most-one", "mtp_num_layers", 1, 2),
    Row("001", "ep-overlap-mtp-at-most-one", "met", with_overlap({"mtp_num_layers": None})),
    *rows(
        "001",
        "ep-overlap-mtp-one",
        met=with_overlap({"mtp_num_layers": 1}, core_version="0.18.0"),
        violated=with_overlap({"mtp_num_layers": 0}, core_version="0.18.0"),
        unknown=with_overlap(core_version="0.18.0"),
    ),
)
DELAYED_WGRAD: tuple[Row, ...] = (
    *rows(
        "001",
        "delayed-wgrad-overlap",
        met=run_with({**WGRAD, **OVERLAP}),
        violated=run_with({**WGRAD, "overlap_moe_expert_parallel_comm": False}),
        unknown=run_with(WGRAD),
    ),
    *(
        row
        for name, knobs, old, new in WGRAD_RELEASES
        for row in rows(
            "001",
            f"delayed-wgrad-{name}",
            met=run_with(knobs, given={"te_version": new, "core_version": RELEASES.get(name)}),
            violated=run_with(knobs, given={"te_version": old, "core_version": RELEASES.get(name)}),
            unknown=run_with(knobs, given={"core_version": RELEASES.get(name)}),
            not_applicable=ASKED_NOTHING,
        )
    ),
    *(
        row
        for framework in ("bridge", "lm")
        for row in (
            *rows(
                "001",
                f"graphs-wgrad-te-{framework}",
                met=run_with(GRAPHED_WGRAD, given={"te_version": "2.12.0"}),
                violated=run_with(GRAPHED_WGRAD, given={"te_version": "2.11.0"}),
                unknown=run_with(GRAPHED_WGRAD),
                not_applicable=ASKED_NOTHING,
            ),
            *rows(
                "001",
                f"graphs-wgrad-fusion-{framework}",
                met=run_with({**GRAPHED_WGRAD, "gradient_accumulation_fusion": True}),
                violated=run_with({**GRAPHED_WGRAD, "gradient_accumulation_fusion": False}),
                unknown=run_with(GRAPHED_WGRAD),
            ),
            *rows(
                "001",
                f"graphs-wgrad-bias-{framework}",
                met=run_with({**GRAPHED_WGRAD, "add_bias_linear": False, "add_qkv_bias": False}),
                violated=run_with({**GRAPHED_WGRAD, "add_bias_linear": False, "add_qkv_bias": True}),
                unknown=run_with(GRAPHED_WGRAD),
            ),
        )
    ),
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
        "001",
        "deepep-gpu",
        met=run_with(DEEPEP, given={"gpu": "H100"}),
        violated=run_with(DEEPEP, given={"gpu": "GB200"}),
        unknown=run_with(DEEPEP),
        not_applicable=run_with({**ALLTOALL, "moe_flex_dispatcher_backend": "deepep"}),
    ),
    Row("001", "deepep-gpu", "violated", run_with(DEEPEP, given={"gpu": "Tesla V100-SXM2-32GB"})),
    Row("001", "deepep-gpu", "unknown", run_with(DEEPEP, given={"gpu": "NVIDIA X9000"})),
    *rows(
        "001",
        "hybridep-gpu",
        met=run_with(HYBRIDEP, given={"gpu": "GB200"}),
        violated=run_with(HYBRIDEP, shown={"capability": (7, 0)}),
        unknown=run_with(HYBRIDEP),
    ),
    *rows(
        "003",
        "flex-router-dtype",
        met=run_with({**DEEPEP, "moe_router_dtype": "fp32"}),
        violated=run_with({**DEEPEP, "moe_router_dtype": None}),
        unknown=run_with(DEEPEP),
    ),
    *rows(
        "000",
        "flex-sm-count",
        met=run_with({**DEEPEP, "moe_deepep_num_sms": 24}),
        violated=run_with({**HYBRIDEP, "moe_hybridep_num_sms": None, "moe_flex_dispatcher_num_sms": None}),
        unknown=run_with(DEEPEP),
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
    *rows(
        "001",
        "shared-overlap-alltoall",
        met=run_with({**SHARED, **ALLTOALL}, given={"core_version": "0.17.0"}),
        violated=run_with({**SHARED, **DEEPEP}, given={"core_version": "0.17.0"}),
        unknown=run_with(SHARED, given={"core_version": "0.17.0"}),
    ),
    *rows(
        "001",
        "shared-overlap-dispatcher",
        met=run_with({**SHARED, **DEEPEP}),
        violated=run_with({**SHARED, "moe_token_dispatcher_type": "allgather"}),
        unknown=run_with(SHARED),
    ),
)
GRAPHS: tuple[Row, ...] = (
    *rows(
        "003",
        "graphs-full-iteration-sync-free",
        met=run_with(PARTS),
        violated=run_with({**WHOLE, **ALLTOALL}),
        not_applicable=NO_GRAPHS,
    ),
    *rows(
        "003",
        "graphs-static-parts",
        met=run_with(PARTS),
        violated=run_with({**PARTS, "cuda_graph_modules": ("moe",)}),
        not_applicable=NO_GRAPHS,
    ),
    Row("003", "graphs-static-parts", "violated", run_with({**PARTS, "cuda_graph_modules": ("full",)})),
    *rows(
        "000",
        "graphs-router-and-preprocess",
        met=run_with({**PARTS, "cuda_graph_modules": ("attn", "moe_router", "moe_preprocess")}),
        violated=run_with({**PARTS, "cuda_graph_modules": ("attn",)}),
        not_applicable=NO_GRAPHS,
    ),
    *rows(
        "003",
        "graphs-static-shapes",
        met=run_with({**PARTS, "variable_seq_lengths": False}),
        violated=run_with({**PARTS, "variable_seq_lengths": True}),
        unknown=run_with(PARTS),
        not_applicable=NO_GRAPHS,
    ),
    *rows(
        "003",
        "graphs-packed",
        met=run_with(PARTS, given={"packed_sequences": False}),
        violated=run_with(PARTS, given={"packed_sequences": True}),
        unknown=run_with(PARTS),
    ),
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
    *rows(
        "003",
        "precision-router",
        met=run_with({**FP8, "moe_router_dtype": "fp32"}),
        violated=run_with({**FP8, "moe_router_dtype": None}),
        unknown=run_with(FP8),
        not_applicable=BF16,
    ),
    *rows(
        "003",
        "precision-platform",
        met=run_with(FP8, given={"gpu": "H100"}),
        violated=run_with(MXFP8, given={"gpu": "H100"}, framework=BRIDGE),
        unknown=run_with(FP8),
        not_applicable=BF16,
    ),
    Row(
        "003",
        "precision-platform",
        "met",
        run_with(MXFP8, given={"gpu": "GB200"}, framework=BRIDGE),
    ),
    *rows(
        "003",
        "precision-nvfp4-last",
        met=run_with({"fp4": "e2m1"}, given={"stage": "tuned"}),
        violated=run_with({"fp4": "e2m1"}, given={"stage": "bring_up"}),
        not_applicable=run_with({**FP8, "fp4": None}),
    ),
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
    Row("000", "profile-routing-mode", "met", run_with({"moe_router_force_load_balancing": False})),
    Row("000", "profile-routing-mode", "unknown", Run()),
)
ROWS = (*EP_OVERLAP, *DELAYED_WGRAD, *DISPATCHER, *GRAPHS, *PRECISION, *PROFILE)
