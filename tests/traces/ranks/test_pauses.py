"""Pauses that are a cause by their sum over all ranks, and by no step's latecomer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.recordings.ranks import Work, together
from traces.ranks.run import analyse_run
from traces.ranks.summary import RankSummary
from traces.sections.cause import Cause
from traces.sections.run import Late, Run

RANKS, STEPS, EACH = 4, 3, 10
WORK_US, TRANSFER_US = 990.0, 10.0
"""Ten collectives a step, each after 990 us of work, so that a step without pauses is 10 ms."""


def run_of(pauses_us: Mapping[tuple[int, int], float]) -> list[RankSummary]:
    """Four ranks; each pauses before the collectives of these (rank, number)."""
    works = [
        [Work(compute=WORK_US, host=pauses_us.get((rank, number), 0.0)) for number in range(STEPS * EACH)]
        for rank in range(RANKS)
    ]
    return together(works, per_step=EACH, transfer_us=TRANSFER_US)


def in_turn(us: float, every: int = 3) -> dict[tuple[int, int], float]:
    """Pauses before each third collective, of one rank after the other."""
    return {(place % RANKS, number): us for place, number in enumerate(range(1, STEPS * EACH, every))}


def late_of(run: Run) -> Late:
    assert isinstance(run.late, Late)
    return run.late


def test_pauses_of_a_tenth_of_the_step_in_sum_are_the_cause_though_no_step_has_one_late_rank() -> None:
    run = analyse_run(run_of(in_turn(300.0)))
    late = late_of(run)
    assert (late.cause, late.indices, late.index) == (Cause.ROTATING_JITTER, (), None)
    assert late.cost_ns == pytest.approx(1_000_000, rel=0.05)  # ten of 300 us in three steps


@pytest.mark.parametrize(
    "pauses_us",
    [{}, in_turn(60.0), in_turn(300.0, every=14)],
    ids=["none", "gaps of Python", "three in all"],
)
def test_few_or_short_ones_are_none(pauses_us: Mapping[tuple[int, int], float]) -> None:
    assert late_of(analyse_run(run_of(pauses_us))).cause is Cause.NONE


def test_what_a_rank_does_equally_longer_in_each_step_is_no_pause() -> None:
    """Three of ten collectives, another rank before each: a program that differs, as of another stage."""
    longer = {(rank, EACH * step + 3 * rank + 1): 300.0 for rank in range(3) for step in range(STEPS)}
    assert late_of(analyse_run(run_of(longer))).cause is Cause.NONE


def test_what_all_ranks_do_longer_in_one_step_is_no_pause() -> None:
    """All take 300 us more before each third collective of the first step than in others."""
    begins = {(rank, number): 300.0 for rank in range(RANKS) for number in range(1, EACH, 3)}
    assert late_of(analyse_run(run_of(begins))).cause is Cause.NONE


def test_two_ranks_alike_pause_by_turns_beside_their_other_steps() -> None:
    """Of two ranks the middle is between them: what is usual is seen over their steps."""
    works = [
        [Work(WORK_US, host=300.0 * (number % 6 == 1 + 3 * rank)) for number in range(STEPS * EACH)]
        for rank in range(2)
    ]
    run = analyse_run(together(works, per_step=EACH, transfer_us=TRANSFER_US))
    assert late_of(run).cause is Cause.ROTATING_JITTER
