"""Throughput from a configuration and the length of a step: tokens, model TFLOP/s, MFU of a named
peak.
"""

from collections.abc import Mapping
from typing import Final, Literal

from traces.frozen import frozen
from traces.missing import Missing
from traces.settings.knobs import GLOBAL_BATCH
from traces.settings.settings import Settings
from traces.sizes.knobs import Knobs
from traces.sizes.layout import layout_of, moe_layers_of_stages
from traces.sizes.model import Experts, ModelSize, model_size
from traces.sizes.peaks import Peak, fastest, peak, peak_precision
from traces.spelling import percent, rounded

Part = Literal[
    "attention", "core_attention", "dense_mlp", "experts", "shared_experts", "mtp", "logits"
]

_TRAINING: Final = 3 * 2
"""Forward, and twice that backward; a multiply-add is two operations."""


def flops_per_token(model: ModelSize) -> Mapping[Part, float]:
    """Floating-point operations for one token of a training step, by part.

    As in both sources, of router and norms only those of MLA and multi-token prediction are
    counted. Megatron-LM counts windows as full attention; Bridge from 0.5 on does not, and we
    follow it.
    """
    layers, hidden = len(model.is_moe) + model.mtp_layers, model.hidden_size
    matrices = 3 if model.gated else 2
    dense = model.ffn_size * matrices * model.dense_layer_count
    routed, shared = 0.0, 0.0
    if experts := model.experts:
        shared = float(experts.shared_ffn_size * matrices * model.moe_layer_count)
        routed = _routed(experts, matrices) / hidden
        routed = (routed + 2 * experts.hidden_size * experts.latent) * model.moe_layer_count
    forward: dict[Part, float] = {
        "attention": float(layers * _projections(model)),
        "core_attention": _core(model, layers),
        "dense_mlp": float(dense * hidden),
        "experts": routed * hidden,
        "shared_experts": shared * hidden,
        "mtp": float(model.mtp_layers * (3 * hidden + 2 * hidden * hidden)),
        "logits": float(hidden * model.vocab_size * (model.mtp_layers + 1)),
    }
    return {part: _TRAINING * count for part, count in forward.items()}


def grouped_flops_per_step(settings: Settings) -> float | None:
    """Floating-point operations of the experts' grouped GEMMs on one GPU in a step, tokens spread
    evenly.

    What recompute does again is counted: all of it, or whole MoE layers. None where sizes are
    missing, and where GPUs differ: stages have other numbers of MoE layers, or only some layers are
    recomputed.
    """
    model, batch = model_size(settings), Knobs(settings).positive(GLOBAL_BATCH)
    layout = model if isinstance(model, Missing) else layout_of(settings, model)
    if isinstance(model, Missing) or isinstance(layout, Missing) or not batch:
        return None
    layers = {*moe_layers_of_stages(layout, model)}
    passes = _passes(settings)
    experts = model.experts
    if experts is None or len(layers) > 1 or passes is None:
        return None
    matrices = 3 if model.gated else 2
    tokens = batch * model.seq_length * layout.pp / layout.world
    return passes * 2 * _routed(experts, matrices) * layers.pop() * tokens


def _routed(experts: Experts, matrices: int) -> int:
    """Multiply-adds of a token in the experts of a layer, forward."""
    return experts.ffn_size * experts.topk * matrices * experts.hidden_size


def _passes(settings: Settings) -> int | None:
    """Forward passes of experts' GEMMs in a step, a backward one counted as two; None where layers
    differ.
    """
    granularity, modules = map(settings.value, ("recompute_granularity", "recompute_modules"))
    if granularity == "full" and settings.value("recompute_method") != "uniform":
        return None
    again = granularity == "selective" and isinstance(modules, tuple) and "moe" in modules
    if granularity == "full" or again:
        return 4
    return 3


