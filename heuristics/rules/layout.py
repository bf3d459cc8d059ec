"""What the two meshes ask for: TP x CP x DP x PP of attention, ETP x EP x EDP x PP of experts.

Read at core_v0.12.0 to core_v0.19.0 and d98e8a64: core/parallel_state.py, transformer/transformer_block.py.
"""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, negated
from heuristics.config.view import Config
from heuristics.rules.legacy import CORE, CORE_PARALLEL, Condition, Rule

_TP: Final = "tensor_model_parallel_size"
_CP: Final = "context_parallel_size"
_PP: Final = "pipeline_model_parallel_size"
_EP: Final = "expert_model_parallel_size"
_ETP: Final = "expert_tensor_parallel_size"
_STATE: Final = "Megatron-Core, parallel_state.py"


def remainder(count: int | None, *sizes: int | None) -> bool | None:
    """Whether a count does not divide by the product of sizes."""
    product = 1
    for size in sizes:
        if size is None:
            return None
        product *= size
    return None if count is None or not product else bool(count % product)


def _not_a_multiple(knob: str) -> Condition:
    return lambda c: remainder(c.count(knob), c.tp)


def _groups_unfit(config: Config) -> bool | None:
    groups, tp = config.count("num_query_groups"), config.tp
    if config.null("num_query_groups"):
        return False
    return None if not groups or not tp else bool(groups % tp) and bool(tp % groups)


RULES: Final = (
    Rule(
        "world-attention-mesh",
        ("world_size", _TP, _PP, _CP),
        "TP x CP x PP must divide the ranks",
        lambda c: remainder(c.world, c.tp, c.pp, c.cp),
        "ours",
        _STATE,
        "TP x CP x PP that divides the ranks",
        fix="MEM-8",
    ),
    Rule(
        "world-expert-mesh",
        ("world_size", _ETP, _EP, _PP, _TP),
        "ETP x EP x PP must divide the ranks",
        lambda c: remainder(c.world, c.etp, c.ep, c.pp),
        "ours",
        _STATE,
        "ETP x EP x PP that divides the ranks",
        fix="COM-10",
    ),
    Rule(
        "heads-per-tp",
        ("num_attention_heads", _TP),
        "TP must divide the attention heads",
        _not_a_multiple("num_attention_heads"),
        "core",
        CORE,
        "TP that divides num_attention_heads",
        core_message="must be a multiple of tensor_model_parallel_size",
    ),
    Rule(
        "query-groups-multiple",
        ("num_query_groups", _TP),
        "TP must divide num_query_groups",
        lambda c: all_of(negated(c.null("num_query_groups")), _not_a_multiple("num_query_groups")(c)),
        "core",
        CORE,
        "TP that divides num_query_groups",
        until="0.16.0",
        core_message="num_query_groups",
    ),
    Rule(
        "query-groups",
        ("num_query_groups", _TP),
        "num_query_groups must be a multiple or a divisor of TP",
        _groups_unfit,
        "core",
        CORE,
        "TP that divides num_query_groups",
        since="0.16.0",
        core_message="must be a multiple or divisor of",
    ),
    Rule(
        "sequence-parallel-tp",
        ("sequence_parallel", _TP),
        "sequence parallelism needs TP",
        lambda c: all_of(c.on("sequence_parallel"), negated(c.more_than_one(c.tp))),
        "core",
        CORE_PARALLEL,
        "sequence_parallel off, or TP above 1",
        core_message="Cannot use sequence parallelism without tensor parallelism",
    ),
    Rule(
        "pipeline-dtype",
        (_PP, "pipeline_dtype"),
        "pipeline stages need pipeline_dtype",
        lambda c: all_of(c.more_than_one(c.pp), c.null("pipeline_dtype")),
        "core",
        CORE_PARALLEL,
        "pipeline_dtype bf16",
        core_message="pipeline_dtype must be specified",
    ),
    Rule(
        "one-of-everything",
        (_TP, _EP, _ETP, "num_moe_experts"),
        "ETP above 1 splits experts that are small already: EP before TP for experts",
        lambda c: all_of(c.moe(), c.more_than_one(c.etp), c.more_than_one(c.ep)),
        "ours",
        "Megatron-Bridge, docs/training/moe-optimization.md",
        "expert_tensor_parallel_size 1",
        level="warning",
        fix="COM-10",
    ),
)
