"""The trace for Perfetto: read by rules of its own, every nanosecond kept, no event lost to an overlap.

Its reader shares nothing with its writer. Rules from Google's "Trace Event Format" (its sections "JSON Object
Format", "Complete Events", "Counter Events", "Flow Events", "Metadata Events";
docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU) and from what Perfetto answers about
it (perfetto.dev/docs/faq: events of a thread nest or lie apart, or are dropped).
Perfetto reads a time as a double, multiplies it by 1000 and cuts off the rest (`CoerceToTs` of its JSON
importer), and drops events before zero; so times are read both exactly and its way, and both must agree.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import diagnoser
from bench.simulate.recording import Recording
from heuristics.result.compared import Compared
from heuristics.result.result import Result
from reports.content.page import Detail
from reports.result.codec import Document, decode
from reports.write.perfetto.analysis import write_perfetto as result_perfetto
from reports.write.perfetto.comparison import write_comparison_perfetto as comparison_perfetto
from reports.write.perfetto.tracks import Slice, microseconds, rows
from tests.doubles.comparison_document import document_of, regression
from tests.places import Export

METADATA = {
    "process_name": "name",
    "thread_name": "name",
    "process_sort_index": "sort_index",
    "thread_sort_index": "sort_index",
}
TOO_MUCH = Decimal("0.25")
"""Of a nanosecond: what a time may lie behind a whole one, so that cut off or rounded it is that one."""


class NotATrace(AssertionError):
    """What is wrong, and with which event."""


@dataclass(frozen=True, slots=True)
class Event:
    """A complete event, in ns from the file's origin."""

    start_ns: int
    end_ns: int
    name: str
    category: str
    args: dict[str, Any]


@dataclass(slots=True)
class Read:
    """Events by process and thread name in order of their sort indexes; points of counters; arrows by id."""

    origin_ns: int
    other: dict[str, Any]
    tracks: dict[str, dict[str, list[Event]]] = field(default_factory=dict)
    counters: dict[str, dict[str, list[tuple[int, dict[str, Decimal]]]]] = field(default_factory=dict)
    arrows: dict[int, tuple[Event, Event]] = field(default_factory=dict)

    def track(self, process: str, thread: str) -> list[Event]:
        """The events of the one track so named in the one process whose name begins so."""
        (found,) = [tracks for name, tracks in self.tracks.items() if name.startswith(process)]
        return found[thread]


def read(text: str) -> Read:
    """The file, every rule checked; raises NotATrace."""
    value = json.loads(text, parse_float=Decimal, parse_constant=_refused)
    _that(value["displayTimeUnit"] in ("ms", "ns"), "times are shown in ms or ns", "displayTimeUnit")
    names: dict[tuple[Any, Any, str], Any] = {}
    threads: dict[tuple[int, int], list[tuple[Event, tuple[int, int]]]] = defaultdict(list)
    counters: dict[int, dict[str, list[tuple[int, dict[str, Decimal]]]]] = defaultdict(dict)
    ends: dict[int, dict[str, tuple[int, int, int]]] = defaultdict(dict)
    for event in value["traceEvents"]:
        _fields(event)
        if event["ph"] == "M":
            key = (event["pid"], event.get("tid"), event["name"])
            _that(key not in names, "a name is given once", event)
            names[key] = event["args"][METADATA[event["name"]]]
        elif event["ph"] == "X":
            threads[event["pid"], event["tid"]].append(_complete(event))
        elif event["ph"] in "sf":
            _that(event["ph"] not in ends[event["id"]], "an arrow has one beginning and one end", event)
            ends[event["id"]][event["ph"]] = (event["pid"], event["tid"], _ns(event["ts"]))
        else:
            points = counters[event["pid"]].setdefault(event["name"], [])
            points.append((_ns(event["ts"]), event["args"]))
            _that(sorted({at for at, _ in points}) == [at for at, _ in points], "points are in order", event)
    found = Read(int(value["otherData"]["origin_ns"]), value["otherData"])
    for (pid, tid), events in sorted(threads.items(), key=lambda one: _place(names, *one[0])):
        _nested([one for one, _ in events])
        _nested([Event(*as_read, one.name, "", {}) for one, as_read in events])
        tracks = found.tracks.setdefault(names[pid, None, "process_name"], {})
        thread = names[pid, tid, "thread_name"]
        _that(thread not in tracks, "threads of a process have names of their own", thread)
        tracks[thread] = [one for one, _ in events]
    for number, both in ends.items():
        _that(both.keys() == {"s", "f"}, "an arrow has a beginning and an end", number)
        begun, ended = (_around(threads, *both[end]) for end in "sf")
        _that(begun.start_ns <= ended.start_ns, "an arrow points forward", number)
        found.arrows[number] = (begun, ended)
    for pid, series in counters.items():
        found.counters[names[pid, None, "process_name"]] = series
    return found


