"""The number format of a rank's GEMMs, by their names and those of the kernels that quantise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import distinct
from traces.cures import cure
from traces.intervals import Spans, covered_ns
from traces.limits import Limit
from traces.missing import Missing, gap
from traces.names.kernels import classify_kernel
from traces.names.precision import FP8, gemm_format, multiplies, quantize_format
from traces.spelling import percent
from traces.timeline import RankTimeline, Source

MAIN_SHARE: Final = Limit(
    2 / 3, "of the GEMM work whose format is known", "ours: an FP8 run often keeps its last GEMM in BF16"
)
TOLD_SHARE: Final = Limit(0.5, "of the GEMM work", "ours: less than half of it does not speak for the rest")


@dataclass(frozen=True, slots=True)
class Precision:
    """What the GEMMs of a rank multiply. `precision` is one of `traces.settings.precision.BITS` or "mixed".

    `shares` are parts of GEMM work (sums of kernel time), by format.
    """

    precision: str | Missing
    shares: Mapping[str, float]


def detect_precision(rank: RankTimeline, windows: Spans) -> Precision:
    """Look at the GEMMs within the windows.

    TF32 can hide in GEMMs of fp32 data only where their names keep silent; where the scaling of FP8 is not in
    the GEMM's name, quantising kernels that agree give it, else it is one scale per tensor.
    """
    work_ns = _work_by_name(rank, windows)
    classes = {name: classify_kernel(name) for name in work_ns}
    gemms = {name: ns for name, ns in work_ns.items() if multiplies(classes[name])}
    total_ns = sum(gemms.values())
    if not total_ns:
        why = "no GEMM in the window" if rank.has_kernels else "graph replays were recorded whole"
        longer = "choose a longer window" if rank.has_kernels else cure("graphs", rank.columns.info.kind)
        return Precision(gap(why, longer), {})
    quantising = (quantize_format(name) for name, kernel in classes.items() if kernel.class_ == "quantize")
    quantize = {found for found in quantising if found}
    formats: dict[str, int] = {}
    for name, ns in gemms.items():
        found = gemm_format(name)
        if found == FP8:
            found = next(iter(quantize)) if len(quantize) == 1 else "fp8_per_tensor"
        if found:
            formats[found] = formats.get(found, 0) + ns
    shares = {found: ns / total_ns for found, ns in sorted(formats.items(), key=lambda item: -item[1])}
    told_ns = sum(formats.values())
    if told_ns / total_ns < TOLD_SHARE.value:
        why = (
            f"only {percent(told_ns / total_ns)} of the GEMM work has a name that contains its number format"
        )
        return Precision(gap(why, "none: the names of these kernels do not contain it"), shares)
    main, main_ns = max(formats.items(), key=lambda item: item[1])
    return Precision(main if main_ns >= MAIN_SHARE.value * told_ns else "mixed", shares)


def _work_by_name(rank: RankTimeline, windows: Spans) -> dict[str, int]:
    """Kernel time within the windows by name, names without any left out."""
    rows = rank.activities
    rows = rows.take((rows.source == Source.KERNEL) & (rows.name >= 0))
    work_ns = np.zeros(len(rank.columns.kernel_names), dtype=np.int64)
    np.add.at(work_ns, rows.name, covered_ns(rows.start_ns, rows.end_ns, windows))
    codes = distinct(rows.name)
    return {rank.columns.kernel_names[c]: int(work_ns[c]) for c in codes.tolist() if work_ns[c]}
