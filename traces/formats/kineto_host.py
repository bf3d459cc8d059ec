"""What the host did in a PyTorch profiler trace: its threads, CUDA calls, ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from traces.columns import (
    NULL,
    PROCESS_BITS,
    Calls,
    HostSpans,
    IntArray,
    Ranges,
    distinct,
)
from traces.formats import kineto_schema as schema
from traces.formats.kineto_json import Event
from traces.formats.kineto_values import argument, arguments, field, names, times_ns

_LOW_24 = 0xFFFFFF
_HOST_TABLES = (schema.CALLS, schema.ANNOTATIONS, schema.OPERATORS)


class Threads:
    """Packed ids of the trace's threads: process in 24 bits, thread in 24.

    Thread ids of some rows are pthread handles, longer or negative: the threads of a process that has such
    are numbered in the order of their ids instead.
    """

    def __init__(self, tables: Mapping[str, list[Event]]) -> None:
        on_threads = (*_HOST_TABLES, schema.OVERHEADS)
        pids, tids = _ids([event for table in on_threads for event in tables.get(table, [])])
        self._numbered: dict[int, IntArray] = {}
        for pid in distinct(pids[pids != NULL]):
            of_pid = distinct(tids[(pids == pid) & (tids != NULL)])
            if len(of_pid) and (of_pid[0] < 0 or of_pid[-1] > _LOW_24):
                self._numbered[int(pid)] = of_pid

    def of(self, events: Sequence[Event]) -> IntArray:
        """Packed thread of each event, shape (n,); NULL where process or thread is not told."""
        pids, tids = _ids(events)
        for pid, known in self._numbered.items():
            mine = pids == pid
            tids[mine] = np.where(tids[mine] == NULL, NULL, np.searchsorted(known, tids[mine]))
        told = (pids != NULL) & (tids != NULL)
        return np.where(told, np.where(told, pids, 0) << 24 | (tids & _LOW_24), NULL)


def processes(tables: Mapping[str, list[Event]], threads: Threads) -> list[int]:
    """Packed processes of the host: those that make CUDA calls, else all with ranges."""
    for some in ((schema.CALLS,), _HOST_TABLES):
        gids = threads.of([event for table in some for event in tables.get(table, [])])
        if len(found := distinct(gids[gids != NULL] & PROCESS_BITS)):
            return [int(gid) for gid in found]
    return []


def timed(tables: Mapping[str, list[Event]]) -> tuple[dict[str, list[Event]], int]:
    """Host tables without the rows that lack a time, and how many those were."""
    kept, left_out = {}, 0
    for table in (*_HOST_TABLES, schema.OVERHEADS, schema.SYNCS):
        events = tables.get(table, [])
        known = (times_ns(events)[1] != NULL).tolist()
        kept[table] = [event for event, has_times in zip(events, known, strict=True) if has_times]
        left_out += len(events) - len(kept[table])
    return kept, left_out


def calls(events: Sequence[Event], threads: Threads) -> tuple[Calls, tuple[str, ...]]:
    """CUDA runtime and driver calls, and their names."""
    name, texts = names(events)
    start_ns, end_ns = span_ns(events)
    return Calls(
        start_ns, end_ns, threads.of(events), argument(arguments(events), "correlation"), name
    ), texts


def ranges(events: Sequence[Event], threads: Threads) -> tuple[Ranges, tuple[str, ...]]:
    """Annotations and operators, which are what NVTX ranges are elsewhere, and their texts."""
    text, texts = names(events)
    return Ranges(*span_ns(events), threads.of(events), text), texts


def host_spans(events: Sequence[Event], threads: Threads) -> HostSpans:
    """The profiler's own work. It writes process -1, so the thread is rarely told."""
    name, texts = names(events)
    return HostSpans(*span_ns(events), threads.of(events), name, texts)


def span_ns(events: Sequence[Event]) -> tuple[IntArray, IntArray]:
    """Start and end; an end before its start counts as no time."""
    start_ns, end_ns = times_ns(events)
    return start_ns, np.maximum(start_ns, end_ns)


def _ids(events: Sequence[Event]) -> tuple[IntArray, IntArray]:
    """Process in 24 bits and thread of each event; NULL where not told or none (-1)."""
    pids = field(events, "pid")
    return np.where(pids < 0, NULL, pids & _LOW_24), field(events, "tid")
