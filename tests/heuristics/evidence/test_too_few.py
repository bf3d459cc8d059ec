"""By a window without steps, of few kernels or of first runs, no wall is judged, unless the user chose it."""

from __future__ import annotations

import pytest

from heuristics.evidence.evidence import KERNELS
from tests.by_hand.run import Run
from tests.doubles.pages import first_screen

FEWEST = int(KERNELS.value)


def unlike(kernels: int, replays: int = 0) -> Run:
    """Kernels of 1 us, one every 10 us, three by each name, so that no row repeats; then whole graphs."""
    run = Run(ahead_us=9)
    for place in range(kernels + replays):
        run.work(f"kernel_{'x' * (place // 3)}" if place < kernels else "graph", 10 * place, 10 * place + 1)
    return run


def outcomes(run: Run, **selection: str) -> set[str]:
    return {outcome for outcome, _ in run.walls(**selection).values()}


def test_of_few_kernels_without_a_step_no_wall_is_judged_and_nothing_advised() -> None:
    run = unlike(FEWEST - 1)
    assert outcomes(run) == {"unmeasurable"}
    reason = f"{FEWEST - 1} kernels and no step: too few to judge a run by"
    document = run.document()
    assert {wall["missing"][0] for wall in document["walls"]} == {reason}
    assert (document["verdict"]["wall"], document["fixes"]) == (None, [])
    screen = " ".join(first_screen(document).split())
    assert f"NOT JUDGED {reason}." in screen
    assert "Record whole steps of the run" in screen


def test_enough_kernels_are_judged_and_so_is_the_window_of_the_user() -> None:
    assert outcomes(unlike(FEWEST)) != {"unmeasurable"}
    assert outcomes(unlike(FEWEST - 1), start="0s", end="0.0001s") != {"unmeasurable"}


@pytest.mark.parametrize(("once", "apart", "is_cold"), [(8, 16, False), (9, 16, True), (9, 17, False)])
def test_where_most_kernels_come_once_and_most_time_is_of_first_runs_the_pass_is_cold(
    once: int, apart: int, is_cold: bool
) -> None:
    """9 that come once take 1 + 8 x 10 us with what is before them; 7 of one name `apart` each."""
    run = Run(ahead_us=9)
    for place in range(16):
        at = 10 * place + max(0, place - once + 1) * (apart - 10)
        run.work(f"kernel_{'x' * min(place, once)}", at, at + 1)
    assert (outcomes(run) == {"unmeasurable"}) is is_cold
    screen = " ".join(first_screen(run.document()).split())
    assert ("NOT A STEADY-STATE RECORDING First runs" in screen) is is_cold
    assert ("DO THIS 1 Record again, to judge any of the walls Record later" in screen) is is_cold
    assert outcomes(run, start="0s", end="0.0002s") != {"unmeasurable"}


def test_the_fullest_rank_is_asked() -> None:
    run = unlike(FEWEST)
    run.process(1).work("gemm", 0, 1)
    assert outcomes(run) != {"unmeasurable"}


@pytest.mark.parametrize(("kernels", "few"), [(FEWEST - 3, True), (FEWEST - 2, False)])
def test_a_graph_replay_recorded_whole_counts_as_one_kernel(kernels: int, few: bool) -> None:
    """Two replays beside 13 kernels are 15; the host, the one wall that opaque work leaves, tells."""
    reasons = [why for wall in unlike(kernels, replays=2).judged().walls for why in wall.missing]
    said = f"{FEWEST - 3} kernels, 2 graph replays and no step: too few to judge a run by"
    assert (said in reasons) is few
