"""What counts as right of a run of several ranks, and the table of it."""

from __future__ import annotations

from dataclasses import replace

from bench.score.ranks.known import Case, Simulator, cases
from bench.score.ranks.one import Scored
from bench.score.ranks.table import table, wrong_ones
from bench.simulate.ranks.described import Cause

LATE = Scored(
    Case(Simulator.FIRST, Cause.SLOW_DEVICE, 1),
    cause="slow_device",
    whom=(3,),
    true_whom=(3,),
    wait_ns=1_040,
    true_wait_ns=1_000,
    saved_frac=0.12,
    true_saved_frac=0.10,
)
HEALTHY = Scored(Case(Simulator.SECOND, Cause.NONE, 1), cause="none")


def test_cause_rank_wait_and_win_are_right_each_for_itself() -> None:
    assert (LATE.cause_right, LATE.rank_right, LATE.wait_right, LATE.win_right) == (True,) * 4
    assert not replace(LATE, wait_ns=1_060).wait_right
    assert not replace(LATE, saved_frac=0.14).win_right
    assert not replace(LATE, saved_frac=None).win_right
    assert not replace(LATE, whom=(2,)).rank_right


def test_with_another_cause_nothing_is_right() -> None:
    wrong = replace(LATE, cause="slow_host")
    assert not any((wrong.cause_right, wrong.rank_right, wrong.wait_right, wrong.win_right))


def test_a_straggler_of_a_healthy_run_is_wrong_and_no_claim_is_right() -> None:
    assert HEALTHY.rank_right
    assert replace(HEALTHY, cause=None).rank_right
    assert not replace(HEALTHY, cause="slow_link", whom=(1,)).rank_right


def test_draws_that_are_no_runs_do_not_count() -> None:
    rows = table([LATE, HEALTHY, replace(LATE, error="too weak", impossible=True)])
    assert "| both | all causes | 1 | 100.0 % (1 of 1) | 100.0 % (1 of 1) |" in rows
    assert "1 draws are no runs" in rows
    assert list(wrong_ones([LATE, HEALTHY])) == []


def test_each_seed_has_every_cause_by_both_simulators_and_few_have_many_ranks() -> None:
    drawn = cases(range(100, 110))
    assert len(drawn) == 2 * len(Cause) * 10
    assert sorted({case.rank_count for case in drawn}) in ([8, 16], [8, 32], [8, 64])
    assert all(case.simulator is Simulator.FIRST for case in cases([7], 16))
