"""Peak rates by GPU family and precision: dense, without structured sparsity; FP32 without tensor cores."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from traces.names.gpus import longest_within, products
from traces.names.kernels import WideFormat
from traces.settings.precision import low_bytes

Precision = Literal["bf16", "fp8", "nvfp4", "tf32", "fp32"]
_PUBLISHED: Final[Mapping[str, Precision]] = {
    "nvfp4": "nvfp4",
    "bf16": "bf16",
    "fp16": "bf16",
    "tf32": "tf32",
    "fp32": "fp32",
}


class Peak(Struct, frozen=True):
    """A published peak rate."""

    gpu: str
    precision: str
    tflops: float
    source: str


_A10: Final = "NVIDIA A10 datasheet"
_A30: Final = "NVIDIA A30 datasheet"
_A40: Final = "NVIDIA A40 datasheet"
_A100: Final = "NVIDIA A100 datasheet"
_V100: Final = "NVIDIA V100 datasheet, SXM2"
_T4: Final = "NVIDIA T4 datasheet"
_TITAN_V: Final = "NVIDIA TITAN V specifications: 5120 cores and 640 tensor cores at 1455 MHz boost"
_GA102_TI: Final = (
    "NVIDIA GeForce RTX 3080 Ti specifications: 10240 cores at 1665 MHz boost, by the GA102 whitepaper"
)
_ADA_SUPER: Final = (
    "NVIDIA GeForce RTX 4080 SUPER specifications: 10240 cores at 2550 MHz boost, by the Ada whitepaper"
)
_TURING: Final = "NVIDIA Turing architecture whitepaper, FP16 summed in FP32"
_GA102: Final = "NVIDIA Ampere GA102 architecture whitepaper, dense, FP16 summed in FP32"
_ADA: Final = "NVIDIA Ada architecture whitepaper, dense, FP16 summed in FP32"
_BLACKWELL: Final = "NVIDIA RTX Blackwell architecture whitepaper, dense, FP16 summed in FP32"
_ADA_PRO: Final = "NVIDIA RTX Ada Generation datasheets, TF32 and FP16 from the FP8 figure with sparsity"
_MI200: Final = "AMD Instinct MI250X datasheet, matrix rates"
_MI300: Final = "AMD Instinct MI300X datasheet, matrix rates, dense"
_L4: Final = "NVIDIA L4 datasheet, TF32 half of the figure with sparsity"
_L40S: Final = "NVIDIA L40S datasheet"
_H100: Final = "NVIDIA H100 datasheet, SXM, half of the figures with sparsity"
_H200: Final = "NVIDIA H200 datasheet, SXM, half of the figures with sparsity"
_HGX: Final = "NVIDIA HGX B200 specifications, one of eight GPUs, half of the figures with sparsity"
_B300: Final = "NVIDIA HGX B300 specifications, one of eight GPUs, half of the figures with sparsity"
_GB200: Final = "NVIDIA GB200 NVL72 specifications, one of 72 GPUs, half of the figures with sparsity"
_GB300: Final = "NVIDIA GB300 NVL72 specifications, one of 72 GPUs, dense"

PEAKS: Final[tuple[Peak, ...]] = (
    Peak("V100", "fp32", 15.7, _V100),
    Peak("V100", "bf16", 125, _V100),
    Peak("TITAN V", "fp32", 14.9, _TITAN_V),
    Peak("TITAN V", "bf16", 119.2, _TITAN_V),
    Peak("T4", "fp32", 8.1, _T4),
    Peak("T4", "bf16", 65, _T4),
    Peak("RTX 2080 Ti", "fp32", 13.4, _TURING),
    Peak("RTX 2080 Ti", "bf16", 53.8, _TURING),
    Peak("TITAN RTX", "fp32", 16.3, _TURING),
    Peak("TITAN RTX", "bf16", 130.5, _TURING),
    Peak("RTX 3080", "fp32", 29.8, _GA102),
    Peak("RTX 3080", "tf32", 29.8, _GA102),
    Peak("RTX 3080", "bf16", 59.5, _GA102),
    Peak("RTX 3080 Ti", "fp32", 34.1, _GA102_TI),
    Peak("RTX 3080 Ti", "tf32", 34.1, _GA102_TI),
    Peak("RTX 3080 Ti", "bf16", 68.2, _GA102_TI),
    Peak("RTX 3090", "fp32", 35.6, _GA102),
    Peak("RTX 3090", "tf32", 35.6, _GA102),
    Peak("RTX 3090", "bf16", 71.2, _GA102),
    Peak("RTX A6000", "fp32", 38.7, _GA102),
    Peak("RTX A6000", "tf32", 77.4, _GA102),
    Peak("RTX A6000", "bf16", 154.8, _GA102),
    Peak("RTX 4090", "fp32", 82.6, _ADA),
    Peak("RTX 4090", "tf32", 82.6, _ADA),
    Peak("RTX 4090", "bf16", 165.2, _ADA),
    Peak("RTX 4080", "fp32", 48.7, _ADA),
    Peak("RTX 4080", "tf32", 48.7, _ADA),
    Peak("RTX 4080", "bf16", 97.5, _ADA),
    Peak("RTX 4080 SUPER", "fp32", 52.2, _ADA_SUPER),
    Peak("RTX 4080 SUPER", "tf32", 52.2, _ADA_SUPER),
    Peak("RTX 4080 SUPER", "bf16", 104.4, _ADA_SUPER),
    Peak("RTX 5000 Ada", "fp32", 65.3, _ADA_PRO),
    Peak("RTX 5000 Ada", "tf32", 130.6, _ADA_PRO),
    Peak("RTX 5000 Ada", "bf16", 261.1, _ADA_PRO),
    Peak("RTX 6000 Ada", "fp32", 91.1, _ADA_PRO),
    Peak("RTX 6000 Ada", "tf32", 182.1, _ADA_PRO),
    Peak("RTX 6000 Ada", "bf16", 364.2, _ADA_PRO),
    Peak("RTX 5090", "fp32", 104.8, _BLACKWELL),
    Peak("RTX 5090", "tf32", 104.8, _BLACKWELL),
    Peak("RTX 5090", "bf16", 209.5, _BLACKWELL),
    Peak("MI250X", "fp32", 95.7, _MI200),
    Peak("MI250X", "bf16", 383, _MI200),
    Peak("MI300X", "fp32", 163.4, _MI300),
    Peak("MI300X", "tf32", 653.7, _MI300),
    Peak("MI300X", "bf16", 1307.4, _MI300),
    Peak("A10", "fp32", 31.2, _A10),
    Peak("A10", "tf32", 62.5, _A10),
    Peak("A10", "bf16", 125, _A10),
    Peak("A30", "fp32", 10.3, _A30),
    Peak("A30", "tf32", 82, _A30),
    Peak("A30", "bf16", 165, _A30),
    Peak("A40", "fp32", 37.4, _A40),
    Peak("A40", "tf32", 74.8, _A40),
    Peak("A40", "bf16", 149.7, _A40),
    Peak("A100", "fp32", 19.5, _A100),
    Peak("A100", "tf32", 156, _A100),
    Peak("A100", "bf16", 312, _A100),
    Peak("L4", "fp32", 30.3, _L4),
    Peak("L4", "tf32", 60, _L4),
    Peak("L4", "bf16", 121, _L4),
    Peak("L40S", "fp32", 91.6, _L40S),
    Peak("L40S", "tf32", 183, _L40S),
    Peak("L40S", "bf16", 362, _L40S),
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
"""BF16 stands for FP16 as well, the only one of the two below capability 8.0. B300 in NVFP4 is left out:
published figures differ (105 and 108 PFLOPS for eight GPUs); so do those of GB300 in FP32. FP32 ÷ TF32 is the
same for the cards of a family (H100 PCIe: 51 ÷ 378)."""


def peak(gpu: str | None, precision: Precision | None) -> Peak | None:
    """The peak of a GPU family (such as H100) at a precision; None where either is unknown or unpublished."""
    return next((row for row in PEAKS if (row.gpu, row.precision) == (gpu, precision)), None)


def fp32_to_tf32_frac(product: str | None) -> float | None:
    """FP32 peak without tensor cores, as part of the TF32 peak with them, of a product such as "NVIDIA A100".

    None where the product is unknown, has no TF32, or its rates are not in `PEAKS`.
    """
    return _frac(_listed(product), "fp32", "tf32")


def to_16_bits_frac(product: str | None, wide: WideFormat) -> float | None:
    """What a product in FP32 or TF32 would take in BF16 or FP16 at peak rates, as part of its time.

    None where the GPU or one of its rates is not in `PEAKS`.
    """
    return _to_16_bits(_listed(product), wide)


def most_to_16_bits_frac(
    wide: WideFormat,
    since: tuple[int, int],
    until: tuple[int, int] | None = None,
    sm_count: int | None = None,
) -> float | None:
    """The same of a GPU without a name: the most of those of its capability, and of its SMs where known.

    `since`, `until`: the least and the highest capability that it can have, None where nothing bounds it. The
    product of which this is true gains least, so this GPU gains as much or more. None where no rate is known.
    """
    alike = [one for one in products().values() if one.capability and since <= one.capability]
    alike = [one for one in alike if one.capability and (until is None or one.capability <= until)]
    same = [one for one in alike if one.sm_count == sm_count] or alike
    return max((frac for one in same if (frac := _to_16_bits(one.name, wide)) is not None), default=None)


def _to_16_bits(gpu: str | None, wide: WideFormat) -> float | None:
    if wide == "3xtf32":
        passes = _frac(gpu, "tf32", "bf16")
        return None if passes is None else passes / 3
    return _frac(gpu, wide, "bf16")


def _listed(product: str | None) -> str | None:
    return longest_within(product, tuple({row.gpu: None for row in PEAKS})) if product else None


def _frac(gpu: str | None, now: Precision, then: Precision) -> float | None:
    slow, fast = peak(gpu, now), peak(gpu, then)
    return min(1.0, slow.tflops / fast.tflops) if slow and fast else None


def peak_precision(precision: str | None) -> Precision | None:
    """What a precision by our names is published as: FP16 as BF16, each recipe of eight bits as FP8."""
    if low_bytes(precision) == 1.0:
        return "fp8"
    return _PUBLISHED.get(precision or "")
