"""Waiting and moving, complete groups, and the run replayed without its cause."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.recordings.ranks import US, Work, analyse_run, array, together
from traces.ranks.one_run.align import Aligned, Clocks
from traces.ranks.replay.beneath import Slowed, _slowed, comes_after, slope
from traces.ranks.rows.ends import NO_ROW
from traces.ranks.summaries.summary import Operation
from traces.sections.run import RunWithout

ONE_CLOCK = Clocks(True, 0, ())


def test_even_tokens_leave_what_a_balancing_loss_leaves() -> None:
    rows = [
        [Work(60 + 40 * (1 + (rank == number % 4)), 40 * (1 + (rank == number % 4))) for number in range(40)]
        for rank in range(4)
    ]
    found = analyse_run(together(rows, per_step=10, operation=Operation.EXCHANGE)).without
    assert isinstance(found, RunWithout)
    assert found.saved_frac == pytest.approx(1 - found.without_ns / found.step_ns)
    assert found.step_ns == 10 * 150 * US
    assert found.without_ns == pytest.approx(10 * (60 + 50 * 1.06 + 10) * US, rel=0.01)


@pytest.mark.parametrize(("compute_ns", "after"), [(175, 1), (174, 2)])
def test_compute_before_what_held_a_rank_up_does_not_count_since_then(compute_ns: int, after: int) -> None:
    """Behind what ended at 100 ns 80 of compute fit before 200 but for the 20 exposed; to 300 it takes 95."""
    matched: Any = SimpleNamespace(
        exposed_ns=array([10, 20, 0, 10]), length_ns=array([10, 50, 30, 10]), kind=array([6, 6, 5, 6]),
        place=array([0] * 4), compute_ns=array([0, 0, 0, compute_ns]),
    )  # fmt: skip
    aligned = Aligned(array([90, 150, 210, 300]), array([100, 200, 240, 310]), ONE_CLOCK)
    behind, last = array([NO_ROW, NO_ROW, NO_ROW, 0]), array([NO_ROW, 0, 1, 2])
    found, _ = comes_after(matched, aligned, array(range(4)), behind, last, [5])
    assert found.tolist() == [NO_ROW, 0, 1, after]


def slowed(own: list[int], beside: list[int], role: list[int]) -> Slowed | None:
    """Stretches that take so long, with so much beneath them: of every second 5 ns after they begin."""
    count, begin = len(own), 10_000 * np.arange(len(own))
    lead = 5 * (np.arange(count) % 2)
    beneath, after = np.full((2, 3 * count), NO_ROW)
    after[2 * count :], beneath[2 * count :] = np.arange(count), np.arange(count, 2 * count)
    starts = begin, begin + np.where(lead > 0, lead, -7), begin + own
    ends = np.concatenate((begin, begin + lead + beside, begin + own))
    aligned = Aligned(np.concatenate(starts), ends, ONE_CLOCK)
    found = _slowed(aligned, np.array([9] * 2 * count + role), after, beneath)
    assert found is None or found.lead_ns.tolist() == [0] * 2 * count + lead.tolist()
    assert found is None or found.beneath is beneath
    return found


@pytest.mark.parametrize(
    ("own", "beside", "role", "frac"),
    [
        ([400, 410, 420, 430, 1_000], [0, 40, 80, 120, 900], [0] * 5, 0.25),  # the last all the time
        ([400, 440, 480, 520], [0, 50, 100, 150], [0] * 4, 0.5),  # 0.8
        ([400, 400, 400, 400], [0, 50, 100, 150], [0] * 4, None),
        ([100, 101, 105], [0, 1, 2], [0] * 3, None),  # 2.9 standard errors
        ([100, 101, 105, 200, 201, 205], [0, 1, 2] * 2, [0] * 3 + [1] * 3, 0.5),  # 5
    ],
)
def test_compute_takes_longer_by_a_part_of_what_is_beneath_it_where_that_is_sure(
    own: list[int], beside: list[int], role: list[int], frac: float | None
) -> None:
    found = slowed(own, beside, role)
    assert (None if found is None else found.frac) == (None if frac is None else pytest.approx(frac))


@pytest.mark.parametrize(("groups", "error"), [(1, 0.75**0.5), (2, 0.5)])
def test_each_group_takes_a_freedom_and_so_does_the_slope(groups: int, error: float) -> None:
    """0, 1 and 5 at 0, 1 and 2: 2.5 up, and 0.5, 1 and 0.5 off; two groups of them have 6 - 2 - 1 free."""
    group = np.repeat(np.arange(groups), 3)
    x, y = np.tile([0.0, 1, 2], groups) + 9.0 * group, np.tile([0.0, 1, 5], groups) + 7.0 * group
    assert slope(x, y, group) == pytest.approx((2.5, error))
    assert np.isnan(slope(np.zeros(len(x)), y, group)).all()
    assert np.isnan(slope(x[:2], y[:2], np.zeros(2, dtype=np.int64))).all()  # two points always fit
