"""What the flex dispatcher and its backends ask for. Read at core_v0.12.0 to d98e8a64, Bridge v0.3.1 on."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, any_of, negated
from heuristics.config.view import Config
from heuristics.guides.dispatcher_limits import LIMITS
from heuristics.rules.dispatcher import BACKEND, TYPE, flex_backend, on_flex
from heuristics.rules.legacy import (
    BRIDGE_FLEX,
    BRIDGE_MAIN,
    CORE,
    CORE_DISPATCHER,
    LM,
    Condition,
    Rule,
)

_DEEPEP: Final = "moe_enable_deepep"
_SHARED: Final = "moe_shared_expert_overlap"
_PAD: Final = "moe_pad_expert_input_to_capacity"
_FLEX: Final = (TYPE, BACKEND, _DEEPEP)


def _gpu(backend: str) -> Condition:
    """As the chooser's table has it: whether Bridge refuses this GPU for a backend."""
    limits = [row for row in LIMITS if row.backend == backend and row.source == BRIDGE_FLEX]

    def broken(config: Config) -> bool | None:
        gpu = any_of(*(row.broken(config) for row in limits))
        unknown = config.gpu_family is None and config.capability is None
        return all_of(flex_backend(config, backend), None if unknown else gpu)

    return broken


def _one_rank(config: Config) -> bool | None:
    # The group spans TP x EP ranks: of the experts' tensor parallelism, which is TP's where it was not set.
    ranks = (config.ep, config.etp if config.known("expert_tensor_parallel_size") else config.tp)
    return None if None in ranks else ranks == (1, 1)


def _not_fp32(config: Config) -> bool | None:
    return negated(config.one_of("moe_router_dtype", "fp32"))


