"""The most that recompute can take where it is not seen: all that runs again, whatever its class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.by_hand.run import Run
from tests.places import Export
from tests.recordings.launches import GEMM, Line, rank_of
from traces.intervals import spans
from traces.measure.recompute import Recompute, measure_recompute
from traces.measure.recompute_extent import recompute_at_most_ns
from traces.missing import Missing, known
from traces.training import roles_of

CONVOLVE = "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt64x128x32"
COLLECT = "void at::native::batch_norm_collect_statistics_kernel<at::native::Var, float>"
RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::relu>"
NORM_BACKWARD = "void at::native::batch_norm_backward_kernel<float, float, float, int>"
WGRAD = "igemm_wrw_gtcx3_nhwc_bf16_bx0_ex1_bt256x128x16"
ADAM = "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor>"
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
MAIN, AUTOGRAD = 1000, 1001
LAYER, UNNAMED = (CONVOLVE, COLLECT, RELU), (GEMM, RELU, GEMM)
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


@pytest.mark.parametrize(
    ("again", "how", "kernels"),
    [
        *((LAYER, {}, 3), ((GEMM, COLLECT, GEMM), {}, 3), (LAYER, {"reduces": True}, 3), ((), {}, 0)),
        (UNNAMED, {"text": "CheckpointFunctionBackward"}, 3),
        (UNNAMED, {"text": "autograd::engine::evaluate_function: CheckpointFunctionBackward"}, 3),
        (UNNAMED, {"text": "torch/utils/checkpoint.py(1111): unpack_hook"}, 3),
        *((UNNAMED, {"text": "recompute layer 3"}, 3), (UNNAMED, {"text": "save_checkpoint"}, 0)),
    ],
)
def test_what_runs_again_counts_whole_by_a_forward_name_in_it_or_a_checkpoint_around_it(
    export: Export, again: Sequence[str], how: dict[str, Any], kernels: int
) -> None:
    """The reduction of gradients is no part of it."""
    assert trained(export, again, **how).at_most_ns == 2 * kernels * 10_000


PLAIN, SHORT = "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", "nvjet_tst_64x64_64x4_2x1_v_bz_TNT"


def by_threads(export: Export, *orders: tuple[int, Sequence[str]], named: bool = True) -> Recompute:
    """Kernels of 10 us by thread, in order; backward's thread has PyTorch's name, or none."""
    line = Line()
    for thread, names in orders:
        for name in names:
            line.run(name, tid=thread)
    rank = rank_of(export(line.recording))
    if named:
        rank.columns.thread_names[line.recording.global_id(MAIN, AUTOGRAD)] = "pt_autograd_0"
    return measure_recompute(rank, spans((0, line.now * 1_000)))


@pytest.mark.parametrize("named", [True, False])
def test_what_another_thread_launches_as_forward_did_may_run_again(export: Export, named: bool) -> None:
    """No name says forward or backward; of three products two are forward's, as many as ran there."""
    found = by_threads(
        export,
        (MAIN, (PLAIN, SHORT, PLAIN)),
        (AUTOGRAD, (PLAIN, SHORT, PLAIN, PLAIN, GEMM, GEMM)),
        named=named,
    )
    assert found.at_most_ns == 3 * 10_000


def most_ns(run: Run, more: bool = False) -> int | None:
    rank = run.rank()
    inside = np.ones(len(rank.activities), dtype=np.bool_)
    return recompute_at_most_ns(rank, roles_of(rank), inside, spans((0, 10**9)), more=more)


@pytest.mark.parametrize(
    ("names", "thread", "at_most_ns"),
    [
        (["spin_kernel"] * 3, 0, None),  # whatever it is, it may be run again
        (["void at::native::copy(int)", *["spin_kernel"] * 3], 0, 0),  # backward has threads of its own
        (["void at::native::copy(int)", *["spin_kernel"] * 3], 1, None),
        (["norm", *["spin_kernel"] * 3], 1, None),
        (["gemm", "norm_backward", "gemm", "norm_backward", "gemm"], 0, 10_000),  # within backward
        ([*["norm"] * 28, *["spin_kernel"] * 3], 1, 0),  # less than a tenth is unknown
        ([*["norm"] * 27, *["spin_kernel"] * 3], 1, None),
    ],
)
def test_unknown_kernels_may_run_again_unless_they_are_few_or_one_thread_of_pytorch_launches_all(
    names: list[str], thread: int, at_most_ns: int | None
) -> None:
    """Of 10 us each, the last by that thread."""
    run = Run()
    for place, name in enumerate(names):
        own = thread if place == len(names) - 1 else 0
        run.work(name, 10 * place, 10 * place + 10, launch=10 * place - 10, thread=own)
    assert most_ns(run) == at_most_ns


