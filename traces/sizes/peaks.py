"""Peak rates of matrix units by GPU family and precision: dense, without structured sparsity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from traces.settings.settings import Settings
from traces.sizes.knobs import low_precision_bytes

Precision = Literal["bf16", "fp8", "nvfp4"]
_HALF: Final = ("bf16", "fp16")


@dataclass(frozen=True, slots=True)
class Peak:
    """One peak rate, and where it is published."""

    gpu: str
    precision: Precision
    tflops: float
    source: str


_A100: Final = "NVIDIA A100 datasheet"
_H100: Final = "NVIDIA H100 datasheet, SXM, half of the figures with sparsity"
_H200: Final = "NVIDIA H200 datasheet, SXM, half of the figures with sparsity"
_HGX: Final = "NVIDIA HGX B200 specifications, one of eight GPUs, half of the figures with sparsity"
_B300: Final = "NVIDIA HGX B300 specifications, one of eight GPUs, half of the figures with sparsity"
_GB200: Final = "NVIDIA GB200 NVL72 specifications, one of 72 GPUs, half of the figures with sparsity"
_GB300: Final = "NVIDIA GB300 NVL72 specifications, one of 72 GPUs, dense"

PEAKS: Final[tuple[Peak, ...]] = (
    Peak("A100", "bf16", 312, _A100),
    Peak("H100", "bf16", 989.5, _H100),
    Peak("H100", "fp8", 1979, _H100),
    Peak("H200", "bf16", 989.5, _H200),
    Peak("H200", "fp8", 1979, _H200),
    Peak("B200", "bf16", 2250, _HGX),
    Peak("B200", "fp8", 4500, _HGX),
    Peak("B200", "nvfp4", 9000, _HGX),
    Peak("B300", "bf16", 2250, _B300),
    Peak("B300", "fp8", 4500, _B300),
    Peak("GB200", "bf16", 2500, _GB200),
    Peak("GB200", "fp8", 5000, _GB200),
    Peak("GB200", "nvfp4", 10000, _GB200),
    Peak("GB300", "bf16", 2500, _GB300),
    Peak("GB300", "fp8", 5000, _GB300),
    Peak("GB300", "nvfp4", 15000, _GB300),
)
"""B300 in NVFP4 is left out: published figures differ (105 and 108 PFLOPS for eight GPUs)."""


def peak(gpu: str | None, precision: Precision | None) -> Peak | None:
    """The peak of a GPU family (such as H100) at a precision; None where either is unknown or unpublished."""
    return next((row for row in PEAKS if (row.gpu, row.precision) == (gpu, precision)), None)


def precision_of(settings: Settings) -> Precision | None:
    """Precision of the linear layers' matrix work; None where the configuration does not say."""
    low = low_precision_bytes(settings)
    if low is not None:
        return "fp8" if low == 1.0 else "nvfp4"
    recipe = settings.value("mixed_precision")
    named = isinstance(recipe, str) and recipe.lower().startswith(_HALF)
    said = any(settings.value(group + kind) is True for group in ("", "mixed_precision.") for kind in _HALF)
    return "bf16" if named or said else None
