"""What the profiler and start-up took is said first, and walls are judged on the rest, if there is any."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from tests.simulate.recording import Recording

US, MS = 1_000, 1_000_000
Export = Callable[..., Path]


def loading(took_ms: int) -> Recording:
    """60 kernels of 100 us, one every 300 us, a module that is loaded, and 60 more; grids of 13 blocks."""
    recording, at = Recording(), 0
    recording.gpu()
    for half in range(2):
        for _ in range(60):
            times = at + 5 * US, at + 105 * US
            recording.kernel(
                "elementwise_kernel", *times, launch_ns=at, launch_end_ns=at + 3 * US, grid=(13, 1, 1)
            )
            at += 300 * US
        if not half:
            recording.call("cuModuleLoadDataEx", at, at + took_ms * MS)
            at += took_ms * MS + 5 * US
    return recording


def diagnosed(path: Path, **how: Any) -> dict[str, Any]:
    document: dict[str, Any] = diagnoser.analyze(path, ask_megatron=False, **how).to_dict()
    return document


def test_loading_is_said_first_and_left_out(export: Export) -> None:
    document = diagnosed(export(loading(took_ms=40)))
    assert document["verdict"]["startup_ns"] == pytest.approx(40 * MS, rel=0.01)
    assert "Walls are judged on the rest." in document["warnings"][0]
    (host,) = (wall for wall in document["walls"] if wall["id"] == "host_overhead")
    assert host["cost_frac"] == pytest.approx(24 / 36, rel=0.02)  # of 36 ms the kernels take 12
    assert host["at_most_frac"] >= host["cost_frac"]


def test_what_is_next_is_the_same_however_long_loading_took(export: Export) -> None:
    short, long = (
        diagnosed(export(loading(took_ms), f"{took_ms}.sqlite"))["verdict"]["next_wall_frac"]
        for took_ms in (1, 40)
    )
    assert short == pytest.approx(long, rel=0.01)
    assert short == pytest.approx(1 - 13 / 132, rel=0.02)


def test_a_window_of_nothing_but_loading_is_judged_as_it_is(export: Export) -> None:
    document = diagnosed(export(loading(took_ms=40)), start="0.0185s", end="0.0575s")
    assert document["verdict"]["startup_ns"] == 0
    assert "Hardly anything else was recorded." in document["warnings"][0]
