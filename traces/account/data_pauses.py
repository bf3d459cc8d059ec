"""Pauses of a launching thread before the input copies of a step: the wait for the next batch."""

from typing import Final

import numpy as np

from traces.account.calls import CallKind, call_kinds
from traces.columns import COPY_KINDS, NULL, BoolArray, Columns, HostSpans, IntArray, distinct
from traces.limits import Limit
from traces.timeline import Bucket, RankTimeline
from traces.whole_graphs import equal_replays

PAUSE: Final = Limit(
    2_000_000, "ns outside CUDA calls", "ours: no Python between two operators of one step takes as long"
)
BETWEEN: Final = Limit(
    20,
    "kernels between two copies of one size",
    "ours: input comes once a step or microbatch, weights and token counts with every layer; a step that is "
    "one graph, recorded whole, is a pass",
)


def data_pauses(rank: RankTimeline) -> HostSpans:
    """Pauses outside CUDA calls of the threads that launch input copies, each before such a copy.

    What the thread does in them (Python, a wait for a worker in the operating system) makes no difference.
    """
    rows, found = rank.activities, [np.empty((3, 0), dtype=np.int64)]
    feeding = rows.take(input_copies(rank))
    for thread in distinct(feeding.launch_thread).tolist():
        found.append(_on_thread(rank.columns, thread, feeding.launch_ns))
    start_ns, end_ns, thread_gid = np.concatenate(found, axis=1)
    return HostSpans(start_ns, end_ns, thread_gid, np.full(len(start_ns), NULL), ())


def _on_thread(columns: Columns, thread: int, copies_ns: IntArray) -> IntArray:
    """Starts, ends and thread, shape (3, k), of pauses after which an input copy is the first work launched.

    The first begins with the thread's first range. `copies_ns`: when input copies were launched.
    """
    calls = columns.calls
    mine = np.flatnonzero(calls.thread_gid == thread)
    mine = mine[np.argsort(calls.start_ns[mine], kind="stable")]
    kind = call_kinds(columns.call_names)[calls.name[mine]]
    moves = np.flatnonzero(np.isin(kind, (CallKind.LAUNCH, CallKind.COPY)))
    start_ns, until_ns = calls.start_ns[mine], np.maximum.accumulate(calls.end_ns[mine])
    began_ns = columns.ranges.start_ns[columns.ranges.thread_gid == thread].min(initial=start_ns[0])
    until_ns = np.concatenate(([began_ns], until_ns[:-1]))
    after = np.flatnonzero(start_ns - until_ns > PAUSE.value)
    after = after[after <= moves.max(initial=-1)]
    first = moves[np.searchsorted(moves, after)]
    ends = after[np.isin(start_ns[first], copies_ns)]
    return np.stack((until_ns[ends], start_ns[ends], np.full(len(ends), thread)))


def input_copies(rank: RankTimeline) -> IntArray:
    """Places in the activities of copies to the GPU that recur with equal bytes, a pass apart."""
    rows = rank.activities
    at = np.flatnonzero((rows.bucket == Bucket.COPY) & (rows.key == COPY_KINDS.index("memcpy_h2d")))
    at = at[rows.call[at] >= 0]
    size = rank.columns.copies.size_bytes[rows.row[at]]
    kernels_ns = rows.launch_ns[(rows.bucket == Bucket.COMPUTE) & (rows.call >= 0)]
    passes_ns = np.repeat(rows.launch_ns[equal_replays(rows)], int(BETWEEN.value))
    before = np.searchsorted(np.sort(np.concatenate((kernels_ns, passes_ns))), rows.launch_ns[at])
    recurs = np.zeros(len(at), dtype=np.bool_)
    for one in distinct(size).tolist():
        recurs |= _a_pass_apart(size == one, before)
    return at[recurs]


def _a_pass_apart(same: BoolArray, before: IntArray) -> BoolArray:
    """The copies of one size, if most of them have a pass between; `before`: launches before each copy."""
    apart = np.diff(np.sort(before[same]))
    enough = len(apart) > 0 and float(np.median(apart)) >= BETWEEN.value
    return same if enough else np.zeros(len(same), dtype=np.bool_)
