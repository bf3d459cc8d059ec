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
from traces.settings.settings import Framework, Value, settings
from traces.training_log.log import TrainingLog

DEFAULTS: Final[Mapping[str, Value]] = {
    "tensor_model_parallel_size": 1,
    "pipeline_model_parallel_size": 1,
    "virtual_pipeline_model_parallel_size": None,
    "context_parallel_size": 1,
    "expert_model_parallel_size": 1,
    "expert_tensor_parallel_size": None,
    "sequence_parallel": False,
    "pipeline_dtype": None,
    "pipeline_model_parallel_layout": None,
    "num_layers_in_first_pipeline_stage": None,
    "num_layers_in_last_pipeline_stage": None,
    "account_for_embedding_in_pipeline_split": False,
    "account_for_loss_in_pipeline_split": False,
    "num_query_groups": None,
    "num_moe_experts": None,
    "moe_ffn_hidden_size": None,
    "moe_router_topk": 2,
    "moe_router_topk_limited_devices": None,
    "moe_router_group_topk": None,
    "moe_router_num_groups": None,
    "moe_router_score_function": "softmax",
    "moe_router_pre_softmax": False,
    "moe_router_load_balancing_type": "aux_loss",
    "moe_router_enable_expert_bias": False,
    "moe_router_dtype": None,
    "moe_router_padding_for_quantization": False,
    "moe_router_force_load_balancing": False,
    "moe_grouped_gemm": False,
    "moe_use_legacy_grouped_gemm": False,
    "moe_layer_freq": 1,
    "moe_layer_recompute": False,
    "moe_input_jitter_eps": None,
    "moe_expert_capacity_factor": None,
    "moe_pad_expert_input_to_capacity": False,
    "moe_token_dispatcher_type": "allgather",
    "moe_flex_dispatcher_backend": "deepep",
    "moe_enable_deepep": False,
    "moe_shared_expert_intermediate_size": None,
    "moe_shared_expert_overlap": False,
    "variable_seq_lengths": False,
    "add_bias_linear": True,
    "add_qkv_bias": False,
    "gated_linear_unit": False,
    "attention_dropout": 0.1,
    "hidden_dropout": 0.1,
    "bf16": False,
    "fp16": False,
    "fp8": None,
    "fp8_recipe": "delayed",
    "fp8_param": False,
    "fp4": None,
    "fp4_param": False,
    "first_last_layers_bf16": False,
    "activation_func_fp8_input_store": False,
    "multi_latent_attention": False,
    "recompute_granularity": None,
    "recompute_method": None,
    "recompute_num_layers": None,
    "recompute_modules": None,
    "distribute_saved_activations": None,
    "cpu_offloading": False,
    "cpu_offloading_num_layers": 0,
    "fine_grained_activation_offloading": False,
    "offload_modules": (),
    "overlap_moe_expert_parallel_comm": False,
    "delay_wgrad_compute": False,
    "ep_overlap_early_attn_memory_release": False,
    "gradient_accumulation_fusion": False,
    "enable_cuda_graph": False,
    "external_cuda_graph": False,
    "cuda_graph_impl": "none",
    "cuda_graph_modules": "full",
    "mtp_num_layers": None,
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
