"""The trace for Perfetto: read by rules of its own, every nanosecond kept, no event lost to an overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
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
from tests.read_back.chrome_trace import read

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
