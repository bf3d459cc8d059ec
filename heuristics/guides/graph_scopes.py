"""What each part of a layer may be captured with, as Megatron-Core checks it (d98e8a64, tags from 0.12.0)."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, negated
from heuristics.guides.graph_constraint import (
    BRIDGE_CONFIG,
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

SCOPES: Final = (
    GraphConstraint(
        "attn-dropout",
        "attn",
        lambda c: all_of(graphs_on(c) and c.captures("attn"), c.attention_dropout, c.recomputes("core_attn")),
        "attention dropout draws random numbers, which graphed and recomputed attention cannot",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "mlp-dense",
        "mlp",
        lambda c: all_of(scoped(c, "mlp"), c.moe, negated(c.dense_layers)),
        "mlp is the MLP of dense layers; a model of MoE layers only has none",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "moe-drop-pad",
        "moe",
        lambda c: all_of(scoped(c, "moe"), negated(c.drop_pad)),
        "a graph of the whole MoE layer needs drop-and-pad: expert sizes change with every batch otherwise",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "moe-and-router",
        "moe",
        lambda c: scoped(c, "moe") and scoped(c, "moe_router"),
        "moe holds the router already: never both",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "moe-model",
        "moe_router",
        lambda c: all_of(scoped(c, "moe") or scoped(c, "moe_router"), negated(c.moe)),
        "moe and moe_router need an MoE model",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "router-recompute",
        "moe_router",
        lambda c: all_of(per_layer_te(c) and scoped(c, "moe_router"), c.recomputes("moe")),
        "recompute of moe would cover the graph of moe_router: drop moe from the recompute modules",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "preprocess-router",
        "moe_preprocess",
        lambda c: scoped(c, "moe_preprocess") and not scoped(c, "moe_router") and c.impl != "local",
        "moe_preprocess only together with moe_router",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "preprocess-copies",
        "moe_preprocess",
        lambda c: all_of(scoped(c, "moe_preprocess"), c.count_copies),
        "with alltoall, a capacity factor or router padding for low precision copies token counts to the "
        "host in preprocess (the newer padding flag passes the check and fails at run time)",
        f"{CORE_CONFIG}; transformer/moe/token_dispatcher.py",
    ),
    GraphConstraint(
        "mamba-layers",
        "mamba",
        lambda c: all_of(scoped(c, "mamba"), negated(c.mamba_layers)),
        "mamba is for Mamba layers; Gated DeltaNet is part of attn",
        GRAPH_SKILL,
    ),
    GraphConstraint(
        "full-iteration-modules",
        "full_iteration",
        lambda c: full_iteration(c) and bool(c.modules),
        "full_iteration captures everything: its modules must be empty",
        CORE_CONFIG,
    ),
    GraphConstraint(
        "full-iteration-sync-free",
        "full_iteration",
        lambda c: all_of(full_iteration(c), c.moe, negated(c.drop_pad), negated(c.sync_free)),
        "dropless dispatch waits for expert sizes: one graph of the iteration needs HybridEP without syncs, "
        "Transformer Engine's op fuser and paged stash",
        "Megatron-Bridge, docs/training/moe-optimization.md",
    ),
    GraphConstraint(
        "full-iteration-nan",
        "full_iteration",
        lambda c: all_of(full_iteration(c), c.nan_checks),
        "a captured iteration cannot look at its own loss: NaN checks must be off",
        f"{LM_ARGUMENTS}; {BRIDGE_CONFIG}",
        needs="NaN checks off: --no-check-for-nan-in-loss-and-grad; "
        "rerun_state_machine.check_for_nan_in_loss=false ddp.check_for_nan_in_grad=false",
    ),
    GraphConstraint(
        "modules-by-version",
        "moe_router",
        lambda c: all_of(
            per_layer_te(c)
            and any(scoped(c, name) for name in ("mlp", "moe", "moe_router", "moe_preprocess", "mamba")),
            before(c.core_version, "0.16"),
        ),
        "before Megatron-Core 0.16 only the whole layer or attn can be captured",
        "Megatron-LM, tags core_v0.15.0 and core_v0.16.0, training/arguments.py",
    ),
    GraphConstraint(
        "bridge-local",
        "local",
        lambda c: c.bridge and c.impl == "local",
        "Bridge takes local for whole iterations only: capture modules with transformer_engine",
        "Megatron-Bridge, utils/cuda_graph.py",
    ),
)
