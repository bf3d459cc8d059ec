"""Steps that nobody marked: from the optimizer, from what repeats, and none rather than noise."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.by_hand.names import KERNELS
from tests.by_hand.run import Run
from traces.names.ranges import is_optimizer_name, is_step_name
from traces.steps.choose import choose_steps
from traces.steps.found import Steps
from traces.steps.period import matching_lags
from traces.steps.selection import parse_selection
from traces.training import is_optimizer_kernel

US = 1_000
LAYER_FORWARD = ("gemm", "attention", "gemm", "add")
LAYER_BACKWARD = ("gemm", "gemm", "attention_backward", "gemm", "gemm", "add")
MICROBATCH = LAYER_FORWARD * 2 + LAYER_BACKWARD * 2
OPTIMIZERS = ("adam", "adam", "gradient_norm", "adam", "adam")


class Train:
    """A run of kernels of 10 us, one after the other, each launched 5 us before it starts."""

    def __init__(self, first: int = 1_000, skip: int = 0) -> None:
        self.said = Run(ahead_us=5)
        self.now = first
        self._skip = skip

    def run(self, *names: str, **about: Any) -> None:
        for name in names:
            if self._skip:  # launched before the recording began
                self._skip -= 1
                continue
            self.said.work(name, self.now, self.now + 10, **about)
            self.now += 10

    def step(self, microbatches: int = 4, optimizers: tuple[str, ...] = OPTIMIZERS, wait: int = 50) -> None:
        """With its 4 microbatches of 20 kernels, its wait and 5 kernels of optimizers: 900 us."""
        self.now += wait
        self.run(*MICROBATCH * microbatches)
        self.run(*optimizers)

    def steps(self, **selection: Any) -> Steps:
        return steps_of(self.said, **selection)


def steps_of(run: Run, **selection: Any) -> Steps:
    return choose_steps(run.rank(), parse_selection(**selection))


def times_us(steps: Steps) -> list[tuple[int, int]]:
    return [(step.start_ns // US, step.end_ns // US) for step in steps.used]


def test_both_steps_of_megatrons_default_capture_are_used() -> None:
    train = Train(first=950)
    train.step()
    train.step()
    steps = train.steps()
    assert steps.source == "optimizer"
    # the first begins with its first kernel, the second with its wait; each ends with its second optimizer
    assert times_us(steps) == [(1000, 1850), (1850, 2750)]
    assert (steps.dropped, steps.disagreement, steps.training) == ((), None, True)
    assert steps.training_evidence.startswith("8 optimizer kernels, 16 kernels that are backward by name, 0 ")


def test_model_loading_by_the_kernel_a_step_begins_with_many_times_is_cut_off_to_the_kernel() -> None:
    train = Train()
    train.run(*["add"] * 30)
    for _ in range(3):
        train.now += 50
        train.run(*["add"] * 200, *MICROBATCH * 4, *OPTIMIZERS)
    steps = train.steps()
    assert times_us(steps) == [(1300, 4200), (4200, 7100), (7100, 10_000)]
    assert not steps.dropped


def test_what_comes_before_a_part_of_a_step_stays_with_it() -> None:
    train = Train()
    train.run(*["add"] * 90)
    train.run(*MICROBATCH, *OPTIMIZERS)  # the rest of a step that began before the recording
    for _ in range(3):
        train.step()
    steps = train.steps()
    assert [step.dropped for step in steps.recorded][1:] == [None] * 3
    assert "begins before its step" in str(steps.recorded[0].dropped)


def test_a_pause_and_an_evaluation_do_not_make_one_step_of_four() -> None:
    train = Train()
    for pause_us in (50, 50, 50, 20_000, 50, 50):
        train.step(wait=pause_us)
    train.run(*LAYER_FORWARD * 100)
    for _ in range(3):
        train.step()
    found = train.steps()
    lengths = [step.length_ns // US for step in found.recorded]
    assert lengths == [850, 900, 900, 20_850, 900, 900, 900, 900, 900]
    assert found.outside is not None
    assert found.outside.between_ns == 4_000 * US  # the evaluation, as it lies between two whole steps


@pytest.mark.parametrize("at", [1, 2])
def test_an_evaluation_between_few_steps_is_part_of_none(at: int) -> None:
    train = Train()
    for number in range(3):
        if number == at:
            train.run(*LAYER_FORWARD * 100)
        train.step()
    assert [step.length_ns // US for step in train.steps().used] == [850, 900, 900]


@pytest.mark.parametrize(
    ("between", "source"), [((), "optimizer"), (("add",), "optimizer"), (("add", "add", "add"), "period")]
)
def test_squares_added_up_and_their_root_soon_after_are_an_optimizer(
    between: tuple[str, ...], source: str
) -> None:
    """Adam takes the root at once, Adadelta after its epsilon; later it is of something else."""
    squares, root = (
        f"void at::native::vectorized_elementwise_kernel<4, at::native::{name}(at::TensorIter"
        for name in ("addcmul_cuda_kernel", "sqrt_kernel_cuda")
    )
    train = Train(first=950)
    for _ in range(3):
        train.step(optimizers=(squares, *between, root))
    assert train.steps().source == source


def test_an_optimizer_range_ends_the_step_where_no_kernel_is_known() -> None:
    train = Train(first=950)
    for _ in range(3):
        train.step(optimizers=())
        begin_us = train.now
        train.run("add", "add")
        train.said.range("optimizer", begin_us - 5, train.now)
    steps = train.steps()
    assert (steps.source, steps.what) == ("optimizer", "to the end of each optimizer range")
    assert times_us(steps) == [(1000, 1820), (1820, 2690), (2690, 3560)]


def test_gradient_norms_and_lambdas_are_no_optimizer() -> None:
    train = Train()
    for _ in range(50):
        train.run(
            "add",
            "gradient_norm",
            "void at::native::gpu_kernel_impl<...{lambda(float)#1}>(at::TensorIteratorBase&)",
        )
    steps = train.steps()
    assert steps.source == "none"
    no_optimizer = [KERNELS[word] for word in ("gradient_norm", "gemm", "add")]
    assert not any(map(is_optimizer_kernel, [*no_optimizer, "void f<{lambda(float)#1}>(float)"]))
    assert is_optimizer_kernel("multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctorMaster<float>>")
    cut = "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::FusedOptimize"
    assert is_optimizer_kernel(cut)
    foreach = (
        "void multi_tensor_apply_kernel<{}, PointwiseOpScalarListFunctor<float, 3, 3, 0>, std::{}<float> >"
    )
    assert is_optimizer_kernel(foreach.format("TensorListScalarListMetadata<float, 3>", "divides"))
    assert not is_optimizer_kernel(foreach.format("TensorListScalarListMetadata<float, 3>", "multiplies"))


@pytest.mark.parametrize("skip", [0, 30])
def test_an_optimizer_nobody_knows_leaves_the_period(skip: int) -> None:
    train = Train(first=950, skip=skip)
    for _ in range(4):
        train.step(optimizers=("mystery_update",) * 5)
    steps = train.steps()
    assert steps.source == "period"
    assert steps.what.startswith("repeating sequence of kernel names and grids, 85 kernels long")
    # the part of the first step is left out, and every other step lasts from the wait before it to the next
    assert times_us(steps)[-2:] == [
        (4550 - 10 * skip - 1800, 3650 - 10 * skip),
        (3650 - 10 * skip, 4550 - 10 * skip),
    ]
    assert len(steps.used) == (3 if skip else 4)


def test_two_periods_and_nothing_more_are_two_steps() -> None:
    train = Train(first=950)
    for _ in range(2):
        train.step(optimizers=("mystery_update",) * 5)
    assert times_us(train.steps()) == [(1000, 1850), (1850, 2750)]


def test_a_forward_pass_that_repeats_is_found_and_said_not_to_train() -> None:
    train = Train()
    for _ in range(3):
        train.run(*LAYER_FORWARD * 20, "add", "add", "add")
    steps = train.steps()
    assert (steps.source, len(steps.used), steps.training) == ("period", 3, False)
    assert (
        steps.training_evidence
        == "no optimizer kernel and no backward kernel beside 60 that are forward by name"
    )


def test_routing_that_changes_every_grid_leaves_the_names() -> None:
    train, draw = Train(first=950), random.Random(0)
    for _ in range(3):
        for name in (*MICROBATCH * 4, *("mystery_update",) * 5):
            train.run(name, blocks=draw.randrange(1, 1000))
    assert train.steps().what.startswith("repeating sequence of kernel names, 85 kernels long")


def test_the_autograd_thread_shows_training() -> None:
    train = Train()
    train.run("gemm", "add")
    train.run("gemm", thread=1)
    rank = train.said.rank()
    thread = train.said.recording.global_id(1000, 1001)
    rank.columns.thread_names[thread] = "pt_autograd_0"
    steps = choose_steps(rank, parse_selection())
    assert steps.training_evidence.endswith("1 launched by autograd threads, 0 optimizer ranges")


@pytest.mark.parametrize(("process", "source"), [(0, "optimizer"), (1, "period")])
def test_optimizer_ranges_of_another_process_end_no_step_of_this_one(process: int, source: str) -> None:
    train = Train(first=950)
    for _ in range(3):
        train.step(optimizers=("mystery_update",) * 5)
        train.said.range("optimizer", train.now - 50, train.now, process=process)
    train.said.process(process, device=0).work("gemm", train.now + 10, train.now + 20, launch=train.now)
    assert train.steps().source == source


def test_what_optimizers_take_themselves_is_part_of_the_period() -> None:
    """800 us of a step, 500 of each update, and 90 between the two: a twentieth, and by far the least gap."""
    train = Train(first=950)
    for _ in range(3):
        train.now += 50
        train.run(*MICROBATCH * 4)
        for place in range(2):
            begin = train.now
            train.run(*["add"] * 50)
            train.said.range("optimizer", begin - 5, train.now - 6)
            train.run(*["gemm"] * (9 if place == 0 else 0))
    found = train.steps()
    assert (found.source, [step.length_ns // US for step in found.used]) == ("optimizer", [1890, 1940, 1940])


def after_update(*names: str) -> list[int]:
    """Where the second step begins in whose first one such work follows the update at 1850."""
    train = Train(first=950)
    for _ in range(3):
        train.step()
        train.run(*names)
    return [start for start, _ in times_us(train.steps())][1:2]


@pytest.mark.parametrize(
    ("names", "begins"),
    [
        (("all_gather",), 1860),
        (("all_reduce",), 1860),
        (("reduce_scatter",), 1860),
        (("all_gather", "all_gather", "add", "all_gather"), 1870),
        (("send_recv",), 1850),  # the next step's
        (("dispatch",), 1850),
        (("d2h", "all_gather"), 1850),  # behind a copy
        (("p2p",), 1850),  # a copy of a peer is no collective kernel
    ],
)
def test_only_collectives_launched_directly_after_the_update_are_of_its_step(
    names: tuple[str, ...], begins: int
) -> None:
    assert after_update(*names) == [begins]


@pytest.mark.parametrize(
    ("skip", "first"),
    [
        (0, None),
        (4, None),  # 81 of 85: 95.3 %
        (5, "partial: 80 kernels where the others have 85"),
        (80, "partial: 5 kernels where the others have 85"),
        (81, None),  # 4 of 85 are not worth a word: there is no such step
    ],
)
def test_a_head_is_a_step_where_it_holds_nineteen_of_twenty_kernels(skip: int, first: str | None) -> None:
    train = Train(skip=skip)
    for _ in range(3):
        train.step()
    recorded = train.steps().recorded
    assert (len(recorded), recorded[0].dropped) == (2 if skip == 81 else 3, first)


@pytest.mark.parametrize(("kernels", "count"), [(0, 3), (4, 3), (5, 4), (84, 4)])
def test_a_tail_is_left_out_and_said_where_it_is_more_than_a_twentieth_of_a_step(
    kernels: int, count: int
) -> None:
    train = Train(first=950)
    for _ in range(3):
        train.step()
    train.run(*(MICROBATCH * 5)[:kernels])
    recorded = train.steps().recorded
    assert len(recorded) == count
    assert (recorded[-1].dropped or "").startswith("partial: the recording ends" if count == 4 else "")


@pytest.mark.parametrize(("kernels", "source"), [(15, "none"), (16, "period")])
def test_a_period_of_fewer_than_sixteen_kernels_is_no_step(kernels: int, source: str) -> None:
    train = Train()
    for _ in range(6):
        train.run("attention", "attention_backward", *[f"kernel_{one}" for one in range(kernels - 2)])
    assert train.steps().source == source


@pytest.mark.parametrize(
    ("roles", "source"),
    [
        (("attention", "attention_backward"), "period"),
        (("attention_backward",), "none"),
        (("attention",), "none"),
    ],
)
def test_what_repeats_is_a_step_with_forward_and_backward_in_it(roles: tuple[str, ...], source: str) -> None:
    train = Train()
    for _ in range(6):
        train.run(*roles, *[f"kernel_{one}" for one in range(20)])
    assert train.steps().source == source


@pytest.mark.parametrize(("inputs", "unit"), [(4, "step"), (3, "step"), (2, "block"), (0, "block")])
def test_what_repeats_is_a_step_where_three_quarters_of_it_copy_an_input(inputs: int, unit: str) -> None:
    train = Train()
    for number in range(4):
        train.now += 50
        train.run("gemm")
        if number < inputs:
            train.said.work("h2d", train.now, train.now + 5, stream=9)
        train.run("attention", "attention_backward", *[f"kernel_{one}" for one in range(20)])
    found = train.steps()
    assert (found.source, found.unit, len(found.used)) == ("period", unit, 4)


def test_the_period_is_that_of_the_stream_that_computes_longest() -> None:
    """On stream 9 run more kernels, which never repeat, and take less time."""
    train, draw = Train(first=950), random.Random(1)
    for _ in range(4):
        train.step(optimizers=("mystery_update",) * 5)
    for at in range(1_000, 4_500, 9):
        train.said.work(f"noise_{draw.randrange(1_000)}", at, at + 1, stream=9)
    found = train.steps()
    assert (found.source, len(found.used)) == ("period", 4)
    assert "85 kernels long" in found.what


@pytest.mark.parametrize(("wait", "why"), [(40, "from the largest gap that returns"), (19, "cut somewhere")])
def test_a_gap_stands_out_where_it_is_twice_the_next(wait: int, why: str) -> None:
    """The recording begins within a step: 30 kernels are missing; a gap of 10 lies in each as well."""
    train = Train(first=950, skip=30)
    for _ in range(4):
        train.now += wait
        train.run(*MICROBATCH * 2)
        train.now += 10
        train.run(*MICROBATCH * 2, *["mystery_update"] * 5)
    assert why in train.steps().what


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


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["gemm", "attention", "attention_backward", "adam", "add"]),
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
    work: list[tuple[str, int, int, int | None, int]], ranges: list[tuple[str, int]]
) -> None:
    run = Run()
    run.work("gemm", 0, 1, launched=False)  # one that takes time: without any there is no rank
    for name, start, length, launch, stream in work:
        run.work(
            name, 1 + start, 1 + start + length, launch=launch, launched=launch is not None, stream=stream
        )
    for text, start in ranges:
        run.range(text, start, start + 5)
    used = times_us(steps_of(run))
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
