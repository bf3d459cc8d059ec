"""Parameters by part that one rank of a stage holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from traces.sizes.layout import Chunk, Layout
from traces.sizes.model import Experts, ModelSize

Part = Literal[
    "embedding", "attention", "router", "experts", "shared_experts", "dense_mlp", "norms", "mtp", "output"
]
"""`mtp`: what multi-token prediction adds to its transformer layer (its norms and its projection)."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Ranks that share a weight: tensor parallel, expert parallel, tensor parallel inside experts."""

    tp: int = 1
    ep: int = 1
    etp: int = 1


def rank_counts(model: ModelSize, layout: Layout, stage: int) -> Mapping[Part, int]:
    """Parameters held by one rank of a pipeline stage, by part."""
    cut, held = Cut(layout.tp, layout.ep, layout.etp), dict.fromkeys(_PARTS, 0)
    for chunk in layout.stages[stage]:
        for part, count in chunk_counts(model, chunk, cut, both_ends=layout.pp == 1).items():
            held[part] += count
    return held


def chunk_counts(model: ModelSize, chunk: Chunk, cut: Cut, *, both_ends: bool) -> dict[Part, int]:
    """Parameters of one chunk on one rank. `both_ends`: embedding and output lie on the same stage.

    Apart from it, a tied output and multi-token prediction hold their own copy of the embedding.
    """
    moe = chunk.moe + chunk.mtp * model.mtp_is_moe
    layers = chunk.dense + chunk.moe + chunk.mtp
    table = model.vocab_size * model.hidden_size // cut.tp
    copies = int(chunk.embedding)
    if not both_ends:
        copies += bool(chunk.mtp) and not chunk.embedding
    shared_copy = model.tied_embeddings and (both_ends or bool(chunk.mtp))
    counts = dict.fromkeys(_PARTS, 0)
    counts["embedding"] = copies * table
    counts["output"] = table if chunk.output and not shared_copy else 0
    counts["attention"] = layers * attention_count(model, cut.tp)
    counts["norms"] = layers * 2 * model.norm_weights * model.hidden_size
    counts["norms"] += chunk.output * model.norm_weights * model.hidden_size
    counts["dense_mlp"] = (layers - moe) * _mlp_count(model, model.ffn_size, model.hidden_size, cut.tp)
    counts["mtp"] = chunk.mtp * (
        2 * model.hidden_size**2 // cut.tp + 3 * model.norm_weights * model.hidden_size
    )
    if model.experts:
        counts["router"] = moe * model.experts.count * model.hidden_size
        counts["experts"] = moe * _expert_count(model, model.experts, cut)
        counts["shared_experts"] = moe * _shared_count(model, model.experts, cut.tp)
    return counts


def attention_count(model: ModelSize, tp: int) -> int:
    """Weights of one attention layer on one rank; MLA's down projections are on every tensor parallel rank.

    Transformer Engine's layers (megatron/core/models/gpt/gpt_layer_specs.py): they are `duplicated`.
    """
    hidden, heads = model.hidden_size, model.heads
    if model.latent is None:
        groups = max(model.query_groups, tp)
        wide = model.qk_size * (1 + model.output_gate) + 2 * groups * model.head_dim
        count = hidden * (wide + model.v_size) // tp
        count += 2 * model.norm_weights * model.head_dim * model.qk_norm
        return count + (wide // tp + hidden) * model.bias
    latent = model.latent
    down = hidden * (latent.kv_rank + latent.qk_pos_dim) + model.norm_weights * latent.kv_rank
    up = latent.kv_rank * heads * (latent.qk_head_dim + latent.v_head_dim) + model.v_size * hidden
    if latent.q_rank is None:
        return down + (up + hidden * model.qk_size) // tp
    down += latent.q_rank * (hidden + model.norm_weights)
    return down + (up + latent.q_rank * model.qk_size) // tp


_PARTS: tuple[Part, ...] = (
    "embedding", "attention", "router", "experts", "shared_experts", "dense_mlp", "norms", "mtp", "output"
)  # fmt: skip


def _mlp_count(model: ModelSize, ffn: int, hidden: int, ways: int) -> int:
    matrices = 3 if model.gated else 2
    bias = (ffn * (matrices - 1) // ways + hidden) * model.bias
    return matrices * ffn * hidden // ways + bias


def _expert_count(model: ModelSize, experts: Experts, cut: Cut) -> int:
    held = experts.count // cut.ep * _mlp_count(model, experts.ffn_size, experts.hidden_size, cut.etp)
    return held + (2 * model.hidden_size * experts.hidden_size if experts.latent else 0)


def _shared_count(model: ModelSize, experts: Experts, tp: int) -> int:
    if not experts.shared_ffn_size:
        return 0
    return _mlp_count(model, experts.shared_ffn_size, model.hidden_size, tp) + (
        model.hidden_size if experts.shared_gate else 0
    )
