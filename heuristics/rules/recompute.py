"""What recompute asks for. Read at core_v0.12.0 to core_v0.19.0 and d98e8a64."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, any_of, negated
from heuristics.config.view import Config
from heuristics.rules.legacy import CORE, CORE_MAIN, LM, Condition, Rule

_GRANULARITY: Final = "recompute_granularity"
_METHOD: Final = "recompute_method"
_LAYERS: Final = "recompute_num_layers"
_MODULES: Final = "recompute_modules"
_LABELS: Final = (_GRANULARITY, _MODULES)

LABELS: Final = (
    ("", ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe")),
    ("0.14.0", ("shared_experts",)),
    ("0.19.0", ("gdn_norm_out",)),
    (CORE_MAIN, ("gdp_in_proj", "gdp_qkv", "mhc")),
)
"""Labels of recompute_modules by the release that brought them: `allowed_modules` at each tag."""


def _full(*conditions: Condition) -> Condition:
    return lambda c: all_of(c.one_of(_GRANULARITY, "full"), *(condition(c) for condition in conditions))


def _selective(*conditions: Condition) -> Condition:
    return lambda c: all_of(c.one_of(_GRANULARITY, "selective"), *(condition(c) for condition in conditions))


def _again(label: str, *conditions: Condition) -> Condition:
    return _selective(lambda c: c.recomputes(label), *conditions)


def _unknown_label(config: Config) -> bool | None:
    """Of no release up to this one; an unknown release knows them all."""
    known = {
        name for since, names in LABELS for name in names if not (since and config.before("core", since))
    }
    modules = config.recompute_modules()
    unknown = None if modules is None else bool(set(modules) - known)
    return all_of(config.one_of(_GRANULARITY, "selective"), unknown)


def _method_unfit(config: Config) -> bool | None:
    return negated(config.one_of(_METHOD, None, "block", "uniform"))


def _of_activations(config: Config) -> bool | None:
    return any_of(_again("moe_act")(config), _again("layernorm")(config))


RULES: Final = (
    Rule(
        "recompute-granularity",
        (_GRANULARITY,),
        "recompute_granularity is full, selective or null",
        lambda c: negated(c.one_of(_GRANULARITY, None, "full", "selective")),
        "core",
        CORE,
        "recompute_granularity selective",
        core_message="When using recompute_granuarlity",
    ),
    Rule(
        "recompute-method",
        (_GRANULARITY, _METHOD),
        "recompute_method is block or uniform",
        lambda c: all_of(c.on(_GRANULARITY), _method_unfit(c)),
        "core",
        CORE,
        "recompute_method uniform with full recompute, none with selective",
        core_message='must be "block" or "uniform"',
    ),
    Rule(
        "recompute-full-method",
        (_GRANULARITY, _METHOD),
        "full recompute needs recompute_method block or uniform",
        _full(lambda c: c.null(_METHOD)),
        "core",
        CORE,
        "recompute_method uniform",
        core_message='recompute_method must be "block" or "uniform"',
    ),
    Rule(
        "recompute-full-layers",
        (_GRANULARITY, _LAYERS),
        "full recompute needs recompute_num_layers",
        _full(lambda c: c.null(_LAYERS)),
        "core",
        CORE,
        "recompute_num_layers 1",
        core_message="recompute_num_layers must be between",
    ),
    Rule(
        "recompute-selective-layers",
        (_GRANULARITY, _LAYERS),
        "selective recompute goes without recompute_num_layers",
        _selective(lambda c: negated(c.null(_LAYERS))),
        "core",
        CORE,
        "drop recompute_num_layers",
        core_message="recompute_num_layers must be None",
    ),
    Rule(
        "recompute-selective-method",
        (_GRANULARITY, _METHOD),
        "selective recompute goes without recompute_method",
        _selective(lambda c: negated(c.null(_METHOD))),
        "megatron_lm",
        LM,
        "drop recompute_method",
    ),
    Rule(
        "recompute-label",
        _LABELS,
        "recompute_modules names a module that this release does not recompute",
        _unknown_label,
        "core",
        CORE,
        "core_attn, moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts",
        core_message="Invalid choices for recompute_modules",
    ),
    Rule(
        "recompute-moe-act",
        (*_LABELS, "moe_grouped_gemm"),
        "recompute of moe_act needs grouped GEMM",
        _again("moe_act", lambda c: negated(c.on("moe_grouped_gemm"))),
        "core",
        CORE,
        "moe_grouped_gemm on",
        core_message="moe_act in recompute_modules is only supported",
        fix="CMP-1",
    ),
    Rule(
        "recompute-mla",
        (*_LABELS, "multi_latent_attention"),
        "recompute of mla_up_proj needs multi-latent attention",
        _again("mla_up_proj", lambda c: negated(c.on("multi_latent_attention"))),
        "core",
        CORE,
        "drop mla_up_proj",
        core_message="mla_up_proj in recompute_modules is only supported",
    ),
    Rule(
        "recompute-shared-experts",
        (*_LABELS, "moe_shared_expert_overlap", "moe_shared_expert_intermediate_size"),
        "recompute of shared_experts does not go with shared-expert overlap",
        _again(
            "shared_experts",
            lambda c: c.on("moe_shared_expert_overlap"),
            lambda c: c.on("moe_shared_expert_intermediate_size"),
        ),
        "core",
        CORE,
        "moe_shared_expert_overlap off, or drop shared_experts",
        since="0.14.0",
        core_message="shared_experts recompute cannot work",
    ),
    Rule(
        "recompute-fp8-delayed",
        (*_LABELS, "fp8", "fp8_recipe"),
        "FP8 with delayed scaling does not recompute moe_act or layernorm",
        lambda c: all_of(c.fp8(), c.one_of("fp8_recipe", "delayed"), _of_activations(c)),
        "core",
        CORE,
        "another FP8 recipe, or mla_up_proj instead",
        since="0.14.0",
        core_message="Delayed scaling does not support moe_act",
        fix="MEM-2",
    ),
    Rule(
        "recompute-fp8-te",
        (*_LABELS, "fp8"),
        "recompute of moe_act or layernorm under FP8 needs Transformer Engine 2.6.0",
        lambda c: all_of(
            c.fp8(),
            _of_activations(c),
            negated(c.one_of("fp8_recipe", "delayed")),
            c.before("te", "2.6.0"),
        ),
        "core",
        CORE,
        "Transformer Engine 2.6.0 or later",
        since="0.14.0",
        core_message="moe_act and layernorm recompute for fp8 needs",
    ),
    Rule(
        "recompute-moe-layer",
        ("moe_layer_recompute", _GRANULARITY),
        "moe_layer_recompute does not go with full recompute",
        _full(lambda c: c.on("moe_layer_recompute")),
        "core",
        CORE,
        "selective recompute of moe",
        core_message="Do not set --moe-layer-recompute with full",
    ),
    Rule(
        "recompute-distributed",
        (_GRANULARITY, "distribute_saved_activations", "sequence_parallel"),
        "distribute_saved_activations does not go with sequence parallelism",
        lambda c: all_of(c.on(_GRANULARITY), c.on("distribute_saved_activations"), c.on("sequence_parallel")),
        "core",
        CORE,
        "distribute_saved_activations off",
        core_message="distribute_saved_activations",
    ),
    Rule(
        "recompute-gdn",
        (*_LABELS, "experimental_attention_variant"),
        "recompute of gdn_norm_out needs Gated DeltaNet",
        _again(
            "gdn_norm_out",
            lambda c: negated(c.one_of("experimental_attention_variant", "gdn", "gdn2", "gated_delta_net")),
        ),
        "core",
        CORE,
        "drop gdn_norm_out",
        since="0.19.0",
        core_message="gdn_norm_out in recompute_modules is only supported",
    ),
    Rule(
        "recompute-mhc",
        (*_LABELS, "enable_mhc_connections"),
        "recompute of mhc needs hyper-connections",
        _again("mhc", lambda c: negated(c.on("enable_mhc_connections"))),
        "core",
        CORE,
        "drop mhc",
        since=CORE_MAIN,
        core_message="'mhc' in recompute_modules requires",
    ),
    Rule(
        "recompute-mhc-mlp",
        _LABELS,
        "recompute of mhc does not go with recompute of mlp",
        _again("mhc", lambda c: c.recomputes("mlp")),
        "core",
        CORE,
        "one of the two",
        since=CORE_MAIN,
        core_message="'mhc' and 'mlp' in recompute_modules",
    ),
    Rule(
        "recompute-mhc-offload",
        (*_LABELS, "fine_grained_activation_offloading"),
        "recompute of mhc does not go with fine-grained offload",
        _again("mhc", lambda c: c.on("fine_grained_activation_offloading")),
        "core",
        CORE,
        "one of the two",
        since=CORE_MAIN,
        core_message="'mhc' in recompute_modules",
    ),
    Rule(
        "recompute-core-attn",
        _LABELS,
        "recompute of core_attn saves next to nothing with fused attention and is warned of",
        _selective(lambda c: c.recomputes("core_attn")),
        "core",
        CORE,
        "moe_act, layernorm or mla_up_proj instead",
        level="warning",
        since="0.12.0",
        fix="MEM-2",
    ),
)
