"""What an export says of memory in use: changes, one row each, that the reader has to add up."""

from pathlib import Path
from typing import Final

import numpy as np

from traces.columns import NULL, BoolArray, IntArray, MemoryUse
from traces.formats import nsys_schema as schema
from traces.formats.nsys_columns import process_ids, read_present
from traces.formats.tables import Tables

_COLUMNS: Final = (
    "globalPid",
    "deviceId",
    "address",
    "bytes",
    "memKind",
    "memoryOperationType",
    "correlationId",
    "localMemoryPoolAddress",
    "localMemoryPoolSize",
)


def read_memory_use(tables: Tables, path: Path) -> MemoryUse | None:
    """Memory in use on each GPU by each process; None where nothing was recorded.

    A row is what is then held at its address: the bytes taken, or nothing. Where the same address is taken
    again, what it held before is gone. Memory out of a pool (cudaMallocAsync) counts as the pool's size.
    The driver's own memory is not in the rows.
    """
    column = read_present(tables, path, schema.MEMORY_USE, ("start",), _COLUMNS).integers
    rows = np.flatnonzero(np.isin(column["memKind"], schema.GPU_MEMORY_KINDS) & (column["start"] != NULL))
    if not len(rows):
        return None
    time, pid, device, address, size, _, operation, call, pool, pool_size = (
        column[name][rows] for name in ("start", *_COLUMNS)
    )
    process = process_ids(pid)
    taken, freed = operation == schema.MEMORY_TAKEN, operation == schema.MEMORY_GIVEN_BACK
    pooled = (pool != NULL) & (pool != 0) & (pool_size != NULL)
    told = (process != NULL) & (device != NULL)
    told &= pooled | ((address != NULL) & (freed | (taken & (size != NULL))))
    place = np.where(told, np.where(pooled, pool, address), NULL)
    held = np.where(told, np.where(pooled, pool_size, np.where(taken, size, 0)), 0)
    before = _held_before(held, place, np.lexsort((taken, time, place, device, process)), process, device)
    change = np.where(told, held - before, 0)
    order = np.lexsort((change, time, device, process))
    return MemoryUse(
        time_ns=time[order],
        process_gid=process[order],
        device_id=device[order],
        used_bytes=_sums(change[order], process[order], device[order]),
        is_unmatched=(~told | (freed & ~pooled & (before == 0)))[order],
        correlation_id=call[order],
        is_sum=True,
    )


def _held_before(
    held: IntArray, place: IntArray, order: IntArray, process: IntArray, device: IntArray
) -> IntArray:
    """What each row's place held by the row before it; `order` puts the rows of a place in order of time."""
    same = _same_as_before(process[order], device[order], place[order])
    before = np.zeros(len(held), dtype=np.int64)
    before[order[1:]] = np.where(same, held[order][:-1], 0)
    return before


def _sums(change: IntArray, process: IntArray, device: IntArray) -> IntArray:
    """Running sum within each process and device, whose rows stand together."""
    total = np.cumsum(change)
    first = np.concatenate(([True], ~_same_as_before(process, device)))
    number = np.cumsum(first) - 1
    sums: IntArray = total - (total - change)[first][number]
    return sums


def _same_as_before(*keys: IntArray) -> BoolArray:
    """Of each row but the first, whether it has the keys of the row before it."""
    same: BoolArray = np.logical_and.reduce([key[1:] == key[:-1] for key in keys])
    return same
