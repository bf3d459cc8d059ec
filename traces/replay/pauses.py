"""What the host did in the pauses between CUDA calls, where ranges or the profiler's own rows say so."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.account.cpu_optimizer import cpu_optimizer
from traces.account.data_pauses import data_pauses
from traces.account.host_calls import HostCalls
from traces.columns import BoolArray, HostSpans, IntArray, Ranges, distinct
from traces.intervals import Spans, covered_ns, union
from traces.names.host_ranges import HOST_RANGES, cause_of_range
from traces.timeline import RankTimeline

_BATCH: Final = "data_pause"
"""Waits for the next batch that no range names; they count as `data`."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """Parts of the pause before each call, in ns, by what took it, shape (m,) each; the rest is Python's.

    An instant counts once: as the profiler's own work, else by the strongest range that names it, else as the
    optimizer's on the CPU, else an OS call. `profiler_in_call_ns`: the profiler's own work within each call.
    `longest_gc_ns`: the longest collection, be it in a step that is replayed or not.
    """

    profiler_ns: IntArray
    named_ns: Mapping[str, IntArray]
    profiler_in_call_ns: IntArray
    longest_gc_ns: int

    @property
    def said_ns(self) -> IntArray:
        """The part of each pause, shape (m,), that something other than Python took."""
        return self.profiler_ns + sum(self.named_ns.values(), np.zeros_like(self.profiler_ns))


def measure_pauses(rank: RankTimeline, calls: HostCalls) -> Pauses:
    """Split the pauses of a rank's calls."""
    columns = rank.columns
    nothing = np.zeros(0, dtype=np.bool_)
    layers: dict[str, tuple[HostSpans | Ranges, BoolArray]] = {
        "profiler": (columns.overheads, nothing),
    }
    for cause in reversed(HOST_RANGES):
        layers[cause] = columns.ranges, _named(columns.range_texts, cause)
        if cause == "data":
            layers[_BATCH] = data_pauses(rank), nothing
    layers |= {
        "cpu_optimizer": (cpu_optimizer(rank), nothing),
        "os_wait": (columns.os_calls, nothing),
    }
    recorded = {what: layer for what, layer in layers.items() if _any(*layer)}
    # what was not recorded takes no memory
    nowhere = np.broadcast_to(np.zeros(1, dtype=np.int64), len(calls))
    parts = dict.fromkeys(layers, nowhere) | {what: nowhere.copy() for what in recorded}
    within = nowhere.copy() if "profiler" in recorded else nowhere
    for thread in distinct(calls.thread).tolist():
        mine = np.flatnonzero(calls.thread == thread)
        start, end = calls.start_ns[mine] - calls.pause_ns[mine], calls.start_ns[mine]
        seen, so_far = np.zeros(len(mine), dtype=np.int64), [np.empty((2, 0), dtype=np.int64)]
        for what, (spans, named) in recorded.items():
            so_far.append(_times(spans, named, thread))
            covered = covered_ns(start, end, _union(so_far))
            parts[what][mine] = covered - seen
            seen = covered
        if "profiler" in recorded:
            profiler = union(*_times(columns.overheads, nothing, thread))
            within[mine] = covered_ns(calls.start_ns[mine], calls.end_ns[mine], profiler)
    parts["data"] = parts["data"] + parts.pop(_BATCH)
    return Pauses(parts.pop("profiler"), parts, within, int(parts["gc"].max(initial=0)))


def _named(texts: tuple[str, ...], cause: str) -> BoolArray:
    """Which texts name a cause; one more at the end for a range without text (-1)."""
    return np.array([*(cause_of_range(text) == cause for text in texts), False], dtype=np.bool_)


def _any(spans: HostSpans | Ranges, named: BoolArray) -> bool:
    return bool(named.any()) if isinstance(spans, Ranges) else bool(len(spans))


def _times(spans: HostSpans | Ranges, named: BoolArray, thread: int) -> IntArray:
    """Starts and ends, shape (2, k), of a thread's spans; of ranges only those that are named."""
    mine = spans.thread_gid == thread
    if isinstance(spans, Ranges):
        mine &= named[spans.text]
    return np.stack((spans.start_ns[mine], spans.end_ns[mine]))


def _union(times: list[IntArray]) -> Spans:
    start_ns, end_ns = np.concatenate(times, axis=1)
    return union(start_ns, end_ns)
