"""Published throughputs of MoE models, as reference shapes: never a target for another shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from traces.missing import Missing
from traces.settings.settings import Settings
from traces.sizes.model import ModelSize, model_size


@dataclass(frozen=True, slots=True)
class Reference:
    """One published row, of a run over `gpus` GPUs; what it does not say is None.

    `layout`: sizes TP/PP/VP/EP. `batch`: global batch / micro-batch / sequence. `step_s`: as published, else
    global batch times sequence over GPUs and tokens. `routing`: `balanced` is forced: a benchmark only.
    """

    model: str
    gpus: int | None
    gpu: str
    precision: str | None
    layout: str | None
    batch: str | None
    tokens_per_s_per_gpu: float
    tflops_per_gpu: float
    step_s: float | None
    source: str
    routing: str = "balanced"


_B: Final = "Megatron-Bridge docs/performance-summary.md, "
_26_08: Final = _B + "container 26.08"
_26_06: Final = _B + "container 26.06 (archive)"
_26_04: Final = _B + "container 26.04.01 (archive)"
_25_09: Final = _B + "container 25.09 (archive)"
_PAPER: Final = "arXiv 2603.07685, as digests of it quote"
_CONFIGS: Final = "Megatron-Bridge skills/nemo-mbridge-perf-moe-hardware-configs"
_CARD: Final = "Megatron-Bridge examples/model_verification_cards/qwen3-30b-a3b"
_GUIDE: Final = "Megatron-Bridge docs/training/moe-optimization.md"

_DSV3, _OSS, _Q30, _Q235 = "DeepSeek-V3", "GPT-OSS-120B", "Qwen3-30B-A3B", "Qwen3-235B-A22B"
_4K: Final = "4096/1/4096"
_Q30_16: Final = "1024/1/4096"
_Q30_GB: Final = "1/1/-/16"

REFERENCES: Final[tuple[Reference, ...]] = (
    Reference(_DSV3, 256, "GB300", "MXFP8", "1/2/8/32", _4K, 6288, 1635, 10.42, _26_08),
    Reference(_DSV3, 256, "GB200", "MXFP8", "1/4/4/64", _4K, 4912, 1276, 13.34, _26_08),
    Reference(_DSV3, 256, "B300", "MXFP8", "1/8/-/8", "4096/2/4096", 3541, 920, 18.51, _26_06),
    Reference(_DSV3, 256, "B200", "MXFP8", "1/8/2/32", _4K, 3328, 864, 19.69, _26_04),
    Reference(_DSV3, 1024, "H100", "FP8", "2/8/4/64", "8192/1/4096", 1297, 338, 25.26, _25_09),
    Reference(_DSV3, 256, "GB300", "MXFP8", None, None, 4730, 1233, None, _PAPER),
    Reference(_DSV3, 256, "GB200", "MXFP8", "1/4/4/64", "8192/1/4096", 4020, 1048, 32.60, _PAPER),
    Reference(_DSV3, 256, "GB200", "BF16", None, None, 3298, 857, None, _PAPER),
    Reference(_DSV3, 1024, "H100", "FP8", "2/8/4/64", "8192/1/4096", 1412, 368, 23.21, _PAPER),
    Reference("DeepSeek-V4-Flash", 128, "GB300", "MXFP8", "1/1/-/64", "2048/1/4096", 8224, 748, 7.97, _26_08),
    Reference("DeepSeek-V4-Flash", 128, "GB200", "MXFP8", "1/1/-/64", "2048/1/4096", 7776, 706, 8.43, _26_08),
    Reference(_OSS, 64, "GB300", "MXFP8", "1/1/-/16", "1280/4/4096", 33024, 1077, 2.48, _26_08),
    Reference(_OSS, 64, "GB200", "MXFP8", "1/1/-/64", "1280/4/4096", 28672, 934, 2.86, _26_08),
    Reference(_OSS, 64, "H100", "BF16", "1/4/-/8", "1280/1/4096", 5824, 158, 14.07, _26_04),
    Reference(_Q30, 8, "GB300", "MXFP8", "1/1/-/8", "512/8/4096", 44544, 1029, 5.89, _26_08),
    Reference(_Q30, 8, "GB200", "MXFP8", "1/1/-/8", "512/4/4096", 39936, 923, 6.56, _26_08),
    Reference(_Q30, 16, "H100", "FP8", _Q30_GB, _Q30_16, 8826, 203, 29.70, _26_06),
    Reference(_Q30, 16, "H100", "BF16", _Q30_GB, _Q30_16, 13011, 299.352, 20.147, _CONFIGS),
    Reference(_Q30, 16, "H100", "BF16", _Q30_GB, _Q30_16, 8654.602, 199.120, 30.290, _CARD, "natural"),
    Reference(_Q30, 16, "H100", "BF16", _Q30_GB, _Q30_16, 5742, 132.9, 45.65, _GUIDE, "not said"),
    Reference(_Q235, 256, "GB300", "MXFP8", "1/4/12/32", "8192/2/4096", 8816, 1306, 14.87, _26_08),
    Reference(_Q235, 256, "GB200", "MXFP8", "1/8/3/32", "8192/1/4096", 7280, 1077, 18.00, _26_08),
    Reference(_Q235, 256, "H100", "FP8", "2/8/4/32", "8192/1/4096", 1712, 253, 76.56, _26_04),
    Reference(_Q235, None, "GB300", None, None, None, 6583, 974, None, _PAPER),
    Reference(_Q235, None, "GB200", None, None, None, 6212, 919, None, _PAPER),
    Reference(_Q235, None, "GB200", "BF16", None, None, 5100, 750, None, _PAPER),
    Reference(_Q235, None, "H100", "BF16", None, None, 2132, 320, None, _PAPER),
    Reference(_Q235, 128, "GB300", "MXFP8", None, "-/-/131072", 1556, 1150, None, _PAPER),
    Reference("Kimi-K2", 256, "GB300", "MXFP8", "1/4/4/64", "4096/2/4096", 5372, 1099, 12.20, _26_06),
    Reference("Nemotron-3-Nano", 16, "H100", "FP8", "1/1/-/8", "1024/1/8192", 14719, 328, 35.62, _26_06),
    Reference("Nemotron-3-Super", 64, "GB300", "NVFP4", "1/1/-/64", "512/1/8192", 10240, 864, 6.40, _26_08),
)

_SHAPES: Final = {
    (61, 7168, 256): _DSV3,
    (61, 7168, 384): "Kimi-K2",
    (36, 2880, 128): _OSS,
    (48, 2048, 128): _Q30,
    (94, 4096, 128): _Q235,
}
"""Decoder layers, hidden size and experts of the published models, from their configurations."""


def nearest_references(settings: Settings, gpu: str | None = None) -> tuple[Reference, ...]:
    """Published rows of the same model; those of the same GPU first, then those over as many GPUs.

    Empty where the model has no published row, or its sizes are not known.
    """
    model = model_size(settings)
    name = None if isinstance(model, Missing) else published_name(model)
    rows = [row for row in REFERENCES if row.model == name]
    world = settings.value("world_size")

    def distance(row: Reference) -> tuple[bool, float]:
        if row.gpus is None or not isinstance(world, int) or world < 1:
            return row.gpu != gpu, float("inf")
        return row.gpu != gpu, max(row.gpus, world) / min(row.gpus, world)

    return tuple(sorted(rows, key=distance))


def published_name(model: ModelSize) -> str | None:
    """The published model that has these sizes; None where it is none of them."""
    experts = model.experts.count if model.experts else 0
    return _SHAPES.get((len(model.is_moe), model.hidden_size, experts))
