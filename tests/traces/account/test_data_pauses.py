"""A pause before the input copies of a step is data loading; other pauses are not."""

from __future__ import annotations

import pytest

from tests.by_hand.run import Run

PAUSE = 10


def loading(equal: bool = True) -> Run:
    """Four steps of 36 ms: a pause of 10, an input copy of 1, 25 kernels of 1 launched as the last ends."""
    run = Run(unit="ms", ahead_us=9)
    for number in range(4):
        step = run.at(36 * number)
        size = (1 << 20) + (0 if equal else number)
        step.work("h2d", PAUSE, PAUSE + 1, launch=(PAUSE, PAUSE + 1), size_bytes=size)
        for at in range(PAUSE + 1, 36):
            step.work("gemm", at, at + 1)
        step.range(f"iteration {number}", 0, 36)
    return run


def starved_of(run: Run) -> dict[str, float]:
    """In ms, but for launches, which take microseconds."""
    found = run.account()
    return {name: ms for name, ms in found.items() if name.startswith("launch_starved") and ms > 1}


@pytest.mark.parametrize(("equal", "cause"), [(True, "data"), (False, "python")])
def test_a_pause_before_a_copy_that_recurs_is_a_wait_for_data(equal: bool, cause: str) -> None:
    """Three pauses of 10 ms lie between the launches; the fourth is before anything of the window."""
    assert starved_of(loading(equal)) == {f"launch_starved.{cause}": 3 * PAUSE}


def test_a_step_that_is_one_graph_begins_with_its_wait_for_the_batch() -> None:
    """Four steps of 40 ms: 10 ms of pause, 1 of input copy, 28 of one graph and 1 of a copy to the host."""
    run = Run(unit="ms")
    for step in map(run.at, range(0, 160, 40)):
        step.work("h2d", 10, 11, launch=(10, 11))
        step.work("graph", 11, 39)
        step.work("d2h", 39, 40, launch=(11, 40), size_bytes=64)
    assert run.measured().steps.source == "graph"
    # the first one begins with its batch: nothing was before
    assert run.steps_found() == [(10, 40), (40, 80), (80, 120), (120, 160)]
    assert run.account()["launch_starved.data"] == 30
