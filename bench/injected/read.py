"""What rows does a Kineto recording hold, on which thread and stream, and which stretches are its steps?"""

from __future__ import annotations

import gzip
import json
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

Event = dict[str, Any]
Key = tuple[str, str]

GPU: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
CALLS: Final = frozenset({"cuda_runtime", "cuda_driver", "runtime"})
NO_HOST: Final = frozenset({"gpu_user_annotation", "trace", "overhead", "cuda_sync", "cuda_profiler_range"})
COMMUNICATION: Final = re.compile(r"nccl|rccl", re.I)
COPY: Final = re.compile(r"^mem(cpy|set)", re.I)
COVERED_FRAC: Final = 0.5
"""Ranges are steps if they hold so much of what is launched."""
SMALL_US: Final = 1e9
MOST_BYTES: Final = 40_000_000
FEWEST_STEPS: Final = 3
FIRST_FRAC: Final = 0.1
"""What lies before the first end of a step is a step, if it launches as much as the next, give or take."""


@dataclass(frozen=True, slots=True)
class Row:
    """One event with its times in ns; `place` is its thread (process, thread) or stream (device, stream)."""

    index: int
    name: str
    start: int
    end: int
    place: Key
    correlation: int | None


@dataclass
class Recording:
    """The document as it is, and its rows by what they are."""

    document: Event
    events: list[Event]
    whole_us: bool
    calls: list[Row] = field(default_factory=list)
    gpu: list[Row] = field(default_factory=list)
    host: dict[Key, list[Row]] = field(default_factory=dict)
    on_gpu: dict[Key, list[Row]] = field(default_factory=dict)
    elsewhere: list[Row] = field(default_factory=list)

    @cached_property
    def call_of(self) -> dict[int, Row]:
        """The call that launched each GPU row, by the row's index."""
        called = {call.correlation: call for call in self.calls}
        return {row.index: called[row.correlation] for row in self.gpu if row.correlation in called}

    @cached_property
    def work_of(self) -> dict[int, list[Row]]:
        """The GPU rows of each call, by the call's index."""
        found: dict[int, list[Row]] = defaultdict(list)
        for row in self.gpu:
            if row.index in self.call_of:
                found[self.call_of[row.index].index].append(row)
        return found

    @cached_property
    def main(self) -> Key:
        """The thread outside autograd that launches most."""
        rows = Counter(call.place for call in self.call_of.values())
        backward = self.backward
        return max(rows, key=lambda place: (place != backward, rows[place]))

    @cached_property
    def backward(self) -> Key | None:
        """Autograd's thread, by the names of its operators."""
        rows = Counter(
            place
            for place, all_rows in self.host.items()
            for row in all_rows
            if row.name.startswith(("autograd::engine::evaluate_function", "torch::autograd::AccumulateGrad"))
        )
        return rows.most_common(1)[0][0] if rows else None


def to_ns(time: float) -> int:
    """Microseconds as written, as nanoseconds: by their digits, as a product may round to a neighbour."""
    if isinstance(time, int):
        return time * 1000
    if abs(time) < SMALL_US:
        return round(time * 1000)
    whole, _, part = repr(time).partition(".")
    return int(whole) * 1000 + int(part[:3].ljust(3, "0"))


def to_us(time_ns: int, like: float) -> float:
    """Nanoseconds as this file writes them: whole microseconds, where it has those, stay whole."""
    return time_ns // 1000 if isinstance(like, int) and time_ns % 1000 == 0 else time_ns / 1000


def load(path: Path) -> Recording:
    """Read a recording from its file."""
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        raise ValueError("no Kineto document")
    return read(document)


def read(document: Event) -> Recording:
    """Sort the events of a document by what they are."""
    events: list[Event] = document["traceEvents"]
    whole = all(isinstance(one.get("ts", 0), int) and isinstance(one.get("dur", 0), int) for one in events)
    found = Recording(document, events, whole)
    rows = [
        (one, _row(index, one)) for index, one in enumerate(events) if "ts" in one and one.get("ph") != "M"
    ]
    found.gpu = [row for one, row in rows if _is(one, GPU)]
    numbers = {row.correlation for row in found.gpu} - {None}
    found.calls = [row for one, row in rows if _is(one, CALLS)]
    threads = {row.place for row in found.calls if row.correlation in numbers}
    on_gpu, host = defaultdict(list), defaultdict(list)
    for one, row in rows:
        if _is(one, GPU):
            on_gpu[row.place].append(row)
        elif row.place in threads and str(one.get("cat")).lower() not in NO_HOST:
            host[row.place].append(row)
        else:
            found.elsewhere.append(row)
    found.host, found.on_gpu = dict(host), dict(on_gpu)
    for stream in found.on_gpu.values():
        stream.sort(key=lambda row: (row.start, row.end, row.index))
    found.calls.sort(key=lambda row: (row.start, row.end, row.index))
    return found


