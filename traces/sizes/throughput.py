"""Throughput from a configuration and the length of a step: tokens, model TFLOP/s, MFU of a named peak."""

from dataclasses import dataclass
from typing import Final

from traces.missing import Missing
from traces.settings.settings import Settings
from traces.sizes.flops import flops_per_step
from traces.sizes.knobs import Knobs
from traces.sizes.model import model_size
from traces.sizes.peaks import Peak, peak, peak_precision
from traces.spelling import percent, rounded


@dataclass(frozen=True, slots=True)
class Throughput:
    """Rates of one GPU. `mfu_frac` is of `peak`; both None where the GPU or its precision is unknown.

    A lower-precision peak makes the same rate a smaller MFU: say `model_tflops_per_gpu` beside it.
    """

    tokens_per_s_per_gpu: float
    model_tflops_per_gpu: float
    mfu_frac: float | None
    peak: Peak | None


_BATCH: Final = "train.global_batch_size"
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
    batch, world = knobs.need(_BATCH), knobs.need(_RANKS)
    if gap := knobs.gap("throughput"):
        return gap
    if step_ns <= 0:
        return Missing("throughput", "no step was measured", "record at least one whole step")
    gpu_s = world * step_ns / 1e9
    tflops = flops_per_step(model, batch) / gpu_s / 1e12
    ceiling = peak(gpu, peak_precision(precision))
    if ceiling and tflops > ceiling.tflops:
        return _impossible(settings, logged, tflops / ceiling.tflops, ceiling)
    return Throughput(
        tokens_per_s_per_gpu=batch * model.seq_length / gpu_s,
        model_tflops_per_gpu=tflops,
        mfu_frac=tflops / ceiling.tflops if ceiling else None,
        peak=ceiling,
    )


def _impossible(settings: Settings, logged: Settings, mfu_frac: float, ceiling: Peak) -> Missing:
    """Which of the numbers is the likely cause: those that no line of a log confirms."""
    names = {_BATCH: "the global batch", _RANKS: "the number of ranks"}
    doubtful = [
        f"{name} ({settings.value(knob)}, {settings.said(knob)})"
        for knob, name in names.items()
        if knob not in logged
    ]
    cause = " or ".join(doubtful) or "the GPU, its precision or the length of a step"
    return Missing(
        "throughput",
        f"MFU would be {percent(mfu_frac)} of the {rounded(ceiling.tflops)} TFLOP/s of {ceiling.gpu} in "
        f"{ceiling.precision}, which no GPU reaches: {cause} is not this run's",
        "give the log and the configuration of the same run",
    )
