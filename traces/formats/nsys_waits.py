"""What an export says about waiting: events, synchronisations, OS calls, the profiler's own work."""

from pathlib import Path

import numpy as np

from traces.columns import NULL, EventRecords, HostSpans, Syncs
from traces.formats import nsys_schema as schema
from traces.formats.nsys_columns import named, process_ids, read_present, timed
from traces.formats.tables import Tables

_EVENT = ("globalPid", "contextId", "streamId", "eventId", "eventSyncId", "correlationId")


def event_records(tables: Tables, path: Path) -> EventRecords:
    """Every record of an event on a stream."""
    column = read_present(tables, path, schema.EVENTS, (), _EVENT).integers
    process, *others = (column[name] for name in _EVENT)
    return EventRecords(process_ids(process), *others)


def synchronisations(tables: Tables, path: Path) -> Syncs:
    """Every wait, of a stream or of the host."""
    column = timed(read_present(tables, path, schema.SYNCS, ("start", "end"), _EVENT)).integers
    stream = np.where(column["streamId"] == schema.NO_STREAM, NULL, column["streamId"])
    return Syncs(
        column["start"],
        column["end"],
        process_ids(column["globalPid"]),
        column["contextId"],
        stream,
        column["eventId"],
        column["eventSyncId"],
        column["correlationId"],
    )


def host_spans(tables: Tables, path: Path, table: str) -> HostSpans:
    """Spans of host threads from a table that names them through StringIds."""
    column = timed(read_present(tables, path, table, ("start", "end"), ("globalTid", "nameId"))).integers
    name, names = named(tables, [column["nameId"]])
    return HostSpans(column["start"], column["end"], column["globalTid"], name, names)


def thread_names(tables: Tables) -> dict[int, str]:
    """Packed thread id -> name; the first given wins."""
    if not tables.columns_of(schema.THREAD_NAMES) >= {"nameId", "globalTid"}:
        return {}
    found = tables.rows(schema.THREAD_NAMES, ("globalTid", "nameId"))
    rows = [(thread, name) for thread, name in found if isinstance(thread, int) and isinstance(name, int)]
    texts = tables.strings(np.array([name for _, name in rows], dtype=np.int64))
    return {thread: texts[name] for thread, name in reversed(rows) if name in texts}
