"""What graphs as a whole clash with. Sources: Megatron-LM d98e8a64 and its tags, Megatron-Bridge 067f987d."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, any_of, negated
from heuristics.guides.graph_config import GraphConfig
from heuristics.guides.graph_constraint import (
    BRIDGE_CONFIG,
    BRIDGE_OVERLAP,
    CORE_CONFIG,
    GRAPH_SKILL,
    LM_ARGUMENTS,
    GraphConstraint,
    before,
    full_iteration,
    graphs_on,
    per_layer_te,
    scoped,
)

CONFLICTS: Final = (
    GraphConstraint(
        "rng-tracker",
        "cuda_graph_impl",
        lambda c: all_of(graphs_on(c), negated(c.te_rng_tracker)),
        "graphs need Transformer Engine's random number tracker",
        f"{LM_ARGUMENTS}; Megatron-Bridge, models/gpt_provider.py",
        needs="--te-rng-tracker; model.use_te_rng_tracker=true rng.te_rng_tracker=true",
    ),
    GraphConstraint(
        "graph-register",
        "transformer_engine",
        lambda c: all_of(per_layer_te(c), c.expandable_segments, negated(c.graph_register_off)),
        "expandable segments with NCCL's graph registration reach memory that is not there",
        f"{LM_ARGUMENTS}; transformer/cuda_graphs.py",
        needs="NCCL_GRAPH_REGISTER=0 (with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True)",
    ),
    GraphConstraint(
        "cpu-offloading",
        "cuda_graph_impl",
        lambda c: all_of(
            graphs_on(c),
            c.cpu_offloading,
            True if not full_iteration(c) else before(c.core_version, "0.18"),
        ),
        "no graphs with cpu_offloading; from Megatron-Core 0.18 full_iteration may",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "full-recompute",
        "transformer_engine",
        lambda c: all_of(graphs_on(c) and not full_iteration(c), c.full_recompute),
        "full recompute only with a graph of the full iteration: use selective recompute, or no graphs",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "hidden-dropout",
        "mlp",
        lambda c: all_of(graphs_on(c), c.hidden_dropout, _recomputed_in_graph(c)),
        "hidden dropout draws random numbers, which a graphed and recomputed mlp or moe cannot",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "input-jitter",
        "moe",
        lambda c: all_of(graphs_on(c) and c.captures("moe"), c.input_jitter, c.recomputes("moe")),
        "moe_input_jitter_eps draws random numbers, which a graphed and recomputed moe cannot",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "ep-overlap-mlp",
        "mlp",
        lambda c: all_of(per_layer_te(c) and scoped(c, "mlp"), c.ep_overlap),
        "EP overlap splits the layer where a graph of mlp would hold it together",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "ep-overlap-moe",
        "moe",
        lambda c: all_of(per_layer_te(c) and scoped(c, "moe"), c.ep_overlap),
        "EP overlap splits the layer where a graph of moe would hold it together",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "ep-overlap-impl",
        "cuda_graph_impl",
        lambda c: all_of(graphs_on(c) and not per_layer_te(c), c.ep_overlap, before(c.core_version, "0.18")),
        "before Megatron-Core 0.18 EP overlap goes with transformer_engine graphs only",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "offload-local",
        "local",
        lambda c: all_of(c.impl == "local", _offload_unfit_for_local(c)),
        "with local graphs only expert_fc1, moe_act, fused_group_mlp can be offloaded, and modules are named",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "offload-moe",
        "moe",
        lambda c: all_of(scoped(c, "moe"), _offloads(c)),
        "fine-grained offload does not go with a graph of moe",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "offload-warmup",
        "cuda_graph_impl",
        lambda c: all_of(graphs_on(c), _offloads(c), None if c.warmup_steps is None else c.warmup_steps <= 0),
        "fine-grained offload needs cuda_graph_warmup_steps above 0",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "offload-in-flight",
        "full_iteration",
        lambda c: all_of(full_iteration(c), _offloads(c), _negative(c.offloads_in_flight)),
        "fine-grained offload in a full iteration needs fine_grained_offloading_max_inflight_offloads >= 0",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "wgrad-te-version",
        "transformer_engine",
        lambda c: all_of(per_layer_te(c), c.delay_wgrad, before(c.te_version, "2.10")),
        "delayed weight gradients with graphs of parts need Transformer Engine 2.10",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "wgrad-in-graph",
        "attn",
        lambda c: all_of(
            per_layer_te(c),
            c.delay_wgrad,
            _wgrad_captured(c),
            any_of(before(c.te_version, "2.12"), negated(c.wgrad_fusion)),
        ),
        "delayed weight gradients of graphed attention, or of a shared expert in moe_router, need "
        "Transformer Engine 2.12 and gradient_accumulation_fusion",
        BRIDGE_OVERLAP,
    ),
    GraphConstraint(
        "wgrad-bias",
        "attn",
        lambda c: all_of(per_layer_te(c), c.delay_wgrad, c.captures("attn"), c.attention_bias),
        "delayed weight gradients of graphed attention go without attention bias",
        BRIDGE_OVERLAP,
    ),
    GraphConstraint(
        "hybrid-cp",
        "cuda_graph_impl",
        lambda c: all_of(graphs_on(c), c.hybrid_cp),
        "hybrid (dynamic) context parallelism does not go with graphs",
        LM_ARGUMENTS,
    ),
    GraphConstraint(
        "mfsdp-v2",
        "cuda_graph_impl",
        lambda c: all_of(graphs_on(c), c.mfsdp_v2),
        "Megatron-FSDP v2 does not go with graphs",
        BRIDGE_CONFIG,
    ),
    GraphConstraint(
        "gtp-priority",
        "cuda_graph_impl",
        lambda c: all_of(graphs_on(c), c.gtp_on_blackwell, negated(c.node_priority)),
        "generalised tensor parallelism on Blackwell needs CUDA_GRAPHS_USE_NODE_PRIORITY=1 with graphs",
        LM_ARGUMENTS,
    ),
    GraphConstraint(
        "static-shapes",
        "cuda_graph_impl",
        lambda c: all_of(graphs_on(c), negated(c.static_shapes)),
        "a graph replays fixed shapes: sequence length and micro-batch size must not change",
        GRAPH_SKILL,
    ),
    GraphConstraint(
        "packed-sequences",
        "cuda_graph_impl",
        lambda c: all_of(graphs_on(c), c.packed_sequences, negated(c.padded_sequences)),
        "packed sequences need pad_to_max_length with graphs, and pad_cu_seqlens where attention is captured",
        BRIDGE_CONFIG,
    ),
)


def _offloads(config: GraphConfig) -> bool | None:
    return None if config.offload_modules is None else bool(config.offload_modules)


def _negative(count: int | None) -> bool | None:
    return None if count is None else count < 0


def _offload_unfit_for_local(config: GraphConfig) -> bool | None:
    if not config.offload_modules:
        return _offloads(config)
    return not config.modules or not set(config.offload_modules) <= {
        "expert_fc1",
        "moe_act",
        "fused_group_mlp",
    }


def _recomputed_in_graph(config: GraphConfig) -> bool | None:
    return any_of(*(all_of(config.captures(part), config.recomputes(part)) for part in ("mlp", "moe")))


def _wgrad_captured(config: GraphConfig) -> bool | None:
    return config.captures("attn") or all_of(scoped(config, "moe_router"), config.shared_expert_in_router)
