"""Collectives that NCCL does by copy engines: no kernel runs, and their copies are communication.

With symmetric memory NCCL sends AllGather, AlltoAll, Gather and Scatter as copies (NVIDIA/nccl,
src/ce_coll.cc, `ncclCeImplemented` and `ncclCeAvailable`). They are device-to-device copies,
because memory of peers is mapped: only the call that launched them shows what they are. That call
is NCCL's own range, or the end of its group.
"""

from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, bools, last_at, none_of
from traces.columns import COPY_KINDS, Columns
from traces.groups import in_order, passing
from traces.launches import of_call

_BY_COPIES: Final = frozenset(
    {"ncclAllGather", "ncclAlltoAll", "ncclAllToAll", "ncclGather", "ncclScatter"}
)
_START, _END = "ncclGroupStart", "ncclGroupEnd"


def copies_of_collectives(columns: Columns, call: IntArray) -> BoolArray:
    """Which copies are of a collective, shape (n,). `call`: the launching call of each, or -1.

    NVIDIA/nccl, src/ce_coll.cc: a flag to each peer before the data and one behind it, so several
    of one call; a communicator of one rank copies once.
    """
    of_collective = none_of(len(columns.copies))
    texts = [*map(str.strip, columns.range_texts)]
    if not _BY_COPIES & {*texts}:
        return of_collective
    ranges = columns.ranges
    known = passing(lambda text: text.startswith("nccl"), texts)[ranges.text]
    within = np.flatnonzero(columns.copies.kind == COPY_KINDS.index("memcpy_d2d"))
    within = within[call[within] >= 0]
    launch_ns = of_call(columns.calls.start_ns, call[within])
    thread = of_call(columns.calls.thread_gid, call[within])
    for gid in np.unique(thread):
        mine = np.flatnonzero(known & (ranges.thread_gid == gid))
        mine = in_order(mine, ranges.start_ns)
        carries = mine[_carries(texts, ranges.text[mine])]
        here = within[thread == gid]
        if not len(carries) or not len(here):
            continue
        at_ns = launch_ns[thread == gid]
        at = last_at(ranges.start_ns[carries], at_ns)
        inside = (at >= 0) & (at_ns <= ranges.end_ns[carries[np.maximum(at, 0)]])
        several = np.bincount(at[inside], minlength=len(carries)) > 1
        of_collective[here[inside & several[np.maximum(at, 0)]]] = True
    return of_collective


def _carries(texts: list[str], calls: IntArray) -> BoolArray:
    """Which calls of a thread, by the places of their texts, launch such a collective: it itself,
    and the end of a group that holds one.
    """
    launches, depth, holds = [], 0, False
    for call in calls.tolist():
        name = texts[call]
        depth += (name == _START) - (name == _END and depth > 0)
        launches.append(name in _BY_COPIES or (name == _END and depth == 0 and holds))
        holds = (holds or name in _BY_COPIES) and depth > 0
    return bools(launches)
