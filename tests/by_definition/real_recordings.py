"""Real recordings read and added up a second time: plain SQL or JSON and numpy, nothing of the program.

`agrees` and its like compare a finished document with what is added up here.

Communication is every kernel with `nccl` in its name, which is all there is in these recordings.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, fields
from decimal import Decimal
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Document = dict[str, Any]
Ints = NDArray[np.int64]
COMPUTE, COMM, COPY = range(3)
NEVER = -1
WORK = """
SELECT g.start, g.end, g.what, g.streamId, min(r.start), min(r.end) FROM ({tables}) g
LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
    ON r.correlationId = g.correlationId AND (r.globalTid >> 24) = (g.globalPid >> 24)
WHERE (g.globalPid >> 24 & 16777215) = ? GROUP BY g.row, g.source
"""


@dataclass(frozen=True)
class Work:
    """All GPU work of one process in order of start, arrays of shape (n,); calls -1 where not recorded."""

    start: Ints
    end: Ints
    what: Ints
    stream: Ints
    call: Ints
    call_end: Ints

    @property
    def whole(self) -> list[tuple[int, int]]:
        return [(int(self.start.min()), int(self.end.max()))]


def sql(path: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute(query, values).fetchall()


def work_of_export(path: Path, pid: int) -> Work:
    there = {name for (name,) in sql(path, "SELECT name FROM sqlite_master")}
    kernel_what = f"CASE WHEN s.value LIKE '%nccl%' THEN {COMM} ELSE {COMPUTE} END"
    columns = "g.rowid row, g.start, g.end, g.streamId, g.correlationId, g.globalPid"
    tables = [
        f"SELECT 0 source, {kernel_what} what, {columns} FROM CUPTI_ACTIVITY_KIND_KERNEL g "
        "LEFT JOIN StringIds s ON s.id = g.demangledName"
    ]
    for place, table in enumerate(("MEMCPY", "MEMSET"), start=1):
        if f"CUPTI_ACTIVITY_KIND_{table}" in there:
            tables.append(f"SELECT {place}, {COPY}, {columns} FROM CUPTI_ACTIVITY_KIND_{table} g")
    return in_order(sql(path, WORK.format(tables=" UNION ALL ".join(tables)), pid))


def events_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        read = json.load(file, parse_float=Decimal)["traceEvents"]
    events = [event for event in read if event.get("ph") == "X"]
    for event in events:
        event["start"], length = int(Decimal(event["ts"]) * 1000), int(Decimal(event["dur"]) * 1000)
        event["end"] = event["start"] + length
    return events


def work_of_events(events: list[dict[str, Any]]) -> Work:
    calls = {
        event["args"]["correlation"]: event
        for event in events
        if event["cat"] in ("cuda_runtime", "cuda_driver") and "correlation" in event["args"]
    }
    unknown = {"start": NEVER, "end": NEVER}
    rows = []
    for event in events:
        if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
            is_kernel = event["cat"] == "kernel"
            what = COPY if not is_kernel else COMM if "nccl" in event["name"] else COMPUTE
            call = calls.get(event["args"]["correlation"], unknown)
            times = event["start"], event["end"], what, event["args"]["stream"], call["start"], call["end"]
            rows.append(times)
    return in_order(rows)


def union_ns(events: list[dict[str, Any]]) -> int:
    """How long any of them ran."""
    total, until = 0, 0
    for event in sorted(events, key=lambda event: int(event["start"])):
        total += max(0, event["end"] - max(event["start"], until))
        until = max(until, event["end"])
    return total


def in_order(rows: list[tuple[Any, ...]]) -> Work:
    table = np.array([[NEVER if cell is None else cell for cell in row] for row in rows], dtype=np.int64)
    return Work(*table[np.lexsort((table[:, 3], table[:, 0]))].T)


def running(start: Ints, end: Ints, moments: Ints) -> NDArray[np.bool_]:
    """Whether anything runs from each moment to the next, no piece of work beginning or ending between."""
    begun = np.searchsorted(np.sort(start), moments, side="right")
    over = np.searchsorted(np.sort(end), moments, side="right")
    result: NDArray[np.bool_] = begun > over
    return result


def budget(work: Work, windows: list[tuple[int, int]]) -> dict[str, int]:
    """The nanoseconds of the windows by the first of compute, communication, copies that runs."""
    cuts = np.unique(np.concatenate((work.start, work.end, np.array(windows, dtype=np.int64).ravel())))
    moments, length = cuts[:-1], np.diff(cuts)
    left = np.zeros(len(moments), dtype=np.bool_)
    for begin, end in windows:
        left |= (moments >= begin) & (moments < end)
    found = {"window": int(length[left].sum())}
    for name, what in (("compute", COMPUTE), ("exposed_comm", COMM), ("exposed_copy", COPY)):
        now = left & running(work.start[work.what == what], work.end[work.what == what], moments)
        found[name] = int(length[now].sum())
        left &= ~now
    return {**found, "idle": int(length[left].sum())}


def not_launched_ns(work: Work, windows: list[tuple[int, int]]) -> int:
    """How long no compute ran while the launch of the compute that came next had not yet returned.

    That much the program must call launch-starved, or blocking where the host waited for the GPU in it.
    """
    compute = np.flatnonzero((work.what == COMPUTE) & (work.end > work.start))
    start, end = work.start[compute], work.end[compute]
    until = np.concatenate(([start[0]], np.maximum.accumulate(end)[:-1]))
    begin = np.concatenate(([work.start.min()], until[1:]))
    ready = np.where(work.call_end[compute] == NEVER, begin, np.minimum(work.call_end[compute], start))
    total = 0
    for first, last in windows:
        total += int(np.maximum(np.minimum(ready, last) - np.maximum(begin, first), 0).sum())
    return total


def step_windows(work: Work, host: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where host steps begin on the GPU: at their first compute, or when all launched before has ended.

    With nothing before it, a step begins with the first work that it launched. What runs before anything of a
    known launch was launched before the recording.
    """
    moments = np.array([begin for begin, _ in host] + [host[-1][1]])
    borders = []
    launched = np.where(work.call == NEVER, work.start, work.call)
    launched[(work.call == NEVER) & (work.start < work.start[work.call != NEVER].min())] = NEVER
    for moment in moments.tolist():
        before = work.end[launched < moment]
        begins = (work.what == COMPUTE) if len(before) else np.ones(len(launched), dtype=np.bool_)
        compute = work.start[(launched >= moment) & begins]
        candidates = [
            *([int(compute.min())] if len(compute) else []),
            *([int(before.max())] if len(before) else []),
        ]
        borders.append(min(candidates))
    return list(pairwise(borders))