def _place(names: dict[tuple[Any, Any, str], Any], pid: int, tid: int) -> tuple[int, int]:
    """Where a thread stands; each must have names and places."""
    for key in ((pid, None, "process_name"), (pid, tid, "thread_name")):
        _that(isinstance(names.get(key), str) and names[key], "processes and threads are named", key)
    places = (names.get((pid, None, "process_sort_index")), names.get((pid, tid, "thread_sort_index")))
    _that(all(isinstance(one, int) for one in places), "processes and threads have places", (pid, tid))
    return places  # type: ignore[return-value]


def _around(
    threads: dict[tuple[int, int], list[tuple[Event, tuple[int, int]]]], pid: int, tid: int, at_ns: int
) -> Event:
    """The event that begins where the end of an arrow is."""
    found = [one for one, _ in threads[pid, tid] if one.start_ns == at_ns]
    _that(found, "an arrow ends at an event", (pid, tid, at_ns))
    return max(found, key=lambda one: -one.end_ns)


def _fields(event: Any) -> None:
    _that(event["ph"] in "XCMsf" and event["pid"] > 0 and event["name"], "it is known and named", event)
    if event["ph"] == "C":
        numbers = all(isinstance(one, int | Decimal) for one in event["args"].values())
        _that(event["args"] and numbers, "a counter has numbers", event)
    if event["ph"] in "sf":
        _that(event["ph"] == "s" or event["bp"] == "e", "an arrow ends at the slice around it", event)
    if event["ph"] in "Xsf":
        _that(event["tid"] > 0 and event["cat"], "an event has a thread and a category", event)


def _complete(event: dict[str, Any]) -> tuple[Event, tuple[int, int]]:
    """The event, and its start and end the way Perfetto reads them."""
    start_ns, length_ns = _ns(event["ts"]), _ns(event["dur"])
    start_read, length_read = (int(float(event[key]) * 1000.0) for key in ("ts", "dur"))
    _that((start_read, length_read) == (start_ns, length_ns), "Perfetto reads every nanosecond", event)
    args = event.get("args", {})
    whole = Event(start_ns, start_ns + length_ns, event["name"], event["cat"], args)
    return whole, (start_read, start_read + length_read)


def _ns(microseconds: Any) -> int:
    """The whole nanoseconds of a time; a number with decimals, or it holds none."""
    _that(isinstance(microseconds, Decimal), "a time has decimals", microseconds)
    ns = int(microseconds * 1000)
    _that(microseconds >= 0, "a time is not before zero", microseconds)
    _that(microseconds * 1000 - ns <= TOO_MUCH, "a time is a whole number of ns", microseconds)
    return ns


def _nested(events: list[Event]) -> None:
    """Every event lies within the one that is open, or after it."""
    open_: list[Event] = []
    for one in sorted(events, key=lambda one: (one.start_ns, -one.end_ns)):
        while open_ and open_[-1].end_ns <= one.start_ns:
            open_.pop()
        if open_:
            _that(one.end_ns <= open_[-1].end_ns, "events of a thread nest or lie apart", one)
        open_.append(one)


def _refused(constant: str) -> None:
    raise NotATrace(f"JSON has no {constant}")


def _that(holds: Any, rule: str, where: Any) -> None:
    if not holds:
        raise NotATrace(f"{rule}: {str(where)[:300]}")


MS = 1_000_000
EPOCH_NS = 1_669_783_687_389_324_001


def write_perfetto(document: Document, detail: Detail = Detail.FIRST) -> str:
    return result_perfetto(decode(document, Result), detail)


def write_comparison_perfetto(document: Document, detail: Detail = Detail.FIRST) -> str:
    return comparison_perfetto(decode(document, Compared), detail)


