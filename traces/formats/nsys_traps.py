"""Ways in which an nsys recording or its export went wrong, by what the export holds.

Looked for by `doctor` alone: it reads the ranges once more.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from traces.columns import NULL, Columns
from traces.formats import nsys_info
from traces.formats import nsys_schema as schema
from traces.formats.tables import Tables
from traces.recording.traps import Trap

_DOMAIN_TYPES: Final = (75, 76)
"""NVTX_EVENTS.eventType where a domain begins and ends: all that is kept of an NVTX that nsys cannot read."""
_SESSION: Final = "ANALYSIS_DETAILS"
_CPU: Final = ("COMPOSITE_EVENTS", "SCHED_EVENTS")
_PARTIAL: Final = ("EXPORT_PARAM_TABLES_TO_EXPORT", "EXPORT_PARAM_TIMES_TO_EXPORT")
_NCCL: Final = ("ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclSend", "ncclRecv", "ncclAlltoAll")


def traps(tables: Tables, columns: Columns) -> Iterator[tuple[Trap, int]]:
    """What went wrong, with the number of rows that show it. Raises `DamagedTrace` as reading does."""
    export = nsys_info.metadata(tables)
    if partial := sum(bool(export.get(name)) for name in _PARTIAL):
        yield Trap.PARTIAL_EXPORT, partial
    if {"eventType", "start", "end"} <= tables.columns_of(schema.NVTX):
        kept = tables.read(schema.NVTX, ("eventType", "start", "end")).integers
        domains = int(np.isin(kept["eventType"], _DOMAIN_TYPES).sum())
        if domains and not len(columns.ranges):
            yield Trap.UNREAD_RANGES, domains
        ranges = np.isin(kept["eventType"], schema.RANGE_TYPES) & (kept["start"] != NULL)
        if unclosed := int((ranges & np.isin(kept["end"], (NULL, *_ends(tables)))).sum()):
            yield Trap.OPEN_RANGES, unclosed
    if columns.nccl_calls is None and (calls := _nccl_ranges(columns)):
        yield Trap.NO_PAYLOADS, calls
    if samples := sum(_count(tables, name) for name in _CPU):
        yield Trap.CPU_SAMPLES, samples


def _ends(tables: Tables) -> list[int]:
    """Times that nsys gives as the end of a range that no one closed: the recording's own."""
    if "duration" not in tables.columns_of(_SESSION):
        return []
    return [row[0] for row in tables.rows(_SESSION, ("duration",)) if isinstance(row[0], int)]


def _nccl_ranges(columns: Columns) -> int:
    codes = [code for code, text in enumerate(columns.range_texts) if text in _NCCL]
    return int(np.isin(columns.ranges.text, codes).sum())


def _count(tables: Tables, table: str) -> int:
    return len(tables.read(table, ("start",))) if "start" in tables.columns_of(table) else 0