def largest_reason(rank: Document) -> str:
    """The largest entry of the account."""
    flat: dict[str, int] = {}
    for reason, value in rank["absent_ns"].items():
        parts = value if isinstance(value, dict) else {"": value}
        flat |= {f"{reason}.{part}".rstrip("."): ns for part, ns in parts.items()}
    return max(flat, key=lambda reason: flat[reason])


def agrees(rank: Document, work: Work, windows: list[tuple[int, int]]) -> None:
    """Budget, and time before the launch, as added up by hand."""
    assert rank["budget_ns"] == budget(work, windows)
    if rank["absent_ns"] is not None:
        starved = sum(rank["absent_ns"]["launch_starved"].values())
        blocking = sum(rank["absent_ns"]["blocking"].values())
        assert starved <= not_launched_ns(work, windows) <= starved + blocking


def one_window(path: Path, document: Document) -> tuple[Document, Work]:
    """The only rank and the work of a recording that has no steps."""
    (rank,) = document["ranks"]
    is_json = path.name.endswith(".gz")
    work = work_of_events(events_of(path)) if is_json else work_of_export(path, rank["process"])
    assert (rank["steps"]["source"], rank["steps"]["used"]) == ("none", [])
    assert rank["windows_ns"] == [list(work.whole[0])]
    agrees(rank, work, work.whole)
    return rank, work


def stepped(path: Path, document: Document) -> tuple[Document, list[dict[str, Any]]]:
    """The only rank and the events of a recording with profiler steps, which must be its steps."""
    (rank,) = document["ranks"]
    events = events_of(path)
    marks = [e for e in events if e["cat"] == "user_annotation" and e["name"].startswith("ProfilerStep#")]
    host = sorted((mark["start"], mark["end"]) for mark in marks)
    work = work_of_events(events)
    windows = step_windows(work, host)
    assert rank["steps"]["source"] == "nvtx"
    assert [(step["start_ns"], step["end_ns"]) for step in rank["steps"]["used"]] == windows
    assert rank["steps"]["dropped"] == []
    agrees(rank, work, windows)
    return rank, events


def verdict(document: Document) -> tuple[str | None, str | None, str | None, str | None]:
    """The wall, its kind, the bound, and how sure it is."""
    said = document["verdict"]
    return said["wall"], said["kind"], said["bound"], said["confidence"]


def outcomes(document: Document) -> list[str]:
    """Of memory, communication, host overhead, compute, in this order."""
    return [wall["outcome"] for wall in document["walls"]]


