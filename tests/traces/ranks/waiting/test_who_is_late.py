"""Who is late and why, and pauses that are a cause by their sum, in round numbers."""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.ranks import Work, analyse_run, together
from traces.ranks.summaries.summary import RankSummary
from traces.sections.cause import Cause
from traces.sections.run import Late, Run

RANKS, STEPS, EACH = 4, 3, 10
WORK_US, TRANSFER_US = 990.0, 10.0
"""Ten collectives a step, each after 990 us of work, so that a step without pauses is 10 ms."""


def pausing(pauses_us: Mapping[tuple[int, int], float]) -> list[RankSummary]:
    """Four ranks; each pauses before the collectives of these (rank, number)."""
    works = [
        [Work(compute=WORK_US, host=pauses_us.get((rank, number), 0.0)) for number in range(STEPS * EACH)]
        for rank in range(RANKS)
    ]
    return together(works, per_step=EACH, transfer_us=TRANSFER_US)


def found_late(run: Run) -> Late:
    assert isinstance(run.late, Late)
    return run.late


def test_what_a_rank_does_equally_longer_in_each_step_is_no_pause() -> None:
    """Three of ten collectives, another rank before each: a program that differs, as of another stage."""
    longer = {(rank, EACH * step + 3 * rank + 1): 300.0 for rank in range(3) for step in range(STEPS)}
    assert found_late(analyse_run(pausing(longer))).cause is Cause.NONE


def test_what_all_ranks_do_longer_in_one_step_is_no_pause() -> None:
    """All take 300 us more before each third collective of the first step than in others."""
    begins = {(rank, number): 300.0 for rank in range(RANKS) for number in range(1, EACH, 3)}
    assert found_late(analyse_run(pausing(begins))).cause is Cause.NONE


def test_two_ranks_alike_pause_by_turns_beside_their_other_steps() -> None:
    """Of two ranks the middle is between them: what is usual is seen over their steps."""
    works = [
        [Work(WORK_US, host=300.0 * (number % 6 == 1 + 3 * rank)) for number in range(STEPS * EACH)]
        for rank in range(2)
    ]
    run = analyse_run(together(works, per_step=EACH, transfer_us=TRANSFER_US))
    assert found_late(run).cause is Cause.ROTATING_JITTER
