"""Where the CPU steps an optimizer: between the copies of gradients to the host and of weights back."""

from typing import Final

import numpy as np

from traces.columns import COPY_KINDS, NULL, HostSpans, IntArray
from traces.limits import Limit
from traces.timeline import Bucket, RankTimeline, Source
from traces.training import judge_training, roles_of

COPIED: Final = Limit(1 << 20, "bytes", "ours: gradients or weights; norms and losses are far smaller")
COPIES: Final = Limit(2, "copies each way", "ours: a model has many parameters, a batch or a result few")
APART: Final = Limit(2.0, "times the bytes", "gradients and weights have 2 or 4 bytes a parameter")


def cpu_optimizer(rank: RankTimeline) -> HostSpans:
    """Spans of host threads between large copies to the host and as many bytes back, in training alone.

    No kernel but an optimizer's may be launched between on that thread: activations that are offloaded have
    kernels between, and where the CPU steps only a part the GPU steps the rest meanwhile.
    What the thread waits for within a span is not separated here.
    """
    rows, nothing = rank.activities, np.empty(0, dtype=np.int64)
    size, roles = _sizes(rank), roles_of(rank)
    moves = (rows.launch_ns != NULL) & ((size >= COPIED.value) | (rows.source != Source.COPY))
    moves &= ~roles.optimizer
    order = np.flatnonzero(moves)
    order = order[np.lexsort((rows.launch_ns[order], rows.launch_thread[order]))]
    way = np.where(size >= COPIED.value, rows.key, -1)[order]
    if not len(order) or judge_training(roles)[0] is not True:
        return HostSpans(nothing, nothing, nothing, nothing, ())
    thread = rows.launch_thread[order]
    begin = np.flatnonzero(np.concatenate(([True], (np.diff(way) != 0) | (np.diff(thread) != 0))))
    total, count = np.add.reduceat(size[order], begin), np.diff(np.append(begin, len(order)))
    out, back = (way[begin] == COPY_KINDS.index(kind) for kind in ("memcpy_d2h", "memcpy_h2d"))
    several = count >= COPIES.value
    fits = (total[1:] <= APART.value * total[:-1]) & (total[:-1] <= APART.value * total[1:])
    fits &= (out & several)[:-1] & (back & several)[1:] & (thread[begin[1:]] == thread[begin[:-1]])
    then = begin[1:][fits]
    first, then = order[then - 1], order[then]
    start_ns = rows.launch_end_ns[first]
    end_ns = np.maximum(rows.launch_ns[then], start_ns)
    return HostSpans(start_ns, end_ns, rows.launch_thread[first], np.full(len(first), NULL), ())


def _sizes(rank: RankTimeline) -> IntArray:
    """Bytes of copies between host and GPU, shape (n,), 0 for all else."""
    rows = rank.activities
    size = np.zeros(len(rows), dtype=np.int64)
    ways = [COPY_KINDS.index(kind) for kind in ("memcpy_d2h", "memcpy_h2d")]
    copy = (rows.bucket == Bucket.COPY) & np.isin(rows.key, ways)
    size[copy] = rank.columns.copies.size_bytes[rows.row[copy]]
    return size
