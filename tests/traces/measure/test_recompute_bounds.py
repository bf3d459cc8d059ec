"""The most that recompute can take where it is not seen: all that runs again, whatever its class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.recordings.launches import GEMM, Line, rank_of
from traces.intervals import spans
from traces.measure.recompute import Recompute, measure_recompute

Export = Callable[..., Path]
CONVOLVE = "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt64x128x32"
COLLECT = "void at::native::batch_norm_collect_statistics_kernel<at::native::Var, float>"
RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::relu>"
NORM_BACKWARD = "void at::native::batch_norm_backward_kernel<float, float, float, int>"
WGRAD = "igemm_wrw_gtcx3_nhwc_bf16_bx0_ex1_bt256x128x16"
ADAM = "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor>"
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
MAIN, AUTOGRAD = 1000, 1001
LAYER = (CONVOLVE, COLLECT, RELU)
BACKWARD = (NORM_BACKWARD, WGRAD)


def trained(
    export: Export,
    again: Sequence[str],
    text: str = "",
    backward: Sequence[str] = BACKWARD,
    reduces: bool = False,
) -> Recompute:
    """Two layers of kernels of 10 us: forward, then for each what runs `again`, in a range of that text."""
    line = Line()
    line.all(*LAYER, *LAYER)
    for _ in range(2):
        begin = line.now * 1_000
        for name in (*again, *backward):
            line.run(name, tid=AUTOGRAD)
        if reduces:
            line.run(REDUCE, stream=20, tid=AUTOGRAD)
        if text:
            line.recording.range(text, begin, line.now * 1_000, tid=AUTOGRAD)
    line.all(ADAM)
    rank = rank_of(export(line.recording))
    rank.columns.thread_names[line.recording.global_id(MAIN, AUTOGRAD)] = "pt_autograd_0"
    return measure_recompute(rank, spans((0, line.now * 1_000)))


def test_what_runs_again_counts_whole_and_not_its_forward_names_alone(export: Export) -> None:
    found = trained(export, LAYER)
    assert found.missing is not None
    assert found.at_most_ns == 2 * 3 * 10_000


def test_the_reduction_of_gradients_is_no_part_of_it(export: Export) -> None:
    assert trained(export, LAYER, reduces=True).at_most_ns == 2 * 3 * 10_000


def test_without_forward_names_in_backward_nothing_runs_again(export: Export) -> None:
    assert trained(export, ()).at_most_ns == 0


@pytest.mark.parametrize(
    "text",
    [
        "CheckpointFunctionBackward",
        "autograd::engine::evaluate_function: CheckpointFunctionBackward",
        "torch/utils/checkpoint.py(1111): unpack_hook",
        "recompute layer 3",
    ],
)
def test_what_a_checkpoint_runs_before_backward_counts_without_any_name(export: Export, text: str) -> None:
    found = trained(export, (GEMM, RELU, GEMM), text)
    assert found.at_most_ns == 2 * 3 * 10_000


def test_a_checkpoint_that_is_saved_computes_nothing_again(export: Export) -> None:
    assert trained(export, (GEMM,), "save_checkpoint").at_most_ns == 0
