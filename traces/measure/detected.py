"""What kind of run a rank shows: features that names and rows give away."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import IntArray, distinct
from traces.intervals import Spans, covered_ns
from traces.launches import launches_a_graph
from traces.limits import Limit
from traces.names.frameworks import Framework, framework_by_names
from traces.timeline import RankTimeline, Source

SHORT: Final = Limit(
    10_000,
    "ns",
    "ours: about what launching a kernel costs the host, so shorter ones rarely hide their launch",
)


@dataclass(frozen=True, slots=True)
class Detected:
    """`graph_share_frac`: kernel work in CUDA graphs (nodes and whole replays) as part of all kernel work.

    A kernel is in a graph where its row names a node (nsys) or its launching call launches a graph (Kineto).
    `short_kernel_frac`: kernels under 10 us as part of all kernels, None where none was recorded singly.
    `kernels_per_launch`: of the kernels with a recorded launch, None where there is none.
    `framework`: whose run the names of the whole recording show.
    """

    graph_share_frac: float
    short_kernel_frac: float | None
    framework: Framework = "none"
    kernels_per_launch: float | None = None


def detect(rank: RankTimeline, windows: Spans) -> Detected:
    """Look at the kernels and replays within the windows; a rank always has some."""
    rows = rank.activities
    work_ns = covered_ns(rows.start_ns, rows.end_ns, windows)
    is_kernel = rows.source == Source.KERNEL
    in_graph = rows.source == Source.REPLAY
    in_graph[is_kernel] = rank.columns.kernels.in_graph[rows.row[is_kernel]]
    calls = rank.columns.calls
    launches_graph = np.array([*map(launches_a_graph, rank.columns.call_names), False], dtype=np.bool_)
    in_graph |= is_kernel & launches_graph[np.append(calls.name, -1)[rows.call]]
    total_ns = int(work_ns[rows.source != Source.COPY].sum())
    mine = is_kernel & (work_ns > 0)
    short = mine & (rows.end_ns - rows.start_ns < SHORT.value)
    return Detected(
        int(work_ns[in_graph].sum()) / total_ns if total_ns else 0.0,
        float(short.sum() / mine.sum()) if mine.any() else None,
        _framework(rank),
        _kernels_per_launch(rows.call[mine]),
    )


def _kernels_per_launch(call: IntArray) -> float | None:
    """Kernels, array of shape (n,) of the rows of their calls (-1: none), by the calls that launched them."""
    launched = call[call >= 0]
    return len(launched) / len(distinct(launched)) if len(launched) else None


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
