"""The run replayed over its ranks, with what makes it late and without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recordings.ranks import ALIKE, US, Part, Work, shifted, summary_of, together
from traces.ranks.chains import chains_of, families_of, replayed, with_beside
from traces.ranks.clocks import align
from traces.ranks.ends import NO_ROW
from traces.ranks.match import match
from traces.ranks.run import analyse_run
from traces.ranks.summary import Group, GroupSource, Operation, RankSummary
from traces.sections.cause import Cause
from traces.sections.run import Late, RunWithout

STEPS, PER_STEP = 4, 10


def without(ranks: list[RankSummary]) -> tuple[int, int]:
    found = analyse_run(ranks).without
    assert isinstance(found, RunWithout)
    assert found.saved_frac == pytest.approx(1 - found.without_ns / found.step_ns)
    return found.step_ns, found.without_ns


def works(slow: Work, usual: Work, ranks: int = 4) -> list[list[Work]]:
    return [[slow if rank == 1 else usual] * (STEPS * PER_STEP) for rank in range(ranks)]


def test_a_clock_that_counts_since_1970_changes_nothing() -> None:
    """Such a time, times the number of a rank, is more than 64 bits hold."""
    work = works(Work(130, host=2), Work(100, host=2), ranks=8)
    ranks = together(work, per_step=PER_STEP, kernels_us=[[10.0], [13.0], *[[10.0]] * 6])
    assert without([shifted(rank, 1_700_000_000_000_000_000) for rank in ranks]) == without(ranks)


def test_a_nic_that_two_ranks_share_is_theirs_and_without_it_all_data_moves_alike() -> None:
    """Eight ranks, two a node; data takes 70 us, by the NIC of ranks 6 and 7 three times as long.

    Six sevenths of theirs pass it, and two sevenths of the others': 190 us and 110 us.
    """
    rows = [[Work(100, host=2)] * 40 for _ in range(8)]
    transfers = [110.0] * 6 + [190.0] * 2
    ranks = together(rows, per_step=PER_STEP, transfer_us=transfers, operation=Operation.EXCHANGE)
    for number, rank in enumerate(ranks):
        object.__setattr__(rank.identity, "clock", 1)
        object.__setattr__(rank.identity, "device", number % 2)
    run = analyse_run(ranks)
    assert isinstance(run.late, Late)
    assert (run.late.cause, run.late.indices, run.late.host) == (Cause.SLOW_LINK, (6, 7), "node 3")
    step_ns, without_ns = without(ranks)
    assert step_ns == pytest.approx(PER_STEP * 292 * US, rel=0.03)
    assert without_ns == pytest.approx(PER_STEP * 172 * US, rel=0.03)


def test_even_tokens_leave_what_a_balancing_loss_leaves() -> None:
    rows = [
        [Work(60 + 40 * (1 + (rank == number % 4)), 40 * (1 + (rank == number % 4))) for number in range(40)]
        for rank in range(4)
    ]
    step_ns, without_ns = without(together(rows, per_step=PER_STEP, operation=Operation.EXCHANGE))
    assert step_ns == PER_STEP * 150 * US
    assert without_ns == pytest.approx(PER_STEP * (60 + 50 * 1.06 + 10) * US, rel=0.01)


@pytest.mark.parametrize(
    ("layers", "even_us"), [((5, 3), 125), ((3, 2), 100)], ids=["four each", "one more than the other"]
)
def test_stages_have_the_mean_of_the_layers_and_where_none_is_even_no_more_than_others(
    layers: tuple[int, int], even_us: int
) -> None:
    rows = [[Work(compute=150 if rank > 1 else 100)] * 40 for rank in range(4)]
    ranks = [
        replace(rank, fingerprint=replace(ALIKE, attention=layers[0] if place > 1 else layers[1]))
        for place, rank in enumerate(together(rows, per_step=PER_STEP))
    ]
    step_ns, without_ns = without(ranks)
    assert step_ns == PER_STEP * 160 * US
    assert without_ns == pytest.approx(PER_STEP * (even_us + 10) * US, rel=0.04)


@given(
    st.lists(st.lists(st.integers(1, 500), min_size=12, max_size=12), min_size=2, max_size=5),
    st.integers(0, 1 << 31),
)
def test_a_run_replayed_as_it_was_is_as_it_was(own_us: list[list[int]], offset_ns: int) -> None:
    ranks = together([[Work(compute=float(us)) for us in row] for row in own_us], per_step=4)
    ranks[0] = shifted(ranks[0], offset_ns)
    matched = match(ranks)
    aligned = align(ranks, matched)
    chains = chains_of(matched, aligned, np.arange(len(matched.place)))
    assert (replayed(chains, chains.own_ns, chains.moving_ns) == aligned.end_ns).all()


def test_what_a_rank_waits_for_at_once_is_waited_for_though_it_is_no_longer_the_longest() -> None:
    """Two ranks move 300 us in one group and 200 us in another, from 100 on, and meet again 50 us later."""
    groups = [Group(GroupSource.COMMUNICATOR, key, 2) for key in range(3)]
    parts = [
        Part(0, 0, 100, 400, before={"compute": 100.0}),
        Part(1, 0, 100, 300, before={"compute": 100.0}),
        Part(2, 0, 450, 460, before={"compute": 50.0}),
    ]
    ranks = [summary_of(rank, parts, groups) for rank in range(2)]
    for rank in ranks:
        object.__setattr__(rank.identity, "clock", 1)
    matched = match(ranks)
    aligned = align(ranks, matched)
    chains = with_beside(chains_of(matched, aligned, np.arange(len(matched.place))), matched, aligned)
    assert chains.beside is not None
    (rows,) = np.nonzero(chains.beside != NO_ROW)
    assert sorted(matched.place[rows].tolist()) == [0, 1]
    assert (matched.place[chains.beside[rows]] == matched.place[rows]).all()
    of_first = matched.group[matched.instance] == matched.group[matched.instance][0]
    shorter = np.where(of_first, 20 * US, chains.moving_ns)
    ends = replayed(chains, chains.own_ns, shorter)
    assert sorted({*ends.tolist()}) == [120 * US, 300 * US, 360 * US]
    assert (replayed(chains, chains.own_ns, chains.moving_ns) == matched.end_ns).all()


def test_groups_of_one_size_are_of_one_family_where_they_meet_equally_often() -> None:
    often, seldom = ((0, 1), (2, 3)), ((0, 2), (1, 3))
    ranks = []
    for rank in range(4):
        mine = [one for one in (*often, *seldom) if rank in one]
        groups = [Group(GroupSource.COMMUNICATOR, 10 * a + b, 2) for a, b in mine]
        times = [(0, number) for number in range(3)] + [(1, 0)]
        some = [Part(group, number, 100.0 * at, 100.0 * at + 10) for at, (group, number) in enumerate(times)]
        ranks.append(summary_of(rank, some, groups))
    matched = match(ranks)
    members = [matched.place[begin : begin + 2].tolist() for begin in matched.first[:-1].tolist()]
    found = {(*pair, family) for pair, family in zip(members, families_of(matched).tolist(), strict=True)}
    assert found == {(0, 1, 0), (2, 3, 0), (0, 2, 1), (1, 3, 1)}
