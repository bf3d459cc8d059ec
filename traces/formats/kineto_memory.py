"""What a PyTorch profiler trace says of memory in use: what the caching allocator has reserved."""

import numpy as np

from traces.columns import NULL, PROCESS_BITS, MemoryUse
from traces.formats import kineto_schema as schema
from traces.formats.kineto_host import Threads
from traces.formats.kineto_rows import Table


def memory_use(events: Table, threads: Threads) -> MemoryUse | None:
    """What the allocator had reserved on each GPU whenever it handed memory out or took it back.

    Memory that other libraries took, and the driver's own, is not in it. The first releases wrote no totals:
    None, as where nothing was recorded.
    """
    thread, device = threads.of(events), events["memory_device"]
    time_ns, reserved = events["start_ns"], events["total_reserved"]
    told = (events["memory_device_type"] == schema.CUDA_DEVICE) & (reserved >= 0)
    rows = np.flatnonzero(told & (time_ns != NULL) & (thread != NULL) & (device != NULL))
    if not len(rows):
        return None
    process = thread[rows] & PROCESS_BITS
    order = np.lexsort((time_ns[rows], device[rows], process))
    rows = rows[order]
    return MemoryUse(
        time_ns=time_ns[rows],
        process_gid=process[order],
        device_id=device[rows],
        used_bytes=reserved[rows],
        is_unmatched=np.zeros(len(rows), dtype=np.bool_),
        correlation_id=np.full(len(rows), NULL, dtype=np.int64),
        is_sum=False,
    )