def settled(document: Document, wall: str, least_ns: int, most_ns: int) -> None:
    """The cost lies between what it must be at least and at most, which alone settle the outcome."""
    window_ns = sum(rank["budget_ns"]["window"] for rank in document["ranks"])
    window_ns -= document["verdict"]["startup_ns"]
    (found,) = (one for one in document["walls"] if one["id"] == wall)
    assert least_ns <= found["cost_ns"] <= most_ns
    assert found["cost_frac"] == found["cost_ns"] / window_ns
    assert least_ns >= 0.1 * window_ns or most_ns < 0.1 * window_ns
    assert found["outcome"] == ("finding" if least_ns >= 0.1 * window_ns else "clear")


def most_frac(document: Document) -> dict[str, float | None]:
    """The most that each wall can cost by the partition, to a tenth of a point."""
    return {
        one["id"]: None if one["at_most_frac"] is None else round(one["at_most_frac"], 3)
        for one in document["walls"]
    }


def late_ns(work: Work, windows: list[tuple[int, int]]) -> int:
    """How long nothing ran at all before the launch call of what came next had begun."""
    begin = np.maximum.accumulate(np.concatenate((work.start[:1], work.end[:-1])))
    until = np.where(work.call == NEVER, begin, np.minimum(work.call, work.start))
    return sum(
        int(np.maximum(np.minimum(until, last) - np.maximum(begin, first), 0).sum())
        for first, last in windows
    )


def host_bounds_ns(rank: Document, work: Work) -> tuple[int, int]:
    """What a host that takes no time saves of one rank's windows, at least and at most.

    At least the time that nothing ran and nothing was being launched, less allocator calls and the profiler,
    which stay. At most all but the work of the busiest stream, which no host makes shorter.
    """
    windows = [(first, last) for first, last in rank["windows_ns"]]
    busiest = 0
    for stream in set(work.stream.tolist()):
        mine = work.stream == stream
        alone = Work(*(getattr(work, column.name)[mine] for column in fields(work)))
        found = budget(alone, windows)
        busiest = max(busiest, found["window"] - found["idle"])
    stays = sum(rank["absent_ns"]["launch_starved"].get(cause, 0) for cause in ("allocator", "profiler"))
    return late_ns(work, windows) - stays, rank["budget_ns"]["window"] - busiest


def saved_ns(work: Work, gone: NDArray[np.bool_]) -> int:
    """How much sooner the work of one stream ends without the time of some, if the host waits for none of it.

    A host that did wait would only be sooner as well, so this is the least that is saved.
    """
    before = earlier = int(work.start[0])
    for start, end, call, is_gone in zip(
        work.start.tolist(), work.end.tolist(), work.call.tolist(), gone.tolist(), strict=True
    ):
        delay = max(0, start - max(before, call))
        earlier = max(earlier, call) + delay + (0 if is_gone else end - start)
        before = max(before, end)
    return before - earlier


def filling_ns(kernels: list[tuple[int, int]], sm_count: int) -> int:
    """What filled grids save at most: of kernels, (length, blocks) each, those with fewer blocks than SMs."""
    return sum(ns - int(ns * (blocks / sm_count)) for ns, blocks in kernels if blocks < sm_count)


LARGEST = 188
"""SMs of the largest GPU that is sold, an RTX PRO 6000: what bounds a grid where no count is recorded."""


def filling_of_export(path: Path, windows: list[tuple[int, int]], sm_count: int | None = None) -> int:
    """The same of the compute kernels of an export, begun within the windows; by default of its one GPU."""
    if sm_count is None:
        (sm_count,) = sql(path, "SELECT smCount FROM TARGET_INFO_GPU")[0]
    kernels = (
        "SELECT k.end - k.start, k.gridX * k.gridY * k.gridZ FROM CUPTI_ACTIVITY_KIND_KERNEL k "
        "JOIN StringIds s ON s.id = k.demangledName "
        "WHERE s.value NOT LIKE '%nccl%' AND k.end > ? AND k.start < ?"
    )
    return sum(filling_ns(sql(path, kernels, first, last), sm_count) for first, last in windows)


def filling_of_events(events: list[Document], windows: list[tuple[int, int]], sm_count: int) -> int:
    """The same of the compute kernels among a profiler's events."""
    kernels = [
        (event["end"] - event["start"], prod(event["args"]["grid"]))
        for event in events
        if event["cat"] == "kernel"
        and "nccl" not in event["name"]
        and any(event["end"] > first and event["start"] < last for first, last in windows)
    ]
    return filling_ns(kernels, sm_count)


def share(rank: Document, bucket: str) -> float:
    return round(float(rank["budget_frac"][bucket]), 3)
