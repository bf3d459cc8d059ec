"""What dispatchers ask for. Read at core_v0.12.0 to core_v0.19.0, d98e8a64; Bridge v0.3.1 to 067f987d."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, any_of, negated
from heuristics.config.view import Config
from heuristics.rules.legacy import (
    CORE,
    CORE_MAIN,
    CORE_MOE,
    CORE_PARALLEL,
    Condition,
    Rule,
)

TYPE: Final = "moe_token_dispatcher_type"
BACKEND: Final = "moe_flex_dispatcher_backend"
_DEEPEP: Final = "moe_enable_deepep"
_SHARED: Final = "moe_shared_expert_overlap"
_QUANT: Final = "moe_router_padding_for_quantization"


def flex_backend(config: Config, *names: str) -> bool | None:
    """Whether the flex dispatcher runs on one of these backends; before 0.16 on DeepEP alone."""
    flex = config.one_of(TYPE, "flex")
    named = config.one_of(BACKEND, *names)
    if config.known(BACKEND) and config.null(BACKEND) is not True:
        return all_of(flex, named)
    early = config.before("core", "0.16.0")
    if "deepep" in names and (config.on(_DEEPEP) or early):
        return flex
    return all_of(flex, False if early else named)


def on_flex(*conditions: Condition) -> Condition:
    """The flex dispatcher together with all of these."""
    return lambda c: all_of(c.one_of(TYPE, "flex"), *(condition(c) for condition in conditions))


def _shared_used(config: Config) -> bool | None:
    return all_of(config.on(_SHARED), config.on("moe_shared_expert_intermediate_size"))


RULES: Final = (
    Rule(
        "dispatcher-name",
        (TYPE,),
        "no dispatcher has this name: alltoall, flex or allgather",
        lambda c: negated(c.one_of(TYPE, "alltoall", "flex", "allgather", "alltoall_seq")),
        "dispatcher",
        CORE_MOE,
        "moe_token_dispatcher_type alltoall, flex or allgather",
        fix="COM-2",
    ),
    Rule(
        "dispatcher-alltoall-seq",
        (TYPE,),
        "alltoall_seq is gone: alltoall takes its place",
        lambda c: c.one_of(TYPE, "alltoall_seq"),
        "dispatcher",
        f"{CORE_MOE}, core_v0.13.0",
        "moe_token_dispatcher_type alltoall",
        since="0.13.0",
    ),
    Rule(
        "shared-overlap-alltoall",
        (_SHARED, "moe_shared_expert_intermediate_size", TYPE),
        "shared-expert overlap goes with alltoall only",
        lambda c: all_of(_shared_used(c), negated(c.one_of(TYPE, "alltoall"))),
        "core",
        CORE,
        "alltoall, or moe_shared_expert_overlap off",
        until="0.18.0",
        core_message="moe_shared_expert_overlap only works with",
        fix="COM-8",
    ),
    Rule(
        "shared-overlap-dispatcher",
        (_SHARED, "moe_shared_expert_intermediate_size", TYPE),
        "shared-expert overlap goes with alltoall and flex only",
        lambda c: all_of(_shared_used(c), negated(c.one_of(TYPE, "alltoall", "flex"))),
        "core",
        CORE,
        "alltoall or flex, or moe_shared_expert_overlap off",
        since="0.18.0",
        core_message="moe_shared_expert_overlap only works with",
        fix="COM-8",
    ),
    Rule(
        "shared-overlap-nothing",
        (_SHARED, "moe_shared_expert_intermediate_size"),
        "shared-expert overlap without a shared expert overlaps nothing",
        lambda c: all_of(c.on(_SHARED), negated(c.on("moe_shared_expert_intermediate_size"))),
        "ours",
        "Megatron-Core, transformer/moe/moe_layer.py: no shared expert is built",
        "moe_shared_expert_overlap off",
        fix="COM-8",
    ),
    Rule(
        "shared-expert-bias",
        ("moe_shared_expert_intermediate_size", "add_bias_linear", "num_moe_experts"),
        "a shared expert is built without linear bias only",
        lambda c: all_of(c.moe(), c.on("moe_shared_expert_intermediate_size"), c.on("add_bias_linear")),
        "dispatcher",
        "Megatron-Core, transformer/moe/shared_experts.py",
        "add_bias_linear off",
    ),
    Rule(
        "permute-fusion-te",
        ("moe_permute_fusion",),
        "the fused permute needs Transformer Engine 2.1.0",
        lambda c: all_of(c.on("moe_permute_fusion"), c.before("te", "2.1.0")),
        "core",
        CORE,
        "Transformer Engine 2.1.0 or later, or moe_permute_fusion off",
        core_message="fused permutation is not available",
        fix="CMP-2",
    ),
    Rule(
        "allgather-variable-lengths",
        (TYPE, "variable_seq_lengths"),
        "allgather takes sequences of one length only",
        lambda c: all_of(c.one_of(TYPE, "allgather"), c.on("variable_seq_lengths")),
        "core",
        CORE,
        "alltoall",
        core_message="variable sequence length",
        fix="COM-2",
    ),
    Rule(
        "allgather-padding",
        (TYPE, _QUANT, "moe_router_padding_for_fp8"),
        "allgather does not take router padding for low precision",
        lambda c: all_of(
            c.one_of(TYPE, "allgather", "alltoall_seq"),
            any_of(c.on(_QUANT), c.on("moe_router_padding_for_fp8")),
        ),
        "core",
        CORE,
        "alltoall or flex",
        since="0.13.0",
        core_message="allgather and alltoall_seq dispatcher does not support",
        fix="COM-2",
    ),
    Rule(
        "sequence-parallel-moe",
        ("tensor_model_parallel_size", "expert_model_parallel_size", "sequence_parallel"),
        "TP with EP needs sequence parallelism",
        lambda c: all_of(_tp_and_ep(c), negated(c.on("sequence_parallel"))),
        "core",
        CORE_PARALLEL,
        "sequence_parallel on",
        until="0.15.0",
        core_message="sequence parallelism must be used",
    ),
    Rule(
        "sequence-parallel-moe-training",
        ("tensor_model_parallel_size", "num_moe_experts", "sequence_parallel"),
        "an MoE layer refuses to train with TP and without sequence parallelism",
        lambda c: all_of(c.more_than_one(c.tp), c.moe(), negated(c.on("sequence_parallel"))),
        "dispatcher",
        CORE_MOE,
        "sequence_parallel on",
    ),
    Rule(
        "batch-invariant-alltoall",
        ("batch_invariant_mode", "num_moe_experts", TYPE),
        "batch-invariant MoE training needs alltoall",
        lambda c: all_of(c.on("batch_invariant_mode"), c.moe(), negated(c.one_of(TYPE, "alltoall"))),
        "core",
        CORE,
        "moe_token_dispatcher_type alltoall",
        since=CORE_MAIN,
        core_message="Batch-invariant MoE training requires",
    ),
)


def _tp_and_ep(config: Config) -> bool | None:
    return all_of(config.more_than_one(config.tp), config.more_than_one(config.ep))