def test_a_program_that_begins_here_and_multiplies_nothing_runs_nothing_again() -> None:
    for name, at_most_ns in (("norm", 0), ("gemm", None)):
        run = Run()
        run.call("malloc", -40, -30)
        for place, kernel in enumerate((name, "spin_kernel")):
            run.work(kernel, 10 * place, 10 * place + 10)
        assert most_ns(run) == at_most_ns


@pytest.mark.parametrize(
    ("backward", "more", "products"),
    [("attention_backward", False, 0), ("attention_backward", True, 1), ("norm_backward", False, 1)],
)
def test_where_attention_runs_once_each_way_only_more_products_than_gradients_may_run_again(
    backward: str, more: bool, products: int
) -> None:
    run = Run()
    for place, name in enumerate(("gemm", "attention", backward, "gemm", "gemm")):
        run.work(name, 10 * place, 10 * place + 10, launch=10 * place - 10, thread=int(place > 1))
    assert most_ns(run, more) == 10_000 * products


ATTENTION = "cudnn_generated_oss_sdpa_sm90_flash_fprop_wgmma_f16_knob_7"
ATTENTION_BACKWARD = "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26"


@pytest.mark.parametrize(
    ("products", "again", "at_most_ns"), [(4, 2, 20_000), (4, 0, None), (9, 2, None), (9, 3, 30_000)]
)
def test_attention_that_runs_once_proves_nothing_of_more_products_than_gradients(
    export: Export, products: int, again: int, at_most_ns: int | None
) -> None:
    """Two of gradients backward for each forward; some more run as forward's do, more than a tenth of all."""
    forward = (PLAIN, ATTENTION, *[PLAIN] * (products - 1))
    backward = (*[PLAIN] * again, ATTENTION_BACKWARD, *[GEMM] * 2 * products)
    found = by_threads(export, (MAIN, forward), (AUTOGRAD, backward))
    assert found.at_most_ns == at_most_ns
    assert (found.recompute_ns == 0) == (at_most_ns is None)


def test_more_products_than_gradients_may_run_again_where_norms_alone_are_judged(export: Export) -> None:
    forward, backward = (*[PLAIN] * 4, COLLECT), (PLAIN, NORM_BACKWARD, *[GEMM] * 8)
    assert by_threads(export, (MAIN, forward), (AUTOGRAD, backward)).at_most_ns == 10_000


def test_of_what_another_thread_launches_as_forward_did_the_longest_may_run_again_but_no_norms() -> None:
    """The first to be launched tells forward's thread, whichever runs first."""
    for name, at_most_ns in (("gemm", 50_000), ("norm", 0)):
        run = Run()
        for place, (thread, length) in enumerate(((1, 30), (0, 10), (1, 20), (0, 10), (1, 10))):
            at = 100 * place
            run.work(name, at, at + length, launch=at - (150 if place == 1 else 10), thread=thread)
        assert most_ns(run) == at_most_ns


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("graph", "graph replays were recorded whole"),
        *(("gemm", "no name of a kernel, thread or range shows what runs backward"), ("attention gemm", "")),
        ("norm_backward", "no kernel in the window has forward and backward names that differ"),
        ("norm norm_backward", "only norm could be judged, which is not recomputed"),
        ("attention attention attention attention_backward", "attention: 3 forward and 1 backward passes"),
    ],
)
def test_what_no_pass_tells_is_unknown_unless_nothing_runs_backward(names: str, said: str) -> None:
    run = Run()
    for place, name in enumerate(names.split()):
        run.work(name, 10 * place, 10 * place + 10)
    found = measure_recompute(run.rank(), spans((0, 50_000)))
    reason = "" if found.missing is None else found.missing.reason
    assert (reason.startswith(said), bool(reason)) == (True, bool(said))


@pytest.mark.parametrize(
    ("name", "how", "again"),
    [("attention", {}, 0), ("attention", {"whole_steps": True}, None), ("norm", {"whole_steps": True}, 0)],
)
def test_of_ten_passes_one_without_backward_is_cut_off_unless_steps_are_whole_and_it_has_one_each_way(
    name: str, how: dict[str, bool], again: int | None
) -> None:
    run = Run()
    for place, pass_ in enumerate([name] * 10 + [f"{name}_backward"] * 9):
        run.work(pass_, 10 * place, 10 * place + 10)
    found = measure_recompute(run.rank(), spans((0, 190_000)), **how).modules
    assert not isinstance(found, Missing)
    assert known(found[name].recomputed_count) == again
