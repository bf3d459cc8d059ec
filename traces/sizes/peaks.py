"""Peak rates by GPU family and precision: dense, without structured sparsity; FP32 without tensor cores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from traces.settings.precision import low_bytes

Precision = Literal["bf16", "fp8", "nvfp4", "tf32", "fp32"]
_PUBLISHED: Final[Mapping[str, Precision]] = {
    "nvfp4": "nvfp4",
    "bf16": "bf16",
    "fp16": "bf16",
    "tf32": "tf32",
    "fp32": "fp32",
}


@dataclass(frozen=True, slots=True)
class Peak:
    """One peak rate, and where it is published."""

    gpu: str
    precision: Precision
    tflops: float
    source: str


_A10: Final = "NVIDIA A10 datasheet"
_A30: Final = "NVIDIA A30 datasheet"
_A40: Final = "NVIDIA A40 datasheet"
_A100: Final = "NVIDIA A100 datasheet"
_L4: Final = "NVIDIA L4 datasheet, TF32 half of the figure with sparsity"
_L40S: Final = "NVIDIA L40S datasheet"
_H100: Final = "NVIDIA H100 datasheet, SXM, half of the figures with sparsity"
_H200: Final = "NVIDIA H200 datasheet, SXM, half of the figures with sparsity"
_HGX: Final = "NVIDIA HGX B200 specifications, one of eight GPUs, half of the figures with sparsity"
_B300: Final = "NVIDIA HGX B300 specifications, one of eight GPUs, half of the figures with sparsity"
_GB200: Final = "NVIDIA GB200 NVL72 specifications, one of 72 GPUs, half of the figures with sparsity"
_GB300: Final = "NVIDIA GB300 NVL72 specifications, one of 72 GPUs, dense"

PEAKS: Final[tuple[Peak, ...]] = (
    Peak("A10", "fp32", 31.2, _A10),
    Peak("A10", "tf32", 62.5, _A10),
    Peak("A30", "fp32", 10.3, _A30),
    Peak("A30", "tf32", 82, _A30),
    Peak("A40", "fp32", 37.4, _A40),
    Peak("A40", "tf32", 74.8, _A40),
    Peak("A100", "fp32", 19.5, _A100),
    Peak("A100", "tf32", 156, _A100),
    Peak("A100", "bf16", 312, _A100),
    Peak("L4", "fp32", 30.3, _L4),
    Peak("L4", "tf32", 60, _L4),
    Peak("L40S", "fp32", 91.6, _L40S),
    Peak("L40S", "tf32", 183, _L40S),
    Peak("H100", "fp32", 67, _H100),
    Peak("H100", "tf32", 494.5, _H100),
    Peak("H100", "bf16", 989.5, _H100),
    Peak("H100", "fp8", 1979, _H100),
    Peak("H200", "fp32", 67, _H200),
    Peak("H200", "tf32", 494.5, _H200),
    Peak("H200", "bf16", 989.5, _H200),
    Peak("H200", "fp8", 1979, _H200),
    Peak("B200", "fp32", 75, _HGX),
    Peak("B200", "tf32", 1125, _HGX),
    Peak("B200", "bf16", 2250, _HGX),
    Peak("B200", "fp8", 4500, _HGX),
    Peak("B200", "nvfp4", 9000, _HGX),
    Peak("B300", "fp32", 75, _B300),
    Peak("B300", "tf32", 1125, _B300),
    Peak("B300", "bf16", 2250, _B300),
    Peak("B300", "fp8", 4500, _B300),
    Peak("GB200", "fp32", 80, _GB200),
    Peak("GB200", "tf32", 1250, _GB200),
    Peak("GB200", "bf16", 2500, _GB200),
    Peak("GB200", "fp8", 5000, _GB200),
    Peak("GB200", "nvfp4", 10000, _GB200),
    Peak("GB300", "bf16", 2500, _GB300),
    Peak("GB300", "fp8", 5000, _GB300),
    Peak("GB300", "nvfp4", 15000, _GB300),
)
"""B300 in NVFP4 is left out: published figures differ (105 and 108 PFLOPS for eight GPUs); so do those of
GB300 in FP32. FP32 ÷ TF32 is the same for the cards of a family (H100 PCIe: 51 ÷ 378)."""

_WORD: Final = re.compile(r"[A-Z]+\d+[A-Z]*")


def peak(gpu: str | None, precision: Precision | None) -> Peak | None:
    """The peak of a GPU family (such as H100) at a precision; None where either is unknown or unpublished."""
    return next((row for row in PEAKS if (row.gpu, row.precision) == (gpu, precision)), None)


def fp32_to_tf32_frac(product: str | None) -> float | None:
    """FP32 peak without tensor cores, as part of the TF32 peak with them, of a product such as "NVIDIA A100".

    None where the product is unknown, has no TF32, or its rates are not in `PEAKS`.
    """
    for word in _WORD.findall((product or "").upper()):
        simt, tensor = peak(word, "fp32"), peak(word, "tf32")
        if simt and tensor:
            return simt.tflops / tensor.tflops
    return None


def peak_precision(precision: str | None) -> Precision | None:
    """What a precision by our names is published as: FP16 as BF16, each recipe of eight bits as FP8."""
    if low_bytes(precision) == 1.0:
        return "fp8"
    return _PUBLISHED.get(precision or "")
