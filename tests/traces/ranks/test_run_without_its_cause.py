"""The run replayed over its ranks, with what makes it late and without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ranks_doubles import ALIKE, US, Work, shifted, together
from traces.ranks.chains import chains_of, replayed
from traces.ranks.clocks import align
from traces.ranks.match import match
from traces.ranks.mend import Without
from traces.ranks.run import analyse_run
from traces.ranks.summary import Operation, RankSummary

STEPS, PER_STEP = 4, 10


def without(ranks: list[RankSummary]) -> tuple[int, int]:
    found = analyse_run(ranks).without
    assert isinstance(found, Without)
    return found.step_ns, found.without_ns


def works(slow: Work, usual: Work, ranks: int = 4) -> list[list[Work]]:
    return [[slow if rank == 1 else usual] * (STEPS * PER_STEP) for rank in range(ranks)]


def test_everyone_who_waited_for_a_slow_device_moves_too() -> None:
    ranks = together(
        works(Work(compute=130, host=2), Work(compute=100, host=2)),
        per_step=PER_STEP,
        kernels_us=[[10.0], [13.0], [10.0], [10.0]],
    )
    step_ns, without_ns = without(ranks)
    assert step_ns == PER_STEP * 142 * US
    assert without_ns == pytest.approx(PER_STEP * 112 * US, rel=0.01)


def test_a_late_batch_is_taken_from_the_steps_that_it_delays() -> None:
    rows = [
        [Work(100, loader=400 * (rank == 1 and number % 20 == 10)) for number in range(40)]
        for rank in range(4)
    ]
    step_ns, without_ns = without(together(rows, per_step=PER_STEP))
    assert (step_ns, without_ns) == (PER_STEP * 110 * US + 200 * US, PER_STEP * 110 * US)


def test_without_its_slow_link_an_exchange_moves_as_fast_as_its_least_slow() -> None:
    ranks = together(
        works(Work(100, host=2), Work(100, host=2)),
        per_step=PER_STEP,
        transfer_us=[50.0, 150.0, 50.0, 50.0],
        operation=Operation.EXCHANGE,
    )
    for rank in ranks:
        object.__setattr__(rank.identity, "clock", 1)
    step_ns, without_ns = without(ranks)
    assert step_ns == pytest.approx(PER_STEP * 252 * US, rel=0.03)
    assert without_ns < PER_STEP * 160 * US


def test_even_tokens_leave_what_a_balancing_loss_leaves() -> None:
    rows = [
        [Work(60 + 40 * (1 + (rank == number % 4)), 40 * (1 + (rank == number % 4))) for number in range(40)]
        for rank in range(4)
    ]
    step_ns, without_ns = without(together(rows, per_step=PER_STEP, operation=Operation.EXCHANGE))
    assert step_ns == PER_STEP * 150 * US
    assert without_ns == pytest.approx(PER_STEP * (60 + 50 * 1.06 + 10) * US, rel=0.01)


def test_even_stages_have_the_mean_of_the_layers() -> None:
    rows = [[Work(compute=150 if rank > 1 else 100)] * 40 for rank in range(4)]
    ranks = [
        replace(rank, fingerprint=replace(ALIKE, attention=3 if place > 1 else 2))
        for place, rank in enumerate(together(rows, per_step=PER_STEP))
    ]
    step_ns, without_ns = without(ranks)
    assert step_ns == PER_STEP * 160 * US
    assert without_ns == pytest.approx(PER_STEP * 135 * US, rel=0.02)


@given(
    st.lists(st.lists(st.integers(1, 500), min_size=12, max_size=12), min_size=2, max_size=5),
    st.integers(0, 1 << 31),
)
def test_a_run_replayed_as_it_was_is_as_it_was(own_us: list[list[int]], offset_ns: int) -> None:
    ranks = together([[Work(compute=float(us)) for us in row] for row in own_us], per_step=4)
    ranks[0] = shifted(ranks[0], offset_ns)
    matched = match(ranks)
    aligned = align(ranks, matched)
    chains = chains_of(matched, aligned)
    assert (replayed(chains, chains.own_ns, chains.moving_ns) == aligned.end_ns).all()


@given(
    st.lists(st.lists(st.integers(1, 500), min_size=12, max_size=12), min_size=2, max_size=5),
    st.integers(0, 11),
)
def test_less_work_makes_nothing_later(own_us: list[list[int]], at: int) -> None:
    ranks = together([[Work(compute=float(us)) for us in row] for row in own_us], per_step=4)
    matched = match(ranks)
    aligned = align(ranks, matched)
    chains = chains_of(matched, aligned)
    less = np.where(np.arange(len(chains.own_ns)) % 12 == at, chains.own_ns // 2, chains.own_ns)
    assert (replayed(chains, less, chains.moving_ns) <= aligned.end_ns).all()