def _projections(model: ModelSize) -> int:
    hidden, heads = model.hidden_size, model.heads
    if model.latent is None:
        keys = model.query_groups * model.head_dim
        return hidden * (model.qk_size * (1 + model.output_gate) + 2 * keys) + model.v_size * hidden
    latent = model.latent
    if latent.q_rank is None:
        queries = hidden * model.qk_size
    else:
        queries = latent.q_rank * (hidden + model.qk_size + 1)
    values = latent.kv_rank * (hidden + heads * (latent.qk_head_dim + latent.v_head_dim) + 1)
    return queries + values + hidden * latent.qk_pos_dim + model.v_size * hidden


def _core(model: ModelSize, layers: int) -> float:
    seen = model.seq_length
    full = (model.qk_size + model.v_size) * seen / 2
    window = model.window
    if window is None or window.token_count >= seen:
        return layers * full
    every = window.full_every
    full_layers = layers // every if every else 0
    context = window.token_count - window.token_count * (window.token_count - 1) / (2 * seen)
    return full_layers * full + (layers - full_layers) * (model.qk_size + model.v_size) * context


@frozen
class Throughput:
    """Rates of one GPU. `mfu_frac` is of `peak`; both None where the GPU or its precision is
    unknown.

    A lower-precision peak makes the same rate a smaller MFU: say `model_tflops_per_gpu` beside it.
    """

    tokens_per_s_per_gpu: float
    model_tflops_per_gpu: float
    mfu_frac: float | None
    peak: Peak | None


_RANKS: Final = "world_size"


def throughput(
    settings: Settings,
    step_ns: int,
    gpu: str | None = None,
    precision: str | None = None,
    logged: Settings | None = None,
) -> Throughput | Missing:
    """Throughput of a run whose steps last `step_ns`; Missing names the knobs needed.

    `gpu`: family such as H100. `precision`: of the matrix work, by our names, as it runs.
    `logged`: what a log says that the run did, which outweighs what it was asked to do.
    Above its peak no GPU works: then something that was said is wrong, and nothing is given.
    """
    logged = logged or Settings()
    settings = settings.under(logged)
    model = model_size(settings)
    if isinstance(model, Missing):
        return model
    knobs = Knobs(settings)
    batch, world = knobs.need(GLOBAL_BATCH), knobs.need(_RANKS)
    if (gap := knobs.gap("throughput")) is not None:
        return gap
    if step_ns <= 0:
        return Missing("throughput", "no step was measured", "record at least one whole step")
    gpu_s = world * step_ns / 1e9
    flop = sum(flops_per_token(model).values()) * batch * model.seq_length
    tflops = flop / gpu_s / 1e12
    ceiling = peak(gpu, peak_precision(precision))
    highest = ceiling or fastest(gpu)  # no precision makes a GPU faster than its fastest
    if highest and tflops > highest.tflops:
        return _impossible(settings, logged, tflops / highest.tflops, highest)
    return Throughput(
        tokens_per_s_per_gpu=batch * model.seq_length / gpu_s,
        model_tflops_per_gpu=tflops,
        mfu_frac=tflops / ceiling.tflops if ceiling else None,
        peak=ceiling,
    )


def _impossible(settings: Settings, logged: Settings, mfu_frac: float, ceiling: Peak) -> Missing:
    """Which of the numbers is the likely cause: those that no line of a log confirms."""
    names = {GLOBAL_BATCH: "the global batch", _RANKS: "the number of ranks"}
    doubtful = [
        f"{name} ({settings.value(knob)}, {settings.said(knob)})"
        for knob, name in names.items()
        if knob not in logged
    ]
    cause = " or ".join(doubtful) or "the GPU, its precision or the length of a step"
    return Missing(
        "throughput",
        f"MFU would be {percent(mfu_frac)} of the {rounded(ceiling.tflops)} TFLOP/s of "
        f"{ceiling.gpu} in {ceiling.precision}, which no GPU reaches: {cause} is not this run's",
        "give the log and the configuration of the same run",
    )
