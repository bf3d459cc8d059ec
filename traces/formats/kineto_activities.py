"""Activities of a PyTorch profiler trace: GPU work, the host's calls and ranges, memory held,
waits.

Kernels, copies and memsets; threads, CUDA calls and ranges; what the caching allocator has
reserved; events recorded, and who waited for them.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import itemgetter

import numpy as np

from traces.arrays import IntArray, codes_of, distinct, ints, none_of, order_of
from traces.columns import (
    COPY_KINDS,
    NULL,
    PROCESS_BITS,
    Calls,
    Copies,
    EventRecords,
    GpuRows,
    HostSpans,
    Kernels,
    MemoryUse,
    Ranges,
    Syncs,
)
from traces.formats import kineto_schema as schema
from traces.formats.tables import Table, copies_of, first_told
from traces.groups import begins
from traces.launches import distinct_shapes
from traces.texts import Texts


def kernels(table: Table, process_gid: int) -> tuple[Kernels, Texts]:
    """Kernels and their names.

    The profiler adds static and dynamic shared memory up. The sum stands as static, and dynamic is
    0: what is computed from both comes out right, only their split is not told.
    """
    name, texts = table.texts["name"]
    node, shared = table["graph_node_id"], table["shared_memory"]
    dynamic = np.where(shared == NULL, NULL, 0)
    shape, shapes = distinct_shapes(
        [*table["grid"].T], [*table["block"].T], table["registers_per_thread"], shared, dynamic
    )
    in_graph = (node != NULL) & (node != 0)  # CUPTI: 0 outside graphs
    return Kernels(gpu_rows(table, process_gid), name, in_graph, shape, shapes), texts


def copies(memcpy: Table, memset: Table, process_gid: int) -> Copies:
    """Copies, then memsets; the kind of a copy stands in its name."""
    place = codes_of(COPY_KINDS)
    name, texts = memcpy.texts["name"]
    kinds, memories = [], []
    for text in (*texts, ""):  # without a name: -1, the last
        _, spelled, memory, _, target, *_ = (*text.split(), *[""] * 5)
        kind = schema.COPY_KIND.get(spelled, "memcpy_unknown")
        if kind == "memcpy_d2h":
            memory = target
        kinds.append(place[kind])
        memories.append(schema.COPY_MEMORY.get(memory.strip("()"), NULL))
    rows_of = partial(gpu_rows, process_gid=process_gid)
    return copies_of(memcpy, memset, rows_of, ints(kinds)[name], ints(memories)[name])


def placed(tables: Mapping[str, Table]) -> tuple[dict[str, Table], int]:
    """GPU tables without the rows that name no device, and how many those were."""
    return _rows_with(tables, (schema.KERNELS, schema.MEMCPY, schema.MEMSET), device_ids)


def _rows_with(
    tables: Mapping[str, Table], names: Iterable[str], column: Callable[[Table], IntArray]
) -> tuple[dict[str, Table], int]:
    """Some tables without the rows of which a column is not told, and how many those were."""
    kept, left_out = {}, 0
    for name in names:
        kept[name] = tables[name].only(column(tables[name]) != NULL)
        left_out += len(tables[name]) - len(kept[name])
    return kept, left_out


def gpu_rows(table: Table, process_gid: int) -> GpuRows:
    """What all work on a GPU has."""
    return GpuRows(
        start_ns=table["start_ns"],
        end_ns=table["end_ns"],
        device_id=device_ids(table),
        stream_id=first_told(table["stream"], table["tid"]),
        correlation_id=table["correlation"],
        process_gid=np.full(len(table), process_gid),
    )


def device_ids(table: Table) -> IntArray:
    """CUDA ordinal: the argument, for copies between GPUs the one that copies, else the row's
    process.
    """
    return first_told(table["device"], table["in_device"], table["pid"])


_LOW_24 = 0xFFFFFF
_HOST_TABLES = (schema.CALLS, schema.ANNOTATIONS, schema.OPERATORS)


class Threads:
    """Packed ids of the trace's threads: process in 24 bits, thread in 24.

    Thread ids of some rows are pthread handles, longer or negative: the threads of a process that
    has such are numbered in the order of their ids instead.
    """

    def __init__(self, tables: Mapping[str, Table]) -> None:
        on_threads = (*_HOST_TABLES, schema.FRAMES, schema.OVERHEADS)
        pids, tids = _ids(*(tables[name] for name in on_threads))
        self._numbered = dict[int, IntArray]()
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
        is_told = (pids != NULL) & (tids != NULL)
        return np.where(is_told, np.where(is_told, pids, 0) << 24 | (tids & _LOW_24), NULL)


def processes(tables: Mapping[str, Table], threads: Threads) -> list[int]:
    """Packed processes of the host: those that make CUDA calls, else all with ranges."""
    for names in ((schema.CALLS,), _HOST_TABLES):
        gids = threads.of(*(tables[name] for name in names))
        if len(host_gids := distinct(gids[gids != NULL] & PROCESS_BITS)):
            return host_gids.tolist()
    return []


def timed(tables: Mapping[str, Table]) -> tuple[dict[str, Table], int]:
    """Host tables without the rows that lack a time, and how many those were."""
    names = (*_HOST_TABLES, schema.FRAMES, schema.OVERHEADS, schema.SYNCS)
    return _rows_with(tables, names, itemgetter("end_ns"))


def calls(events: Table, threads: Threads) -> tuple[Calls, Texts]:
    """CUDA runtime and driver calls, and their names."""
    name, texts = events.texts["name"]
    return Calls(*span_ns(events), threads.of(events), events["correlation"], name), texts


def ranges(events: Table, threads: Threads) -> tuple[Ranges, Texts]:
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
    pids = np.concatenate([*map(itemgetter("pid"), events)])
    tids = np.concatenate([*map(itemgetter("tid"), events)])
    return np.where(pids < 0, NULL, pids & _LOW_24), tids


def memory_use(events: Table, threads: Threads) -> MemoryUse | None:
    """What the allocator had reserved on each GPU whenever it handed memory out or took it back.

    Memory that other libraries took, and the driver's own, is not in it. The first releases wrote
    no totals: None, as where nothing was recorded.
    """
    thread, device = threads.of(events), events["memory_device"]
    time_ns, reserved = events["start_ns"], events["total_reserved"]
    is_reserve = (events["memory_device_type"] == schema.CUDA_DEVICE) & (reserved >= 0)
    rows = np.flatnonzero(is_reserve & (time_ns != NULL) & (thread != NULL) & (device != NULL))
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
        is_unmatched=none_of(len(rows)),
        correlation_id=np.full(len(rows), NULL),
        is_sum=False,
    )


def synchronisations(events: Table, process_gid: int) -> Syncs:
    """Waits of streams and of the host.

    `event_sync_id` is the correlation id of the record that is waited for, as the profiler looked
    it up by context and event. Its first releases took the last record they had read, which can be
    later than the wait and then cannot be meant: NULL.
    """
    return Syncs(
        *span_ns(events),
        process_gid=np.full(len(events), process_gid),
        context_id=events["context"],
        stream_id=_stream(events["stream"]),
        event_id=events["wait_on_cuda_event_id"],
        event_sync_id=_record_waited_for(events),
        correlation_id=events["correlation"],
    )


def event_records(recorded: Table, syncs: Table, process_gid: int) -> EventRecords:
    """Records of events: those in the trace, and those that only a wait tells of, once each.

    `event_sync_id` is the record's correlation id, unique in its process.
    """
    own, waited = recorded["correlation"], _record_waited_for(syncs)
    order = order_of(waited)
    new = order[begins(waited[order])]
    new = new[(waited[new] != NULL) & ~np.isin(waited[new], own)]
    correlation = np.concatenate((own, waited[new]))
    return EventRecords(
        process_gid=np.full(len(correlation), process_gid),
        context_id=np.concatenate((recorded["context"], syncs["context"][new])),
        stream_id=np.concatenate(
            (_stream(recorded["stream"]), _stream(syncs["wait_on_stream"])[new])
        ),
        event_id=np.concatenate((recorded["event_id"], syncs["wait_on_cuda_event_id"][new])),
        event_sync_id=correlation.copy(),
        correlation_id=correlation,
    )


def _record_waited_for(syncs: Table) -> IntArray:
    record, own = syncs["wait_on_cuda_event_record_corr_id"], syncs["correlation"]
    return np.where((record > 0) & (record < own), record, NULL)


def _stream(stream: IntArray) -> IntArray:
    """A stream, NULL where none is meant: CUPTI's 2**32 - 1, or -1 as the profiler writes it."""
    return np.where((stream == -1) | (stream == 0xFFFFFFFF), NULL, stream)
