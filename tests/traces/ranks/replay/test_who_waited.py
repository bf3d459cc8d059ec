"""Waiting and moving, complete groups, and the run replayed without its cause."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.recordings.ranks import US, Part, Work, analyse_run, summary_of, together
from traces.ranks.matching.match import Matched, match
from traces.ranks.one_run.align import Clocks, align
from traces.ranks.replay.beneath import slope
from traces.ranks.replay.chains import Chains, chains_of, replayed
from traces.ranks.summaries.summary import Group, GroupSource, Operation, RankSummary
from traces.sections.run import RunWithout

ONE_CLOCK = Clocks(True, 0, ())


STEPS, PER_STEP = 4, 10


def without(ranks: list[RankSummary]) -> tuple[int, int]:
    found = analyse_run(ranks).without
    assert isinstance(found, RunWithout)
    assert found.saved_frac == pytest.approx(1 - found.without_ns / found.step_ns)
    return found.step_ns, found.without_ns


def works(slow: Work, usual: Work, ranks: int = 4) -> list[list[Work]]:
    return [[slow if rank == 1 else usual] * (STEPS * PER_STEP) for rank in range(ranks)]


def test_even_tokens_leave_what_a_balancing_loss_leaves() -> None:
    rows = [
        [Work(60 + 40 * (1 + (rank == number % 4)), 40 * (1 + (rank == number % 4))) for number in range(40)]
        for rank in range(4)
    ]
    step_ns, without_ns = without(together(rows, per_step=PER_STEP, operation=Operation.EXCHANGE))
    assert step_ns == PER_STEP * 150 * US
    assert without_ns == pytest.approx(PER_STEP * (60 + 50 * 1.06 + 10) * US, rel=0.01)


TOKENS, GRADIENTS = 0, 1


def rows(late_us: list[float], slowed: float) -> list[RankSummary]:
    """Two ranks bring tokens back, reduce gradients beneath 400 us of compute, and bring tokens back again.

    Rank 1 is so late for its gradients in each round; they move for 20 us. Compute takes longer by the part
    `slowed` of the time that gradients are beneath it, of which rank 1 has 20 us.
    """
    mine: list[list[Part]] = [[], []]
    now = 1000.0
    for number, late in enumerate(late_us):
        back = now + 10
        next_us = back + 400 + slowed * (late + 20)
        for rank, came in ((0, back), (1, back + late)):
            work = 400 + slowed * (back + late + 20 - came)
            ended = back + late + 20
            mine[rank] += [
                Part(TOKENS, 2 * number, now, back, before={"compute": 50.0}),
                Part(GRADIENTS, number, came, ended, before={"compute": 50.0}, exposed_us=0.0),
                Part(TOKENS, 2 * number + 1, back + work, next_us + 10, before={"compute": work}),
            ]
        now = next_us + 60
    groups = [Group(GroupSource.COMMUNICATOR, key, 2) for key in range(2)]
    ranks = [summary_of(rank, parts, groups) for rank, parts in enumerate(mine)]
    for one in ranks:
        object.__setattr__(one.identity, "clock", 1)
    return ranks


def chained(ranks: list[RankSummary]) -> tuple[Matched, Chains]:
    matched = match(ranks)
    first, operation = matched.group[matched.instance], matched.sequence[matched.instance] % 2
    role = np.where(first == first[matched.place == 0][0], operation, 2)
    return matched, chains_of(matched, align(ranks, matched), role)


LATE_US = [0.0, 40.0, 80.0, 120.0, 160.0, 200.0, 240.0, 280.0]


def test_compute_takes_longer_by_a_quarter_of_what_is_beneath_it() -> None:
    matched, chains = chained(rows(LATE_US, 0.25))
    assert chains.slowed is not None
    assert chains.slowed.frac == pytest.approx(0.25)
    assert 400 * US in chains.own_ns.tolist()
    assert (replayed(chains, chains.own_ns, chains.moving_ns) == matched.end_ns).all()


def test_where_nothing_slows_compute_none_of_it_is_taken_away() -> None:
    assert chained(rows(LATE_US, 0.0))[1].slowed is None


pairs = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 1000), st.integers(0, 1000)), min_size=6, max_size=30
)


@given(pairs)
def test_the_slope_is_that_of_least_squares_with_a_constant_for_each_group(
    points: list[tuple[int, int, int]],
) -> None:
    group = np.unique([one[0] for one in points], return_inverse=True)[1]
    x, y = (np.array([one[at] for one in points], dtype=np.float64) for at in (1, 2))
    found, error = slope(x, y, group)
    table = np.column_stack([x, *(group == one for one in range(group.max() + 1))]).astype(np.float64)
    assume(np.linalg.matrix_rank(table) == table.shape[1] < len(x))
    by_numpy, left, *_ = np.linalg.lstsq(table, y, rcond=None)
    assert found == pytest.approx(by_numpy[0], abs=1e-6)
    variance = left[0] / (len(x) - table.shape[1]) if len(left) else 0.0
    usual = np.sqrt(variance * np.linalg.inv(table.T @ table)[0, 0])
    assert error == pytest.approx(usual, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("groups", "error"), [(1, 0.75**0.5), (2, 0.5)])
def test_each_group_takes_a_freedom_and_so_does_the_slope(groups: int, error: float) -> None:
    """0, 1 and 5 at 0, 1 and 2: 2.5 up, and 0.5, 1 and 0.5 off; two groups of them have 6 - 2 - 1 free."""
    x, y = np.tile([0.0, 1, 2], groups), np.tile([0.0, 1, 5], groups) + np.repeat(np.arange(groups) * 7, 3)
    assert slope(x, y, np.repeat(np.arange(groups), 3)) == pytest.approx((2.5, error))
    assert np.isnan(slope(x[:2], y[:2], np.zeros(2, dtype=np.int64))).all()  # two points always fit
