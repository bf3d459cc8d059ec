"""What the host did in a PyTorch profiler trace: its threads, CUDA calls, ranges."""

from collections.abc import Mapping

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
from traces.formats.kineto_rows import Table

_LOW_24 = 0xFFFFFF
_HOST_TABLES = (schema.CALLS, schema.ANNOTATIONS, schema.OPERATORS)


class Threads:
    """Packed ids of the trace's threads: process in 24 bits, thread in 24.

    Thread ids of some rows are pthread handles, longer or negative: the threads of a process that has such
    are numbered in the order of their ids instead.
    """

    def __init__(self, tables: Mapping[str, Table]) -> None:
        on_threads = (*_HOST_TABLES, schema.OVERHEADS)
        pids, tids = _ids(*(tables[table] for table in on_threads))
        self._numbered: dict[int, IntArray] = {}
        for pid in distinct(pids[pids != NULL]):
            of_pid = distinct(tids[(pids == pid) & (tids != NULL)])
            if len(of_pid) and (of_pid[0] < 0 or of_pid[-1] > _LOW_24):
                self._numbered[int(pid)] = of_pid

    def of(self, *events: Table) -> IntArray:
        """Packed thread of each event, shape (n,); NULL where process or thread is not told."""
        pids, tids = _ids(*events)
        for pid, known in self._numbered.items():
            mine = pids == pid
            tids[mine] = np.where(tids[mine] == NULL, NULL, np.searchsorted(known, tids[mine]))
        told = (pids != NULL) & (tids != NULL)
        return np.where(told, np.where(told, pids, 0) << 24 | (tids & _LOW_24), NULL)


def processes(tables: Mapping[str, Table], threads: Threads) -> list[int]:
    """Packed processes of the host: those that make CUDA calls, else all with ranges."""
    for some in ((schema.CALLS,), _HOST_TABLES):
        gids = threads.of(*(tables[table] for table in some))
        if len(found := distinct(gids[gids != NULL] & PROCESS_BITS)):
            return [int(gid) for gid in found]
    return []


def timed(tables: Mapping[str, Table]) -> tuple[dict[str, Table], int]:
    """Host tables without the rows that lack a time, and how many those were."""
    found = {name: tables[name] for name in (*_HOST_TABLES, schema.OVERHEADS, schema.SYNCS)}
    kept = {name: each.only(each["end_ns"] != NULL) for name, each in found.items()}
    return kept, sum(len(each) - len(kept[name]) for name, each in found.items())


def calls(events: Table, threads: Threads) -> tuple[Calls, tuple[str, ...]]:
    """CUDA runtime and driver calls, and their names."""
    name, texts = events.texts["name"]
    return Calls(*span_ns(events), threads.of(events), events["correlation"], name), texts


def ranges(events: Table, threads: Threads) -> tuple[Ranges, tuple[str, ...]]:
    """Annotations and operators, which are what NVTX ranges are elsewhere, and their texts."""
    text, texts = events.texts["name"]
    return Ranges(*span_ns(events), threads.of(events), text), texts


def host_spans(events: Table, threads: Threads) -> HostSpans:
    """The profiler's own work. It writes process -1, so the thread is rarely told."""
    name, texts = events.texts["name"]
    return HostSpans(*span_ns(events), threads.of(events), name, texts)


def span_ns(events: Table) -> tuple[IntArray, IntArray]:
    """Start and end; an end before its start counts as no time."""
    return events["start_ns"], np.maximum(events["start_ns"], events["end_ns"])


def _ids(*events: Table) -> tuple[IntArray, IntArray]:
    """Process in 24 bits and thread of each event; NULL where not told or none (-1)."""
    pids, tids = (np.concatenate([each[name] for each in events]) for name in ("pid", "tid"))
    return np.where(pids < 0, NULL, pids & _LOW_24), tids
