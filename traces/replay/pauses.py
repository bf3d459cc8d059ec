"""What the host did in the pauses between CUDA calls, where ranges or the profiler's own rows say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from traces.account.host_calls import HostCalls
from traces.columns import BoolArray, HostSpans, IntArray, Ranges, distinct
from traces.intervals import Spans, covered_ns, union
from traces.names.host_ranges import is_collector_name, is_loader_name
from traces.timeline import RankTimeline


@dataclass(frozen=True, slots=True)
class Pauses:
    """Parts of the pause before each call, shape (m,) each, in ns; the rest of a pause is Python's.

    An instant counts once: as the profiler's own work, else collection, else loading, else an OS call.
    `profiler_in_call_ns` is the profiler's own work within each call.
    """

    profiler_ns: IntArray
    gc_ns: IntArray
    data_ns: IntArray
    os_wait_ns: IntArray
    profiler_in_call_ns: IntArray

    @property
    def said_ns(self) -> IntArray:
        """The part of each pause, shape (m,), that something other than Python took."""
        return self.profiler_ns + self.gc_ns + self.data_ns + self.os_wait_ns


def measure_pauses(rank: RankTimeline, calls: HostCalls) -> Pauses:
    """Split the pauses of a rank's calls."""
    columns = rank.columns
    everything = np.ones(len(columns.range_texts) + 1, dtype=np.bool_)
    layers: tuple[tuple[HostSpans | Ranges, BoolArray], ...] = (
        (columns.overheads, everything[:0]),
        (columns.ranges, _named(columns.range_texts, is_collector_name)),
        (columns.ranges, _named(columns.range_texts, is_loader_name)),
        (columns.os_calls, everything[:0]),
    )
    parts = [np.zeros(len(calls), dtype=np.int64) for _ in layers]
    within = np.zeros(len(calls), dtype=np.int64)
    for thread in distinct(calls.thread).tolist():
        mine = np.flatnonzero(calls.thread == thread)
        start, end = calls.start_ns[mine] - calls.pause_ns[mine], calls.start_ns[mine]
        seen, so_far = np.zeros(len(mine), dtype=np.int64), [np.empty((2, 0), dtype=np.int64)]
        for part, (spans, named) in zip(parts, layers, strict=True):
            so_far.append(_times(spans, named, thread))
            covered = covered_ns(start, end, _union(so_far))
            part[mine] = covered - seen
            seen = covered
        profiler = union(*_times(columns.overheads, everything[:0], thread))
        within[mine] = covered_ns(calls.start_ns[mine], calls.end_ns[mine], profiler)
    parts.append(within)
    return Pauses(*parts)


def _named(texts: tuple[str, ...], says: Callable[[str], bool]) -> BoolArray:
    """Which texts are of a kind; one more at the end for a range without text (-1)."""
    return np.array([*map(says, texts), False], dtype=np.bool_)


def _times(spans: HostSpans | Ranges, named: BoolArray, thread: int) -> IntArray:
    """Starts and ends, shape (2, k), of a thread's spans; of ranges only those that are named."""
    mine = spans.thread_gid == thread
    if isinstance(spans, Ranges):
        mine &= named[spans.text]
    return np.stack((spans.start_ns[mine], spans.end_ns[mine]))


def _union(times: list[IntArray]) -> Spans:
    start_ns, end_ns = np.concatenate(times, axis=1)
    return union(start_ns, end_ns)
