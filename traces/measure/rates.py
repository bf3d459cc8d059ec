"""How fast a rank multiplies and copies, where sizes are recorded: `rates` of a rank.

An operator's FLOP belong to the matrix kernels whose launches lie in it, and in no operator of the
table within it. One mm of (4, 8) by (8, 2) is 2 x 4 x 8 x 2 = 128 FLOP; in a kernel of 64 ns that
is 2 GFLOP/s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isnan, nan
from typing import Any, Final, TypeVar

import numpy as np

from traces.arrays import BoolArray, IntArray, distinct, summed
from traces.columns import COPY_KINDS, NO_GPU, NULL, Gpu
from traces.frozen import frozen
from traces.groups import places_of_each
from traces.intervals import Spans
from traces.measure.tensor_cores import has_tf32
from traces.missing import Missing, or_gap
from traces.names.gpus import link_rate, memory_rate
from traces.names.kernels import (
    KernelClass,
    classify_kernel,
    is_matrix_work,
    multiplies,
    wide_format,
)
from traces.names.operators import Dtype
from traces.problems import Problems
from traces.resolve.communication import stab
from traces.sections.rates import (
    ClassSpeed,
    CollectiveRate,
    CopySpeed,
    MatrixRates,
    OperatorSpeed,
    Rates,
    RoofLimit,
)
from traces.sizes.operator_work import OperatorWork, operator_work
from traces.sizes.peaks import Precision, peak_of_product
from traces.timeline import KEYS, Bucket, RankTimeline

_Key = TypeVar("_Key")
NONE: Final = -1
_MOST: Final = 1 << 62
"""FLOP of a recording, an hour at the peak of most GPUs: larger numbers are no JSON integers of 64
bits."""


def measure_rates(
    rank: RankTimeline,
    windows: Spans,
    gpu: Gpu | None,
    collectives: tuple[CollectiveRate, ...] | Missing,
) -> Rates:
    """Rates of one rank within its windows; `gpu` is the one it ran on."""
    gpu = gpu or NO_GPU
    memory, link = memory_rate(gpu.name, gpu.memory_bytes), link_rate(gpu.name)
    return Rates(
        matrix=_matrix(rank, windows, gpu.name, nan if memory is None else memory),
        copies=_copies(rank, windows),
        collective_rates=collectives,
        memory_gb_per_s=or_gap(memory, rank.lacks(_NO_RATE.format("memory"), "gpu")),
        link_gb_per_s=or_gap(link, rank.lacks(_NO_RATE.format("NVLink"), "gpu")),
    )


_NO_PEAK: Final = (
    "a peak rate is not known: the GPU's model, the format of FP32 inputs, or our table lacks it"
)
_NO_RATE: Final = "the {} rate of this GPU is not in our table, or its model was not recorded"


@frozen
class _Done:
    """One operator as it ran. `peak_tflops` is NaN where the peak of its format is not known."""

    work: OperatorWork
    key: str
    kernel_count: int
    work_ns: int
    peak_tflops: float

    @property
    def at_peak_s(self) -> float:
        return self.work.flop / (self.peak_tflops * 1e12)


def _matrix(
    rank: RankTimeline, windows: Spans, gpu: str | None, memory: float
) -> MatrixRates | Missing:
    rows, problems, no_peak = rank.activities, rank.columns.problems, rank.lacks(_NO_PEAK, "gpu")
    if problems is None:
        return rank.lacks("no shapes of operators were recorded", "operator_shapes")
    works, multiply = list(map(operator_work, problems.distinct)), rank.named(_multiplies)
    around, held = _around(rank, problems, works), windows.hold(rows.start_ns)
    done = list(_operators(rank, held, around, problems, works, multiply, gpu))
    if not done:
        reason = "no kernel in the windows was launched by an operator whose shapes were recorded"
        return rank.lacks(reason, "operator_shapes")
    flop, moved, at_peak_s = 0, 0, 0.0
    for operator in done:
        flop += operator.work.flop
        moved += operator.work.bytes_at_least
        if max(flop, moved) > _MOST:
            reason = "the recorded shapes are larger than any that were run"
            return rank.lacks(reason, "operator_shapes")
        at_peak_s += operator.at_peak_s
    inside = held & rows.is_compute
    matrix = inside & multiply
    length_ns = rows.length_ns
    all_ns, hfu = summed(length_ns[matrix]), at_peak_s * 1e9 / windows.total_ns
    return MatrixRates(
        classes=_by_class(done, memory, no_peak, rows.key[inside], length_ns[inside]),
        operators=_by_operator(done, memory, no_peak),
        without_shape_count=summed(matrix & (around == NONE)),
        counted_frac=summed(length_ns[matrix & (around != NONE)]) / all_ns if all_ns else 1.0,
        hfu_at_least_frac=no_peak if isnan(hfu) else hfu,
    )


def _multiplies(name: str, kernel: KernelClass) -> bool:
    return multiplies(kernel) or is_matrix_work(name, kernel)


def _around(
    rank: RankTimeline, problems: Problems, works: Sequence[OperatorWork | None]
) -> IntArray:
    """Row of the innermost operator of known work around each launch of compute, shape (n,); NONE:
    none.
    """
    rows, ranges = rank.activities, rank.columns.ranges
    is_known = np.array([*(work is not None for work in works), False])
    telling = np.flatnonzero(is_known[problems.of_range] & (ranges.thread_gid != NULL))
    around = np.full(len(rows), NONE)
    launched = rows.is_compute & rows.is_launched
    for thread in distinct(ranges.thread_gid[telling]).tolist():
        here = telling[ranges.thread_gid[telling] == thread]
        mine = np.flatnonzero(launched & (rows.launch_thread == thread))
        innermost = stab(ranges.start_ns[here], ranges.end_ns[here], rows.launch_ns[mine])
        around[mine] = np.where(innermost >= 0, here[innermost], NONE)
    return around


def _operators(
    rank: RankTimeline,
    held: BoolArray,
    around: IntArray,
    problems: Problems,
    works: Sequence[OperatorWork | None],
    multiply: BoolArray,
    gpu: str | None,
) -> Iterator[_Done]:
    """Every operator whose first kernel is `held`, starting in the windows, with all of its
    kernels.

    `works` are those of the distinct problems; of an operator's kernels one that multiplies tells
    its format.
    """
    rows, names = rank.activities, (*rank.columns.kernel_names, "")
    length_ns = rows.length_ns
    tells = length_ns + multiply * (int(length_ns.max(initial=0)) + 1)
    for operator, places in places_of_each(around):
        work = works[problems.of_range[operator]] if operator != NONE else None
        if work is None or not held[places[0]]:
            continue
        work_ns = summed(length_ns[places])
        longest = places[np.argmax(tells[places])]
        if work_ns > 0:
            peak = peak_of_product(gpu, _precision(work, names[rows.name[longest]], rank))
            key = KEYS[Bucket.COMPUTE][rows.key[longest]]
            yield _Done(work, key, len(places), work_ns, peak.tflops if peak else nan)


_PRECISIONS: Final[Mapping[Dtype, Precision]] = {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8"}


def _precision(work: OperatorWork, kernel: str, rank: RankTimeline) -> Precision | None:
    """The format that a kernel multiplies in; of FP32 inputs its name says whether that is TF32."""
    if work.dtype != "fp32":
        return _PRECISIONS.get(work.dtype)
    wide = wide_format(kernel, classify_kernel(kernel))
    if wide is None and has_tf32(rank.gpu) is False:
        return "fp32"
    if wide == "3xtf32":
        return None
    return wide


def _by_class(
    done: Sequence[_Done],
    memory: float,
    no_peak: Missing,
    key: IntArray,
    length_ns: IntArray,
) -> tuple[ClassSpeed, ...]:
    rows = []
    for name, group in _grouped(done, lambda operator: operator.key):
        same = key == KEYS[Bucket.COMPUTE].index(name)
        common = _common(group, memory, no_peak)
        all_ns = summed(length_ns[same])
        rows.append(
            ClassSpeed(
                **common,
                key=name,
                shapes_from="recorded",
                all_kernel_count=summed(same),
                all_work_ns=all_ns,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.flop, row.key)))


def _by_operator(
    done: Sequence[_Done], memory: float, no_peak: Missing
) -> tuple[OperatorSpeed, ...]:
    rows = [
        OperatorSpeed(**_common(group, memory, no_peak), operator=operator, dtype=dtype, key=key)
        for (operator, dtype, key), group in _grouped(
            done, lambda operator: (operator.work.operator, operator.work.dtype, operator.key)
        )
    ]
    return tuple(sorted(rows, key=lambda row: (-row.flop, row.operator, row.dtype, row.key)))


def _common(operators: Sequence[_Done], memory: float, no_peak: Missing) -> dict[str, Any]:
    """The fields of `Speed`, of some operators together; `memory`: its peak in GB/s, NaN where that
    is not known.
    """
    flop = size = work_ns = kernel_count = 0
    at_peak_s = roof_s = 0.0
    for operator in operators:
        flop += operator.work.flop
        size += operator.work.bytes_at_least
        work_ns += operator.work_ns
        kernel_count += operator.kernel_count
        at_peak_s += operator.at_peak_s
        moved_s = operator.work.bytes_at_least / (memory * 1e9)
        roof_s += float(np.maximum(operator.at_peak_s, moved_s))
    limit: RoofLimit | Missing = no_peak
    if not isnan(roof_s):
        limit = "memory" if size / (memory * 1e9) > at_peak_s else "peak"
    return {
        "operator_count": len(operators),
        "kernel_count": kernel_count,
        "work_ns": work_ns,
        "flop": flop,
        "tflops_per_s": flop / work_ns / 1e3,
        "peak_frac": no_peak if isnan(at_peak_s) else at_peak_s * 1e9 / work_ns,
        "bytes_at_least": size,
        "flop_per_byte": flop / size if size else 0.0,
        "roof_frac": no_peak if isnan(roof_s) else roof_s * 1e9 / work_ns,
        "roof_limit": limit,
    }


def _grouped(
    done: Sequence[_Done], key: Callable[[_Done], _Key]
) -> Iterable[tuple[_Key, list[_Done]]]:
    groups: dict[_Key, list[_Done]] = {}
    for operator in done:
        groups.setdefault(key(operator), []).append(operator)
    return groups.items()


def _copies(rank: RankTimeline, windows: Spans) -> tuple[CopySpeed, ...] | Missing:
    """By kind, those of known size that start in the windows; copies between GPUs among them."""
    rows, copies = rank.activities, rank.columns.copies
    of_copy = np.flatnonzero(rows.is_transfer & windows.hold(rows.start_ns))
    size, kind = copies.size_bytes[rows.row[of_copy]], copies.kind[rows.row[of_copy]]
    length_ns = rows.length_ns[of_copy]
    kinds = []
    for code in distinct(kind).tolist():
        mine = (kind == code) & (size >= 0) & (length_ns > 0)
        if mine.any():
            total, work_ns = summed(size[mine]), summed(length_ns[mine])
            kinds.append(CopySpeed(COPY_KINDS[code], summed(mine), total, work_ns, total / work_ns))
    if len(of_copy) and not kinds:
        return rank.lacks("no sizes of copies were recorded", "version")
    return tuple(sorted(kinds, key=lambda speed: -speed.work_ns))
