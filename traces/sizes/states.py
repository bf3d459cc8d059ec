"""Bytes of parameters, gradients and optimizer state of one rank, with the distributed optimizer or not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from traces.settings.settings import Settings
from traces.sizes.knobs import Knobs
from traces.sizes.layout import Layout
from traces.sizes.model import ModelSize
from traces.sizes.parameters import Part, rank_counts

_QUANTISED: Final[frozenset[Part]] = frozenset({"attention", "experts", "shared_experts", "dense_mlp"})
"""Parts whose matrices low precision quantises; the paper keeps router, embedding and output as they are."""


@dataclass(frozen=True, slots=True)
class StateBytes:
    """Bytes of one parameter's state. `moments`: both of Adam's; `kept_frac`: what the GPU keeps of them."""

    weight: float
    quantised_weight: float
    gradient: float
    main: float
    moments: float
    kept_frac: float
    sharded: bool
    instances: int
    assumed: tuple[str, ...] = ()


def state_bytes(settings: Settings, low: float | None) -> StateBytes:
    """How a configuration keeps weights, gradients and optimizer state.

    Weights BF16; low precision adds both orientations of the quantised ones (Transformer Engine caches
    them), or keeps only those with FP8 parameters. Main weights: FP32, or with the precision-aware optimizer
    the 16 bits that BF16 lacks (`store_param_remainders`, core 0.13). CPU offloading takes the moments of its
    fraction: HybridDeviceOptimizer steps on host copies, the distributed optimizer's main shard stays.
    """
    knobs = Knobs(settings)
    aware = settings.value("optimizer.use_precision_aware_optimizer") is True
    gathered = any(
        settings.value(knob) is True for knob in ("ddp.fp8_param_gather", "mixed_precision.fp8_param_gather")
    )
    main = knobs.dtype_bytes("optimizer.main_params_dtype", 4.0) if aware else 4.0
    if (
        aware
        and main == 4.0
        and low is None
        and settings.value("optimizer.store_param_remainders") is not False
    ):
        main = 2.0
    moments = sum(
        knobs.dtype_bytes(f"optimizer.{moment}_dtype", 4.0) if aware else 4.0
        for moment in ("exp_avg", "exp_avg_sq")
    )
    offload = settings.value("optimizer.optimizer_cpu_offload") is True
    unsaid = 0.0 if settings.framework == "megatron_bridge" else 1.0  # of OptimizerConfig; of Megatron-LM
    sent = knobs.fraction("optimizer.optimizer_offload_fraction", unsaid) if offload else 0.0
    gradient = 4.0 if _fp32_gradients(knobs) else 2.0
    return StateBytes(
        weight=2.0,
        quantised_weight=2.0 if low is None else 2.0 * low + (0.0 if gathered else 2.0),
        gradient=gradient,
        main=main,
        moments=moments,
        kept_frac=1.0 - sent,
        sharded=knobs.flag("ddp.use_distributed_optimizer", True),
        instances=max(1, knobs.positive("ddp.num_distributed_optimizer_instances") or 1),
        assumed=tuple(knobs.assumed),
    )


def states(model: ModelSize, layout: Layout, state: StateBytes, stage: int) -> tuple[int, int, int]:
    """Bytes of parameters, gradients and optimizer state on a rank of a pipeline stage."""
    counts: Mapping[Part, int] = rank_counts(model, layout, stage)
    total, experts = sum(counts.values()), counts["experts"]
    quantised = sum(count for part, count in counts.items() if part in _QUANTISED)
    parameters = quantised * state.quantised_weight + (total - quantised) * state.weight
    # The distributed optimizer shards over data parallel ranks, an expert's state over its own fewer ones.
    dense_ways = max(1, layout.dp // state.instances) if state.sharded else 1
    expert_ways = max(1, layout.edp // state.instances) if state.sharded else 1
    sharded = (total - experts) / dense_ways + experts / expert_ways
    optimizer = sharded * (state.main + state.moments * state.kept_frac)
    return round(parameters), round(total * state.gradient), round(optimizer)


def _fp32_gradients(knobs: Knobs) -> bool:
    said = knobs.value("mixed_precision.grad_reduce_in_fp32")
    return said if isinstance(said, bool) else knobs.flag("ddp.grad_reduce_in_fp32", True)
