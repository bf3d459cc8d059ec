"""The choosers' rows of CUDA graphs as rules: who says each, since when, and in which words.

Read at core_v0.12.0 to core_v0.19.0 and d98e8a64; Bridge v0.3.1 to v0.6.0 and 067f987d.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from heuristics.config.view import Config
from heuristics.guides.graph_conflicts import CONFLICTS
from heuristics.guides.graph_constraint import GraphConstraint
from heuristics.guides.graph_scopes import SCOPES
from heuristics.rules.dispatcher import TYPE
from heuristics.rules.graph_view import IMPL, MODULES, graph_view
from heuristics.rules.legacy import BRIDGE_MAIN, Level, Rule, Says

_GRAPHS: Final = (IMPL, MODULES)


@dataclass(frozen=True, slots=True)
class _ByVersion:
    """What a row of the choosers lacks to be a rule."""

    says: Says
    since: str = ""
    until: str = ""
    message: str = ""
    knobs: tuple[str, ...] = ()
    level: Level = "error"
    cure: str = ""
    fix: str = ""


_DROP_PAD: Final = ("moe_expert_capacity_factor", "moe_pad_expert_input_to_capacity")
_OVERLAP: Final = ("overlap_moe_expert_parallel_comm",)
_RECOMPUTE: Final = ("recompute_granularity", "recompute_modules")
_OFFLOAD: Final = ("fine_grained_activation_offloading", "offload_modules")
_WGRAD: Final = ("delay_wgrad_compute", "gradient_accumulation_fusion")

BY_VERSION: Final = {
    "rng-tracker": _ByVersion(
        "megatron_bridge", knobs=("use_te_rng_tracker", "rng.te_rng_tracker"), fix="HST-3"
    ),
    "graph-register": _ByVersion(
        "ours",
        "0.16.0",
        knobs=("env.PYTORCH_CUDA_ALLOC_CONF", "env.NCCL_GRAPH_REGISTER"),
        cure="NCCL_GRAPH_REGISTER=0",
    ),
    "cpu-offloading": _ByVersion(
        "core",
        "0.15.0",
        message="CUDA graphs not supported with CPU offloading",
        knobs=("cpu_offloading",),
        cure="cpu_offloading off; MEM-6 or MEM-7 instead",
        fix="MEM-6",
    ),
    "full-recompute": _ByVersion(
        "core", "0.16.0", message="full recompute is only supported with", knobs=_RECOMPUTE[:1], fix="MEM-2"
    ),
    "hidden-dropout": _ByVersion(
        "core", "0.16.0", message="hidden dropout is not supported", knobs=("hidden_dropout", *_RECOMPUTE)
    ),
    "input-jitter": _ByVersion(
        "core",
        "0.16.0",
        message="moe_input_jitter_eps is not supported",
        knobs=("moe_input_jitter_eps", *_RECOMPUTE),
    ),
    "attn-dropout": _ByVersion(
        "core",
        "0.16.0",
        message="attention dropout is not supported",
        knobs=("attention_dropout", *_RECOMPUTE),
    ),
    "ep-overlap-mlp": _ByVersion("core", "0.16.0", message="CUDA graph scope on moe and mlp", knobs=_OVERLAP),
    "ep-overlap-moe": _ByVersion("core", "0.16.0", message="CUDA graph scope on moe and mlp", knobs=_OVERLAP),
    "ep-overlap-impl": _ByVersion(
        "core",
        "0.16.0",
        "0.18.0",
        "CUDA graph scope on moe and mlp",
        _OVERLAP,
        cure="cuda_graph_impl transformer_engine",
    ),
    "offload-local": _ByVersion(
        "core",
        "0.19.0",
        message="fine-grained activation offloading with cuda_graph_impl='local'",
        knobs=_OFFLOAD,
    ),
    "offload-moe": _ByVersion(
        "core", "0.18.0", message="Token-drop MoE is temporarily not supported", knobs=_OFFLOAD
    ),
    "offload-warmup": _ByVersion(
        "core",
        "0.18.0",
        message="cuda_graph_warmup_steps must be greater than 0",
        knobs=("cuda_graph_warmup_steps", *_OFFLOAD),
    ),
    "offload-in-flight": _ByVersion(
        "core",
        "0.18.0",
        message="fine_grained_offloading_max_inflight_offloads must be",
        knobs=("fine_grained_offloading_max_inflight_offloads", *_OFFLOAD),
    ),
    "wgrad-te-version": _ByVersion(
        "core", "0.16.0", message="is required for delay_wgrad_compute with", knobs=_WGRAD[:1]
    ),
    "wgrad-in-graph": _ByVersion("megatron_bridge", "0.4.0", knobs=_WGRAD),
    "wgrad-bias": _ByVersion(
        "megatron_bridge", "0.4.0", knobs=("add_bias_linear", "add_qkv_bias", _WGRAD[0])
    ),
    "hybrid-cp": _ByVersion("ours", "0.16.0", knobs=("hybrid_context_parallel",)),
    "mfsdp-v2": _ByVersion(
        "megatron_bridge", BRIDGE_MAIN, knobs=("ddp.use_megatron_fsdp", "ddp.megatron_fsdp_version")
    ),
    "gtp-priority": _ByVersion(
        "megatron_lm",
        "0.19.0",
        knobs=("gtp_weight_remat_size", "env.CUDA_GRAPHS_USE_NODE_PRIORITY"),
        cure="CUDA_GRAPHS_USE_NODE_PRIORITY=1",
    ),
    "static-shapes": _ByVersion("ours", knobs=("variable_seq_lengths",), cure="variable_seq_lengths off"),
    "packed-sequences": _ByVersion(
        "megatron_bridge", "0.6.0", knobs=("dataset.pad_to_max_length",), cure="pad_to_max_length on"
    ),
    "mlp-dense": _ByVersion(
        "core", "0.16.0", message="mlp cuda graph is only supported for dense", knobs=("moe_layer_freq",)
    ),
    "moe-drop-pad": _ByVersion(
        "core", "0.16.0", message="moe cuda graph is only supported", knobs=("num_moe_experts", *_DROP_PAD)
    ),
    "moe-and-router": _ByVersion("core", "0.16.0", message="must not contain both moe and moe_router"),
    "moe-model": _ByVersion(
        "core", "0.16.0", message="moe cuda graph is only supported for MoE", knobs=("num_moe_experts",)
    ),
    "router-recompute": _ByVersion(
        "core", "0.16.0", message="moe recompute is not supported with", knobs=_RECOMPUTE, fix="MEM-2"
    ),
    "preprocess-router": _ByVersion(
        "core",
        "0.16.0",
        message="moe_preprocess cuda graph is only supported with",
        cure="moe_router beside moe_preprocess",
    ),
    "preprocess-copies": _ByVersion(
        "core",
        "0.16.0",
        message="moe_preprocess cuda graph is not supported when",
        knobs=(TYPE, *_DROP_PAD, "moe_router_padding_for_fp8"),
        cure="moe_router alone, or the flex dispatcher",
    ),
    "mamba-layers": _ByVersion("ours", "0.16.0", knobs=("is_hybrid_model",), level="warning"),
    "full-iteration-modules": _ByVersion(
        "core", "0.18.0", message="cuda_graph_modules must be empty", cure="no cuda_graph_modules"
    ),
    "full-iteration-sync-free": _ByVersion(
        "ours",
        "0.14.0",
        knobs=(TYPE, *_DROP_PAD, "moe_flex_dispatcher_backend", "use_transformer_engine_op_fuser"),
        cure="graphs of moe_router and moe_preprocess",
        fix="HST-3",
    ),
    "full-iteration-nan": _ByVersion(
        "ours", "0.14.0", knobs=("rerun.check_for_nan_in_loss", "ddp.check_for_nan_in_grad")
    ),
    "modules-by-version": _ByVersion(
        "ours", "0.15.0", "0.16.0", cure="the whole layer or attn, or Megatron-Core 0.16 or later"
    ),
    "bridge-local": _ByVersion("megatron_bridge", "0.6.0", cure="cuda_graph_impl transformer_engine"),
}
"""Of each row of the choosers' tables: who says it, since when, in which words, and what it looks at."""


def _from_row(row: GraphConstraint) -> Rule:
    more = BY_VERSION[row.id]

    def broken(config: Config) -> bool | None:
        view = graph_view(config)
        return None if view is None else row.broken(view)

    return Rule(
        f"graphs-{row.id}",
        (*_GRAPHS, *more.knobs),
        row.reason,
        broken,
        more.says,
        row.source,
        more.cure or row.needs or f"{row.what} out of the graphs",
        more.level,
        more.since,
        more.until,
        more.message,
        more.fix,
    )


ROW_RULES: Final = tuple(_from_row(row) for row in (*SCOPES, *CONFLICTS))
"""Every row of both tables."""
