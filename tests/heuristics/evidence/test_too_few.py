"""By a window of few kernels and without steps no wall is judged, unless the user chose the window."""

from __future__ import annotations

import pytest

from heuristics.evidence.evidence import KERNELS
from tests.by_hand.run import Run
from tests.doubles.pages import first_screen

FEWEST = int(KERNELS.value)


def unlike(kernels: int, replays: int = 0) -> Run:
    """Kernels of 1 us, one every 10 us, each by another name, so that nothing repeats; then whole graphs."""
    run = Run(ahead_us=9)
    for place in range(kernels + replays):
        run.work(f"kernel_{'x' * place}" if place < kernels else "graph", 10 * place, 10 * place + 1)
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
