"""How long a rank's kernels take alone: the evidence that a GPU itself is slow."""

from typing import Final

import numpy as np

from traces.groups import group_of
from traces.intervals import Spans, covered_ns
from traces.limits import Limit
from traces.ranks import parts
from traces.ranks.identity import fingerprint_of_text
from traces.ranks.summary import KernelTimes
from traces.timeline import KEYS, Bucket, RankTimeline, Source

KINDS: Final = Limit(
    24, "kinds of kernels", "ours: those with the most time; a slow GPU shows in all of them"
)
_LEAST: Final = 3
"""Kernels of one kind, from which on their median says something."""


def kernel_times(rank: RankTimeline, windows: Spans, comm: Spans) -> KernelTimes:
    """Medians of the kinds of compute kernels with the most time, beside no communication."""
    rows, kernels = rank.activities, rank.columns.kernels
    inside = covered_ns(rows.start_ns, rows.end_ns, windows) == rows.end_ns - rows.start_ns
    alone = covered_ns(rows.start_ns, rows.end_ns, comm) == 0
    mine = np.flatnonzero(
        (rows.bucket == Bucket.COMPUTE) & (rows.source == Source.KERNEL) & (rows.name >= 0) & inside & alone
    )
    if not len(mine):
        return KernelTimes.none()
    kind = group_of(rows.name[mine], kernels.shape[rows.row[mine]]).astype(np.int64)
    order = np.argsort(kind, kind="stable")
    first = parts.begins_of(kind[order])
    mine = mine[order]
    lasts_ns = (rows.end_ns - rows.start_ns)[mine]
    total_ns, count = parts.total(lasts_ns, first), np.diff(first)
    most = np.argsort(np.where(count >= _LEAST, -total_ns, 0), kind="stable")[: int(KINDS.value)]
    most = most[count[most] >= _LEAST]
    head = mine[first[most]]
    grouped = KEYS[Bucket.COMPUTE].index("grouped_gemm")
    marks = np.array([_mark(rank, int(place)) for place in head], dtype=np.int64)
    by_mark = np.argsort(marks, kind="stable")
    columns = marks, parts.median(lasts_ns, first)[most], rows.key[head] == grouped
    return KernelTimes(*(column[by_mark].astype(np.int64) for column in columns))


def _mark(rank: RankTimeline, place: int) -> int:
    kernels, row = rank.columns.kernels, int(rank.activities.row[place])
    shape = int(kernels.shape[row])
    grid, block = kernels.shapes.grid[shape].tolist(), kernels.shapes.block[shape].tolist()
    return fingerprint_of_text(f"{rank.columns.kernel_names[kernels.name[row]]} {grid} {block}")
