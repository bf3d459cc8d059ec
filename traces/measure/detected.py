"""What kind of run a rank shows: features that names and rows give away, and the format of its
GEMMs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, distinct, summed
from traces.columns import Columns
from traces.frozen import frozen
from traces.groups import passing
from traces.intervals import Spans, ns_in
from traces.launches import launches_a_graph
from traces.limits import MOST, Limit
from traces.measure.a2a import dispatcher_of
from traces.measure.budget import sums_by_name
from traces.measure.recompute import Recompute
from traces.missing import Missing, gap, or_gap, sole
from traces.names.frameworks import framework_by_names
from traces.names.in_use import in_use
from traces.names.kernels import FP8, classify_kernel, gemm_format, multiplies, quantize_format
from traces.replay.changes.graphs import SCOPES, scope_of
from traces.resolve.resolution import Resolution
from traces.sections.rank import Detected
from traces.spelling import percent
from traces.steps.found import Steps
from traces.timeline import RankTimeline


@frozen
class Precision:
    """What the GEMMs of a rank multiply. `precision` is one of `traces.settings.precision.BITS` or
    "mixed".

    `shares` are parts of GEMM work (sums of kernel time), by format.
    """

    precision: str | Missing
    shares: Mapping[str, float]


def detect_precision(rank: RankTimeline, windows: Spans) -> Precision:
    """Look at the GEMMs within the windows.

    TF32 can hide in GEMMs of fp32 data only where their names keep silent; where the scaling of FP8
    is not in the GEMM's name, quantising kernels that agree give it, else it is one scale per
    tensor.
    """
    if not rank.has_kernels:
        return Precision(rank.lacks("graph replays were recorded whole", "graphs"), {})
    rows = rank.activities.take(rank.activities.name >= 0)
    gemms, quantize = dict[str, int](), set[str]()
    for name, ns in sums_by_name(
        ns_in(rows, windows), rows.name, rank.columns.kernel_names
    ).items():
        kernel = classify_kernel(name)
        if multiplies(kernel):
            gemms[name] = ns
        elif kernel.class_ == "quantize" and (written := quantize_format(name)):
            quantize.add(written)
    total_ns = sum(gemms.values())
    if not total_ns:
        return Precision(gap("no GEMM in the window", "choose a longer window"), {})
    formats = Counter[str]()
    scaled = sole(quantize) or "fp8_per_tensor"
    for name, ns in gemms.items():
        written_format = gemm_format(name)
        if written_format:
            formats[scaled if written_format == FP8 else written_format] += ns
    shares = {number_format: ns / total_ns for number_format, ns in formats.most_common()}
    told_ns = formats.total()
    if told_ns / total_ns < MOST.value:
        why = (
            f"only {percent(told_ns / total_ns)} of the GEMM work has a name that contains its "
            f"number format"
        )
        return Precision(gap(why, "none: the names of these kernels do not contain it"), shares)
    ((main, main_ns),) = formats.most_common(1)
    return Precision(main if main_ns > MOST.value * told_ns else "mixed", shares)


SHORT: Final = Limit(
    10_000,
    "ns",
    "ours: about what launching a kernel costs the host, so shorter ones rarely hide their launch",
)


def detect(
    rank: RankTimeline, resolution: Resolution, steps: Steps, recompute: Recompute
) -> Detected:
    """Look at the kernels and replays within the windows; a rank always has some.

    A kernel is in a graph where its row names a node (nsys) or its launching call launches a graph
    (Kineto); its share is one of kernel work. `short_kernel_frac`: kernels under 10 us as part of
    all kernels. `framework`: whose run the names of the whole recording show. `ep_overlap` is for
    those who see all ranks.
    """
    rows = rank.activities
    work_ns = ns_in(rows, steps.windows)
    is_kernel, in_graph = rows.is_kernel, rows.is_replay
    in_graph[is_kernel] = rank.kernels.in_graph[rows.row[is_kernel]]
    calls = rank.calls
    launches_graph = passing(launches_a_graph, rank.columns.call_names)
    in_graph |= is_kernel & launches_graph[np.append(calls.name, -1)[rows.call]]
    total_ns = summed(work_ns[~rows.is_transfer])
    mine = is_kernel & (work_ns > 0)
    short = mine & (rows.length_ns < SHORT.value)
    short_frac: float | Missing = rank.lacks("no single kernel was recorded", "graphs")
    if mine.any():
        short_frac = float(short.sum() / mine.sum())
    launched = rows.call[mine & (rows.call >= 0)]
    per_launch: float | Missing = rank.lacks("no launch of a kernel was recorded", "launches")
    if len(launched):
        per_launch = len(launched) / len(distinct(launched))
    precision = detect_precision(rank, steps.windows)
    untold = gap(steps.training_evidence, "record whole steps, with the optimizer")
    names = _names(rank.columns)
    return Detected(
        dispatcher=dispatcher_of(rank, resolution, steps.windows),
        graph_share_frac=summed(work_ns[in_graph]) / total_ns if total_ns else 0.0,
        short_kernel_frac=short_frac,
        kernels_per_launch=per_launch,
        ep_overlap=None,
        framework=framework_by_names(names),
        training_step=or_gap(steps.training, untold),
        training_evidence=steps.training_evidence,
        precision=precision.precision,
        precision_shares_frac=precision.shares,
        recompute=recompute.modules,
        graph_scopes_frac=_graph_scopes(rank, work_ns, is_kernel, in_graph),
        in_use=in_use(names),
    )


def _graph_scopes(
    rank: RankTimeline, work_ns: IntArray, is_kernel: BoolArray, in_graph: BoolArray
) -> Mapping[str, float]:
    """Of each scope that ran, how much of the work that tells it is in graphs."""
    rows = rank.activities
    scopes = np.array([*map(scope_of, rank.classes)], dtype=object)
    shares = {}
    for scope in SCOPES:
        mine = is_kernel & (scopes == scope)[rows.name]
        if whole_ns := summed(work_ns[mine]):
            shares[scope] = summed(work_ns[mine & in_graph]) / whole_ns
    return shares


def _names(columns: Columns) -> dict[str, Iterable[str]]:
    """All recorded names, by what has them."""
    return {
        "kernels": columns.kernel_names,
        "ranges": columns.range_texts,
        "threads": columns.thread_names.values(),
        "groups": columns.collectives.descriptions if columns.collectives else (),
        "frames": columns.frames.names if columns.frames else (),
        "calls": columns.call_names,
    }
