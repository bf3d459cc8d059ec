"""Rows of kernels that backward launches as forward does."""

from __future__ import annotations

import numpy as np
import pytest

from tests.by_hand.run import Run
from traces.intervals import spans
from traces.measure.recompute import measure_recompute
from traces.measure.repeats import repeated_rows

LAYOUTS = ("nchwToNhwcKernel", "nchwToNhwcKernel", "sm80_xmma_fprop_implicit_gemm", "nhwcToNchwKernel")
FORWARD = ("conv_a", "gemm", "conv_b", "pointwise_c")
NAMED = ("conv_a", "norm_backward", "gemm", "conv_b")


@pytest.mark.parametrize(
    ("backward", "again"),
    [
        (FORWARD, 4),
        (("norm_backward", *FORWARD, "norm_backward"), 4),
        ((*FORWARD, *FORWARD), 8),
        (FORWARD[:3], 0),  # three may be chance
        ((*FORWARD[:2], "norm_backward", *FORWARD[2:]), 0),
        (FORWARD[::-1], 0),
        (LAYOUTS, 0),  # one convolution, as backward of a transposed one launches it too
        ((*LAYOUTS, "gemm"), 4),
        (NAMED, 0),  # one of them is backward by name, whoever launches it
        (("gemm",) * 6, 0),  # alike, in forward's last row
        (("pointwise_c", "pointwise_d") * 2, 0),  # neither a product nor forward by name
    ],
)
def test_four_kernels_in_forwards_order_on_backwards_thread_run_again(
    backward: tuple[str, ...], again: int
) -> None:
    run, at = Run(), 0
    for thread, names in (
        (0, (*FORWARD, *("gemm",) * 4, *("pointwise_c", "pointwise_d") * 2, *LAYOUTS, "gemm", *NAMED)),
        (1, backward),
    ):
        for name in names:
            run.work(name, at, at + 10, thread=thread)
            at += 10
    rank = run.rank()
    theirs = rank.activities.launch_thread == rank.activities.launch_thread[-1]
    found = repeated_rows(rank, theirs)
    assert int(np.sum(found)) == again
    assert not (found & ~theirs).any()
    rank.columns.thread_names[run.recording.global_id(1000, 1001)] = "pt_autograd_0"
    measured = measure_recompute(rank, spans((0, at * 1_000)))
    assert measured.places.tolist() == np.flatnonzero(found).tolist()


def test_another_grid_is_another_kernel_and_a_row_is_of_one_thread() -> None:
    run = Run()
    for place, name in enumerate(FORWARD):
        run.work(name, 10 * place, 10 * place + 10)
        run.work(name, 100 + 10 * place, 110 + 10 * place, thread=1, blocks=64)
        run.work(name, 200 + 10 * place, 210 + 10 * place, thread=2 + place % 2)
    rank = run.rank()
    assert not repeated_rows(rank, rank.activities.launch_ns > 90_000).any()
