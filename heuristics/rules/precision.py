"""What low precision asks for. Read at core_v0.12.0 to core_v0.19.0 and d98e8a64; Bridge v0.3.1 to v0.6.0."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, any_of, negated
from heuristics.config.view import Config
from heuristics.rules.legacy import BRIDGE, CORE, LM, Condition, Rule

_RECIPES: Final = ("delayed", "tensorwise", "mxfp8", "blockwise", "custom")
_QUANT: Final = "moe_router_padding_for_quantization"
_PAD_FP8: Final = "moe_router_padding_for_fp8"
_GATHER: Final = ("ddp.fp8_param_gather", "fp8_param", "mixed_precision.fp8_param_gather")


def _fp8(*conditions: Condition) -> Condition:
    return lambda c: all_of(c.fp8(), *(condition(c) for condition in conditions))


def gathers_fp8(config: Config) -> bool | None:
    """Whether parameters are kept and gathered in FP8."""
    return any_of(*(config.on(knob) for knob in _GATHER if config.known(knob))) if _said(config) else None


def _said(config: Config) -> bool:
    return any(config.known(knob) for knob in _GATHER)


def _recipe(config: Config) -> str:
    """Where the recipe was said."""
    return "mixed_precision.fp8_recipe" if config.known("mixed_precision.fp8_recipe") else "fp8_recipe"


RULES: Final = (
    Rule(
        "precision-two-halves",
        ("bf16", "fp16"),
        "a model is in BF16 or in FP16",
        lambda c: all_of(c.on("bf16"), c.on("fp16")),
        "core",
        CORE,
        "bf16 alone",
        core_message="Only one of self.fp16",
    ),
    Rule(
        "fp8-and-fp4",
        ("fp8", "fp4"),
        "FP8 and FP4 exclude each other",
        lambda c: all_of(c.on("fp8"), c.on("fp4")),
        "core",
        CORE,
        "one of the two",
        since="0.15.0",
        core_message="fp4 and fp8 cannot be used simultaneously",
        fix="CMP-3",
    ),
    Rule(
        "fp8-param-alone",
        ("fp8", "fp8_param"),
        "fp8_param needs fp8",
        lambda c: all_of(c.on("fp8_param"), negated(c.fp8())),
        "core",
        CORE,
        "fp8 e4m3 or hybrid, or fp8_param off",
        core_message="fp8_param must be used together with fp8",
        fix="CMP-3",
    ),
    Rule(
        "fp4-param-alone",
        ("fp4", "fp4_param"),
        "fp4_param needs fp4",
        lambda c: all_of(c.on("fp4_param"), negated(c.on("fp4"))),
        "core",
        CORE,
        "fp4 e2m1, or fp4_param off",
        since="0.15.0",
        core_message="fp4_param must be used together with fp4",
    ),
    Rule(
        "fp8-recipe-name",
        ("fp8", "fp8_recipe"),
        "no FP8 recipe of this name: delayed, tensorwise, blockwise, mxfp8, custom",
        _fp8(lambda c: negated(c.one_of("fp8_recipe", None, *_RECIPES))),
        "ours",
        "Megatron-Core, enums.py and fp8_utils.py: it fails where the recipe is built",
        "fp8_recipe blockwise on Hopper, mxfp8 on Blackwell",
        fix="CMP-3",
    ),
    Rule(
        "fp8-first-last-delayed",
        ("fp8", "fp8_recipe", "first_last_layers_bf16"),
        "delayed scaling does not keep first and last layers in BF16",
        _fp8(lambda c: c.on("first_last_layers_bf16"), lambda c: c.one_of("fp8_recipe", "delayed")),
        "core",
        CORE,
        "another recipe, or first_last_layers_bf16 off",
        core_message="Delayed scaling does not support first / last layer",
    ),
    Rule(
        "fp8-moe-te",
        ("fp8", "num_moe_experts"),
        "FP8 with experts needs Transformer Engine 1.7.0",
        lambda c: all_of(c.fp8(), c.on("num_moe_experts"), c.before("te", "1.7.0")),
        "core",
        CORE,
        "Transformer Engine 1.11.0 or later",
        core_message="Only transformer-engine>=1.7.0 supports MoE FP8",
    ),
    Rule(
        "fp8-grouped-gemm-te",
        ("fp8", "num_moe_experts", "moe_grouped_gemm"),
        "grouped GEMM in FP8 needs Transformer Engine 1.11.0",
        lambda c: all_of(
            c.fp8(), c.on("num_moe_experts"), c.on("moe_grouped_gemm"), c.before("te", "1.11.0")
        ),
        "core",
        CORE,
        "Transformer Engine 1.11.0 or later",
        core_message="Only transformer-engine>=1.11.0 supports FP8 grouped gemm",
    ),
    Rule(
        "fp4-te",
        ("fp4",),
        "FP4 needs Transformer Engine 2.7.0",
        lambda c: all_of(c.on("fp4"), c.before("te", "2.7.0")),
        "megatron_lm",
        LM,
        "Transformer Engine 2.7.0 or later",
        since="0.15.0",
    ),
    Rule(
        "router-padding-alone",
        (_QUANT, _PAD_FP8, "fp8", "fp4"),
        "router padding for low precision needs FP8 or FP4",
        lambda c: all_of(any_of(c.on(_QUANT), c.on(_PAD_FP8)), negated(c.low_precision())),
        "core",
        CORE,
        "FP8 or FP4, or the padding off",
        since="0.13.0",
        core_message="must be specified when moe_router_padding_for",
        fix="CMP-3",
    ),
    Rule(
        "mxfp8-param-gather-buffer",
        ("ddp.reuse_grad_buf_for_mxfp8_param_ag", "ddp.fp8_param_gather"),
        "reuse_grad_buf_for_mxfp8_param_ag is for parameters gathered in FP8",
        lambda c: all_of(
            c.on("ddp.reuse_grad_buf_for_mxfp8_param_ag"), negated(c.on("ddp.fp8_param_gather"))
        ),
        "ours",
        "Megatron-Core, distributed/distributed_data_parallel_config.py",
        "fp8_param_gather on, or the reuse off",
        since="0.13.0",
    ),
    Rule(
        "mxfp8-param-gather-bridge",
        ("mixed_precision.fp8_param_gather", "mixed_precision.reuse_grad_buf_for_mxfp8_param_ag"),
        "Bridge gathers MXFP8 parameters only with reuse_grad_buf_for_mxfp8_param_ag",
        lambda c: all_of(
            c.on("mixed_precision.fp8_param_gather"),
            c.one_of("mixed_precision.fp8_recipe", "mxfp8"),
            negated(c.on("mixed_precision.reuse_grad_buf_for_mxfp8_param_ag")),
        ),
        "megatron_bridge",
        BRIDGE,
        "mixed_precision.reuse_grad_buf_for_mxfp8_param_ag=true",
    ),
    Rule(
        "fp8-param-gather-optimizer",
        (*_GATHER, "ddp.use_distributed_optimizer", "use_torch_fsdp2", "ddp.use_megatron_fsdp"),
        "gathering parameters in FP8 needs the distributed optimizer, or FSDP",
        lambda c: all_of(
            gathers_fp8(c),
            negated(c.on("ddp.use_distributed_optimizer")),
            negated(c.on("use_torch_fsdp2")),
            negated(c.on("ddp.use_megatron_fsdp")),
        ),
        "megatron_lm",
        LM,
        "ddp.use_distributed_optimizer on",
    ),
    Rule(
        "optimizer-offload-recipe",
        (*_GATHER, "optimizer.optimizer_cpu_offload", "fp8_recipe", "mixed_precision.fp8_recipe"),
        "optimizer offload with parameters gathered in FP8 takes delayed scaling only",
        lambda c: all_of(
            c.on("optimizer.optimizer_cpu_offload"), gathers_fp8(c), negated(c.one_of(_recipe(c), "delayed"))
        ),
        "megatron_lm",
        LM,
        "fp8_param_gather off",
        since="0.14.0",
        fix="MEM-7",
    ),
    Rule(
        "fp8-output-store",
        ("activation_func_fp8_input_store", "gated_linear_unit"),
        "storing activation inputs in FP8 is for SwiGLU",
        lambda c: all_of(c.on("activation_func_fp8_input_store"), negated(c.on("gated_linear_unit"))),
        "core",
        CORE,
        "activation_func_fp8_input_store off",
        core_message="Storing activation input in FP8 is supported only for SwiGLU",
    ),
)
