"""Configurations for the rules, said as knobs, and whole ones: with TransformerConfig's own defaults."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Final, cast

from heuristics.config.about import Given, Stage
from heuristics.config.observed import Observed
from heuristics.rules.rules import Rule, known_lines
from heuristics.run.run import Run
from tests.places import DATA
from traces.settings.knobs import knobs, release
from traces.settings.settings import Framework, Value, settings
from traces.training_log.log import TrainingLog


def of_release(core: str, names: str) -> dict[str, Value]:
    """Knobs at the defaults of a release of Megatron-Core."""
    found = {}
    for name in names.split():
        default = knobs()[name].default_in(release(core))
        assert default is not None, name
        found[name] = default[0]
    return found


_AS_KNOWN: Final = (
    "tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size "
    "expert_model_parallel_size expert_tensor_parallel_size sequence_parallel "
    "pipeline_model_parallel_layout num_layers_in_first_pipeline_stage num_layers_in_last_pipeline_stage "
    "account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split num_query_groups "
    "num_moe_experts moe_ffn_hidden_size moe_router_topk moe_router_group_topk moe_router_num_groups "
    "moe_router_score_function moe_router_pre_softmax moe_router_load_balancing_type "
    "moe_router_enable_expert_bias moe_router_dtype moe_router_padding_for_quantization "
    "moe_router_force_load_balancing moe_grouped_gemm moe_use_legacy_grouped_gemm moe_layer_freq "
    "moe_layer_recompute moe_input_jitter_eps moe_expert_capacity_factor moe_pad_expert_input_to_capacity "
    "moe_token_dispatcher_type moe_flex_dispatcher_backend moe_enable_deepep "
    "moe_shared_expert_intermediate_size moe_shared_expert_overlap add_bias_linear add_qkv_bias "
    "gated_linear_unit attention_dropout hidden_dropout bf16 fp16 fp8 fp8_recipe fp8_param fp4 fp4_param "
    "first_last_layers_bf16 multi_latent_attention recompute_granularity recompute_method "
    "recompute_num_layers recompute_modules cpu_offloading_num_layers fine_grained_activation_offloading "
    "offload_modules overlap_moe_expert_parallel_comm delay_wgrad_compute "
    "ep_overlap_early_attn_memory_release enable_cuda_graph external_cuda_graph cuda_graph_impl "
    "mtp_num_layers "
)
DEFAULTS: Final[Mapping[str, Value]] = {
    **of_release("0.16.1", _AS_KNOWN),
    "virtual_pipeline_model_parallel_size": None,
    "pipeline_dtype": None,
    "moe_router_topk_limited_devices": None,
    "variable_seq_lengths": False,
    "activation_func_fp8_input_store": False,
    "distribute_saved_activations": None,
    "cpu_offloading": False,
    "gradient_accumulation_fusion": False,
    "cuda_graph_modules": "full",
    "cp_comm_type": None,
    "is_hybrid_model": False,
}
"""Of megatron-core 0.16.1: transformer_config.py and model_parallel_config.py."""


def read(name: str) -> dict[str, dict[str, object]]:
    """A table of the test data."""
    return tomllib.loads((DATA / name).read_text(encoding="utf-8"))


def messages(rule: Rule) -> tuple[str, ...]:
    """The framework's own words for a rule."""
    return tuple(text for line in rule.all_lines for text in known_lines().by_id[line].texts)


def value_of(read_value: object) -> Value:
    """TOML has no null and no tuple."""
    if read_value == "null":
        return None
    return tuple(read_value) if isinstance(read_value, list) else cast(Value, read_value)


def run_with(said: Mapping[str, object]) -> Run:
    """A run of these knobs; versions, GPU and framework by the short names of constraint_rows.toml."""
    words = dict(said)
    capability = str(words.pop("capability", ""))
    shown = (
        Observed(capability=cast(tuple[int, int], tuple(map(int, capability.split(".")))))
        if capability
        else Observed()
    )
    given = Given(
        gpu=cast(str | None, words.pop("gpu", None)),
        core_version=cast(str | None, words.pop("core", None)),
        bridge_version=cast(str | None, words.pop("bridge", None)),
        te_version=cast(str | None, words.pop("te", None)),
        torch_version=cast(str | None, words.pop("torch", None)),
        packed_sequences=cast(bool | None, words.pop("packed", None)),
        stage=cast(Stage | None, words.pop("stage", None)),
        container=cast(str | None, words.pop("container", None)),
    )
    lm, bridge = words.pop("lm", False), words.pop("mb", False)
    framework: Framework | None = "megatron_lm" if lm else "megatron_bridge" if bridge else None
    nccl = words.pop("nccl", None)
    log = TrainingLog("test", 1, versions={"nccl": str(nccl)}) if nccl else None
    knobs = settings({knob: value_of(one) for knob, one in words.items()}, "test", framework)
    return Run(shown, given, settings=knobs, log=log)


def whole_run(knobs: Mapping[str, object], **about: object) -> Run:
    """A run whose every field of TransformerConfig is known."""
    return run_with(
        {**{knob: "null" if one is None else one for knob, one in DEFAULTS.items()}, **knobs, **about}
    )


@cache
def megatron_cases() -> tuple[dict[str, object], ...]:
    """The ninety cases, each with `knobs`: the base with its changes."""
    table = read("megatron_cases.toml")
    base = table["base"]
    return tuple(
        {**case, "knobs": {**base, **case["changes"], **dict.fromkeys(case.get("unset", ()), "null")}}
        for case in cast(list[dict[str, dict[str, object]]], table["case"])
    )
