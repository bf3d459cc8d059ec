"""An estimate of a rank's memory in bytes, for the pipeline stage that needs most, and what a
change adds.

Counted at the end of the forward passes, when most activations are held: parameters, gradients,
optimizer state, activations times micro-batches in flight, logits. Not counted: what lives for one
kernel, one layer's recomputed activations, dispatcher and NCCL buffers, CUDA graphs, the CUDA
context: the rest, which only a measured peak tells. A peak set elsewhere (the optimizer's step,
say) moves less than a change of activations.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from traces.limits import Limit
from traces.missing import Missing, OrMissing, gap, known
from traces.sections.section import Bytes, Count, Section
from traces.settings.precision import configured_precision, low_bytes
from traces.settings.settings import KnobView, Settings
from traces.sizes.activations import (
    ACTIVATION_BYTES,
    Keeping,
    keeping,
    layer_bytes,
    shard_count,
    token_count,
)
from traces.sizes.layout import Chunk, Layout, chunks_in_flight, layout_of
from traces.sizes.model import ModelSize, model_size
from traces.sizes.parameters import StateBytes, state_bytes, states
from traces.spelling import gigabytes
from traces.texts import Key, Said, Sentences

ERROR: Final = Limit(
    0.15,
    "of the estimate, or of an estimated change",
    "ours: published parts and savings come out within 15 %; of 264 recipes of Megatron-Bridge "
    "without PEFT, none is estimated at more than 1.13 times what its GPU has",
)


ByPart = dict[str, int]
"""Bytes by part of a model or of its activations."""


class MemoryEstimate(Section):
    """Memory of the fullest rank by part, counted from the configuration."""

    stage: Count
    parameters_bytes: Bytes
    gradients_bytes: Bytes
    optimizer_bytes: Bytes
    activations_bytes: Bytes
    logits_bytes: Bytes
    by_part: Mapping[Key, int]
    """Its activations by part of a layer."""
    layer_microbatches: Count
    """Layers times micro-batches in flight."""
    assumed: Sentences
    rest_bytes: OrMissing[int]
    """What a measured peak holds beyond the estimate, below zero where that is too high."""
    calibrated_by: Said
    total_bytes: Bytes
    """All of it; without the rest where no peak was measured."""


def estimate(
    settings: Settings,
    core_version: str | None = None,
    precision: str | None = None,
) -> MemoryEstimate | Missing:
    """The memory of the heaviest pipeline rank; Missing names the knobs needed.

    `core_version`: Megatron-Core's release, such as "0.13.1"; unknown counts as the newest.
    `precision`: of the matrix work, where an option gives it and not the settings.
    """
    stages = by_stage(settings, core_version, precision)
    if isinstance(stages, Missing):
        return stages
    return max(stages, key=lambda stage: stage.total_bytes)


def by_stage(
    settings: Settings, core_version: str | None, precision: str | None = None
) -> tuple[MemoryEstimate, ...] | Missing:
    """The memory of every pipeline rank, in their order; Missing names the knobs needed."""
    model = model_size(settings, any_vocabulary=True)
    if isinstance(model, Missing):
        return model
    untrained = any(map(settings.value, ("peft", "peft.dim")))
    sharded = True in map(settings.value, ("ddp.use_megatron_fsdp", "use_torch_fsdp2"))
    if untrained or sharded:
        what = "weights that are not trained (PEFT)" if untrained else "fully sharded weights"
        return Missing("sizes.memory", f"{what} are not counted", "nothing: not counted yet")
    layout = layout_of(settings, model)
    if isinstance(layout, Missing):
        return layout
    low = low_bytes(precision or configured_precision(KnobView(settings)))
    kept, state = keeping(settings, core_version, low), state_bytes(settings, low)
    chunks = {*chain.from_iterable(layout.stages)}
    held = {chunk: _chunk_bytes(settings, model, layout, kept, chunk) for chunk in chunks}
    return tuple(_of_rank(settings, model, layout, held, state, rank) for rank in range(layout.pp))


def calibrated(
    guess: MemoryEstimate, peak_bytes: int, peak_of: str = "the log's peak"
) -> MemoryEstimate:
    """The estimate with the rest set so that it meets a measured peak; `said`: where the peak was
    read.
    """
    counted = guess.total_bytes - (known(guess.rest_bytes) or 0)
    how = f"{peak_of} of {gigabytes(peak_bytes)}, {gigabytes(counted)} of it estimated"
    return replace(
        guess, rest_bytes=peak_bytes - counted, calibrated_by=how, total_bytes=peak_bytes
    )


def delta(before: MemoryEstimate | Missing, after: MemoryEstimate | Missing) -> int | Missing:
    """Bytes that a change adds to the heaviest rank; below zero is what it frees."""
    if isinstance(before, Missing):
        return before
    if isinstance(after, Missing):
        return after
    return after.total_bytes - before.total_bytes


def _of_rank(
    settings: Settings,
    model: ModelSize,
    layout: Layout,
    held: Mapping[Chunk, Mapping[str, int]],
    state: StateBytes,
    rank: int,
) -> MemoryEstimate:
    """`held`: what each chunk keeps of one micro-batch."""
    chunks = layout.stages[rank]
    parts = [held[chunk] for chunk in chunks]
    flying = chunks_in_flight(layout, rank, [sum(part.values()) for part in parts])
    by_part = _sums(zip(parts, flying, strict=True))
    # BF16, and FP32 for the loss unless TE's fused loss works in place
    fused = settings.value("cross_entropy_loss_fusion") is True
    in_place = fused and settings.value("cross_entropy_fusion_impl") == "te"
    element = ACTIVATION_BYTES if in_place else ACTIVATION_BYTES + 4
    each = round(token_count(model, layout) * model.vocab_size / layout.tp * element)
    layers = logits = 0
    for chunk, count in zip(chunks, flying, strict=True):
        layers += count * chunk.layer_count
        logits += each * (chunk.output + chunk.mtp)
    parameters, gradients, optimizer = states(model, layout, state, rank)
    activations = sum(by_part.values())
    return MemoryEstimate(
        stage=rank,
        parameters_bytes=parameters,
        gradients_bytes=gradients,
        optimizer_bytes=optimizer,
        activations_bytes=activations,
        logits_bytes=logits,
        by_part=by_part,
        layer_microbatches=layers,
        assumed=(
            *model.assumed,
            *layout.assumed,
            *state.assumed,
            "every expert gets equally many tokens and none is dropped",
        ),
        rest_bytes=gap("no log reports the peak of memory", "give the training log: --log FILE"),
        calibrated_by="",
        total_bytes=parameters + gradients + optimizer + activations + logits,
    )


def _chunk_bytes(
    settings: Settings, model: ModelSize, layout: Layout, kept: Keeping, chunk: Chunk
) -> ByPart:
    moe_count = chunk.moe + chunk.mtp * model.mtp_is_moe
    dense = layer_bytes(model, layout, kept, moe=False)
    moe = layer_bytes(model, layout, kept, moe=True) if moe_count else {}
    held = _sums(((dense, chunk.layer_count - moe_count), (moe, moe_count)))
    stream = round(shard_count(model, layout) * model.hidden_size * ACTIVATION_BYTES)
    if settings.value("recompute_granularity") == "full":
        held = _full_recompute(settings, chunk, held, stream)
    if settings.value("cpu_offloading") is True:
        held = _layers_offloaded(settings, chunk, held)
    held["ends"] = stream * (4 * chunk.mtp + 2 * chunk.output)
    return held


def _sums(parts: Iterable[tuple[Mapping[Any, int], int]]) -> ByPart:
    """Bytes by part of several, each so many times."""
    held: ByPart = {}
    for part, count in parts:
        for name, size in part.items():
            held[name] = held.get(name, 0) + count * size
    return held


def _full_recompute(settings: Settings, chunk: Chunk, held: ByPart, stream: int) -> ByPart:
    """Full recompute keeps a layer's input: of every n-th layer (uniform), or of the first n
    (block).
    """
    layers = chunk.layer_count
    layers_said = settings.value("recompute_num_layers")
    layers_each = layers_said if isinstance(layers_said, int) and layers_said > 0 else 1
    if settings.value("recompute_method") != "block":
        return {"residual": -(-layers // layers_each) * stream}
    saved = min(layers_each, layers)
    without = _without_layers(chunk, saved, held)
    return without | {"residual": without["residual"] + saved * stream}


def _layers_offloaded(settings: Settings, chunk: Chunk, held: ByPart) -> ByPart:
    layer_count = settings.value("cpu_offloading_num_layers")
    if settings.value("cpu_offloading_activations") is False or not isinstance(layer_count, int):
        return held
    return _without_layers(chunk, min(layer_count, chunk.layer_count), held)


def _without_layers(chunk: Chunk, gone: int, held: ByPart) -> ByPart:
    layers = chunk.layer_count
    return {name: whole * (layers - gone) // max(1, layers) for name, whole in held.items()}