def timeline(*lanes: list[tuple[int, int]], start_ns: int = 1_000) -> Document:
    """A step of streams 0, 1 ...: each activity from its offset, with its length, all of one kernel."""
    return {
        "step": 0,
        "start_ns": start_ns,
        "end_ns": start_ns + 100,
        "left_out": 0,
        "keys": ["compute.gemm", "copy.memset"],
        "names": ["gemm_kernel"],
        "lanes": [
            {
                "stream": stream,
                "at_ns": [at for at, _ in lane],
                "length_ns": [length for _, length in lane],
                "key": [0] * len(lane),
                "name": [0] * len(lane),
            }
            for stream, lane in enumerate(lanes)
        ],
        "reasons": None,
    }


def moved(document: Any, by_ns: int) -> Any:
    """The document on a clock that is ahead: every point in time is later."""
    if isinstance(document, dict):
        return {
            key: [[start + by_ns, end + by_ns] for start, end in part]
            if key == "windows_ns"
            else part + by_ns
            if key in ("start_ns", "end_ns") and part is not None
            else moved(part, by_ns)
            for key, part in document.items()
        }
    return [moved(part, by_ns) for part in document] if isinstance(document, list) else document


def test_the_verdict_lies_over_all_windows_and_says_what_to_do(document: Document) -> None:
    trace = read(write_perfetto(document))
    (verdict,) = trace.track("moe-diag", "verdict")
    assert (verdict.start_ns, verdict.end_ns) == (1 * MS, 41 * MS)
    assert verdict.name.startswith("SLOWED BY: expert all-to-all (30 %)")
    (wall,) = trace.track("moe-diag", "communication")
    assert wall.args["cost_ns"] == 12 * MS
    assert wall.args["next"][0].startswith(document["fixes"][0]["id"])


def test_every_step_is_there_activity_by_activity(document: Document) -> None:
    (rank,) = document["ranks"]
    trace = read(write_perfetto(document))
    shown = trace.tracks[next(reversed(trace.tracks))]
    assert len(rank["other_steps"]) == 3
    told: dict[int, list[tuple[int, int]]] = {}
    for step in (rank["timeline"], *rank["other_steps"]):
        for lane in step["lanes"]:
            columns = zip(lane["at_ns"], lane["length_ns"], strict=True)
            starts = [(step["start_ns"] + at, step["start_ns"] + at + length) for at, length in columns]
            told.setdefault(lane["stream"], []).extend(starts)
    for stream, lengths in told.items():
        assert [(one.start_ns, one.end_ns) for one in shown[f"stream {stream}"]] == sorted(lengths)
    assert Counter(one.category for name in shown for one in shown[name] if name.startswith("stream")) == {
        "compute.gemm": 4,
        "compute.elementwise": 4,
        "comm.ep_dispatch": 4,
    }


