"""The most that each wall can cost, by the partition of the window."""

from tests.by_hand.run import US, Run


def test_a_small_kernel_that_the_window_cuts_counts_with_what_lies_within() -> None:
    run = Run()
    run.work("gemm", 0, 100)
    run.work("gemm", 100, 200, blocks=66)
    assert run.measured(window=(0, 150)).bounds.compute == 25 * US
    assert run.measured(window=(150, 200)).bounds.compute == 25 * US


def test_graphs_hide_communication_but_what_is_seen_is_bounded() -> None:
    run = Run()
    run.work("gemm", 0, 100)
    run.work("all_reduce", 100, 120, stream=20)
    run.work("graph", 120, 220)
    bounds = run.measured().bounds
    assert (bounds.communication, bounds.communication_seen) == (None, 20 * US)
