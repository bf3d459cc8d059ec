"""Producers of collectives that nothing else tells: what the thread launched last on its current stream.

PyTorch's NCCL process group makes a collective's stream wait for the caller's current stream before each
launch, so that the data is there (`ProcessGroupNCCL`, `syncStream`). Where a collective waits for events and
no producer of another stream is recorded or inferred, what was launched last on its thread's compute stream
is taken, unless a collective of that name and stream was ever seen to begin before that had ended.
"""

import numpy as np

from traces.columns import NULL, BoolArray, IntArray
from traces.groups import group_of
from traces.timeline import Activities, Bucket


def current_stream_producers(
    rows: Activities, awaited: IntArray, has_other: BoolArray
) -> tuple[IntArray, IntArray]:
    """(consumer, producer) pairs. `awaited`, shape (n,): events waited for; `has_other`: which know one."""
    comm = np.flatnonzero((rows.bucket == Bucket.COMM) & (rows.launch_ns != NULL) & (awaited > 0))
    compute = np.flatnonzero((rows.bucket == Bucket.COMPUTE) & (rows.launch_ns != NULL))
    own = _latest_before(rows, compute, rows.launch_thread[compute], comm, rows.launch_thread[comm])
    comm, own = comm[own >= 0], own[own >= 0]
    latest = _latest_before(rows, compute, rows.stream_id[compute], comm, rows.stream_id[own])
    if not len(comm):
        return comm, latest
    kind = group_of(rows.name[comm], rows.stream_id[comm])
    early = rows.end_ns[latest] > rows.start_ns[comm]
    never = np.bincount(kind, weights=early)[kind] == 0
    kept = never & ~has_other[comm] & (rows.stream_id[latest] != rows.stream_id[comm])
    return comm[kept], latest[kept]


def _latest_before(
    rows: Activities, candidates: IntArray, have: IntArray, asked: IntArray, want: IntArray
) -> IntArray:
    """Of each asked activity the latest candidate launched before it that has what it wants; -1: none."""
    both, group = np.concatenate((candidates, asked)), np.concatenate((have, want))
    is_asked = np.arange(len(both)) >= len(candidates)
    order = np.lexsort((~is_asked, rows.launch_ns[both], group))
    last = np.maximum.accumulate(np.where(is_asked[order], -1, np.arange(len(order))))
    known = (last >= 0) & (group[order][last] == group[order])
    result = np.empty(len(asked), dtype=np.int64)
    asks = is_asked[order]
    result[order[asks] - len(candidates)] = np.where(known, both[order][last], -1)[asks]
    return result
