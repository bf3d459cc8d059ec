"""What kind of run a rank shows, from rows that one can count by hand."""

from __future__ import annotations

from tests.by_hand.run import Run


def test_a_graph_of_three_kernels_and_one_alone_are_two_kernels_per_launch() -> None:
    run = Run()
    run.work("gemm", 100, 200)
    graph = run.call("graph_launch", 50, 60)
    for node, start in ((1, 200), (2, 300), (3, 400)):
        run.work("gemm", start, start + 100, of=graph, node=node)
    assert run.measured().detected.kernels_per_launch == 2
