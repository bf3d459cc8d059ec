"""Parameters by part that a rank of a stage holds; bytes of them, their gradients and optimizer
state.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

from traces.frozen import frozen
from traces.settings.settings import Settings
from traces.sizes.knobs import Knobs
from traces.sizes.layout import Chunk, Layout
from traces.sizes.model import ModelSize
from traces.texts import Texts

Part = Literal[
    "embedding",
    "attention",
    "router",
    "experts",
    "shared_experts",
    "dense_mlp",
    "norms",
    "mtp",
    "output",
]
"""`mtp`: what multi-token prediction adds to its transformer layer (its norms and its
projection)."""


@frozen
class WeightShards:
    """Ranks that share a weight: tensor parallel, expert parallel, tensor parallel inside
    experts.
    """

    tp: int = 1
    ep: int = 1
    etp: int = 1


def rank_counts(model: ModelSize, layout: Layout, stage: int) -> Mapping[Part, int]:
    """Parameters held by one rank of a pipeline stage, by part."""
    cut, held = WeightShards(layout.tp, layout.ep, layout.etp), dict.fromkeys(_PARTS, 0)
    for chunk in layout.stages[stage]:
        for part, count in chunk_counts(model, chunk, cut, both_ends=layout.pp == 1).items():
            held[part] += count
    return held


def chunk_counts(
    model: ModelSize, chunk: Chunk, cut: WeightShards, *, both_ends: bool
) -> dict[Part, int]:
    """Parameters of one chunk on one rank. `both_ends`: embedding and output lie on the same stage.

    Apart from it, a tied output and multi-token prediction hold their own copy of the embedding.
    """
    moe = chunk.moe + chunk.mtp * model.mtp_is_moe
    layers = chunk.layer_count
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
    counts["dense_mlp"] = (layers - moe) * _mlp_count(
        model, model.ffn_size, model.hidden_size, cut.tp
    )
    counts["mtp"] = chunk.mtp * (
        2 * model.hidden_size**2 // cut.tp + 3 * model.norm_weights * model.hidden_size
    )
    if experts := model.experts:
        held = (
            experts.count
            // cut.ep
            * _mlp_count(model, experts.ffn_size, experts.hidden_size, cut.etp)
        )
        latent = 2 * model.hidden_size * experts.hidden_size * experts.latent
        counts["router"] = moe * experts.count * model.hidden_size
        counts["experts"] = moe * (held + latent)
        if ffn := experts.shared_ffn_size:
            shared = _mlp_count(model, ffn, model.hidden_size, cut.tp)
            counts["shared_experts"] = moe * (shared + model.hidden_size * experts.shared_gate)
    return counts


def total_counts(model: ModelSize) -> Mapping[Part, int]:
    """Parameters of the whole model, by part; those of multi-token prediction are no part of it."""
    dense = model.is_moe.count(False)
    whole = Chunk(dense, len(model.is_moe) - dense, 0, embedding=True, output=True)
    return chunk_counts(model, whole, WeightShards(), both_ends=True)


def attention_count(model: ModelSize, tp: int) -> int:
    """Weights of one attention layer on one rank; MLA's down projections are on every tensor
    parallel rank.

    Transformer Engine's layers (megatron/core/models/gpt/gpt_layer_specs.py): they are
    `duplicated`.
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


_PARTS: Final[tuple[Part, ...]] = get_args(Part)


def _mlp_count(model: ModelSize, ffn: int, hidden: int, ways: int) -> int:
    matrices = 3 if model.gated else 2
    bias = (ffn * (matrices - 1) // ways + hidden) * model.bias
    return matrices * ffn * hidden // ways + bias


_QUANTISED: Final[frozenset[Part]] = frozenset(
    {"attention", "experts", "shared_experts", "dense_mlp"}
)
"""Parts whose matrices low precision quantises; the paper keeps router, embedding and output as
they are."""


_STATES: Final = (
    "optimizer.main_params_dtype",
    "optimizer.exp_avg_dtype",
    "optimizer.exp_avg_sq_dtype",
)


@frozen
class StateBytes:
    """Bytes of one parameter's state. `moments`: both of Adam's; `kept_frac`: what the GPU keeps of
    them.
    """

    weight: float
    quantised_weight: float
    gradient: float
    main: float
    moments: float
    kept_frac: float
    sharded: bool
    instances: int
    assumed: Texts


def state_bytes(settings: Settings, low: float | None) -> StateBytes:
    """How a configuration keeps weights, gradients and optimizer state.

    Weights BF16; low precision adds both orientations of the quantised ones (Transformer Engine
    caches them), or keeps only those with FP8 parameters. Main weights: FP32, or with the
    precision-aware optimizer the 16 bits that BF16 lacks (`store_param_remainders`, core 0.13). CPU
    offloading takes the moments of its fraction: HybridDeviceOptimizer steps on host copies, the
    distributed optimizer's main shard stays.
    """
    knobs = Knobs(settings)
    aware = settings.value("optimizer.use_precision_aware_optimizer") is True
    gathered = True in map(
        settings.value, ("ddp.fp8_param_gather", "mixed_precision.fp8_param_gather")
    )
    main, *moments = map(knobs.dtype_bytes, _STATES) if aware else (4.0,) * 3
    remainders = aware and settings.value("optimizer.store_param_remainders") is not False
    if remainders and main == 4.0 and low is None:
        main = 2.0
    offload = settings.value("optimizer.optimizer_cpu_offload") is True
    # of OptimizerConfig; of Megatron-LM
    unsaid = 0.0 if settings.framework == "megatron_bridge" else 1.0
    sent = knobs.fraction("optimizer.optimizer_offload_fraction", unsaid) if offload else 0.0
    wide = knobs.value("mixed_precision.grad_reduce_in_fp32")
    is_wide = wide if isinstance(wide, bool) else knobs.flag("ddp.grad_reduce_in_fp32", True)
    quantised = 2.0
    if low is not None:
        quantised = 2.0 * low + 2.0 * (not gathered)
    return StateBytes(
        weight=2.0,
        quantised_weight=quantised,
        gradient=4.0 if is_wide else 2.0,
        main=main,
        moments=sum(moments),
        kept_frac=1.0 - sent,
        sharded=knobs.flag("ddp.use_distributed_optimizer", True),
        instances=knobs.positive("ddp.num_distributed_optimizer_instances") or 1,
        assumed=tuple(knobs.assumed),
    )


def states(model: ModelSize, layout: Layout, state: StateBytes, stage: int) -> tuple[int, int, int]:
    """Bytes of parameters, gradients and optimizer state on a rank of a pipeline stage."""
    counts = rank_counts(model, layout, stage)
    total, experts = sum(counts.values()), counts["experts"]
    quantised = sum(counts[kind] for kind in _QUANTISED)
    parameters = quantised * state.quantised_weight + (total - quantised) * state.weight
    # The distributed optimizer shards over data parallel ranks, an expert's state over its own
    # fewer ones.
    dense_ways = max(1, layout.dp // state.instances) if state.sharded else 1
    expert_ways = max(1, layout.edp // state.instances) if state.sharded else 1
    sharded = (total - experts) / dense_ways + experts / expert_ways
    optimizer = sharded * (state.main + state.moments * state.kept_frac)
    return round(parameters), round(total * state.gradient), round(optimizer)
