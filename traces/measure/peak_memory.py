"""The most memory a rank's process held on its GPU while the windows lasted."""

from typing import Final

import numpy as np

from traces.account.clocks import clock_offset_ns
from traces.columns import PROCESS_BITS, IntArray, MemoryUse
from traces.cures import cure
from traces.intervals import Spans
from traces.missing import Missing, gap
from traces.timeline import RankTimeline

_NO_VMM: Final = (
    "for a recording of memory, turn off PyTorch's expandable segments and set NCCL_CUMEM_ENABLE=0"
)


def peak_memory(rank: RankTimeline, windows: Spans) -> int | Missing:
    """The largest number of bytes in use at any instant of the windows; what was in use at a start counts.

    By nsys that is what the process took of the GPU's memory, without the driver's own; by the PyTorch
    profiler what the caching allocator had reserved. Totals that the source says itself count back to before
    their first event: reserved memory is rarely given back. A sum is none where it can be too small.
    """
    memory, how = rank.columns.memory, cure("memory_use", rank.columns.info.kind)
    if memory is None:
        return gap("memory use was not recorded", how)
    mine = (memory.process_gid == rank.process_gid) & (memory.device_id == rank.device)
    if not mine.any():
        why = "no memory use of this process on this GPU was recorded"
        return gap(why, how)
    if clock_offset_ns(rank):
        why = "host and GPU clocks are apart, so what was in use in the windows is unknown"
        return gap(why, "record again; nothing in this trace can align them")
    time_ns, used_bytes = memory.time_ns[mine], memory.used_bytes[mine]
    if memory.is_sum:
        if time_ns[0] >= rank.activities.start_ns.min() or memory.is_unmatched[mine].any():
            return gap("the recording began after memory had been allocated", how)
        if _takes_unseen(rank, memory):
            why = "memory was taken with cuMemCreate, and the recording does not have its size"
            return gap(why, _NO_VMM)
    elif time_ns[0] >= windows.end_ns[0]:
        why = "memory use was recorded only after the first window"
        return gap(why, "choose later steps with --steps")
    return _peak(time_ns, used_bytes, windows)


def _takes_unseen(rank: RankTimeline, memory: MemoryUse) -> bool:
    """Whether the process took memory, by expandable segments or by NCCL, that left no memory event."""
    calls = rank.columns.calls
    takes = np.array([*(name.startswith("cuMemCreate") for name in rank.columns.call_names), False])
    mine = takes[calls.name] & (calls.thread_gid & PROCESS_BITS == rank.process_gid)
    seen = memory.correlation_id[memory.process_gid == rank.process_gid]
    return bool((~np.isin(calls.correlation_id[mine], seen)).any())


def _peak(time_ns: IntArray, used_bytes: IntArray, windows: Spans) -> int:
    """Times in order. From the last change up to a window's start to the last one before its end."""
    first = np.maximum(np.searchsorted(time_ns, windows.start_ns, side="right") - 1, 0)
    last = np.searchsorted(time_ns, windows.end_ns)
    held = [used_bytes[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]
    return max((int(some.max()) for some in held if len(some)), default=0)
