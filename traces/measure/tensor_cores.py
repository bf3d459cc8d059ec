"""GEMMs that do without tensor cores: FP32 on the SIMT units of a GPU that multiplies TF32 far faster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import Gpu, IntArray, distinct
from traces.intervals import Spans, covered_ns
from traces.names.kernels import classify_kernel
from traces.names.precision import is_simt_gemm
from traces.sizes.peaks import fp32_to_tf32_frac
from traces.timeline import RankTimeline, Source

TF32_SINCE: Final = (8, 0)
"""Compute capability from which tensor cores multiply TF32 (NVIDIA, CUDA C++ Programming Guide)."""


@dataclass(frozen=True, slots=True)
class TensorCores:
    """GEMMs of one rank within its windows, as work (sums of kernel time).

    `simt_ns` is the part done in FP32 without tensor cores, by `simt_count` kernels. `tf32`: whether the GPU
    has TF32, None where its capability is unknown. `fp32_to_tf32_frac`: peak rates; None where it has no TF32
    or they are not known.
    """

    gemm_ns: int
    simt_ns: int
    simt_count: int
    tf32: bool | None
    fp32_to_tf32_frac: float | None


def measure_tensor_cores(rank: RankTimeline, windows: Spans, gpu: Gpu | None) -> TensorCores:
    """Measure one rank; `gpu` is the one it ran on."""
    rows = rank.activities
    ns = covered_ns(rows.start_ns, rows.end_ns, windows)
    simt = simt_places(rank)
    return TensorCores(
        int(ns[_named(rank, simt=False)].sum()),
        int(ns[simt].sum()),
        int((ns[simt] > 0).sum()),
        has_tf32(gpu),
        tensor_frac(gpu),
    )


def simt_places(rank: RankTimeline) -> IntArray:
    """Places in the activities of GEMMs in FP32 without tensor cores, by their names."""
    return _named(rank, simt=True)


def has_tf32(gpu: Gpu | None) -> bool | None:
    """Whether a GPU's tensor cores multiply TF32; None where its capability is unknown."""
    major, _, minor = (gpu.capability if gpu and gpu.capability else "").partition(".")
    return (int(major), int(minor)) >= TF32_SINCE if major.isdigit() and minor.isdigit() else None


def tensor_frac(gpu: Gpu | None) -> float | None:
    """What an FP32 GEMM would take with tensor cores at best, as part of its time; None where unknown."""
    return fp32_to_tf32_frac(gpu.name) if gpu and has_tf32(gpu) else None


def _named(rank: RankTimeline, simt: bool) -> IntArray:
    rows, names = rank.activities, rank.columns.kernel_names
    kernels = np.flatnonzero((rows.source == Source.KERNEL) & (rows.name >= 0))
    codes = []
    for code in distinct(rows.name[kernels]).tolist():
        kernel = classify_kernel(names[code])
        if is_simt_gemm(names[code], kernel) if simt else kernel.class_ == "gemm":
            codes.append(code)
    return kernels[np.isin(rows.name[kernels], codes)]
