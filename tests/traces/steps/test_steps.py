"""Steps and windows: what is taken for a step, and where it begins and ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.by_hand.run import Run
from traces.errors import EmptySelection
from traces.steps.found import Step, from_steps
from traces.steps.rules import leave_out_hiccups

THREE = [(1010, 1095), (1095, 1195), (1195, 1295)]


def three_steps(text: str = "iteration {}", thread: int = 0) -> Run:
    """Three steps of 100 us from 1,000 on: launched at +0, kernels at +10..+60 and +70..+95."""
    run = Run()
    for number in range(3):
        step = run.at(1_000 + 100 * number)
        step.range(text.format(number), 0, 99, thread=thread)
        step.work("gemm", 10, 60, launch=1)
        step.work("gemm", 70, 95, launch=2)
    return run


def test_a_window_beyond_the_recording_is_warned_of() -> None:
    document = three_steps().document(start="0.9ms", end="1.4ms")
    assert document["ranks"][0]["budget_ns"]["window"] == 500_000
    assert "215 us beyond" in document["warnings"][0]


@pytest.mark.parametrize(
    ("selection", "hint"),
    [
        ({"steps": "7:9"}, "Recorded are 0 to 2"),
        ({"nvtx": "iterations"}, "'iteration N'"),
        ({"start": "5s"}, "between 0.001010000s and 0.001295000s"),
        ({"gpu": 3}, "kernels ran on GPU 0"),
        ({"rank": 1}, "no rank is recorded"),
    ],
)
def test_an_empty_selection_names_the_nearest_there_is(selection: dict[str, Any], hint: str) -> None:
    with pytest.raises(EmptySelection) as error:
        three_steps().document(**selection)
    assert hint in str(error.value)


def steps_of(lengths: list[int]) -> list[Step]:
    return [Step(index, 1_000 * index, 1_000 * index + length) for index, length in enumerate(lengths)]


@pytest.mark.parametrize(
    ("slow", "hiccups"),
    [
        ((5, 10, 15), ()),  # every fifth of 16: five workers load
        ((0, 7, 14), ()),  # of seven, the first round late already
        ((5, 10), (5, 10)),  # two at one distance may be chance
        ((2, 5, 8), (2, 5, 8)),  # at equal distances, but not to the end
        ((5, 10, 14), (5, 10, 14)),
    ],
)
def test_every_so_many_th_step_slow_from_end_to_end_is_a_rhythm(
    slow: tuple[int, ...], hiccups: tuple[int, ...]
) -> None:
    lengths = [300 if place in slow else 100 for place in range(16)]
    found = leave_out_hiccups(from_steps("nvtx", "NVTX range", tuple(steps_of(lengths))))
    assert found.slow == hiccups


def test_communication_without_compute_keeps_its_window() -> None:
    run = Run()
    for number in range(3):
        step = run.at(1_000 + 100 * number)
        step.range(f"iteration {number}", 0, 99)
        step.work("send_recv", 10, 60, launch=0)
    assert run.steps_found() == [(1010, 1060), (1060, 1160), (1160, 1260)]
    assert run.budget() == {"exposed_comm.sendrecv_unresolved": 150, "idle": 100}


def test_a_range_that_was_never_closed_ends_where_the_next_begins() -> None:
    run = three_steps()
    run.recording.rows["NVTX_EVENTS"][0]["end"] = run.ns(5_000)  # as exported: the end of the capture
    assert run.steps_found() == THREE


def test_ranges_without_gpu_work_are_an_empty_selection() -> None:
    run = three_steps()
    run.range("tail", 9_000, 9_100)
    with pytest.raises(EmptySelection, match="no GPU work was launched in them"):
        run.measured(nvtx="tail")
