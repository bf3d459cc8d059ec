"""What a PyTorch profiler trace says about waiting: events recorded, and who waited for them.

The profiler writes both only where it was asked to (`enable_cuda_sync_events`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traces.columns import NULL, EventRecords, IntArray, Syncs
from traces.formats.kineto_host import span_ns
from traces.formats.kineto_json import Event
from traces.formats.kineto_values import argument, arguments


def synchronisations(events: Sequence[Event], process_gid: int) -> Syncs:
    """Waits of streams and of the host.

    `event_sync_id` is the correlation id of the record that is waited for, as the profiler looked it up by
    context and event. Its first releases took the last record they had read, which can be later than the
    wait and then cannot be meant: NULL.
    """
    given = arguments(events)
    return Syncs(
        *span_ns(events),
        process_gid=np.full(len(events), process_gid, dtype=np.int64),
        context_id=argument(given, "context"),
        stream_id=_stream(given, "stream"),
        event_id=argument(given, "wait_on_cuda_event_id"),
        event_sync_id=_record_waited_for(given),
        correlation_id=argument(given, "correlation"),
    )


def event_records(recorded: Sequence[Event], syncs: Sequence[Event], process_gid: int) -> EventRecords:
    """Records of events: those in the trace, and those that only a wait tells of, once each.

    `event_sync_id` is the record's correlation id, unique in its process.
    """
    given, waits = arguments(recorded), arguments(syncs)
    own, waited = argument(given, "correlation"), _record_waited_for(waits)
    order = np.argsort(waited, kind="stable")
    first = np.concatenate(([True], waited[order][1:] != waited[order][:-1]))[: len(order)]
    new = order[first]
    new = new[(waited[new] != NULL) & ~np.isin(waited[new], own)]
    correlation = np.concatenate((own, waited[new]))
    return EventRecords(
        process_gid=np.full(len(correlation), process_gid, dtype=np.int64),
        context_id=np.concatenate((argument(given, "context"), argument(waits, "context")[new])),
        stream_id=np.concatenate((_stream(given, "stream"), _stream(waits, "wait_on_stream")[new])),
        event_id=np.concatenate((argument(given, "event_id"), argument(waits, "wait_on_cuda_event_id")[new])),
        event_sync_id=correlation.copy(),
        correlation_id=correlation,
    )


def _record_waited_for(given: Sequence[Event]) -> IntArray:
    record, own = argument(given, "wait_on_cuda_event_record_corr_id"), argument(given, "correlation")
    return np.where((record > 0) & (record < own), record, NULL)


def _stream(given: Sequence[Event], key: str) -> IntArray:
    """A stream, NULL where none is meant: CUPTI's 2**32 - 1, or -1 as the profiler writes it."""
    stream = argument(given, key)
    return np.where((stream == -1) | (stream == 0xFFFFFFFF), NULL, stream)
