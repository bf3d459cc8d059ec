"""Matrix work that 16 bits on tensor cores would do faster: in FP32 on the SIMT units, or in
TF32.
"""

from typing import Final, get_args

import numpy as np

from traces.arrays import NOWHERE, IntArray, summed
from traces.columns import NO_GPU, Gpu
from traces.intervals import Spans, ns_in
from traces.measure.sm import capability_spoken
from traces.missing import gap, or_gap
from traces.names.kernels import WideFormat, is_matrix_work, is_simt_gemm, wide_format
from traces.replay.edits import Wide
from traces.sections.rank import TensorCores
from traces.sizes.peaks import fp32_to_tf32_frac, most_to_16_bits_frac, to_16_bits_frac
from traces.timeline import RankTimeline

HALF_SINCE: Final = (7, 0)
"""Compute capability from which tensor cores multiply FP16 (NVIDIA, CUDA C++ Programming Guide)."""
TF32_SINCE: Final = (8, 0)
"""Compute capability from which they multiply BF16 and TF32 (the same)."""
_WITHOUT: Final = "GTX"
"""GeForce GTX: capability 7.5 without tensor cores (NVIDIA Turing architecture whitepaper)."""


def measure_tensor_cores(rank: RankTimeline, windows: Spans, gpu: Gpu | None) -> TensorCores:
    """Matrix work of one rank within its windows, as work (sums of kernel time); `gpu` is the one
    it ran on.

    `simt_ns` is the part of GEMMs done in FP32 without tensor cores, by `simt_count` kernels.
    `matrix_ns`: GEMMs, convolutions and attention; `wide_ns` is the part of them in FP32 or TF32,
    by `wide_count` kernels, `tf32_ns` the part of it in TF32. `tf32`: whether the GPU has TF32;
    `fp32_to_tf32_frac`: by peak rates.
    `half`: whether it has tensor cores for 16 bits. `peaks_known`: whether the peak rates of all
    `wide_ns` are.
    """
    rows, how = rank.activities, rank.cure("gpu")
    ns = ns_in(rows, windows)
    simt, groups, by_format = simt_places(rank), wide_places(rank, gpu), _by_format(rank)
    wide = ns[np.concatenate([NOWHERE, *by_format.values()])]
    tf32, half, frac = has_tf32(gpu), has_half(rank, gpu), tensor_frac(gpu)
    no_rate = None
    if tf32 is not False:
        no_rate = gap("the GPU has no TF32, or its peak rates are not known", how)
    no_model = "neither the GPU's model nor kernel names show whether it has tensor cores"
    return TensorCores(
        gemm_ns=summed(ns[rank.of_class("gemm")]),
        simt_ns=summed(ns[simt]),
        simt_count=summed(ns[simt] > 0),
        tf32=or_gap(tf32, gap("the trace does not record the GPU's compute capability", how)),
        fp32_to_tf32_frac=no_rate if frac is None else frac,
        matrix_ns=summed(ns[rank.named(is_matrix_work)]),
        wide_ns=summed(wide),
        wide_count=summed(wide > 0),
        half=or_gap(half, gap(no_model, how)),
        peaks_known=all(group.exact for group in groups),
        tf32_ns=summed(ns[by_format["tf32"]]),
    )


def simt_places(rank: RankTimeline) -> IntArray:
    """Places in the activities of GEMMs in FP32 without tensor cores, by their names."""
    return np.flatnonzero(rank.named(is_simt_gemm))


def wide_places(rank: RankTimeline, gpu: Gpu | None) -> tuple[Wide, ...]:
    """Matrix work in FP32 or TF32, by format, with what it would take in 16 bits on this GPU's
    tensor cores.

    GEMMs that TF32 alone would speed up are not among them: `simt_places` has these, at
    `tensor_frac`.
    """
    if has_half(rank, gpu) is False:
        return ()
    wide_work: list[Wide] = []
    gpu, capability = gpu or NO_GPU, _capability(rank, gpu)
    since = _numbers(capability) if capability else None
    until = since if gpu.capability else None
    apart = simt_places(rank) if tensor_frac(gpu) is not None else NOWHERE
    for wide, places in _by_format(rank).items():
        exact = to_16_bits_frac(gpu.name, wide)
        known = (
            most_to_16_bits_frac(wide, since, until, gpu.sm_count)
            if exact is None and since
            else exact
        )
        places = np.setdiff1d(places, apart, assume_unique=True)
        if len(places):
            wide_work.append(Wide(places, 1.0 if known is None else known, exact is not None))
    return tuple(wide_work)


def has_half(rank: RankTimeline, gpu: Gpu | None) -> bool | None:
    """Whether a GPU has tensor cores for 16 bits; None where neither its model nor kernel names
    tell.
    """
    gpu, capability = gpu or NO_GPU, _capability(rank, gpu)
    name = gpu.name or ""
    if _WITHOUT in name:
        return False
    if to_16_bits_frac(name, "fp32") is not None:
        return True
    if capability is None:
        return None
    return _numbers(capability) >= HALF_SINCE


def has_tf32(gpu: Gpu | None) -> bool | None:
    """Whether a GPU's tensor cores multiply TF32; None where its capability is unknown."""
    if gpu and gpu.capability:
        return _numbers(gpu.capability) >= TF32_SINCE
    return None


def tensor_frac(gpu: Gpu | None) -> float | None:
    """What an FP32 GEMM would take in TF32 at best, as part of its time; None where unknown, or no
    less.
    """
    frac = fp32_to_tf32_frac(gpu.name) if gpu and has_tf32(gpu) else None
    if frac is not None and frac < 1:
        return frac
    return None


def _capability(rank: RankTimeline, gpu: Gpu | None) -> str | None:
    return (gpu or NO_GPU).capability or capability_spoken(rank, rank.activities)


def _numbers(capability: str) -> tuple[int, int]:
    major, _, minor = capability.partition(".")
    return int(major), int(minor)


def _by_format(rank: RankTimeline) -> dict[WideFormat, IntArray]:
    def places(wide: WideFormat) -> IntArray:
        return np.flatnonzero(rank.named(lambda name, kernel: wide_format(name, kernel) == wide))

    return {wide: places(wide) for wide in get_args(WideFormat)}
