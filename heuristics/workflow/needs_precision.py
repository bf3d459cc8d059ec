"""What low precision needs (document 003)."""

from __future__ import annotations

from typing import Final

from heuristics.run.run import Run
from heuristics.workflow.need import Need, switch
from heuristics.workflow.needs_dispatcher import router_in_fp32

_LOW: Final = "low precision"
STARTS: Final = {
    "hopper": ("fp8_blockwise", "fp8_current", "fp8_delayed", "fp8"),
    "blackwell_nvl8": ("mxfp8", "nvfp4", "fp8_current", "fp8_delayed", "fp8"),
    "nvl72": ("mxfp8", "nvfp4", "fp8_current", "fp8_delayed", "fp8"),
}
"""Recipes that a platform's guides name: the first is where the older edition starts, one scale per tensor is
a candidate of the newer one on all."""


def _platform(run: Run) -> bool | None:
    hardware, asked = run.config.hardware_class, run.config.precision
    if hardware is None or asked is None:
        return None
    return asked in STARTS.get(hardware, ())


def _stable_first(run: Run) -> bool | None:
    return None if run.config.stage is None else run.config.stage == "tuned"


def _throughput_logged(run: Run) -> bool | None:
    if run.log is None or not run.log.iterations:
        return None
    return True


PRECISION_NEEDS: Final = (
    Need(
        "precision-router",
        _LOW,
        "Low precision: the router stays in FP32",
        "003, FP8 Recipe Quick Decision",
        lambda run: run.config.low_precision(),
        router_in_fp32,
        lambda run: f"router in FP32: {switch(router_in_fp32(run))}",
        "moe_router_dtype: fp32",
        "moe_router_dtype of the configuration",
    ),
    Need(
        "precision-platform",
        _LOW,
        "Low precision: the recipe that the platform's guide names",
        "003, FP8 Recipe Quick Decision",
        lambda run: run.config.low_precision(),
        _platform,
        lambda run: f"{run.config.precision} on {run.config.hardware_class or 'unknown hardware'}",
        "FP8 blockwise on Hopper, MXFP8 on Blackwell, NVFP4 after that is stable",
        "--gpu-model",
        "CMP-3",
    ),
    Need(
        "precision-nvfp4-last",
        "NVFP4",
        "NVFP4: after the BF16 or FP8 path is stable",
        "003, FP8 Recipe Quick Decision",
        lambda run: None if run.config.precision is None else run.config.precision == "nvfp4",
        _stable_first,
        lambda run: f"the run is {run.config.stage or 'at an unknown stage'}".replace("_", " "),
        "MXFP8 or BF16 until the run is stable",
        "--stage",
        "CMP-3",
    ),
    Need(
        "precision-absolute-throughput",
        _LOW,
        "Low precision: judged by absolute throughput, not by MFU alone",
        "003, Pitfalls, 3",
        lambda run: run.config.low_precision(),
        _throughput_logged,
        lambda run: "step times are logged" if _throughput_logged(run) else "no step time is known",
        "compare tokens/s a GPU: a larger peak makes MFU look worse",
        "a log with iteration times",
    ),
)
