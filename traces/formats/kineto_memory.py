"""What a PyTorch profiler trace says of memory in use: what the caching allocator has reserved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traces.columns import NULL, PROCESS_BITS, MemoryUse
from traces.formats import kineto_schema as schema
from traces.formats.kineto_host import Threads
from traces.formats.kineto_json import Event
from traces.formats.kineto_values import argument, arguments, column


def memory_use(events: Sequence[Event], threads: Threads) -> MemoryUse | None:
    """What the allocator had reserved on each GPU whenever it handed memory out or took it back.

    Memory that other libraries took, and the driver's own, is not in it. The first releases wrote no totals:
    None, as where nothing was recorded.
    """
    given = arguments(events)
    thread, device = threads.of(events), argument(given, "Device Id")
    time_ns = column([event.get("ts") for event in events], 1_000)
    reserved = argument(given, "Total Reserved")
    told = (argument(given, "Device Type") == schema.CUDA_DEVICE) & (reserved >= 0)
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