RULES: Final = (
    Rule(
        "flex-backend-name",
        _FLEX,
        "the flex dispatcher has no backend of this name: deepep, hybridep or (from 0.19) ncclep",
        on_flex(lambda c: _unknown_backend(c)),
        "dispatcher",
        CORE_DISPATCHER,
        "moe_flex_dispatcher_backend deepep or hybridep",
        since="0.16.0",
        fix="COM-2",
    ),
    Rule(
        "flex-backend-inert",
        (TYPE, BACKEND),
        "moe_flex_dispatcher_backend does nothing without moe_token_dispatcher_type flex",
        lambda c: all_of(
            c.one_of(BACKEND, "hybridep"), negated(c.one_of(TYPE, "flex")), negated(c.null(TYPE))
        ),
        "ours",
        f"{CORE_DISPATCHER}; {BRIDGE_FLEX}",
        "moe_token_dispatcher_type flex, or Bridge's apply_flex_dispatcher_backend",
        level="ignored",
        since="0.16.0",
        fix="COM-2",
    ),
    Rule(
        "flex-without-backend",
        (TYPE, BACKEND),
        "Bridge takes flex without a backend back to alltoall",
        on_flex(lambda c: c.null(BACKEND)),
        "megatron_bridge",
        BRIDGE_FLEX,
        "moe_flex_dispatcher_backend deepep or hybridep",
        level="ignored",
        since=BRIDGE_MAIN,
        fix="COM-2",
    ),
    Rule(
        "deepep-needs-flex",
        _FLEX,
        "moe_enable_deepep needs the flex dispatcher",
        lambda c: all_of(c.on(_DEEPEP), negated(c.one_of(TYPE, "flex"))),
        "core",
        CORE,
        "moe_token_dispatcher_type flex",
        core_message="DeepEP backend is only supported with flex",
        fix="COM-2",
    ),
    Rule(
        "deepep-and-hybridep",
        _FLEX,
        "moe_enable_deepep contradicts moe_flex_dispatcher_backend hybridep",
        lambda c: all_of(c.on(_DEEPEP), c.one_of(BACKEND, "hybridep")),
        "core",
        CORE,
        "drop moe_enable_deepep",
        since="0.16.0",
        core_message="Only one backend is supported",
    ),
    Rule(
        "hybridep-version",
        (TYPE, BACKEND),
        "HybridEP came with Megatron-Core 0.16",
        lambda c: all_of(c.one_of(BACKEND, "hybridep"), c.one_of(TYPE, "flex")),
        "ours",
        "Megatron-LM, tags core_v0.15.0 and core_v0.16.0",
        "Megatron-Core 0.16 or later, or DeepEP",
        until="0.16.0",
        fix="COM-2",
    ),
    Rule(
        "deepep-capacity",
        (*_FLEX, _PAD),
        "DeepEP does not pad expert inputs to capacity",
        lambda c: all_of(flex_backend(c, "deepep"), c.on(_PAD)),
        "core",
        CORE,
        "moe_pad_expert_input_to_capacity off, or alltoall or HybridEP",
        core_message="moe_pad_expert_input_to_capacity",
        fix="COM-2",
    ),
    Rule(
        "ncclep-capacity",
        (TYPE, BACKEND, _PAD),
        "ncclep does not pad expert inputs to capacity",
        lambda c: all_of(flex_backend(c, "ncclep"), c.on(_PAD)),
        "dispatcher",
        CORE_DISPATCHER,
        "moe_pad_expert_input_to_capacity off",
        since="0.19.0",
    ),
    Rule(
        "ncclep-needs-flex",
        (TYPE, BACKEND),
        "the ncclep backend needs the flex dispatcher",
        lambda c: all_of(c.one_of(BACKEND, "ncclep"), negated(c.one_of(TYPE, "flex"))),
        "core",
        CORE,
        "moe_token_dispatcher_type flex",
        since="0.19.0",
        core_message="moe_flex_dispatcher_backend='ncclep' requires",
    ),
    Rule(
        "flex-one-rank",
        (*_FLEX, "expert_model_parallel_size", "expert_tensor_parallel_size", "tensor_model_parallel_size"),
        "the flex dispatcher needs TP x EP above 1",
        on_flex(_one_rank),
        "dispatcher",
        CORE_DISPATCHER,
        "experts over more ranks, or alltoall",
        fix="COM-10",
    ),
    Rule(
        "flex-router-dtype",
        (*_FLEX, "moe_router_dtype"),
        "DeepEP and HybridEP want router probabilities in fp32: others are cast with a warning",
        lambda c: all_of(flex_backend(c, "deepep", "hybridep"), _not_fp32(c)),
        "dispatcher",
        CORE_DISPATCHER,
        "moe_router_dtype fp32",
        level="warning",
    ),
    Rule(
        "deepep-gpu",
        _FLEX,
        "DeepEP runs on compute capability 8 and 9, B200 and B300; not on GB200 and GB300",
        _gpu("deepep"),
        "megatron_bridge",
        BRIDGE_FLEX,
        "HybridEP, or alltoall",
        fix="COM-2",
    ),
    Rule(
        "hybridep-gpu",
        _FLEX,
        "HybridEP runs on compute capability 8, 9 and 10",
        _gpu("hybridep"),
        "megatron_bridge",
        BRIDGE_FLEX,
        "alltoall",
        fix="COM-2",
    ),
    Rule(
        "hybridep-rack",
        (TYPE, BACKEND, "expert_model_parallel_size"),
        "on NVL72 an expert-parallel group of HybridEP is one NVLink domain, at most 72 ranks",
        lambda c: all_of(flex_backend(c, "hybridep"), _past_rack(c)),
        "ours",
        "Megatron-Bridge, scripts/performance/utils/utils.py",
        "expert_model_parallel_size of at most 72",
        since="0.16.0",
        fix="COM-10",
    ),
    Rule(
        "shared-overlap-flex-bridge",
        (_SHARED, TYPE, BACKEND),
        "Bridge's flex helper switches shared-expert overlap off",
        on_flex(lambda c: c.on(_SHARED)),
        "megatron_bridge",
        BRIDGE_FLEX,
        "moe_shared_expert_overlap off, or alltoall",
        level="ignored",
    ),
    Rule(
        "fake-group-flex",
        ("fake_process_group", TYPE),
        "a fake process group does not go with flex",
        on_flex(lambda c: c.on("fake_process_group")),
        "megatron_lm",
        LM,
        "alltoall for the sanity line",
        since="0.16.0",
    ),
    Rule(
        "two-sm-counts",
        ("moe_deepep_num_sms", "moe_hybridep_num_sms", "moe_flex_dispatcher_num_sms"),
        "two deprecated SM counts of different size and no moe_flex_dispatcher_num_sms",
        lambda c: _two_sm_counts(c),
        "core",
        CORE,
        "moe_flex_dispatcher_num_sms alone",
        since="0.19.0",
        core_message="Conflicting deprecated SM-count knobs",
        fix="COM-3",
    ),
    Rule(
        "rank-capacity-backend",
        ("moe_expert_rank_capacity_factor", BACKEND),
        "moe_expert_rank_capacity_factor needs HybridEP or ncclep",
        lambda c: all_of(
            negated(c.null("moe_expert_rank_capacity_factor")),
            negated(c.one_of(BACKEND, "hybridep", "ncclep")),
        ),
        "core",
        CORE,
        "moe_flex_dispatcher_backend hybridep",
        since="0.18.0",
        core_message="moe_expert_rank_capacity_factor requires",
        fix="MEM-11",
    ),
    Rule(
        "rank-capacity-fuser",
        (
            "moe_expert_rank_capacity_factor",
            BACKEND,
            "use_transformer_engine_op_fuser",
            "moe_use_grouped_tensor",
        ),
        "moe_expert_rank_capacity_factor with HybridEP needs Transformer Engine's op fuser",
        lambda c: all_of(
            negated(c.null("moe_expert_rank_capacity_factor")),
            c.one_of(BACKEND, "hybridep"),
            negated(c.on("use_transformer_engine_op_fuser")),
            negated(c.on("moe_use_grouped_tensor")),
        ),
        "core",
        CORE,
        "use_transformer_engine_op_fuser on",
        since="0.19.0",
        core_message="moe_expert_rank_capacity_factor with the",
        fix="CMP-7",
    ),
)


def _unknown_backend(config: Config) -> bool | None:
    if config.on(_DEEPEP):
        return False
    names = ("deepep", "hybridep") if config.before("core", "0.19.0") else ("deepep", "hybridep", "ncclep")
    return all_of(negated(config.null(BACKEND)), negated(config.one_of(BACKEND, *names)))


def _two_sm_counts(config: Config) -> bool | None:
    counts = (config.count("moe_deepep_num_sms"), config.count("moe_hybridep_num_sms"))
    if None in counts:
        return False
    return all_of(counts[0] != counts[1], config.null("moe_flex_dispatcher_num_sms"))


def _past_rack(config: Config) -> bool | None:
    family = config.gpu_family
    if family is None or config.ep is None:
        return None
    return family.hardware == "nvl72" and config.ep > family.nvlink_domain
