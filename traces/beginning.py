"""Does the program begin in the recording, and end in it? Then nothing of it is cut off there."""

from typing import Final

import numpy as np

from traces.arrays import FOREVER, BoolArray
from traces.columns import PROCESS_BITS
from traces.groups import passing
from traces.intervals import union
from traces.texts import Texts
from traces.timeline import RankTimeline

_TAKES: Final = ("cudaMalloc", "cuMemAlloc", "hipMalloc")
_GIVES: Final = ("cudaFree", "cuMemFree", "hipFree")


def starting_ns(rank: RankTimeline) -> int | None:
    """How long the process is in calls before its first recorded kernel, of which one takes memory
    of its GPU; None where none does, so that the program may have begun before the recording.
    """
    calls, rows = rank.calls, rank.activities
    first_ns = rows.start_ns[rows.is_kernel].min(initial=int(FOREVER))
    mine = (calls.thread_gid & PROCESS_BITS == rank.process_gid) & (calls.start_ns < first_ns)
    if not (_of_memory(rank, _TAKES) & mine).any():
        return None
    return union(calls.start_ns[mine], np.minimum(calls.end_ns[mine], first_ns)).total_ns


def ends_here(rank: RankTimeline) -> bool:
    """Whether the process gives memory of its GPU back after its last recorded kernel."""
    calls, rows = rank.calls, rank.activities
    last_ns = rows.end_ns[rows.is_kernel].max(initial=0)
    mine = (calls.thread_gid & PROCESS_BITS == rank.process_gid) & (calls.end_ns > last_ns)
    return bool((_of_memory(rank, _GIVES) & mine).any())


def _of_memory(rank: RankTimeline, names: Texts) -> BoolArray:
    columns = rank.columns
    of_gpu = passing(lambda name: name.startswith(names) and "Host" not in name, columns.call_names)
    return of_gpu[columns.calls.name]
