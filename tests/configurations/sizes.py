"""Configurations of published models and of one small enough to add in the head."""

from __future__ import annotations

from collections.abc import Mapping

from traces.missing import Missing
from traces.settings.harness_recipes import models
from traces.settings.settings import Settings, Value, settings
from traces.sizes.memory import MemoryEstimate, by_stage, estimate
from traces.sizes.model import ModelSize, model_size

TINY: Mapping[str, Value] = {
    "num_layers": 2, "hidden_size": 8, "ffn_hidden_size": 16, "num_attention_heads": 2, "vocab_size": 100,
    "seq_length": 10, "share_embeddings_and_output_weights": False, "gated_linear_unit": False,
    "num_moe_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 5, "moe_layer_freq": (0, 1),
}  # fmt: skip
"""Two layers, the first dense: 10 tokens of 8 numbers, 2 heads of 4, 4 experts of which a token takes 2."""

ONE_GPU: Mapping[str, Value] = {
    "world_size": 1, "train.micro_batch_size": 1, "train.global_batch_size": 1,
    "ddp.use_distributed_optimizer": True, "ddp.grad_reduce_in_fp32": True,
}  # fmt: skip


def tiny(**more: Value) -> Settings:
    return settings({**TINY, **ONE_GPU, **more}, "test")


def published(model: str, **run: Value) -> Settings:
    """A model that Bridge's recipes name, with the knobs of a run (two underscores stand for a dot)."""
    sizes = models()[model]
    return settings({**sizes, **{k.replace("__", "."): v for k, v in run.items()}}, "test")


def sized(known: Settings) -> ModelSize:
    found = model_size(known)
    assert not isinstance(found, Missing), found.reason
    return found


def estimated(known: Settings, core_version: str | None = None, stage: int | None = None) -> MemoryEstimate:
    """Of one stage, or of the heaviest."""
    found = by_stage(known, core_version)
    assert not isinstance(found, Missing), found.reason
    heaviest = estimate(known, core_version)
    assert isinstance(heaviest, MemoryEstimate)
    return heaviest if stage is None else found[stage]
