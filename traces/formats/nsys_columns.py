"""Columns of an export's tables by name, whatever the schema has of them; waits, and memory in use.

Memory is written as changes, one row each, that are added up here. Waits are events,
synchronisations, OS calls and the profiler's own work.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from traces.arrays import PLACE, IntArray, distinct, ints, zeros
from traces.columns import NULL, PROCESS_BITS, EventRecords, HostSpans, MemoryUse, Syncs
from traces.errors import DamagedTrace
from traces.formats import nsys_schema as schema
from traces.formats.sqlite_tables import EVERY_ROW, RowFilter, SqliteTables, empty_columns
from traces.formats.tables import Table, Texts
from traces.groups import begins


def read_present(
    tables: SqliteTables,
    name: str,
    required: Sequence[str],
    optional: Sequence[str],
    texts: Sequence[str] = (),
    only: RowFilter = EVERY_ROW,
) -> Table:
    """A table's columns: absent optional ones are all NULL, an absent table has no rows.

    Of `only` what it says of absent columns does not count.

    Raises `DamagedTrace` where a required column is absent from a table that is there.
    """
    stored = tables.columns_of(name)
    if not stored:
        return empty_columns((*required, *optional), texts)
    if absent := [column for column in required if column not in stored]:
        raise DamagedTrace(
            f"{tables.path} has no column {absent[0]} in {name}, which every export has. "
            "Export the report again."
        )
    present = (*required, *tables.having(name, optional))
    wanted = {column: only[column] for column in tables.having(name, only)}
    table = tables.read(name, present, tables.having(name, texts), wanted)
    for column in ("start", "end"):
        if column not in table.integers:
            continue
        times_ns = table[column]
        least_ns = times_ns.min(initial=0, where=times_ns != NULL)
        # differences must fit into 64 bits
        if least_ns < -(1 << 61) or times_ns.max(initial=0) >= 1 << 62:
            raise DamagedTrace(
                f"{tables.path} holds impossible times in {name}.{column}. Export the report again."
            )
    row_count = len(table)
    # what is absent takes no memory
    absent_number = np.broadcast_to(np.full(1, NULL), row_count)
    absent_text = Texts(np.broadcast_to(np.full(1, -1, dtype=PLACE), row_count), ())
    return Table(
        {**dict.fromkeys((*required, *optional), absent_number), **table.integers},
        {**dict.fromkeys(texts, absent_text), **table.texts},
    )


def named(tables: SqliteTables, ids: Sequence[IntArray]) -> tuple[IntArray, tuple[str, ...]]:
    """Of each row the first id that StringIds knows, as an index into the names used; -1 where
    none.
    """
    chosen, open_ = np.full(len(ids[0]), NULL), np.arange(len(ids[0]), dtype=PLACE)
    texts_by_id = dict[int, str]()
    for column in ids:
        open_ids = column[open_]
        texts = tables.strings(distinct(open_ids))
        known = np.isin(open_ids, [*texts])
        chosen[open_[known]], open_ = open_ids[known], open_[~known]
        texts_by_id.update(texts)
        if not len(open_):
            break
    chosen[open_] = NULL
    used = distinct(chosen[chosen != NULL])
    place = np.searchsorted(used, chosen).astype(PLACE)
    place[open_] = -1
    return place, tuple(texts_by_id[text_id] for text_id in used.tolist())


def timed(table: Table) -> Table:
    """The rows of host work with a start, and an end that is not before it."""
    return table.only((table["start"] != NULL) & (table["end"] >= table["start"]))


def process_ids(global_ids: IntArray) -> IntArray:
    """Packed ids with the thread bits cleared; NULL stays NULL."""
    return np.where(global_ids == NULL, NULL, global_ids & PROCESS_BITS)


_EVENT = ("globalPid", "contextId", "streamId", "eventId", "eventSyncId", "correlationId")


def event_records(tables: SqliteTables) -> EventRecords:
    """Every record of an event on a stream."""
    process, *fields = read_present(tables, schema.EVENTS, (), _EVENT).columns(_EVENT)
    return EventRecords(process_ids(process), *fields)


def synchronisations(tables: SqliteTables) -> Syncs:
    """Every wait, of a stream or of the host."""
    waits = timed(read_present(tables, schema.SYNCS, ("start", "end"), _EVENT))
    process, context, stream, *fields = waits.columns(_EVENT)
    stream = np.where(stream == schema.NO_STREAM, NULL, stream)
    return Syncs(waits["start"], waits["end"], process_ids(process), context, stream, *fields)


def host_spans(tables: SqliteTables, table: str) -> HostSpans:
    """Spans of host threads from a table that names them through StringIds."""
    column = timed(read_present(tables, table, ("start", "end"), ("globalTid", "nameId")))
    name, names = named(tables, [column["nameId"]])
    return HostSpans(column["start"], column["end"], column["globalTid"], name, names)


def thread_names(tables: SqliteTables) -> dict[int, str]:
    """Packed thread id -> name; the first given wins."""
    rows = tables.typed(schema.THREAD_NAMES, {"globalTid": int, "nameId": int})
    texts = tables.strings(ints(rows).reshape(-1, 2)[:, 1])
    return {thread: texts[name] for thread, name in reversed(rows) if name in texts}


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


def read_memory_use(tables: SqliteTables) -> MemoryUse | None:
    """Memory in use on each GPU by each process; None where nothing was recorded.

    A row is what is then held at its address: the bytes taken, or nothing. Where the same address
    is taken again, what it held before is gone. Memory out of a pool (cudaMallocAsync) counts as
    the pool's size. The driver's own memory is not in the rows.
    """
    column = read_present(tables, schema.MEMORY_USE, ("start",), _COLUMNS)
    rows = column.only(
        np.isin(column["memKind"], schema.GPU_MEMORY_KINDS) & (column["start"] != NULL)
    )
    if not len(rows):
        return None
    pid, device, address, size, _, operation, call, pool, pool_size = rows.columns(_COLUMNS)
    time = rows["start"]
    process = process_ids(pid)
    taken, freed = operation == schema.MEMORY_TAKEN, operation == schema.MEMORY_GIVEN_BACK
    pooled = (pool != NULL) & (pool != 0) & (pool_size != NULL)
    is_told = (process != NULL) & (device != NULL)
    is_told &= pooled | ((address != NULL) & (freed | (taken & (size != NULL))))
    place = np.where(is_told, np.where(pooled, pool, address), NULL)
    held = np.where(is_told, np.where(pooled, pool_size, np.where(taken, size, 0)), 0)
    before = _held_before(
        held, place, np.lexsort((taken, time, place, device, process)), process, device
    )
    change = np.where(is_told, held - before, 0)
    order = np.lexsort((change, time, device, process))
    return MemoryUse(
        time_ns=time[order],
        process_gid=process[order],
        device_id=device[order],
        used_bytes=_running_sums(change[order], process[order], device[order]),
        is_unmatched=(~is_told | (freed & ~pooled & (before == 0)))[order],
        correlation_id=call[order],
        is_sum=True,
    )


def _held_before(
    held: IntArray, place: IntArray, order: IntArray, process: IntArray, device: IntArray
) -> IntArray:
    """What each row's place held by the row before it; `order` puts the rows of a place in order of
    time.
    """
    same = ~begins(process[order], device[order], place[order])
    before = zeros(len(held))
    before[order] = np.where(same, np.roll(held[order], 1), 0)
    return before


def _running_sums(change: IntArray, process: IntArray, device: IntArray) -> IntArray:
    total = np.cumsum(change)
    first = begins(process, device)
    return total - (total - change)[first][np.cumsum(first) - 1]