def test_a_call_lies_in_its_range_and_an_arrow_leads_from_it_to_its_kernel(export: Export) -> None:
    recording = Recording()
    recording.range("forward", 0, 9_000_000)
    recording.range("/home/somebody/secret", 4_000_000, 8_000_000)
    recording.kernel("gemm_kernel", 2_000_000, 6_000_000, launch_ns=1_000_000)
    recording.kernel("gemm_kernel", 6_000_000, 9_000_000, launch_ns=5_000_000)
    document = diagnoser.analyze(export(recording), start="0.5ms", end="9ms").to_dict()
    text = write_perfetto(document)
    trace = read(text)
    host = trace.track("GPU 0", "host thread 1000: NVTX ranges and CUDA calls")
    assert [(one.name, one.start_ns // 1000, one.end_ns // 1000) for one in host] == [
        *(("forward", 500, 9_000), ("cudaLaunchKernel", 1_000, 1_002)),
        *(("range (its text may be private)", 4_000, 8_000), ("cudaLaunchKernel", 5_000, 5_002)),
    ]
    ends = [(call.start_ns // MS, kernel.start_ns // MS) for call, kernel in trace.arrows.values()]
    assert ends == [(1, 2), (5, 6)]
    assert "somebody" not in text


def test_counters_hold_each_used_step_in_ms_and_end_with_it(document: Document) -> None:
    counters = read(write_perfetto(document)).counters["GPU 0 (H100 80GB HBM3), process 1000"]
    points = counters["used steps, ms"]
    assert [at // MS for at, _ in points] == [1, 11, 21, 31, 41]
    for _, values in points[:-1]:
        assert values == {"compute": 7, "exposed_comm": 3}
    assert points[-1][1] == {"compute": 0, "exposed_comm": 0}
    assert sum(counters["no compute in used steps, ms"][0][1].values()) == 3


@pytest.mark.parametrize("start_ns", [EPOCH_NS, -7, 2**50 + 1])
def test_times_that_a_reader_could_not_hold_begin_at_the_first(document: Document, start_ns: int) -> None:
    there = moved(document, start_ns - 1 * MS)
    here, trace = read(write_perfetto(document)), read(write_perfetto(there))
    assert (here.origin_ns, trace.origin_ns) == (0, start_ns)
    (verdict,) = trace.track("moe-diag", "verdict")
    assert verdict.start_ns == 0
    for one, other in zip(here.track("GPU 0", "steps"), trace.track("GPU 0", "steps"), strict=True):
        assert one.start_ns - 1 * MS == other.start_ns
        assert one.end_ns - one.start_ns == other.end_ns - other.start_ns


@given(st.integers(-(2**50), 2**50))
def test_a_time_is_exact_however_it_is_read(ns: int) -> None:
    text = microseconds(ns)
    assert int(Decimal(text) * 1000) == int(float(text) * 1000.0) == round(float(text) * 1000.0) == ns


def test_what_overlaps_on_a_stream_goes_to_a_further_track_and_is_not_lost(document: Document) -> None:
    overlapping = [(0, 10), (10, 10), (15, 10), (18, 4), (30, 0), (30, 5)]
    document["ranks"][0] |= {"timeline": timeline(overlapping, [(0, 100)]), "other_steps": []}
    tracks = read(write_perfetto(document)).tracks["GPU 0 (H100 80GB HBM3), process 1000"]
    found = {
        name: [(one.start_ns - 1_000, one.end_ns - one.start_ns) for one in track]
        for name, track in tracks.items()
        if name.startswith("stream")
    }
    assert found == {
        "stream 0": [(0, 10), (10, 10), (30, 0), (30, 5)],
        "stream 0 (2)": [(15, 10)],
        "stream 0 (3)": [(18, 4)],
        "stream 1": [(0, 100)],
    }


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9))))
def test_rows_hold_all_once_lie_apart_and_are_no_more_than_needed(pairs: list[tuple[int, int]]) -> None:
    slices = [Slice(at, at + length, "x", "x") for at, length in pairs]
    found = rows(slices)
    assert Counter(one for row in found for one in map(id, row)) == Counter(map(id, slices))
    for row in found:
        assert all(one.end_ns <= other.start_ns for one, other in pairwise(row))
    busiest = max((sum(at <= t < at + max(length, 1) for at, length in pairs) for t in range(40)), default=0)
    assert len(found) <= max(busiest, 1)


def compared(make: Callable[[], Any] = regression) -> Document:
    """The comparison of the doubles, each side with a step of 100 ns recorded at its own time."""
    document = document_of(make())
    for side, start_ns in (("base", 5_000), ("new", EPOCH_NS)):
        document[side]["timeline"] = timeline([(0, 60), (60, 40)], start_ns=start_ns)
        document[side]["budget_rows"] = [{"row": "compute.gemm", "mean_ns": 100}]
    document["new"]["timeline"] |= {"end_ns": EPOCH_NS + 120, "left_out": 3}
    return document


def test_both_steps_of_a_comparison_begin_at_zero() -> None:
    trace = read(write_comparison_perfetto(compared()))
    assert trace.origin_ns == 0
    assert list(trace.tracks) == ["moe-diag: new against base", "base before.sqlite", "new after.sqlite"]
    for side, length_ns in (("base", 100), ("new", 120)):
        (step,) = trace.track(side, "step")
        assert (step.start_ns, step.end_ns) == (0, length_ns)
        assert [one.start_ns for one in trace.track(side, "stream 0")] == [0, 60]
    assert trace.track("new", "step")[0].args["activities_left_out"] == 3
    assert trace.track("new", "step")[0].args["start"] == "1669783687.389324001s"
