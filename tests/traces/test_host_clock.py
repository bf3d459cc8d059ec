"""Clocks of host and GPU that are apart are put right where launches and waits tell by how much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import diagnoser
from bench.simulate.recording import Recording
from tests.places import Export

US, MS = 1_000, 1_000_000
HOST_TABLES = ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")


def training(shift_ns: int = 0, waits: bool = True, launches: int = 25, pid: int = 1000) -> Recording:
    """Four steps from 2 s on: so many kernels of 1 ms, each launched 9 us before it starts, as the last ends.

    A step ends with a wait for all that returns 5 us after the last kernel, and 2 ms of Python.
    """
    recording, at = Recording(), 2_000 * MS
    recording.gpu()
    for step in range(4):
        begin = at
        for _ in range(launches):
            recording.kernel(
                "vectorized_elementwise_kernel", at + 9 * US, at + 9 * US + MS, launch_ns=at, pid=pid
            )
            at += 9 * US + MS
        if waits:
            recording.call("cudaDeviceSynchronize_v3020", at - MS, at + 5 * US, pid=pid)
        at += 2 * MS
        recording.range(f"iteration {step}", begin, at, pid=pid)
    for table in HOST_TABLES:
        for row in recording.rows[table]:
            row.update({side: int(str(row[side])) + shift_ns for side in ("start", "end")})
    return recording


def diagnosed(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = diagnoser.analyze(path, ask_megatron=False).to_dict()
    return document


@pytest.mark.parametrize(
    "shift_ns", [-156 * MS, -40 * US, -16 * US, -3 * US, 0, 19 * US, 20 * US, 325 * MS, 823 * MS]
)
def test_whatever_the_offset_the_document_is_the_same_up_to_the_bracket(
    export: Export, shift_ns: int
) -> None:
    """Kernels begin 9 us after their launches and waits return after 5: -9 to 5 us are left, middle -2."""
    true = diagnosed(export(training(), "true.sqlite"))
    found = diagnosed(export(training(shift_ns), "shifted.sqlite"))
    (rank,), (true_rank,) = found["ranks"], true["ranks"]
    if shift_ns - 9 * US > 10 * US or shift_ns + 5 * US < -10 * US:  # else they agree but for jitter
        assert rank["clock_corrected_ns"] == shift_ns - 2 * US
        assert rank["clock_within_ns"] == 7 * US
        assert "host times were corrected" in "".join(found["warnings"])
    else:
        assert (rank["clock_corrected_ns"], rank["clock_within_ns"]) == (0, None)
    assert rank["clock_offset_ns"] == 0
    assert rank["budget_ns"] == true_rank["budget_ns"]
    before, true_before = (one["steps"]["outside_ns"].pop("before_ns") for one in (rank, true_rank))
    assert abs(before - true_before) <= 20 * US  # from the first launch, on the host's clock
    assert rank["steps"] == true_rank["steps"]
    gaps = 4 * 25
    starved, true_starved = (one["absent_ns"]["launch_starved"] for one in (rank, true_rank))
    for cause in {*starved, *true_starved}:
        assert abs(starved.get(cause, 0) - true_starved.get(cause, 0)) <= 14 * US * gaps
    assert found["verdict"]["wall"] == true["verdict"]["wall"]


@pytest.mark.parametrize("how", [{"waits": False}, {"launches": 7}])
def test_without_a_wait_that_bounds_it_or_by_fewer_than_32_launches_an_offset_is_only_seen(
    export: Export, how: dict[str, Any]
) -> None:
    (rank,) = diagnosed(export(training(325 * MS, **how)))["ranks"]
    assert rank["clock_offset_ns"] == -325 * MS + 9 * US
    assert (rank["clock_corrected_ns"], rank["absent_ns"]) == (0, None)


def test_each_process_has_a_clock_of_its_own(export: Export) -> None:
    both = training(-156 * MS)
    for table, rows in training(pid=2000).rows.items():
        both.rows[table] = [*both.rows.get(table, ()), *rows]
    ranks = diagnosed(export(both))["ranks"]
    assert {one["process"]: one["clock_corrected_ns"] for one in ranks} == {1000: -156_002_000, 2000: 0}
