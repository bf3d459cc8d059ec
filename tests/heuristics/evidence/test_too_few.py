"""By a window of few kernels and without steps no wall is judged, unless the user chose the window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from bench.simulate.recording import Recording
from heuristics.evidence.evidence import KERNELS
from tests.doubles.pages import first_screen

Export = Callable[..., Path]
FEWEST = int(KERNELS.value)


def unlike(kernels: int, replays: int = 0) -> Recording:
    """Kernels of 1 us, one every 10 us, each by another name, so that nothing repeats; then whole graphs."""
    recording = Recording()
    recording.gpu()
    for place in range(kernels + replays):
        at = place * 10_000
        if place < kernels:
            recording.kernel(f"kernel_{'x' * place}", at, at + 1_000, grid=(132, 1, 1), launch_ns=at - 9_000)
        else:
            recording.graph_replay(at, at + 1_000, launch_ns=at - 9_000)
    return recording


def diagnosed(path: Path, **how: Any) -> dict[str, Any]:
    document: dict[str, Any] = diagnoser.analyze(path, ask_megatron=False, **how).to_dict()
    return document


def outcomes(document: dict[str, Any]) -> set[str]:
    return {wall["outcome"] for wall in document["walls"]}


def test_of_few_kernels_without_a_step_no_wall_is_judged_and_nothing_advised(export: Export) -> None:
    document = diagnosed(export(unlike(FEWEST - 1)))
    assert outcomes(document) == {"unmeasurable"}
    assert {wall["missing"][0] for wall in document["walls"]} == {
        f"{FEWEST - 1} kernels and no step: too few to judge a run by"
    }
    assert (document["verdict"]["wall"], document["fixes"]) == (None, [])
    screen = " ".join(first_screen(document).split())
    assert f"NOT JUDGED {FEWEST - 1} kernels and no step: too few to judge a run by." in screen
    assert "Record whole steps of the run" in screen


def test_enough_kernels_are_judged(export: Export) -> None:
    assert outcomes(diagnosed(export(unlike(FEWEST)))) != {"unmeasurable"}


@pytest.mark.parametrize(("kernels", "few"), [(FEWEST - 3, True), (FEWEST - 2, False)])
def test_a_graph_replay_recorded_whole_counts_as_one_kernel(export: Export, kernels: int, few: bool) -> None:
    """Two replays beside 13 kernels are 15; the host, the one wall that opaque work leaves, tells."""
    document = diagnosed(export(unlike(kernels, replays=2)))
    reasons = [why for wall in document["walls"] for why in wall["missing"]]
    assert (f"{FEWEST - 3} kernels, 2 graph replays and no step: too few to judge a run by" in reasons) is few


def test_the_window_of_the_user_is_judged(export: Export) -> None:
    document = diagnosed(export(unlike(FEWEST - 1)), start="0s", end="0.0001s")
    assert outcomes(document) != {"unmeasurable"}
