"""Real recordings of several ranks read a second time: plain SQL or JSON and numpy, nothing of the program.

What was argued from these figures stands in `tests/data/real_ranks.toml`. Communication is every kernel with
`nccl` in its name, which is all there is in these recordings; calls match by their order and kind.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from tests.by_definition.real_recordings import Document, Ints, events_of, sql

WAITS = frozenset({"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMemcpyAsync"})
"""Calls of the CUDA runtime in which a host waits for its GPU; of copies, those that block."""

_KIND = re.compile(r"nccl(?:Dev)?Kernel_([A-Za-z]+)")
_PID = "(globalPid >> 24) & 16777215"
_TID_PID = "(globalTid >> 24) & 16777215"
_KERNELS = f"""
SELECT k.start, k.end, s.value, r.start, r.end FROM CUPTI_ACTIVITY_KIND_KERNEL k
JOIN StringIds s ON s.id = k.demangledName
LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
    ON r.correlationId = k.correlationId AND (r.globalTid >> 24) = (k.globalPid >> 24)
WHERE {_PID} = ? ORDER BY k.start
"""


@dataclass(frozen=True)
class Kernel:
    """A kernel on the GPU, and when the host called for it; None where no call was recorded."""

    start: int
    end: int
    name: str
    call: int | None

    @property
    def kind(self) -> str | None:
        """The operation of a communication kernel, None of others."""
        found = _KIND.match(self.name)
        return found[1] if found else None


@dataclass(frozen=True)
class Calls:
    """Matched calls of one group: nanoseconds in arrays of shape (ranks, calls), and each call's kind."""

    start: Ints
    end: Ints
    kinds: tuple[str, ...]

    @property
    def length(self) -> Ints:
        return self.end - self.start

    @property
    def transfer(self) -> Ints:
        """Of each call, the time of the rank that waited least."""
        least: Ints = self.length.min(axis=0)
        return least

    @property
    def wait(self) -> Ints:
        return self.length - self.transfer

    @property
    def late(self) -> Ints:
        """The place of the rank that waited least: it came last. Needs no common clock."""
        shortest: Ints = self.length.argmin(axis=0)
        return shortest

    @property
    def last(self) -> Ints:
        """The place of the rank that started last, by the recorded clocks."""
        latest: Ints = self.start.argmax(axis=0)
        return latest

    @property
    def charged(self) -> Ints:
        """What all others waited, added up by the rank that was late."""
        return np.array([self.wait[:, self.late == rank].sum() for rank in range(len(self.start))])

    @property
    def ends_spread(self) -> Ints:
        """How far apart the ranks' ends of each call lie: clocks and the ways out of a call together."""
        spread: Ints = self.end.max(axis=0) - self.end.min(axis=0)
        return spread


def matched(ranks: Sequence[Sequence[Kernel]]) -> Calls:
    """The n-th call of each rank; every rank must have the same kinds in the same order."""
    rows = [[kernel for kernel in rank if kernel.kind] for rank in ranks]
    kinds = {tuple(str(kernel.kind) for kernel in row) for row in rows}
    assert len(kinds) == 1, "calls of the ranks do not match by order"
    start = np.array([[kernel.start for kernel in row] for row in rows], dtype=np.int64)
    end = np.array([[kernel.end for kernel in row] for row in rows], dtype=np.int64)
    return Calls(start, end, kinds.pop())


def kernels_of_events(events: Sequence[Document]) -> list[Kernel]:
    """The kernels of a profiler's events in order of start."""
    calls = _calls(events)
    kernels = [
        Kernel(event["start"], event["end"], event["name"], _start(calls.get(event["args"]["correlation"])))
        for event in events
        if event["cat"] == "kernel"
    ]
    return sorted(kernels, key=lambda kernel: kernel.start)


def kernels_of_export(path: Path, pid: int) -> list[Kernel]:
    """The kernels of one process of an export in order of start."""
    return [Kernel(start, end, name, call) for start, end, name, call, _ in sql(path, _KERNELS, pid)]


def _calls(events: Sequence[Document]) -> dict[int, Document]:
    return {
        event["args"]["correlation"]: event
        for event in events
        if event["cat"] == "cuda_runtime" and "correlation" in event["args"]
    }


def _start(call: Document | None) -> int | None:
    return None if call is None else int(call["start"])


def between_calls(kernels: Sequence[Kernel]) -> Ints:
    """What the compute kernels before each communication call took, since the call before it."""
    total, sums = 0, []
    for kernel in kernels:
        if kernel.kind:
            sums.append(total)
            total = 0
        else:
            total += kernel.end - kernel.start
    return np.array(sums)


def step_begin(events: Sequence[Document]) -> int:
    """When the host began the first step of a profiler's events."""
    return next(
        int(event["start"])
        for event in events
        if event["name"].startswith("ProfilerStep") and event["cat"] == "user_annotation"
    )