def _is(event: Event, kinds: frozenset[str]) -> bool:
    return event.get("ph") == "X" and str(event.get("cat")).lower() in kinds


def _row(index: int, event: Event) -> Row:
    args = event.get("args") or {}
    start = to_ns(event["ts"])
    place = (str(event.get("pid")), str(event.get("tid")))
    if _is(event, GPU):
        place = (str(args.get("device", place[0])), str(args.get("stream", place[1])))
    number = args.get("correlation", event.get("id") if event.get("ph") in ("s", "f") else None)
    end = start + to_ns(event.get("dur", 0)) if event.get("ph") == "X" else start
    return Row(index, str(event.get("name")), start, end, place, number if isinstance(number, int) else None)


@dataclass(frozen=True)
class Steps:
    """Which GPU rows are of which step, by index, in order of their start; `by` says what told the steps."""

    by: str
    rows: list[list[int]]
    calls: list[list[Row]]


def steps_of(recording: Recording) -> Steps:
    """Steps by ProfilerStep# ranges, else by ends of Optimizer.step, else by the outermost repeated range.

    A step begins with the first GPU row that its calls launch; the last ends with the last row it launches.
    """
    by, borders = _borders(recording)
    launching = [call for call in recording.calls if call.index in recording.work_of]
    starts = [call.start for call in launching]
    cut = [bisect_left(starts, border) for border in borders]
    calls = [launching[first:last] for first, last in pairwise(cut) if last > first]
    if borders[0] == 0 and len(calls) > 1 and abs(len(calls[0]) / len(calls[1]) - 1) > FIRST_FRAC:
        del calls[0]
    if sum(map(len, calls)) < COVERED_FRAC * len(launching):
        raise ValueError("ranges hold too little to be steps")
    rows = [[row for call in step for row in recording.work_of[call.index]] for step in calls]
    return Steps(by, [[row.index for row in sorted(step, key=lambda row: row.start)] for step in rows], calls)


def _borders(recording: Recording) -> tuple[str, list[int]]:
    """The times of the host between which steps lie."""
    ranges: dict[str, list[Row]] = defaultdict(list)
    for row in recording.host.get(recording.main, ()):
        kind = str(recording.events[row.index].get("cat")).lower()
        if row.name.startswith("ProfilerStep#"):
            ranges["ProfilerStep#"].append(row)
        elif kind == "user_annotation" and not COMMUNICATION.match(row.name):
            ranges[row.name].append(row)
    often = {
        name: sorted(rows, key=lambda r: r.start)
        for name, rows in ranges.items()
        if len(rows) >= FEWEST_STEPS
    }
    if steps := often.get("ProfilerStep#"):
        return "ProfilerStep#", [*(row.start for row in steps), steps[-1].end]
    if name := next((name for name in often if name.startswith("Optimizer.step")), None):
        return name, [0, *(row.end for row in often[name])]
    if not often:
        raise ValueError("no steps")
    name = max(often, key=lambda name: sum(row.end - row.start for row in often[name]))
    return name, [*(row.start for row in often[name]), often[name][-1].end]


def recordings(folders: list[Path]) -> Iterator[tuple[Path, Recording, Steps]]:
    """Every recording of these files and folders that can be edited: not too large, with steps, launches."""
    paths = [path for one in folders for path in ([one] if one.is_file() else sorted(one.rglob("*")))]
    for path in paths:
        if not path.name.endswith((".json", ".json.gz")) or path.stat().st_size > MOST_BYTES:
            continue
        try:
            found = load(path)
            if found.call_of:
                steps = steps_of(found)
                if len(steps.rows) >= FEWEST_STEPS:
                    yield path, found, steps
        except (ValueError, KeyError, TypeError):
            continue


def is_compute(row: Row) -> bool:
    """Is it a kernel that computes: no copy and no collective?"""
    return not COPY.match(row.name) and not COMMUNICATION.search(row.name)
