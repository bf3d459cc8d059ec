"""Throughput from a configuration and the length of a step: tokens, model TFLOP/s, MFU of a named peak."""

from __future__ import annotations

from dataclasses import dataclass

from traces.missing import Missing
from traces.settings.settings import Settings
from traces.sizes.flops import flops_per_step
from traces.sizes.knobs import Knobs
from traces.sizes.model import model_size
from traces.sizes.peaks import Peak, Precision, peak, precision_of


@dataclass(frozen=True, slots=True)
class Throughput:
    """Rates of one GPU. `mfu_frac` is of `peak`; both None where the GPU or its precision is unknown.

    A lower-precision peak makes the same rate a smaller MFU: say `model_tflops_per_gpu` beside it.
    """

    tokens_per_s_per_gpu: float
    model_tflops_per_gpu: float
    mfu_frac: float | None
    peak: Peak | None


def throughput(
    settings: Settings, step_ns: int, gpu: str | None = None, precision: Precision | None = None
) -> Throughput | Missing:
    """Throughput of a run whose steps last `step_ns`; Missing names the knobs needed.

    `gpu`: family such as H100. `precision`: of the matrix work, where the configuration does not say it.
    """
    model = model_size(settings)
    if isinstance(model, Missing):
        return model
    knobs = Knobs(settings)
    batch, world = knobs.need("train.global_batch_size"), knobs.need("world_size")
    if gap := knobs.gap("throughput"):
        return gap
    if step_ns <= 0:
        return Missing("throughput", "no step was measured", "record at least one whole step")
    gpu_s = world * step_ns / 1e9
    tflops = flops_per_step(model, batch) / gpu_s / 1e12
    ceiling = peak(gpu, precision_of(settings) or precision)
    return Throughput(
        tokens_per_s_per_gpu=batch * model.seq_length / gpu_s,
        model_tflops_per_gpu=tflops,
        mfu_frac=tflops / ceiling.tflops if ceiling else None,
        peak=ceiling,
    )
