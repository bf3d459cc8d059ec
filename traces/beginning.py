"""Does the program begin in the recording? Then nothing of it is cut off at the start."""

from typing import Final

import numpy as np

from traces.arrays import FOREVER
from traces.columns import PROCESS_BITS
from traces.groups import passing
from traces.intervals import union
from traces.timeline import RankTimeline

_TAKES: Final = ("cudaMalloc", "cuMemAlloc", "hipMalloc")


def starting_ns(rank: RankTimeline) -> int | None:
    """How long the process is in calls before its first recorded kernel, of which one takes memory
    of its GPU; None where none does, so that the program may have begun before the recording.
    """
    names, calls, rows = rank.columns.call_names, rank.columns.calls, rank.activities
    takes = passing(lambda name: name.startswith(_TAKES) and "Host" not in name, names)
    first_ns = rows.start_ns[rows.is_kernel].min(initial=int(FOREVER))
    mine = (calls.thread_gid & PROCESS_BITS == rank.process_gid) & (calls.start_ns < first_ns)
    if not (takes[calls.name] & mine).any():
        return None
    until_ns = np.minimum(calls.end_ns[mine], first_ns)
    return union(calls.start_ns[mine], until_ns).total_ns
