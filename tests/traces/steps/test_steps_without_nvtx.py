"""Steps that nobody marked: from the optimizer or what repeats, and none rather than noise."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.by_hand.names import KERNELS
from tests.by_hand.run import Run
from traces.limits import NEARLY_ALL
from traces.names.ranges import is_optimizer_name, is_step_name
from traces.steps import period
from traces.steps.borders import HostOrder
from traces.steps.choose import choose_steps
from traces.steps.found import Found, Step, Steps
from traces.steps.optimizer import _most_have, _repeats, _without_parts
from traces.steps.period import _correlation, _fast_size, _judged, _model, matching_lags
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
        return choose_steps(self.said.rank(), parse_selection(**selection))


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


@pytest.mark.parametrize(("layers", "apart"), [(100, 100), (2, 2), (1, 0)])  # 1 is a twentieth
def test_a_pause_and_an_evaluation_do_not_make_one_step_of_four(layers: int, apart: int) -> None:
    train = Train(skip=10)
    train.step(3, ("adam",) * 20)
    train.run(*LAYER_FORWARD)
    for pause_us in (50, 50, 20_000, 50, 50):
        train.step(3, ("adam",) * 20, wait=pause_us)
    train.run(*LAYER_FORWARD * layers)
    for _ in range(3):
        train.step(3, ("adam",) * 20)
    found = train.steps()
    lengths = [step.length_ns // US for step in found.recorded]
    assert lengths == [700, 890, 850, 20_800, 850, 850, 850 + 40 * (layers - apart), 850, 850]
    assert found.outside is not None
    assert found.outside.between_ns == 40 * apart * US  # the evaluation, as it lies between two whole steps


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


def test_gradient_norms_and_lambdas_are_no_optimizer() -> None:
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
    assert steps.what.endswith("; it may be a microbatch, as no optimizer kernel is known")
    # the part of the first step is left out, and every other step lasts from the wait before it to the next
    assert times_us(steps)[-2:] == [
        (4550 - 10 * skip - 1800, 3650 - 10 * skip),
        (3650 - 10 * skip, 4550 - 10 * skip),
    ]
    assert len(steps.used) == (3 if skip else 4)


def test_a_forward_pass_that_repeats_is_found_and_said_not_to_train() -> None:
    train = Train()
    for _ in range(3):
        train.run(*LAYER_FORWARD * 20, "add", "add", "add")
    steps = train.steps()
    assert (steps.source, len(steps.used), steps.training) == ("period", 3, False)
    assert "microbatch" not in steps.what
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


@pytest.mark.parametrize(
    ("where", "source"), [({}, "optimizer"), ({"process": 1}, "period"), ({"thread": 1}, "period")]
)
def test_optimizer_ranges_of_another_process_or_of_who_launches_nothing_end_no_step(
    where: dict[str, int], source: str
) -> None:
    train = Train(first=950)
    for _ in range(3):
        train.step(optimizers=("mystery_update",) * 5)
        train.said.range("optimizer", train.now - 50, train.now, **where)
    train.said.process(1, device=0).work("gemm", train.now + 10, train.now + 20, launch=train.now)
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


@pytest.mark.parametrize(
    ("names", "begins"),
    [
        *((("all_gather",), 1860), (("all_reduce",), 1860), (("reduce_scatter",), 1860)),
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
    """In the first such work follows the update at 1850."""
    train = Train(first=950)
    for _ in range(3):
        train.step()
        train.run(*names)
    assert [start for start, _ in times_us(train.steps())][1:2] == [begins]


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
    cut = f"partial: the recording ends after {kernels} of 85 kernels"
    assert recorded[-1].dropped == (cut if count == 4 else None)


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (4, "no such step"),  # a twentieth is not worth a word
        *((5, "partial: 5 kernels where the others have 80"), (76, None), (84, None)),
        (75, "partial: 75 kernels where the others have 80"),
        (85, "begins before its step: 85 kernels where the others have 80"),
    ],
)
def test_both_ends_are_held_against_the_steps_that_are_no_parts_themselves(head: int, why: str) -> None:
    counts, at = [head, 80, 80, 5, 5, 6], np.arange(6)
    steps = [Step(place, place, place + 1) for place in range(6)]
    found = _without_parts(Found("", at, at + 10, steps, counts))
    assert found.kernel_counts == counts[-len(found.steps) :]
    assert (found.host_start_ns[-2:].tolist(), found.host_end_ns[-2:].tolist()) == ([4, 5], [14, 15])
    assert (found.steps[0].dropped if len(found.steps) == 6 else "no such step") == why
    assert found.steps[-1].dropped == "partial: the recording ends after 6 of 80 kernels"
    idle = _without_parts(Found("", at, at, [Step(place, 9, 9) for place in range(6)], counts))
    assert idle.steps[-1].dropped == "partial: the recording ends after 6 of 42 kernels"


@pytest.mark.parametrize(("kernels", "source"), [(15, "none"), (16, "period")])
def test_a_period_of_fewer_than_sixteen_kernels_is_no_step(kernels: int, source: str) -> None:
    train = Train()
    for _ in range(6):
        train.run("attention", "attention_backward", *[f"kernel_{one}" for one in range(kernels - 2)])
    assert train.steps().source == source
    train.said.range("ProfilerStep#3", 900, train.now)
    assert train.steps().source == "nvtx"


@pytest.mark.parametrize(
    ("kernels", "times", "found"),
    [
        ("ab", 8, [30] * 7),  # 16 kernels
        ("ab", 7, []),
        ("abcdef", 3, [70] * 2),
        ("abcdefgh", 2, []),  # of two neither is the exception
        ("a" * 20 + "b" * 20, 1, []),  # each over and over
        (("gemm", "a"), 8, []),  # may be a layer
    ],
)
def test_a_few_kernels_that_make_no_layer_repeat_behind_a_start_of_100_ms(
    kernels: str | tuple[str, ...], times: int, found: list[int]
) -> None:
    """Rounds of a wait and kernels of 10 us each; the first has the start in it, and is left out."""
    train = Train()
    train.run(kernels[-1])
    train.now += 100_000
    for _ in range(times):
        train.now += 10
        train.run(*kernels)
    assert [step.length_ns // US for step in train.steps().used] == found


@pytest.mark.parametrize(
    ("roles", "source"),
    [
        (("attention", "attention_backward"), "period"),
        (("attention_backward",), "none"),
        (("attention",), "none"),
        ((*[f"kernel_{one}" for one in range(17)], "gemm", "add", "norm"), "period"),  # two layers in it
    ],
)
def test_what_repeats_is_a_step_with_forward_and_backward_in_it(roles: tuple[str, ...], source: str) -> None:
    train = Train()
    for _ in range(6):
        train.run(*roles, *[f"kernel_{one}" for one in range(20)])
    assert train.steps().source == source


def test_what_repeats_with_an_optimizer_in_it_is_a_step_though_no_input_is_copied() -> None:
    """Weights of each of 12 layers are updated as its backward ends: at no place alone."""
    train = Train()
    for _ in range(4):
        for layer in ("attention_backward", *range(11)):
            train.run(f"{layer}", *["adam"] * 10)
    found = train.steps()
    assert (found.source, found.unit, "microbatch" in found.what) == ("period", "step", False)


@pytest.mark.parametrize(("inputs", "unit"), [(4, "step"), (3, "step"), (2, "block"), (0, "block")])
def test_what_repeats_is_a_step_where_three_quarters_of_it_copy_an_input(inputs: int, unit: str) -> None:
    train = Train()
    for number in range(4):
        train.now += 50
        train.run("gemm")
        if number < inputs:
            train.said.work("h2d", train.now, train.now + 5, stream=9)
        train.run("attention", "attention_backward", *[f"kernel_{one}" for one in range(17)])
    train.run("gemm")  # a twentieth of a period is no piece
    found = train.steps()
    assert (found.source, found.unit, len(found.used), len(found.recorded)) == ("period", unit, 4, 4)


@pytest.mark.parametrize(
    ("text", "is_optimizer"),
    [
        ("Optimizer.step#AdamW.step", True),
        ("Optimizer.step#DistributedFusedAdam.step, op_id = 12", True),
        ("optimizer_step", True),
        ("megatron.optimizer_step 3", True),
        ("## optimizer ##", True),
        *(("optimizer", True), ("my.Optimiser", True), ("optimizer init", False), ("the optimizer", False)),
        ("Optimizer.zero_grad#AdamW.zero_grad", False),
        ("optimizer_step_pre_hook", False),
        ("iteration 3", False),
    ],
)
def test_ranges_of_an_optimizer_are_told_by_name(text: str, is_optimizer: bool) -> None:
    assert is_optimizer_name(text) is is_optimizer
    assert not (is_optimizer and is_step_name(text))


def test_the_least_lag_is_found_among_many_multiples_and_many_near_misses() -> None:
    codes = np.array(([0, 1] * 500 + [2, 3, 4, 5]) * 300)
    match, lags = matching_lags(codes, 1, len(codes) // 2)
    assert (match[0], lags[0]) == (1.0, 1004)
    _, multiples = matching_lags(np.array([0, 1] * 200), 1, 200)  # the shortest are always among them
    assert multiples[:64].tolist() == [*range(2, 130, 2)]
    assert [*map(list, matching_lags(np.array([3, 4, 4, 3]), 3, 9))] == [[1.0], [3]]
    assert _correlation(np.array([3, 5] * 90), 100).round(6).tolist() == [-1, 1] * 50
    fast = [2**twos * 3**threes * 5**fives for twos in range(9) for threes in range(6) for fives in range(4)]
    for least in range(1, 200):
        assert _fast_size(least) == min(size for size in fast if size >= least)


@pytest.mark.parametrize(
    ("waits_us", "gathers_us", "end_us"),
    [
        ((50, 80, 60), (400, 400, 400), 3_690 + 80),  # its work, and the longest wait behind a hidden gather
        ((50, 60, 80), (400, 400, 400), 3_690 + 80),
        ((50, 80, 60), (400, 400, 20), 3_690 + 20),  # its own gather has ended before
        ((50, 80, 60), (400, 30, 400), 3_690 + 80),  # one of two others hides it
        ((50, 80, 60, 50), (400, 30, 400, 500), 4_590 + 80),
        ((50, 80, 60, 50), (400, 30, 30, 500), 4_590 + 500),  # one of three
    ],
)
def test_the_last_step_ends_as_the_others_do_where_half_of_them_hide_their_gather(
    waits_us: tuple[int, ...], gathers_us: tuple[int, ...], end_us: int
) -> None:
    train = Train(first=950)
    for wait, gather in zip(waits_us, gathers_us, strict=True):
        train.step(wait=wait)
        train.said.work("all_gather", train.now, train.now + gather, launch=train.now - 1, stream=9)
    assert times_us(train.steps())[-1][1] == end_us


def test_one_optimizer_cluster_makes_neither_steps_nor_microbatches_of_them() -> None:
    train = Train()
    train.step(microbatches=12)
    steps = train.steps()
    assert (steps.source, steps.recorded, steps.training) == ("none", (), True)


def test_stretches_are_steps_where_half_of_them_have_what_there_is_of_a_role() -> None:
    run = Run()
    for at in (0, 10, 20, 30):
        run.work("gemm", 100 + at, 105 + at, launch=at)
    order = HostOrder(run.rank().activities)
    starts, ends = np.array([0, 10, 20, 30]) * 1_000, np.array([10, 20, 30, 40]) * 1_000
    for having, most in (([0, 3], True), ([3], False), ([], True)):
        role = np.isin(np.arange(4), having)
        assert _most_have(role, order, starts, ends) is most
    for counts, forward, backward, repeats in (
        ([20, 10, 9, 0], [], [], True),
        *(([20, 10, 8, 0], [], [], False), ([0, 10, 8, 20], [], [], False)),
        ([0, 9, 9, 0], [1], [2], True),
        *(([0, 9, 9, 0], [0, 3], [2], False), ([0, 9, 9, 0], [2], [0], False)),
    ):
        roles: Any = SimpleNamespace(
            forward=np.isin(np.arange(4), forward), backward=np.isin(np.arange(4), backward)
        )
        assert _repeats(Found("", starts, ends, [], counts), order, roles) is repeats


def test_what_begins_as_its_step_does_is_of_that_step() -> None:
    """Five steps of 100 us; the third lasts 400, and has a save from its first launch to its end."""
    run = Run()
    run.range("save_checkpoint", 190, 590)
    for start, pause in ((0, 0), (100, 0), (200, 300), (600, 0), (700, 0)):
        run.step(start, start + 100 + pause).work("gemm", pause, pause + 90)
    assert run.measured().steps.slow == (2,)


def test_the_model_of_a_period_is_the_one_most_like_the_next() -> None:
    assert _model(np.array([1, 2, 1, 9, 5, 6, 5, 6, 7, 7, 7]), 2).tolist() == [5, 6]
    assert _model(np.array([1, 2, 1, 2, 5, 6, 5]), 2).tolist() == [1, 2]  # of equals the first
    assert _model(np.array([7, 8, 9]), 2).tolist() == [7, 8]


@pytest.mark.parametrize(
    ("length", "count", "alike", "why"),
    [
        *((1, 95, 0.9, None), (1, 94, 0.9, "partial: 94 kernels where the others have 100")),
        *((1, 95, 0.89, "other work: 89 % of its kernels are as in the others"), (0, 95, 0.9, "no GPU work")),
    ],
)
def test_a_period_is_left_out_that_is_short_or_other_work_or_takes_no_time(
    length: int, count: int, alike: float, why: str | None
) -> None:
    assert _judged(Step(0, 5, 5 + length), count, 100, alike).dropped == why


def test_what_is_left_out_does_not_tell_if_a_period_is_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and last have an optimizer; of the others one is short, one other work, one takes no time."""
    host, gpu = np.array([0, 10, 20, 30, 40, 50]), np.array([0, 10, 20, 30, 30, 40])
    monkeypatch.setattr(period, "step_borders", lambda *_: (gpu[:-1], gpu[1:]))
    counts, alike = np.array([95, 94, 95, 95, 95]), np.array([0.9, 0.9, 0.89, 0.9, 0.9])
    cut = period.Periods(100, "", host[:-1], host[1:], counts, alike)
    order: Any = SimpleNamespace(chosen_between=lambda role, start, end: np.isin(start, [0, 40]))
    roles: Any = SimpleNamespace(optimizer=np.ones(1, dtype=np.bool_))
    assert period._is_step(cut, order, roles, roles, roles.optimizer)


def test_what_matches_as_far_as_it_must_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(period, "NEARLY_ALL", replace(NEARLY_ALL, value=1.0))
    train = Train(first=950)
    for _ in range(3):
        train.step(optimizers=("mystery_update",) * 5)
    found = train.steps()
    assert (found.source, len(found.used)) == ("period", 3)


@pytest.mark.parametrize(("pieces", "used"), [(7, 4), (8, 0)])
def test_what_half_of_the_pieces_are_not_like_is_no_step(pieces: int, used: int) -> None:
    """From one piece of 30 kernels to the next one layer is exchanged: four are like the first."""
    train = Train()
    for piece in range(pieces):
        for place in range(10):
            train.run("gemm", "norm", f"layer{place}{'_new' * (place < piece)}")
    assert len(train.steps().used) == used
