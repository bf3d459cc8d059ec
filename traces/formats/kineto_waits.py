"""What a PyTorch profiler trace says about waiting: events recorded, and who waited for them.

The profiler writes both only where it was asked to (`enable_cuda_sync_events`).
"""

import numpy as np

from traces.columns import NULL, EventRecords, IntArray, Syncs
from traces.formats.kineto_host import span_ns
from traces.formats.kineto_rows import Table


def synchronisations(events: Table, process_gid: int) -> Syncs:
    """Waits of streams and of the host.

    `event_sync_id` is the correlation id of the record that is waited for, as the profiler looked it up by
    context and event. Its first releases took the last record they had read, which can be later than the
    wait and then cannot be meant: NULL.
    """
    return Syncs(
        *span_ns(events),
        process_gid=np.full(len(events), process_gid, dtype=np.int64),
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
    order = np.argsort(waited, kind="stable")
    first = np.concatenate(([True], waited[order][1:] != waited[order][:-1]))[: len(order)]
    new = order[first]
    new = new[(waited[new] != NULL) & ~np.isin(waited[new], own)]
    correlation = np.concatenate((own, waited[new]))
    return EventRecords(
        process_gid=np.full(len(correlation), process_gid, dtype=np.int64),
        context_id=np.concatenate((recorded["context"], syncs["context"][new])),
        stream_id=np.concatenate((_stream(recorded["stream"]), _stream(syncs["wait_on_stream"])[new])),
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
