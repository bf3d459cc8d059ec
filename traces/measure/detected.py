"""What kind of run a rank shows: features that names and rows give away."""

from typing import Final

import numpy as np

from traces.columns import IntArray, distinct
from traces.cures import cure
from traces.intervals import covered_ns
from traces.launches import launches_a_graph
from traces.limits import Limit
from traces.measure.a2a import dispatcher_of
from traces.measure.precision import detect_precision
from traces.measure.recompute import Recompute
from traces.missing import Missing, gap
from traces.names.frameworks import Framework, framework_by_names
from traces.resolve.resolution import Resolution
from traces.sections.rank import Detected
from traces.steps.found import Steps
from traces.timeline import RankTimeline, Source

SHORT: Final = Limit(
    10_000,
    "ns",
    "ours: about what launching a kernel costs the host, so shorter ones rarely hide their launch",
)


def detect(rank: RankTimeline, resolution: Resolution, steps: Steps, recompute: Recompute) -> Detected:
    """Look at the kernels and replays within the windows; a rank always has some.

    A kernel is in a graph where its row names a node (nsys) or its launching call launches a graph (Kineto);
    its share is one of kernel work. `short_kernel_frac`: kernels under 10 us as part of all kernels.
    `framework`: whose run the names of the whole recording show. `ep_overlap` is for those who see all ranks.
    """
    rows, kind = rank.activities, rank.columns.info.kind
    work_ns = covered_ns(rows.start_ns, rows.end_ns, steps.windows)
    is_kernel = rows.source == Source.KERNEL
    in_graph = rows.source == Source.REPLAY
    in_graph[is_kernel] = rank.columns.kernels.in_graph[rows.row[is_kernel]]
    calls = rank.columns.calls
    launches_graph = np.array([*map(launches_a_graph, rank.columns.call_names), False], dtype=np.bool_)
    in_graph |= is_kernel & launches_graph[np.append(calls.name, -1)[rows.call]]
    total_ns = int(work_ns[rows.source != Source.COPY].sum())
    mine = is_kernel & (work_ns > 0)
    short = mine & (rows.end_ns - rows.start_ns < SHORT.value)
    no_kernel = gap("no single kernel was recorded", cure("graphs", kind))
    precision = detect_precision(rank, steps.windows)
    untold = gap(steps.training_evidence, "record whole steps, with the optimizer")
    return Detected(
        dispatcher=dispatcher_of(rank, resolution, steps.windows),
        graph_share_frac=int(work_ns[in_graph].sum()) / total_ns if total_ns else 0.0,
        short_kernel_frac=float(short.sum() / mine.sum()) if mine.any() else no_kernel,
        kernels_per_launch=_kernels_per_launch(rows.call[mine], kind),
        ep_overlap=None,
        framework=_framework(rank),
        training_step=untold if steps.training is None else steps.training,
        training_evidence=steps.training_evidence,
        precision=precision.precision,
        precision_shares_frac=precision.shares,
        recompute=recompute.modules,
    )


def _kernels_per_launch(call: IntArray, kind: str) -> float | Missing:
    """Kernels, array of shape (n,) of the rows of their calls (-1: none), by the calls that launched them."""
    launched = call[call >= 0]
    if not len(launched):
        return gap("no launch of a kernel was recorded", cure("launches", kind))
    return len(launched) / len(distinct(launched))


def _framework(rank: RankTimeline) -> Framework:
    columns = rank.columns
    return framework_by_names(
        {
            "kernels": columns.kernel_names,
            "ranges": columns.range_texts,
            "threads": columns.thread_names.values(),
            "groups": columns.collectives.descriptions if columns.collectives else (),
        }
    )
