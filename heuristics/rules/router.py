"""What experts and their router ask for. Read at core_v0.12.0 to core_v0.19.0 and d98e8a64."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, negated
from heuristics.config.view import Config
from heuristics.rules.legacy import CORE, CORE_MOE, LM, Rule

_FACTOR: Final = "moe_expert_capacity_factor"
_PAD: Final = "moe_pad_expert_input_to_capacity"
_BALANCE: Final = "moe_router_load_balancing_type"
_SCORE: Final = "moe_router_score_function"
_BALANCES: Final = frozenset({"aux_loss", "seq_aux_loss", "global_aux_loss", "none"})
_GROUPS: Final = ("moe_router_group_topk", "moe_router_num_groups")
_MANY_EXPERTS: Final = 32


def _balance_unfit(config: Config) -> bool | None:
    kinds = config.names(_BALANCE)
    return None if kinds is None else not set(kinds) <= _BALANCES


def _no_room_for_topk(config: Config) -> bool | None:
    chosen, experts = config.count("moe_router_topk"), config.count("num_moe_experts")
    return None if chosen is None or experts is None else chosen > experts


def _group_count_unfit(config: Config) -> bool | None:
    groups, experts = config.count(_GROUPS[1]), config.count("num_moe_experts")
    return None if not groups or experts is None else bool(experts % groups)


def _more_groups_chosen(config: Config) -> bool | None:
    chosen, groups = config.count(_GROUPS[0]), config.count(_GROUPS[1])
    return None if chosen is None or not groups else chosen > groups


def _group_limited(config: Config) -> bool | None:
    return config.on(_GROUPS[0])


RULES: Final = (
    Rule(
        "experts-for-ep",
        ("expert_model_parallel_size", "num_moe_experts"),
        "experts over ranks need experts",
        lambda c: all_of(c.more_than_one(c.ep), c.null("num_moe_experts")),
        "core",
        CORE,
        "expert_model_parallel_size 1",
        core_message="num_moe_experts must be non None to use expert-parallel",
    ),
    Rule(
        "expert-size-without-experts",
        ("moe_ffn_hidden_size", "num_moe_experts"),
        "moe_ffn_hidden_size without experts",
        lambda c: all_of(c.null("num_moe_experts"), negated(c.null("moe_ffn_hidden_size"))),
        "core",
        CORE,
        "drop moe_ffn_hidden_size",
        since="0.13.0",
        until="0.18.0",
        core_message="moe_ffn_hidden_size must be None when num_experts",
    ),
    Rule(
        "capacity-pad-factor",
        (_PAD, _FACTOR),
        "padding to capacity needs moe_expert_capacity_factor",
        lambda c: all_of(c.on(_PAD), c.null(_FACTOR)),
        "core",
        CORE,
        "moe_expert_capacity_factor 1.0",
        core_message="moe_expert_capacity_factor must be set to use",
    ),
    Rule(
        "capacity-balance",
        (_FACTOR, _BALANCE),
        "a capacity factor goes with aux_loss, seq_aux_loss, global_aux_loss or none only",
        lambda c: all_of(negated(c.null(_FACTOR)), _balance_unfit(c)),
        "core",
        CORE,
        "moe_router_load_balancing_type aux_loss",
        core_message="moe_expert_capacity_factor only works with",
    ),
    Rule(
        "expert-bias-etp",
        ("num_moe_experts", "add_bias_linear", "expert_tensor_parallel_size", "tensor_model_parallel_size"),
        "linear bias in experts needs ETP 1",
        lambda c: all_of(negated(c.null("num_moe_experts")), c.on("add_bias_linear"), c.more_than_one(c.etp)),
        "core",
        CORE,
        "add_bias_linear off, or expert_tensor_parallel_size 1",
        since="0.15.0",
        core_message="Bias in Moe is only supported when ETP==1",
        fix="COM-10",
    ),
    Rule(
        "expert-bias-score",
        ("moe_router_enable_expert_bias", _SCORE),
        "expert bias needs the sigmoid score function",
        lambda c: all_of(c.on("moe_router_enable_expert_bias"), negated(c.one_of(_SCORE, "sigmoid"))),
        "core",
        CORE,
        "moe_router_score_function sigmoid",
        until="0.18.0",
        core_message="Expert bias for aux-loss-free routing only supports",
        fix="COM-11",
    ),
    Rule(
        "expert-bias-score-newer",
        ("moe_router_enable_expert_bias", _SCORE),
        "expert bias needs the sigmoid or sqrtsoftplus score function",
        lambda c: all_of(
            c.on("moe_router_enable_expert_bias"), negated(c.one_of(_SCORE, "sigmoid", "sqrtsoftplus"))
        ),
        "core",
        CORE,
        "moe_router_score_function sigmoid",
        since="0.18.0",
        core_message="Expert bias for aux-loss-free routing only supports",
        fix="COM-11",
    ),
    Rule(
        "topk-one",
        ("moe_router_topk", _SCORE, "moe_router_pre_softmax", _BALANCE),
        "top-1 with softmax needs moe_router_pre_softmax",
        lambda c: all_of(
            c.one_of("moe_router_topk", 1),
            c.one_of(_SCORE, "softmax"),
            negated(c.on("moe_router_pre_softmax")),
            negated(c.one_of(_BALANCE, "sinkhorn")),
        ),
        "core",
        CORE,
        "moe_router_pre_softmax on",
        core_message="Please use --moe-router-pre-softmax when topk is 1",
    ),
    Rule(
        "topk-more-than-experts",
        ("moe_router_topk", "num_moe_experts"),
        "a token cannot choose more experts than there are",
        _no_room_for_topk,
        "ours",
        "ours: Megatron-Core accepts it and torch.topk fails in the first step",
        "moe_router_topk of at most num_moe_experts",
    ),
    Rule(
        "group-topk-groups",
        _GROUPS,
        "group-limited routing needs moe_router_num_groups",
        lambda c: all_of(_group_limited(c), negated(c.on(_GROUPS[1]))),
        "core",
        CORE,
        "moe_router_num_groups",
        core_message="moe_router_num_groups must be specified",
    ),
    Rule(
        "group-count",
        (*_GROUPS, "num_moe_experts"),
        "moe_router_num_groups must divide the experts",
        lambda c: all_of(_group_limited(c), _group_count_unfit(c)),
        "core",
        CORE,
        "a divisor of num_moe_experts",
        core_message="should be divisible by",
    ),
    Rule(
        "group-topk-size",
        _GROUPS,
        "more groups chosen than there are",
        lambda c: all_of(_group_limited(c), _more_groups_chosen(c)),
        "core",
        CORE,
        "moe_router_group_topk of at most moe_router_num_groups",
        core_message="should be smaller than",
    ),
    Rule(
        "router-dtype-warning",
        ("num_moe_experts", "moe_router_dtype"),
        "32 experts or more without a router in fp32 are warned of",
        lambda c: all_of(c.above("num_moe_experts", _MANY_EXPERTS - 1), negated(c.on("moe_router_dtype"))),
        "core",
        CORE,
        "moe_router_dtype fp32",
        level="warning",
    ),
    Rule(
        "force-balance",
        ("moe_router_force_load_balancing",),
        "forced load balancing is for benchmarks: the model does not learn to route",
        lambda c: c.on("moe_router_force_load_balancing"),
        "ours",
        "Megatron-Bridge, docs/training/moe-optimization.md",
        "moe_router_force_load_balancing off for training",
        level="warning",
        since="0.13.0",
        fix="COM-11",
    ),
    Rule(
        "grouped-gemm-gpu",
        ("moe_grouped_gemm",),
        "grouped GEMM needs compute capability 8",
        lambda c: all_of(c.on("moe_grouped_gemm"), None if c.capability is None else c.capability < (8, 0)),
        "megatron_lm",
        LM,
        "moe_grouped_gemm off",
    ),
    Rule(
        "experts-per-rank",
        ("num_moe_experts", "expert_model_parallel_size"),
        "EP must divide the experts",
        lambda c: _does_not_divide(c.count("num_moe_experts"), c.ep),
        "dispatcher",
        f"{CORE_MOE}; {LM}",
        "expert_model_parallel_size that divides num_moe_experts",
        fix="COM-10",
    ),
    Rule(
        "grouped-tensor",
        ("moe_use_grouped_tensor", "moe_grouped_gemm"),
        "moe_use_grouped_tensor needs grouped GEMM",
        lambda c: all_of(c.on("moe_use_grouped_tensor"), negated(c.on("moe_grouped_gemm"))),
        "core",
        CORE,
        "moe_grouped_gemm on",
        since="0.20.0",
        core_message="moe_use_grouped_tensor=True requires",
        fix="CMP-1",
    ),
)


def _does_not_divide(count: int | None, size: int | None) -> bool | None:
    return None if count is None or not size else bool(count % size)
