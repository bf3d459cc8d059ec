"""Peak rates by GPU family and precision, by `peaks.toml`."""

from collections.abc import Mapping
from functools import cache
from operator import truediv
from typing import Final, Literal

from msgspec import Struct

from traces.missing import of_known
from traces.names.gpus import longest_within, product_named, products
from traces.names.kernels import WideFormat
from traces.settings.precision import low_bytes
from traces.texts import Key, Said
from traces.toml_tables import TableRow, read_table

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

    gpu: Key
    precision: Key
    tflops: float
    source: Said


class _Row(TableRow):
    source: str
    tflops: dict[Precision, int | float]


@cache
def peaks() -> Mapping[tuple[str, Precision], Peak]:
    """Every peak by its GPU family and precision."""
    rows = read_table("traces.sizes", "peaks.toml", dict[str, _Row])
    by_precision = dict[tuple[str, Precision], Peak]()
    for gpu, row in rows.items():
        for precision, tflops in row.tflops.items():
            by_precision[gpu, precision] = Peak(gpu, precision, tflops, row.source)
    return by_precision


def peak(gpu: str | None, precision: Precision | None) -> Peak | None:
    """The peak of a GPU family (such as H100) at a precision; None where either is unknown or
    unpublished.
    """
    if gpu and precision:
        return peaks().get((gpu, precision))
    return None


def fastest(gpu: str | None) -> Peak | None:
    """The highest peak of a GPU family at any precision; None where none is published."""
    most: Peak | None = None
    for row in peaks().values():
        if row.gpu == gpu and (most is None or row.tflops > most.tflops):
            most = row
    return most


def fp32_to_tf32_frac(product: str | None) -> float | None:
    """FP32 peak without tensor cores, as part of the TF32 peak with them, of a product such as
    "NVIDIA A100".

    None where the product is unknown, has no TF32, or its rates are not in the table.
    """
    return _frac(_listed(product), "fp32", "tf32")


def to_16_bits_frac(product: str | None, wide: WideFormat) -> float | None:
    """What a product in FP32 or TF32 would take in BF16 or FP16 at peak rates, as part of its time.

    None where the GPU or one of its rates is not in the table.
    """
    return _to_16_bits(_listed(product), wide)


def most_to_16_bits_frac(
    wide: WideFormat,
    since: tuple[int, int],
    until: tuple[int, int] | None = None,
    sm_count: int | None = None,
) -> float | None:
    """The same of a GPU without a name: the most of those of its capability, and of its SMs where
    known.

    `since`, `until`: the least and the highest capability that it can have, None where nothing
    bounds it. The product of which this is true gains least, so this GPU gains as much or more.
    None where no rate is known.
    """
    alike, same = list[float | None](), list[float | None]()
    for product in products().values():
        newest = until or product.capability
        if product.capability and newest and since <= product.capability <= newest:
            frac = _to_16_bits(product.name, wide)
            alike.append(frac)
            if product.sm_count == sm_count:
                same.append(frac)
    return max(filter(None, same or alike), default=None)


def _to_16_bits(gpu: str | None, wide: WideFormat) -> float | None:
    if wide == "3xtf32":
        return of_known(truediv, _frac(gpu, "tf32", "bf16"), 3)
    return _frac(gpu, wide, "bf16")


def peak_of_product(product: str | None, precision: Precision | None) -> Peak | None:
    """The peak of a product such as "NVIDIA A100" at a precision; None where its own is not in the
    table.
    """
    listed, known = _listed(product), product_named(product) if product else None
    if known and known.name == listed:
        return peak(listed, precision)
    return None


def _listed(product: str | None) -> str | None:
    if product:
        return longest_within(product, tuple(dict.fromkeys(gpu for gpu, _ in peaks())))
    return None


def _frac(gpu: str | None, now: Precision, then: Precision) -> float | None:
    slow, fast = peak(gpu, now), peak(gpu, then)
    if slow and fast:
        return min(1.0, slow.tflops / fast.tflops)
    return None


def peak_precision(precision: str | None) -> Precision | None:
    """What a precision by our names is published as: FP16 as BF16, each recipe of eight bits as
    FP8.
    """
    if low_bytes(precision) == 1.0:
        return "fp8"
    return _PUBLISHED.get(precision or "")