def own_host_ns(events: Sequence[Document]) -> Ints:
    """The host's time without waits: to the call of the first communication kernel, then to each next one."""
    waits = [event for event in events if event["cat"] == "cuda_runtime" and event["name"] in WAITS]
    calls = [kernel.call for kernel in kernels_of_events(events) if kernel.kind]
    assert None not in calls, "each communication kernel has its call"
    moments = [step_begin(events), *(call for call in calls if call is not None)]
    return np.array(
        [
            until - since - sum(one["end"] - one["start"] for one in waits if since <= one["start"] < until)
            for since, until in pairwise(moments)
        ]
    )


def exchanged_elements(events: Sequence[Document]) -> list[tuple[int, int]]:
    """What each all-to-all brings a rank and takes from it, in order of its call: output, then input."""
    calls = (event for event in events if event["name"] == "c10d::alltoall_base_")
    return [
        (event["args"]["Input Dims"][0][0], event["args"]["Input Dims"][1][0])
        for event in sorted(calls, key=lambda event: int(event["start"]))
    ]


def head(path: Path) -> Document:
    """What a profiler's file says of itself, without its events."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        read: Document = json.load(file)
    return {key: value for key, value in read.items() if key != "traceEvents"}


def kineto_window_ns(path: Path) -> tuple[int, int] | None:
    """First and last moment of a profiler's file since 1970; None where its times have no such base."""
    events = events_of(path)
    base = head(path).get("baseTimeNanoseconds", 0)
    first = base + min(event["start"] for event in events)
    last = base + max(event["end"] for event in events)
    return (first, last) if first > 10**18 else None


def export_window_ns(path: Path) -> tuple[int, int] | None:
    """An upper bound of when an export was recorded since 1970: its session's start to the last kernel."""
    [(begin,)] = sql(path, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")
    there = {name for (name,) in sql(path, "SELECT name FROM sqlite_master")}
    if "CUPTI_ACTIVITY_KIND_KERNEL" not in there:
        return begin, begin
    [(last,)] = sql(path, "SELECT max(end) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    return begin, begin + last


def processes_of_export(path: Path) -> list[tuple[int, int, int]]:
    """(process, device, kernels) of an export."""
    return sql(path, f"SELECT {_PID}, deviceId, count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL GROUP BY 1, 2")


def ranges_of(path: Path, pid: int, pattern: str) -> list[tuple[int, int, str]]:
    """NVTX ranges of a process whose text is LIKE the pattern, in order of start."""
    text = "coalesce(e.text, s.value)"
    query = (
        f"SELECT e.start, e.end, {text} FROM NVTX_EVENTS e LEFT JOIN StringIds s ON s.id = e.textId "
        f"WHERE {_TID_PID} = ? AND e.end IS NOT NULL AND {text} LIKE ? ORDER BY e.start"
    )
    return sql(path, query, pid, pattern)


def operations_of(path: Path, pid: int) -> dict[tuple[str, int], int]:
    """Name and autograd's sequence number -> length, of PyTorch's operations that have one."""
    found = {}
    for start, end, text in ranges_of(path, pid, "%, seq = %, op_id = %"):
        name, rest = text.split(", seq = ", 1)
        found[name, int(rest.split(",", 1)[0])] = end - start
    return found


def operations_of_both(path: Path, pids: tuple[int, int]) -> Ints:
    """The lengths of operations that both processes have, shape (2, operations)."""
    one, other = (operations_of(path, pid) for pid in pids)
    return np.array([(one[key], other[key]) for key in one if key in other]).T


def from_wait_to_launch_ns(path: Path, pid: int) -> dict[int, int]:
    """Number of a communication call -> the host's time to its launch since it last waited for the stream.

    Only where it waited since the call before: other calls are launched long before the GPU gets to them.
    """
    calls = [kernel.call for kernel in kernels_of_export(path, pid) if kernel.kind]
    waits = sql(
        path,
        "SELECT r.end FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId "
        f"WHERE {_TID_PID} = ? AND s.value LIKE 'cudaStreamSynchronize%' ORDER BY r.end",
        pid,
    )
    ends = np.array([end for (end,) in waits])
    found = {}
    for place, (before, call) in enumerate(pairwise(calls), start=1):
        between = ends[(ends > (before or 0)) & (ends <= (call or 0))]
        if call is not None and len(between):
            found[place] = int(call - between[-1])
    return found


def profiler_ns(path: Path, pid: int, since: int, until: int) -> int:
    """How long the profiler held up a process, by what it says of itself."""
    query = f"SELECT start, end FROM PROFILER_OVERHEAD WHERE {_TID_PID} = ? AND start >= ? AND end <= ?"
    return sum(end - start for start, end in sql(path, query, pid, since, until))
