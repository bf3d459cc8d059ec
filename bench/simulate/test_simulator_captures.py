"""Captures that begin or end within a run: what they hold, and what they do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, record, recorded_steps
from bench.simulate.run import run

SMALL = Knobs(step_count=3, layer_count=2, microbatch_count=2)


def kernels_in(rows: dict[str, list[dict[str, int | float | str | None]]]) -> list[object]:
    return [row["correlationId"] for row in rows["CUPTI_ACTIVITY_KIND_KERNEL"]]


def test_a_capture_that_begins_and_ends_within_steps_holds_what_was_launched_in_between() -> None:
    found = run(replace(SMALL, step_count=4))
    cut = View(begin_frac=0.25, end_frac=0.5)
    whole, part = record(found, View()).rows, record(found, cut).rows
    assert recorded_steps(found, cut) == range(1, 3)
    missing = set(kernels_in(whole)) - set(kernels_in(part))
    steps = sorted({one.work.place.step for one in found.activities if one.call + 1 in missing})
    assert steps == [0, 3]
    first = {one.call + 1 for one in found.activities if one.work.place.step == 0}
    launched = first & set(kernels_in(whole))
    assert len(first & missing) == pytest.approx(len(launched) / 4, abs=4)
    texts = [row["text"] for row in part["NVTX_EVENTS"] if str(row["text"]).startswith("iteration")]
    assert texts == ["iteration 1", "iteration 2", "iteration 3"]


def test_a_range_that_is_open_where_the_capture_ends_ends_with_it() -> None:
    found = run(SMALL)
    ranges = record(found, View(end_frac=0.5)).rows["NVTX_EVENTS"]
    calls = record(found, View(end_frac=0.5)).rows["CUPTI_ACTIVITY_KIND_RUNTIME"]
    last = max(int(row["end"] or 0) for row in ranges)
    assert last >= max(int(row["start"] or 0) for row in calls)
    whole = record(found, View()).rows["NVTX_EVENTS"]
    assert last < max(int(row["end"] or 0) for row in whole)


def test_a_capture_of_whole_steps_begins_with_the_second_and_ends_before_the_last() -> None:
    found = run(replace(SMALL, step_count=4))
    cut = View(begin_frac=1.0, end_frac=1.0)
    rows = record(found, cut).rows
    by_call = {one.call + 1: one.work.place.step for one in found.activities}
    assert {by_call[int(str(call))] for call in kernels_in(rows)} == {1, 2}
    texts = [row["text"] for row in rows["NVTX_EVENTS"] if str(row["text"]).startswith("iteration")]
    assert texts == ["iteration 1", "iteration 2"]
    assert recorded_steps(found, cut) == range(1, 3)


def test_what_was_allocated_before_a_capture_began_is_not_in_it() -> None:
    found = run(replace(SMALL, retries_per_step=4.0))
    early = [
        row
        for row in record(found, View(memory=True, begin_frac=0.5)).rows["CUDA_GPU_MEMORY_USAGE_EVENTS"]
        if int(row["start"] or 0) < 400_000_000
    ]
    assert early == []
