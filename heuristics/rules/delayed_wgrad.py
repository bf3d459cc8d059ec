"""What delayed weight gradients ask for. Read at core_v0.13.0 to d98e8a64; Bridge v0.3.1 to 067f987d."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, negated
from heuristics.config.view import Config
from heuristics.rules.ep_overlap import KNOB as OVERLAP
from heuristics.rules.ep_overlap import overlap
from heuristics.rules.legacy import BRIDGE_OVERLAP, CORE, LM, Condition, Rule

KNOB: Final = "delay_wgrad_compute"
_BOTH: Final = (KNOB, f"comm_overlap.{KNOB}")


def delayed(config: Config) -> bool | None:
    """Whether weight gradients are delayed; with a CommOverlapConfig, Bridge's value wins."""
    return config.delayed_wgrad


def reduces_early(config: Config) -> bool | None:
    """Whether gradients are reduced under the backward."""
    said = config.on("comm_overlap.overlap_grad_reduce")
    return config.on("ddp.overlap_grad_reduce") if said is None else said


def with_delay(*conditions: Condition) -> Condition:
    """Delayed weight gradients together with all of these."""
    return lambda c: all_of(delayed(c), *(condition(c) for condition in conditions))


_REDUCE: Final = ("ddp.overlap_grad_reduce", "comm_overlap.overlap_grad_reduce")
_FUSION: Final = "gradient_accumulation_fusion"

RULES: Final = (
    Rule(
        "delayed-wgrad-overlap",
        (*_BOTH, OVERLAP, f"comm_overlap.{OVERLAP}"),
        "delayed weight gradients need EP overlap",
        with_delay(lambda c: negated(overlap(c))),
        "core",
        f"{CORE}; {BRIDGE_OVERLAP}",
        "EP overlap first, or delay_wgrad_compute off",
        since="0.14.0",
        core_message="must be enabled when enabling delay_wgrad_compute",
        fix="COM-1",
    ),
    Rule(
        "delayed-wgrad-legacy-gemm",
        (*_BOTH, "moe_use_legacy_grouped_gemm"),
        "delayed weight gradients do not go with the legacy grouped GEMM",
        with_delay(lambda c: c.on("moe_use_legacy_grouped_gemm")),
        "core",
        CORE,
        "moe_use_legacy_grouped_gemm off",
        since="0.14.0",
        until="0.17.0",
        core_message="not supported with legacy groupedgemm",
        fix="CMP-1",
    ),
    Rule(
        "delayed-wgrad-te-impl",
        (*_BOTH, "transformer_impl"),
        "delayed weight gradients need the layers of Transformer Engine",
        with_delay(lambda c: negated(c.one_of("transformer_impl", "transformer_engine"))),
        "megatron_lm",
        LM,
        "transformer_impl transformer_engine",
        since="0.13.0",
    ),
    Rule(
        "delayed-wgrad-reduce-0.13",
        (*_BOTH, *_REDUCE),
        "delayed weight gradients do not go with overlap_grad_reduce",
        with_delay(reduces_early),
        "megatron_lm",
        f"{LM}, core_v0.13.0",
        "overlap_grad_reduce off, or Megatron-Core 0.14 or later",
        since="0.13.0",
        until="0.14.0",
    ),
    Rule(
        "delayed-wgrad-reduce-lm",
        (*_BOTH, *_REDUCE),
        "delayed weight gradients with overlap_grad_reduce need Transformer Engine 2.8.0",
        with_delay(reduces_early, lambda c: c.before("te", "2.8.0")),
        "megatron_lm",
        LM,
        "Transformer Engine 2.8.0 or later",
        since="0.14.0",
    ),
    Rule(
        "delayed-wgrad-no-fusion-lm",
        (*_BOTH, _FUSION),
        "delayed weight gradients without gradient_accumulation_fusion need Transformer Engine 2.7.0",
        with_delay(lambda c: negated(c.on(_FUSION)), lambda c: c.before("te", "2.7.0")),
        "megatron_lm",
        LM,
        "Transformer Engine 2.7.0 or later",
        since="0.14.0",
    ),
    Rule(
        "delayed-wgrad-reduce-bridge",
        (*_BOTH, *_REDUCE),
        "delayed weight gradients with overlap_grad_reduce need Transformer Engine 2.7.0",
        with_delay(reduces_early, lambda c: c.before("te", "2.7.0")),
        "megatron_bridge",
        BRIDGE_OVERLAP,
        "Transformer Engine 2.7.0 or later; 2.8.0 suits Megatron-LM as well",
    ),
    Rule(
        "delayed-wgrad-fusion-bridge",
        (*_BOTH, _FUSION),
        "delayed weight gradients with gradient_accumulation_fusion need Transformer Engine 2.7.0",
        with_delay(lambda c: c.on(_FUSION), lambda c: c.before("te", "2.7.0")),
        "megatron_bridge",
        BRIDGE_OVERLAP,
        "Transformer Engine 2.7.0 or later",
    ),
    Rule(
        "delayed-wgrad-overwritten",
        _BOTH,
        "Bridge copies comm_overlap's own value over the model's: a delay set on the model alone is lost",
        lambda c: all_of(c.on(KNOB), negated(c.on(f"comm_overlap.{KNOB}"))),
        "megatron_bridge",
        BRIDGE_OVERLAP,
        f"comm_overlap.{KNOB}=true",
        level="ignored",
        fix="COM-9",
    ),
)
