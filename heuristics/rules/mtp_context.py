"""What MTP layers, context parallelism and batches ask for. Read at core_v0.12.0 to d98e8a64."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, any_of, negated
from heuristics.config.view import Config
from heuristics.rules.layout import remainder
from heuristics.rules.legacy import BRIDGE, CORE, CORE_MAIN, LM, Rule

_MTP: Final = "mtp_num_layers"
_POSITIONS: Final = "position_embedding_type"
_CP: Final = "context_parallel_size"
_HYBRID: Final = "hybrid_context_parallel"


def _list_length_unlike(config: Config) -> bool | None:
    kinds, layers = config.value("cp_comm_type"), config.count("num_layers")
    if not config.known("cp_comm_type"):
        return None
    return False if not isinstance(kinds, tuple) else None if layers is None else len(kinds) != layers


def _sequence_remainder(config: Config) -> bool | None:
    return remainder(config.count("seq_length"), config.cp, 2)


def _batch_remainder(config: Config) -> bool | None:
    return remainder(
        config.count("train.global_batch_size"), config.count("train.micro_batch_size"), config.dp
    )


RULES: Final = (
    Rule(
        "mtp-positions",
        (_MTP, _POSITIONS),
        "MTP layers need rotary positions, or none",
        lambda c: all_of(c.on(_MTP), negated(c.one_of(_POSITIONS, "rope", "none"))),
        "megatron_lm",
        LM,
        "position_embedding_type rope",
        until="0.17.0",
    ),
    Rule(
        "mtp-positions-newer",
        (_MTP, _POSITIONS),
        "MTP layers need positions by learned_absolute, rope, mrope or none",
        lambda c: all_of(
            c.on(_MTP), negated(c.one_of(_POSITIONS, "learned_absolute", "rope", "mrope", "none"))
        ),
        "megatron_lm",
        LM,
        "position_embedding_type rope",
        since="0.17.0",
    ),
    Rule(
        "mtp-context",
        (_MTP, _CP),
        "MTP layers do not go with context parallelism",
        lambda c: all_of(c.on(_MTP), c.more_than_one(c.cp)),
        "megatron_lm",
        f"{LM}, core_v0.13.0",
        "context_parallel_size 1, or Megatron-Core 0.14 or later",
        until="0.14.0",
    ),
    Rule(
        "mtp-hyper-connections",
        (_MTP, "enable_mhc_connections"),
        "hyper-connections do not go with MTP layers",
        lambda c: all_of(c.on("enable_mhc_connections"), negated(c.null(_MTP))),
        "core",
        CORE,
        "no MTP layers",
        since=CORE_MAIN,
        core_message="is not compatible with Multi-Token Prediction",
    ),
    Rule(
        "context-list",
        (_CP, "cp_comm_type", "num_layers"),
        "a list in cp_comm_type has one entry a layer",
        lambda c: all_of(c.more_than_one(c.cp), _list_length_unlike(c)),
        "core",
        CORE,
        "one cp_comm_type for all layers",
        core_message="Length of cp_comm_type",
        fix="COM-7",
    ),
    Rule(
        "context-sequence",
        (_CP, "seq_length"),
        "context parallelism cuts a sequence into 2 x CP pieces of one length",
        lambda c: all_of(c.more_than_one(c.cp), _sequence_remainder(c)),
        "ours",
        f"{LM}; {BRIDGE}",
        "seq_length that divides by 2 x CP",
        fix="COM-7",
    ),
    Rule(
        "context-hybrid",
        (_HYBRID, "pipeline_model_parallel_size", "ddp.use_megatron_fsdp", "calculate_per_token_loss"),
        "hybrid context parallelism goes without pipeline stages and Megatron-FSDP, with a loss per token",
        lambda c: all_of(
            c.on(_HYBRID),
            any_of(
                c.more_than_one(c.pp),
                c.on("ddp.use_megatron_fsdp"),
                negated(c.on("calculate_per_token_loss")),
            ),
        ),
        "megatron_lm",
        LM,
        "pipeline_model_parallel_size 1 and calculate_per_token_loss on",
        since="0.16.0",
    ),
    Rule(
        "batch-division",
        ("train.global_batch_size", "train.micro_batch_size", "world_size", _CP),
        "the global batch is whole micro-batches of every data-parallel rank",
        _batch_remainder,
        "ours",
        "Megatron-Core, num_microbatches_calculator.py",
        "train.global_batch_size that divides by micro-batch size x DP",
        fix="HST-5",
    ),
    Rule(
        "packed-micro-batch",
        ("train.micro_batch_size",),
        "sequences packed beforehand take a micro-batch size of 1",
        lambda c: all_of(c.packed_sequences, c.above("train.micro_batch_size", 1)),
        "megatron_bridge",
        BRIDGE,
        "train.micro_batch_size=1",
        fix="HST-5",
    ),
)
