"""How steps are cut where nobody marked them: each limit with a case at it and one beyond."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.by_hand.run import Run
from tests.traces.steps.test_steps_without_nvtx import Train, times_us
from traces.steps import period
from traces.steps.borders import HostOrder
from traces.steps.found import Step
from traces.steps.optimizer import _gap_that_parts, _most_have
from traces.steps.period import _judged, _model
from traces.steps.rules import _median_without


@pytest.mark.parametrize(
    ("gaps", "own", "level"),
    [
        ([100, 100], 1_800, 100),  # a tenth of the 1,000 that each of two periods takes
        ([100, 100], 1_801, None),
        ([49, 100, 100], 751, 100),  # below a tenth of 450 is little between two optimizers
        ([50, 100, 100], 750, 50),
        ([0, 0], 0, None),
    ],
)
def test_a_gap_parts_two_optimizers_where_it_is_a_tenth_of_the_period(
    gaps: list[int], own: int, level: int | None
) -> None:
    assert _gap_that_parts(np.array(gaps), own) == level


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


def test_what_begins_as_its_step_does_is_of_that_step() -> None:
    """Five steps of 100 us; the third has a save of 200 from its first launch on, and lasts 400."""
    run = Run()
    for start, pause in ((0, 0), (100, 0), (200, 300), (600, 0), (700, 0)):
        run.step(start, start + 100 + pause).work("gemm", pause, pause + 90)
    run.range("save_checkpoint", 190, 390)
    assert run.measured().steps.slow == (2,)


def test_the_model_of_a_period_is_the_one_most_like_the_next() -> None:
    assert _model(np.array([1, 2, 1, 9, 5, 6, 5, 6, 7, 7, 7]), 2).tolist() == [5, 6]
    assert _model(np.array([1, 2, 1, 2, 5, 6, 5]), 2).tolist() == [1, 2]  # of equals the first
    assert _model(np.array([7, 8, 9]), 2).tolist() == [7, 8]


@pytest.mark.parametrize(
    ("length", "count", "alike", "why"),
    [
        (1, 95, 0.9, None),
        (1, 94, 0.9, "partial: 94 kernels where the others have 100"),
        (1, 95, 0.89, "other work: 89 % of its kernels are as in the others"),
        (0, 95, 0.9, "no GPU work"),
    ],
)
def test_a_period_is_left_out_that_is_short_or_other_work_or_takes_no_time(
    length: int, count: int, alike: float, why: str | None
) -> None:
    assert _judged(Step(0, 5, 5 + length), count, 100, alike).dropped == why


def test_what_matches_as_far_as_it_must_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(period, "MATCH", replace(period.MATCH, value=1.0))
    train = Train(first=950)
    for _ in range(3):
        train.step(optimizers=("mystery_update",) * 5)
    found = train.steps()
    assert (found.source, len(found.used)) == ("period", 3)


def test_without_another_there_is_no_median_of_the_others() -> None:
    assert [_median_without([7], 7), _median_without([5, 7], 7), _median_without([5, 7, 9], 9)] == [
        None,
        5,
        5,
    ]
