"""What offloading asks for. Read at core_v0.12.0 to core_v0.19.0 and d98e8a64; Bridge v0.3.1 to v0.6.0."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, negated
from heuristics.config.view import Config
from heuristics.rules.legacy import BRIDGE, CORE, CORE_MAIN, LM, Condition, Rule

_LAYERS: Final = "cpu_offloading"
_FINE: Final = "fine_grained_activation_offloading"
_MODULES: Final = "offload_modules"
_EXPERTS: Final = frozenset({"expert_fc1", "moe_act", "fused_group_mlp"})

MODULES: Final = (
    ("", ("core_attn", "attn_proj", "expert_fc1", "moe_act", "attn_norm", "mlp_norm", "qkv_linear")),
    ("0.19.0", ("fused_group_mlp",)),
    (CORE_MAIN, ("gdp_qkv",)),
)
"""Names of offload_modules by the release that brought them: `allowed_modules` at each tag."""


def _fine(*conditions: Condition) -> Condition:
    return lambda c: all_of(c.on(_FINE), *(condition(c) for condition in conditions))


def _layers(*conditions: Condition) -> Condition:
    return lambda c: all_of(c.on(_LAYERS), *(condition(c) for condition in conditions))


def _unknown_module(config: Config) -> bool | None:
    modules = config.offloads()
    if modules is None:
        return None
    known = {
        name for since, names in MODULES for name in names if not (since and config.before("core", since))
    }
    return bool(set(modules) - known)


def _has(*modules: str) -> Condition:
    def offloaded(config: Config) -> bool | None:
        found = config.offloads()
        return None if found is None else bool(set(modules) & set(found))

    return offloaded


def _layer_count_unfit(config: Config) -> bool | None:
    count, layers = config.count("cpu_offloading_num_layers"), config.count("num_layers")
    if count is None or layers is None:
        return None
    return not 0 <= count < layers


RULES: Final = (
    Rule(
        "offload-layers-pipeline",
        (_LAYERS, "pipeline_model_parallel_size"),
        "offloading whole layers does not go with pipeline stages",
        _layers(lambda c: c.more_than_one(c.pp)),
        "core",
        CORE,
        "fine-grained offload instead",
        core_message="no support for Pipeline parallelism with CPU offloading",
        fix="MEM-6",
    ),
    Rule(
        "offload-layers-recompute",
        (_LAYERS, "recompute_granularity"),
        "offloading whole layers does not go with recompute",
        _layers(lambda c: negated(c.null("recompute_granularity"))),
        "core",
        CORE,
        "fine-grained offload instead, or no recompute",
        core_message="CPU offloading does not work when activation recomputation",
        fix="MEM-6",
    ),
    Rule(
        "offload-layers-count",
        (_LAYERS, "cpu_offloading_num_layers", "num_layers"),
        "cpu_offloading_num_layers is at least 0 and less than all layers",
        _layers(_layer_count_unfit),
        "core",
        CORE,
        "fewer cpu_offloading_num_layers",
        core_message="CPU offloading can be done only for layers less than",
    ),
    Rule(
        "offload-both",
        (_FINE, _LAYERS),
        "fine-grained offload does not go with offloading whole layers",
        _fine(lambda c: c.on(_LAYERS)),
        "core",
        CORE,
        "cpu_offloading off",
        since="0.16.0",
        core_message="fine_grained_activation_offloading cannot be enabled with",
    ),
    Rule(
        "offload-no-modules",
        (_FINE, _MODULES),
        "fine-grained offload needs offload_modules",
        _fine(lambda c: _empty(c)),
        "core",
        CORE,
        "offload_modules expert_fc1 and moe_act",
        since="0.16.0",
        fix="MEM-6",
    ),
    Rule(
        "offload-module-name",
        (_FINE, _MODULES),
        "offload_modules names a module that this release does not offload",
        _unknown_module,
        "core",
        CORE,
        "core_attn, attn_proj, expert_fc1, moe_act, attn_norm, mlp_norm, qkv_linear",
        since="0.16.0",
        core_message="Invalid choices for offload_modules",
    ),
    Rule(
        "offload-attn-proj",
        (_FINE, _MODULES),
        "attn_proj is offloaded only together with core_attn",
        lambda c: all_of(_has("attn_proj")(c), negated(_has("core_attn")(c))),
        "core",
        CORE,
        "core_attn beside attn_proj",
        since="0.16.0",
        core_message="attn_proj cannot be set to offload_modules alone",
    ),
    Rule(
        "offload-in-recomputed-moe",
        (_FINE, _MODULES, "recompute_granularity", "recompute_modules"),
        "nothing inside a recomputed moe can be offloaded",
        lambda c: all_of(_has(*_EXPERTS)(c), c.recomputes("moe")),
        "core",
        CORE,
        "drop moe from recompute_modules, or the expert modules from offload_modules",
        since="0.19.0",
        core_message="while recomputing the entire MoE layer",
    ),
    Rule(
        "offload-fused-needs-fuser",
        (_FINE, _MODULES, "use_transformer_engine_op_fuser"),
        "offloading fused_group_mlp needs Transformer Engine's op fuser",
        lambda c: all_of(_has("fused_group_mlp")(c), negated(c.on("use_transformer_engine_op_fuser"))),
        "core",
        CORE,
        "use_transformer_engine_op_fuser on",
        since="0.19.0",
        core_message="fused_group_mlp requires",
        fix="CMP-7",
    ),
    Rule(
        "offload-fused-alone",
        (_FINE, _MODULES),
        "fused_group_mlp holds expert_fc1 and moe_act already",
        lambda c: all_of(_has("fused_group_mlp")(c), _has("expert_fc1", "moe_act")(c)),
        "core",
        CORE,
        "fused_group_mlp alone",
        since="0.19.0",
        core_message="fused_group_mlp offloads the whole",
    ),
    Rule(
        "offload-te-impl",
        (_FINE, "transformer_impl"),
        "fine-grained offload needs the layers of Transformer Engine",
        _fine(lambda c: negated(c.one_of("transformer_impl", "transformer_engine"))),
        "ours",
        f"{LM}; {BRIDGE}",
        "transformer_impl transformer_engine",
        since="0.16.0",
    ),
    Rule(
        "offload-te-environment",
        (_FINE, "env.NVTE_CPU_OFFLOAD_V1"),
        "fine-grained offload with Transformer Engine 2.10 or later needs NVTE_CPU_OFFLOAD_V1=1",
        _fine(
            lambda c: negated(c.before("te", "2.10.0")),
            lambda c: negated(c.env_is("NVTE_CPU_OFFLOAD_V1", "1")),
        ),
        "ours",
        f"{LM}; {BRIDGE}",
        "NVTE_CPU_OFFLOAD_V1=1",
        since="0.16.0",
    ),
    Rule(
        "paged-stash-layers",
        ("moe_paged_stash", _LAYERS),
        "paged stash does not go with offloading whole layers",
        lambda c: all_of(c.on("moe_paged_stash"), c.on(_LAYERS)),
        "core",
        CORE,
        "cpu_offloading off",
        since="0.18.0",
        core_message="moe_paged_stash cannot be enabled with",
    ),
    Rule(
        "paged-stash-capacity",
        ("moe_paged_stash", "moe_expert_rank_capacity_factor"),
        "paged stash needs moe_expert_rank_capacity_factor",
        lambda c: all_of(c.on("moe_paged_stash"), c.null("moe_expert_rank_capacity_factor")),
        "core",
        CORE,
        "moe_expert_rank_capacity_factor 1.5",
        since="0.18.0",
        core_message="moe_paged_stash requires",
        fix="MEM-11",
    ),
    Rule(
        "paged-stash-modules",
        ("moe_paged_stash", _MODULES),
        "paged stash holds what expert modules would offload",
        lambda c: all_of(c.on("moe_paged_stash"), _listed(c)),
        "core",
        CORE,
        "drop expert_fc1, moe_act and fused_group_mlp from offload_modules",
        since="0.18.0",
        core_message="When moe_paged_stash is enabled",
    ),
)


def _empty(config: Config) -> bool | None:
    modules = config.names(_MODULES)
    return None if modules is None else not modules


def _listed(config: Config) -> bool | None:
    """In offload_modules, whether offload is on or not: the check looks at the list alone."""
    modules = config.names(_MODULES)
    return None if modules is None else bool(_EXPERTS & set(modules))
