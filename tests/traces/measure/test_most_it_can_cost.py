"""The most that each wall can cost, by the partition of the window."""

import pytest

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


def test_graphs_of_one_process_that_show_no_work_hide_nothing_of_another() -> None:
    run = Run()
    for number in (0, 1):
        of = run.process(number)
        of.work("gemm", 0, 100)
        of.work("gemm", 120, 200, launch=110)
    run.process(0).call("graph_launch", 50, 52)
    told = {"launch_starved.python": 10, "launch_starved.launch": 2, "launch_latency.arrival": 8}
    assert run.account(1) == told
    with pytest.raises(LookupError, match="CUDA graph launches show no work"):
        run.account(0)


def test_communication_outside_the_window_stretches_nothing_in_it() -> None:
    """16 blocks of the all-reduce on 132 SMs: of 200 us beside it GEMMs lose up to 16/132."""
    run = Run()
    for start in (200, 300, 400, 500):
        run.work("gemm", start, start + 100)
        run.work("all_reduce", start + 50, start + 100, stream=20)
    assert run.measured(window=(200, 600)).bounds.communication_seen == 24_240
    assert run.measured(window=(200, 250)).bounds.communication_seen == 0
