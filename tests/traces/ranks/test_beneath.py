"""Compute that communication beneath it slows: how much, and what a run without its cause makes of it."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.recordings.ranks import US, Part, summary_of
from traces.ranks.beneath import slope
from traces.ranks.chains import Chains, chains_of, replayed
from traces.ranks.clocks import align
from traces.ranks.match import Matched, match
from traces.ranks.summary import Group, GroupSource, RankSummary

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


def test_gradients_beneath_compute_hold_nothing_up_unless_they_are_asked_to() -> None:
    """Where layers move, compute becomes shorter and what moved beneath it may hold a rank up."""
    ranks = rows(LATE_US, 0.0)
    matched, chains = chained(ranks)
    aligned = align(ranks, matched)
    role = np.zeros(len(matched.place), dtype=np.int64)
    plain = chains_of(matched, aligned, role, skipped=())
    last = plain.ends.before(matched.place, aligned.start_ns)
    assert (plain.after == last).all()
    skipping = chains.after != last
    assert matched.exposed_ns[last[skipping]].max() == 0
    assert skipping.sum() == len(ranks) * len(LATE_US)
