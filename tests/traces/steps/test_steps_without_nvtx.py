"""Steps that nobody marked: from the optimizer, from what repeats, and none rather than noise."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from tests.recordings.moe_pattern import moe_recording
from traces.columns import NULL, HostSpans
from traces.formats.open import ReadOptions, read_trace
from traces.names.ranges import is_optimizer_name, is_step_name
from traces.steps.choose import choose_steps
from traces.steps.found import Steps
from traces.steps.period import matching_lags
from traces.steps.selection import parse_selection
from traces.timeline import RankTimeline, build
from traces.training import is_optimizer_kernel

US = 1_000

GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
FORWARD = "cudnn_generated_oss_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_0"
BACKWARD = "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x4x1_kernel0_0"
NORM = "void multi_tensor_apply_kernel<TensorListMetadata<1>, L2NormFunctor<float, 1>, float*>(long)"
ADAM = "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::FusedOptimize"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, 3>(int)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
RECEIVE = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
LAYER_FORWARD = (GEMM, FORWARD, GEMM, ADD)
LAYER_BACKWARD = (GEMM, GEMM, BACKWARD, GEMM, GEMM, ADD)
MICROBATCH = LAYER_FORWARD * 2 + LAYER_BACKWARD * 2
OPTIMIZERS = (ADAM, ADAM, NORM, ADAM, ADAM)


class Train:
    """A run of kernels of 10 us, one after the other, each launched 5 us before it starts."""

    def __init__(self, first_us: int = 1_000, skip: int = 0) -> None:
        self.recording = Recording()
        self.now_us = first_us
        self._skip = skip

    def run(self, *names: str, **where: int) -> None:
        for name in names:
            if self._skip:  # launched before the recording began
                self._skip -= 1
                continue
            launch_ns = (self.now_us - 5) * US
            start, end = self.now_us * US, (self.now_us + 10) * US
            self.recording.kernel(name, start, end, launch_ns=launch_ns, **where)  # type: ignore[arg-type]
            self.now_us += 10

    def step(
        self, microbatches: int = 4, optimizers: tuple[str, ...] = OPTIMIZERS, wait_us: int = 50
    ) -> None:
        """With its 4 microbatches of 20 kernels, its wait and 5 kernels of optimizers: 900 us."""
        self.now_us += wait_us
        self.run(*MICROBATCH * microbatches)
        self.run(*optimizers)


def rank_of(recording: Recording, path: Path, **how: object) -> RankTimeline:
    write_export(path, recording, **how)  # type: ignore[arg-type]
    (rank,) = build(read_trace(path, ReadOptions())).ranks
    return rank


def steps_in(recording: Recording, path: Path, **selection: str) -> Steps:
    return choose_steps(rank_of(recording, path), parse_selection(**selection))  # type: ignore[arg-type]


def times_us(steps: Steps) -> list[tuple[int, int]]:
    return [(step.start_ns // US, step.end_ns // US) for step in steps.used]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


def test_both_steps_of_megatrons_default_capture_are_used(path: Path) -> None:
    train = Train(first_us=950)
    train.step()
    train.step()
    steps = steps_in(train.recording, path)
    assert steps.source == "optimizer"
    # the first begins with its first kernel, the second with its wait; each ends with its second optimizer
    assert times_us(steps) == [(1000, 1850), (1850, 2750)]
    assert (steps.dropped, steps.disagreement, steps.training) == ((), None, True)
    assert steps.training_evidence.startswith("8 optimizer kernels, 16 kernels that are backward by name, 0 ")


def test_what_follows_the_last_optimizer_is_no_step(path: Path) -> None:
    train = Train(first_us=950)
    train.step()
    train.run(ADD)  # weights are copied to where the next forward reads them
    train.step()
    train.run(ADD)
    assert times_us(steps_in(train.recording, path)) == [(1000, 1850), (1850, 2760)]


def test_a_recording_that_begins_within_a_step_leaves_that_part_out(path: Path) -> None:
    train = Train(first_us=950, skip=40)
    for _ in range(3):
        train.step()
    train.run(*MICROBATCH)
    steps = steps_in(train.recording, path)
    assert times_us(steps) == [(1450, 2350), (2350, 3250)]
    assert [(step.index, step.dropped) for step in steps.dropped] == [
        (0, "partial: 45 kernels where the others have 85"),
        (3, "partial: the recording ends after 20 of 85 kernels"),
    ]


def test_one_whole_step_between_two_parts_is_used(path: Path) -> None:
    train = Train(skip=60)
    train.step()
    train.step()
    assert len(steps_in(train.recording, path).used) == 1


def test_model_loading_before_a_whole_first_step_is_cut_off_and_the_step_is_kept(path: Path) -> None:
    train = Train()
    train.run(*[ADD] * 30)
    for _ in range(3):
        train.step()
    steps = steps_in(train.recording, path)
    assert times_us(steps) == [(1300, 2200), (2200, 3100), (3100, 4000)]
    assert not steps.dropped


def test_model_loading_by_the_kernel_a_step_begins_with_many_times_is_cut_off_to_the_kernel(
    path: Path,
) -> None:
    train = Train()
    train.run(*[ADD] * 30)
    for _ in range(3):
        train.now_us += 50
        train.run(*[ADD] * 200, *MICROBATCH * 4, *OPTIMIZERS)
    steps = steps_in(train.recording, path)
    assert times_us(steps) == [(1300, 4200), (4200, 7100), (7100, 10_000)]
    assert not steps.dropped


def test_what_comes_before_a_part_of_a_step_stays_with_it(path: Path) -> None:
    train = Train()
    train.run(*[ADD] * 90)
    train.run(*MICROBATCH, *OPTIMIZERS)  # the rest of a step that began before the recording
    for _ in range(3):
        train.step()
    steps = steps_in(train.recording, path)
    assert [step.dropped for step in steps.recorded][1:] == [None] * 3
    assert "begins before its step" in str(steps.recorded[0].dropped)


def test_gathers_directly_after_the_last_optimizer_kernel_end_its_step(path: Path) -> None:
    train = Train(first_us=950)
    for _ in range(3):
        train.step()
        train.run(GATHER, GATHER)
    assert times_us(steps_in(train.recording, path)) == [(1000, 1870), (1870, 2790), (2790, 3710)]


def test_what_a_pipeline_receives_after_the_optimizer_is_the_next_steps(path: Path) -> None:
    train = Train(first_us=950)
    for _ in range(3):
        train.step()
        train.run(RECEIVE)
    assert times_us(steps_in(train.recording, path))[1][0] == 1850


def test_a_gather_behind_compute_is_the_next_steps(path: Path) -> None:
    train = Train(first_us=950)
    for _ in range(3):
        train.step()
        train.run(ADD, GATHER)
    assert times_us(steps_in(train.recording, path))[1][0] == 1850


def test_a_pause_and_an_evaluation_do_not_make_one_step_of_four(path: Path) -> None:
    train = Train()
    for pause_us in (50, 50, 50, 20_000, 50, 50):
        train.step(wait_us=pause_us)
    train.run(*LAYER_FORWARD * 100)
    for _ in range(3):
        train.step()
    found = steps_in(train.recording, path)
    lengths = [step.length_ns // US for step in found.recorded]
    assert lengths == [850, 900, 900, 20_850, 900, 900, 900, 900, 900]
    assert found.outside is not None
    assert found.outside.between_ns == 4_000 * US  # the evaluation, as it lies between two whole steps


@pytest.mark.parametrize("at", [1, 2])
def test_an_evaluation_between_few_steps_is_part_of_none(at: int, path: Path) -> None:
    train = Train()
    for number in range(3):
        if number == at:
            train.run(*LAYER_FORWARD * 100)
        train.step()
    assert [step.length_ns // US for step in steps_in(train.recording, path).used] == [850, 900, 900]


def test_a_first_step_begins_with_what_it_launched_first(path: Path) -> None:
    train = Train(first_us=950)
    for _ in range(3):
        train.run(*[RECEIVE] * 30)
        train.step()
    begins = [times[0] for times in times_us(steps_in(train.recording, path))]
    assert begins == [950, 2150, 3350]  # 300 us of receives, then 900


def gathering(us: int, *, is_hidden: bool) -> Train:
    """Three steps of 900 us, each with a gather of so many behind it: beside the next step, or before it."""
    train = Train(first_us=950)
    for _ in range(3):
        train.step()
        start_us = train.now_us
        train.recording.kernel(
            GATHER, start_us * US, (start_us + us) * US, launch_ns=(start_us - 1) * US, stream=9
        )
        train.now_us += 0 if is_hidden else us
    return train


def test_a_gather_that_the_next_steps_hide_is_no_time_of_the_last(path: Path) -> None:
    steps = steps_in(gathering(400, is_hidden=True).recording, path)
    assert times_us(steps) == [(1000, 1900), (1900, 2800), (2800, 3700)]


def test_a_gather_that_holds_each_step_up_is_time_of_the_last_too(path: Path) -> None:
    steps = steps_in(gathering(400, is_hidden=False).recording, path)
    assert times_us(steps) == [(1000, 2250), (2250, 3550), (3550, 4850)]


def test_an_optimizer_of_many_small_kernels_is_one_cluster(path: Path) -> None:
    division = "void at::native::elementwise_kernel<128, 2, at::native::addcdiv_cuda_kernel(at::TensorIter"
    train = Train(first_us=950)
    for _ in range(3):
        train.step(optimizers=(ADD, ADD, division) * 10)
    assert [step.length_ns // US for step in steps_in(train.recording, path).used] == [1_100, 1_150, 1_150]


@pytest.mark.parametrize(
    ("between", "source"), [((), "optimizer"), ((ADD,), "optimizer"), ((ADD, ADD, ADD), "period")]
)
def test_squares_added_up_and_their_root_soon_after_are_an_optimizer(
    path: Path, between: tuple[str, ...], source: str
) -> None:
    """Adam takes the root at once, Adadelta after its epsilon; later it is of something else."""
    squares, root = (
        f"void at::native::vectorized_elementwise_kernel<4, at::native::{name}(at::TensorIter"
        for name in ("addcmul_cuda_kernel", "sqrt_kernel_cuda")
    )
    train = Train(first_us=950)
    for _ in range(3):
        train.step(optimizers=(squares, *between, root))
    assert steps_in(train.recording, path).source == source


def test_an_optimizer_range_ends_the_step_where_no_kernel_is_known(path: Path) -> None:
    train = Train(first_us=950)
    for _ in range(3):
        train.step(optimizers=())
        begin_us = train.now_us
        train.run(ADD, ADD)
        train.recording.range("Optimizer.step#FusedAdam.step", (begin_us - 5) * US, train.now_us * US)
    steps = steps_in(train.recording, path)
    assert (steps.source, steps.what) == ("optimizer", "to the end of each optimizer range")
    assert times_us(steps) == [(1000, 1820), (1820, 2690), (2690, 3560)]


def test_gradient_norms_and_lambdas_are_no_optimizer(path: Path) -> None:
    train = Train()
    for _ in range(50):
        train.run(
            ADD, NORM, "void at::native::gpu_kernel_impl<...{lambda(float)#1}>(at::TensorIteratorBase&)"
        )
    steps = steps_in(train.recording, path)
    assert steps.source == "none"
    assert not any(map(is_optimizer_kernel, (NORM, GEMM, ADD, "void f<{lambda(float)#1}>(float)")))
    assert is_optimizer_kernel(
        "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctorMaster<float>>"
    )
    foreach = (
        "void multi_tensor_apply_kernel<{}, PointwiseOpScalarListFunctor<float, 3, 3, 0>, std::{}<float> >"
    )
    assert is_optimizer_kernel(foreach.format("TensorListScalarListMetadata<float, 3>", "divides"))
    assert not is_optimizer_kernel(foreach.format("TensorListScalarListMetadata<float, 3>", "multiplies"))


def test_one_optimizer_cluster_makes_neither_steps_nor_microbatches_of_them(path: Path) -> None:
    train = Train()
    train.step(microbatches=12)
    steps = steps_in(train.recording, path)
    assert (steps.source, steps.recorded, steps.training) == ("none", (), True)


@pytest.mark.parametrize("skip", [0, 30])
def test_an_optimizer_nobody_knows_leaves_the_period(path: Path, skip: int) -> None:
    train = Train(first_us=950, skip=skip)
    for _ in range(4):
        train.step(optimizers=("mystery_update",) * 5)
    steps = steps_in(train.recording, path)
    assert steps.source == "period"
    assert steps.what.startswith("repeating sequence of kernel names and grids, 85 kernels long")
    # the part of the first step is left out, and every other step lasts from the wait before it to the next
    assert times_us(steps)[-2:] == [
        (4550 - 10 * skip - 1800, 3650 - 10 * skip),
        (3650 - 10 * skip, 4550 - 10 * skip),
    ]
    assert len(steps.used) == (3 if skip else 4)


def test_two_periods_and_nothing_more_are_two_steps(path: Path) -> None:
    train = Train(first_us=950)
    for _ in range(2):
        train.step(optimizers=("mystery_update",) * 5)
    assert times_us(steps_in(train.recording, path)) == [(1000, 1850), (1850, 2750)]


def test_layers_that_repeat_within_one_pass_are_no_steps(path: Path) -> None:
    train = Train()
    block = [f"gemm_{number}" for number in range(40)]
    train.run(*block * 20)
    steps = steps_in(train.recording, path)
    assert (steps.source, steps.training) == ("none", None)


def test_a_forward_pass_that_repeats_is_found_and_said_not_to_train(path: Path) -> None:
    train = Train()
    for _ in range(3):
        train.run(*LAYER_FORWARD * 20, ADD, ADD, ADD)
    steps = steps_in(train.recording, path)
    assert (steps.source, len(steps.used), steps.training) == ("period", 3, False)
    assert (
        steps.training_evidence
        == "no optimizer kernel and no backward kernel beside 60 that are forward by name"
    )


def test_routing_that_changes_every_grid_leaves_the_names(path: Path) -> None:
    train, draw = Train(first_us=950), random.Random(0)
    for _ in range(3):
        for name in (*MICROBATCH * 4, *("mystery_update",) * 5):
            grid = (draw.randrange(1, 1000), 1, 1)
            train.run(name, grid=grid)  # type: ignore[arg-type]
    assert steps_in(train.recording, path).what.startswith(
        "repeating sequence of kernel names, 85 kernels long"
    )


def test_noise_has_no_period(path: Path) -> None:
    train, draw = Train(), random.Random(0)
    train.run(*(draw.choice(MICROBATCH) for _ in range(500)))
    assert steps_in(train.recording, path).source == "none"


def test_the_autograd_thread_shows_training(path: Path) -> None:
    train = Train()
    train.run(GEMM, ADD)
    train.run(GEMM, tid=1001)
    rank = rank_of(train.recording, path)
    thread = train.recording.global_id(1000, 1001)
    rank.columns.thread_names[thread] = "pt_autograd_0"
    steps = choose_steps(rank, parse_selection())
    assert steps.training_evidence.endswith("1 launched by autograd threads, 0 optimizer ranges")


def test_a_step_that_captures_a_graph_is_left_out(path: Path) -> None:
    train = Train(first_us=950)
    for number in range(3):
        if number == 1:
            train.recording.call("cudaStreamBeginCapture_v10000", 1_870 * US, 1_871 * US)
        train.step()
    steps = steps_in(train.recording, path)
    assert [step.dropped for step in steps.recorded] == [
        None,
        "graph capture: cudaStreamBeginCapture was called in it",
        None,
    ]


def test_a_profiler_that_writes_at_a_border_spoils_the_step_it_is_long_in(path: Path) -> None:
    train = Train(first_us=950)
    for _ in range(3):
        train.step()
    rank = rank_of(train.recording, path)
    start_ns, end_ns, thread, name = (np.array([value]) for value in (1_840 * US, 1_950 * US, NULL, 0))
    flush = HostSpans(start_ns, end_ns, thread, name, ("CUPTI Buffer flush",))
    spoilt = replace(rank, columns=replace(rank.columns, overheads=flush))
    steps = choose_steps(spoilt, parse_selection())
    assert [step.dropped for step in steps.recorded] == [
        None,  # 10 us of 850
        "profiler flush: 100000 ns of it at its border",
        None,
    ]


def test_steps_from_a_to_b_choose_among_inferred_ones(path: Path) -> None:
    train = Train(first_us=950)
    for _ in range(3):
        train.step()
    steps = steps_in(train.recording, path, steps="1:2")
    assert (steps.source, times_us(steps), steps.training) == ("user", [(1850, 2750)], True)
    assert steps.what == "to the last optimizer kernel of each cluster, --steps 1:2"


def test_ways_that_disagree_are_named(path: Path) -> None:
    train = Train(first_us=950)
    for _ in range(4):
        for number in range(2):  # a range of each half
            begin_us = train.now_us + 40
            train.step(microbatches=2, optimizers=OPTIMIZERS if number else (ADD,) * 5)
            train.recording.range(f"iteration {number}", begin_us * US, train.now_us * US)
    steps = steps_in(train.recording, path)
    assert (steps.source, steps.median_ns) == ("nvtx", 500 * US)
    assert steps.disagreement is not None
    assert "to the last optimizer kernel of each cluster: 1.00 ms (4 steps)" in steps.disagreement


def test_a_hiccup_leaves_all_figures_but_its_own(path: Path) -> None:
    train = Train(first_us=950)
    for number in range(9):
        train.step(wait_us=550 if number == 5 else 50 + number)
    steps = steps_in(train.recording, path)
    assert (len(steps.used), len(steps.recorded), steps.slow) == (8, 9, (5,))
    assert steps.median_ns == 903_500  # of 850, 901, 902, 903, 904, 906, 907, 908
    assert steps.hiccups_ns == 1_400_000 - 903_500


def test_the_demo_gives_the_same_steps_without_its_ranges(tmp_path: Path) -> None:
    marked = steps_in(moe_recording(steps=4, nvtx=True), tmp_path / "a.sqlite")
    bare = steps_in(moe_recording(steps=4, nvtx=False), tmp_path / "b.sqlite")
    assert (marked.source, bare.source) == ("nvtx", "optimizer")
    assert (len(marked.used), len(bare.used), marked.disagreement) == (4, 4, None)


@pytest.mark.parametrize(
    ("text", "is_optimizer"),
    [
        ("Optimizer.step#AdamW.step", True),
        ("Optimizer.step#DistributedFusedAdam.step, op_id = 12", True),
        ("optimizer_step", True),
        ("megatron.optimizer_step 3", True),
        ("## optimizer ##", True),
        ("Optimizer.zero_grad#AdamW.zero_grad", False),
        ("optimizer_step_pre_hook", False),
        ("iteration 3", False),
    ],
)
def test_ranges_of_an_optimizer_are_told_by_name(text: str, is_optimizer: bool) -> None:
    assert is_optimizer_name(text) is is_optimizer
    assert not (is_optimizer and is_step_name(text))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from([GEMM, FORWARD, BACKWARD, ADAM, ADD]),
            st.integers(0, 60),
            st.integers(-2, 20),
            st.none() | st.integers(0, 80),
            st.integers(7, 8),
        ),
        min_size=1,
        max_size=40,
    ),
    st.lists(st.tuples(st.sampled_from(["optimizer_step", "iteration 1", "x"]), st.integers(0, 60))),
)
def test_odd_recordings_give_steps_in_order_and_never_an_error(
    tmp_path: Path, work: list[tuple[str, int, int, int | None, int]], ranges: list[tuple[str, int]]
) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 1)  # one that takes time: without any there is no rank
    for name, start, length, launch, stream in work:
        recording.kernel(name, 1 + start, 1 + start + length, launch_ns=launch, stream=stream)
    for text, start in ranges:
        recording.range(text, start, start + 5)
    path = tmp_path / "odd.sqlite"
    path.unlink(missing_ok=True)
    steps = steps_in(recording, path)
    used = [(step.start_ns, step.end_ns) for step in steps.used]
    assert all(start < end for start, end in used)
    assert all(before[1] <= after[0] for before, after in pairwise(used))


def test_lags_are_those_that_counting_finds() -> None:
    codes = np.array(([0, 1, 1, 2, 3] * 4 + [9]) * 6)
    counted = {lag: float(np.mean(codes[lag:] == codes[:-lag])) for lag in range(2, 61)}
    best_match, best = matching_lags(codes, 2, 60)[0]
    assert (best_match, best) == (1.0, 21)
    assert max(counted.values()) == counted[21] == 1.0


def test_the_least_lag_is_found_among_many_multiples_and_many_near_misses() -> None:
    codes = np.array(([0, 1] * 500 + [2, 3, 4, 5]) * 300)
    assert matching_lags(codes, 1, len(codes) // 2)[0] == (1.0, 1004)


def real_steps(recordings: Path, name: str) -> list[Steps]:
    ranks = build(read_trace(recordings / name, ReadOptions())).ranks
    return [choose_steps(rank, parse_selection()) for rank in ranks]


def test_a_real_language_model_ran_forward_once_to_warm_up_and_three_times(recordings: Path) -> None:
    (steps,) = real_steps(recordings, "a100_llm_2_7B_nvtx.sqlite")
    assert (steps.source, steps.unit, len(steps.used), steps.training) == ("period", "block", 3, False)
    # 7328 kernels, each pass 1832 of them; the first waits for its kernels to load, so it is warm-up
    assert "1832 kernels long" in steps.what
    assert [round(step.length_ns / 1e6) for step in steps.recorded] == [1434, 843, 841, 841]


@pytest.mark.parametrize(
    ("name", "training"),
    [
        ("nsysai_mfu_2gpu_before.sqlite", False),  # 17 blocks of one forward pass
        ("nsysai_h100_2gpu_1s.sqlite", None),
        ("fuser_h200_2025.sqlite", False),
        ("pipit_saxpy_mpi.sqlite", None),
        ("edge_2026_tiny.sqlite", None),
    ],
)
def test_real_recordings_without_a_whole_step_give_none(
    recordings: Path, name: str, training: bool | None
) -> None:
    for steps in real_steps(recordings, name):
        assert (steps.source, steps.recorded, steps.training) == ("none", (), training)
