"""What the profiler and start-up took is said first, and walls are judged on the rest, if there is any."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from bench.simulate.recording import Recording
from tests.doubles.pages import first_screen, flat
from tests.places import Export

US, MS = 1_000, 1_000_000


def calling(
    name: str, took_ms: Mapping[int, int], grid: tuple[int, int, int] = (132, 1, 1), every_us: int = 300
) -> Recording:
    """120 kernels of 100 us, one after another; calls of so many ms before some launches, by their number."""
    recording, at = Recording(), 0
    recording.gpu()
    for place in range(120):
        if took_ns := took_ms.get(place, 0) * MS:
            recording.call(name, at, at + took_ns)
            at += took_ns + 5 * US
        times = at + 5 * US, at + 105 * US
        recording.kernel("elementwise_kernel", *times, launch_ns=at, launch_end_ns=at + 3 * US, grid=grid)
        at += every_us * US
    return recording


LOADING = calling("cuModuleLoadDataEx", {60: 40}, grid=(13, 1, 1))


def diagnosed(path: Path, **how: Any) -> dict[str, Any]:
    document: dict[str, Any] = diagnoser.analyze(path, ask_megatron=False, **how).to_dict()
    return document


def test_loading_is_said_first_and_left_out(export: Export) -> None:
    document = diagnosed(export(LOADING))
    assert document["verdict"]["startup_ns"] == pytest.approx(40 * MS, rel=0.01)
    assert document["warnings"][0].startswith("not a steady-state recording: the profiler and start-up")
    assert "--delay 60 --duration 10" in document["warnings"][0]
    screen = flat(first_screen(document))
    assert "STEADY-STATE RECORDING The profiler, start-up and single pauses take 40.0 ms (53 %)" in screen
    assert "DO THIS 1 Record the steps after start-up" in screen
    (host,) = (wall for wall in document["walls"] if wall["id"] == "host_overhead")
    assert host["cost_frac"] == pytest.approx(24 / 36, rel=0.02)  # of 36 ms the kernels take 12
    assert host["at_most_frac"] >= host["cost_frac"]


@pytest.mark.parametrize(
    ("took_ms", "every_us", "outcome", "warned", "said"),
    [
        (400, 300, "unmeasurable", "Hardly anything else was recorded.", "DO THIS 1 Record again"),
        (120, 105, "clear", "Walls are judged on the rest.", "DO THIS 1 Record the steps after start-up"),
    ],
)
def test_a_short_rest_is_judged_where_the_gpu_works_in_most_of_it(
    export: Export, took_ms: int, every_us: int, outcome: str, warned: str, said: str
) -> None:
    document = diagnosed(export(calling("cuModuleLoadDataEx", {60: took_ms}, every_us=every_us)))
    assert {wall["outcome"] for wall in document["walls"]} == {outcome}
    assert warned in document["warnings"][0]
    screen = flat(first_screen(document))
    assert said in screen
    assert "Late launches by call: cuModuleLoadDataEx (9" in screen


def starved_ms(document: dict[str, Any]) -> dict[str, int]:
    (rank,) = document["ranks"]
    return {cause: round(ns / MS) for cause, ns in rank["absent_ns"]["launch_starved"].items()}


@pytest.mark.parametrize("name", ["cudaMalloc", "hipMalloc", "cudaStreamCreate"])
def test_the_longest_call_of_its_kind_over_ten_times_the_next_is_start_up(export: Export, name: str) -> None:
    document = diagnosed(export(calling(name, {20: 50, 80: 2})))
    assert starved_ms(document)["lazy_init"] == 50
    assert document["verdict"]["startup_ns"] == pytest.approx(50 * MS, rel=0.01)
    (memory,) = (wall for wall in document["walls"] if wall["id"] == "memory")
    assert memory["outcome"] != "finding"


@pytest.mark.parametrize(("first_ms", "next_ms"), [(50, 10), (2, 50)])
def test_a_call_that_is_as_long_again_is_none(export: Export, first_ms: int, next_ms: int) -> None:
    starved = starved_ms(diagnosed(export(calling("cudaFree", {20: first_ms, 80: next_ms}))))
    assert "lazy_init" not in starved
    assert starved["allocator"] == first_ms + next_ms


def test_a_first_launch_that_loads_its_kernel_is_start_up(export: Export) -> None:
    recording = calling("cudaFree", {})
    for place in range(3):  # 30 ms, then 1 ms twice; launches of the other kernel take 3 us
        at, took_ns = (50 + 40 * place) * MS, (1 if place else 30) * MS
        times = at + took_ns, at + took_ns + 100 * US
        recording.kernel("softmax_warp_forward", *times, launch_ns=at, launch_end_ns=at + took_ns)
    assert starved_ms(diagnosed(export(recording)))["lazy_init"] == 30


def test_a_program_sets_up_while_first_uses_take_most_of_the_time(export: Export) -> None:
    """20 ms and 10 ms before first kernels, 3 ms between: memory is taken, and nothing of it is a wall.

    Before all that data is loaded for 600 of 900 ms.
    """
    recording, at = Recording(), 900 * MS
    recording.gpu()
    recording.call("cudaMalloc", 0, US)
    recording.range("data_loader", 200 * MS, 800 * MS)
    for name, pause_ms in (("norm", 0), ("gemm", 20), ("gemm", 3), ("softmax", 10), *[("norm", 0)] * 60):
        recording.call("cudaMalloc", at + US, at + pause_ms * MS // 4 + 2 * US)
        at += pause_ms * MS + 5 * US
        recording.kernel(name, at + 5 * US, at + 105 * US, launch_ns=at, launch_end_ns=at + 3 * US)
        at += 100 * US
    document = diagnosed(export(recording))
    assert starved_ms(document)["lazy_init"] == 33
    assert "finding" not in {wall["outcome"] for wall in document["walls"]}
    screen = flat(first_screen(document))
    assert "calls for a change" not in screen
    assert "takes 900 ms, 600 ms of it in data_loader." in screen
