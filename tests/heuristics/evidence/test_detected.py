"""What kind of run a rank shows, from rows that one can count by hand."""

from __future__ import annotations

from tests.by_hand.run import Run
from traces.missing import Missing


def test_a_graph_of_three_kernels_and_one_alone_are_two_kernels_per_launch() -> None:
    run = Run()
    run.work("gemm", 100, 200)
    graph = run.call("graph_launch", 50, 60)
    for node, start in ((1, 200), (2, 300), (3, 400)):
        run.work("gemm", start, start + 100, of=graph, node=node)
    assert run.measured().detected.kernels_per_launch == 2


def test_without_recorded_launches_kernels_per_launch_is_missing() -> None:
    run = Run()
    run.work("gemm", 100, 200, launched=False)
    assert isinstance(run.measured().detected.kernels_per_launch, Missing)
