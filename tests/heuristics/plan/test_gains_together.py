"""What the first steps of a plan save together: one replay of each set, and what holds it in bounds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from heuristics.fixes.change import NO_LINES
from heuristics.plan.combined import combined_of
from heuristics.plan.gains import Replayed
from heuristics.plan.planned import Planned
from heuristics.result.judged import Combined
from heuristics.run.run import Run
from tests.doubles.opinions import a_fix, cost, costs
from traces.missing import Missing
from traces.replay.changes.change import Change, ChangesTogether, Joint

ACTS = {"host_overhead": ("gc",)}


class Told(ChangesTogether):
    """A replay whose answers are written down, by the kinds of change made together."""

    def __init__(self, **joints: Joint) -> None:
        self.joints = joints

    def joint(self, kinds: Collection[str]) -> Joint:
        return self.joints["_".join(sorted(kinds))]


def planned(number: str, kind: str, low: float | None, high: float) -> Planned:
    fix = a_fix(number, "host_overhead", changes=lambda run: (kind,))
    return Planned(fix, NO_LINES, (), high, low)


def rank(together: ChangesTogether | Missing | None, *changes: Change) -> Replayed:
    return Replayed(replace(costs(), changes=changes, together=together), changes, 1_000)


A, B = (Change(kind, ACTS, 100, 200, None) for kind in "ab")
FIXES = (planned("HST-3", "a", 0.1, 0.2), planned("HST-4", "b", 0.1, 0.2))


def combined(*ranks: Replayed, fixes: tuple[Planned, ...] = FIXES) -> tuple[Combined, ...]:
    found = combined_of(fixes, Run(), ranks)
    assert not isinstance(found, Missing)
    return found


def test_two_fixes_are_one_replay_as_a_part_of_all_windows() -> None:
    (pair,) = combined(rank(Told(a_b=Joint(150, 300, 0)), A, B))
    assert pair == Combined(("HST-3", "HST-4"), (0.15, 0.3))


def test_the_upper_end_is_at_most_the_sum_but_for_what_two_hide_of_each_other() -> None:
    (pair,) = combined(rank(Told(a_b=Joint(150, 700, 0)), A, B))
    assert pair.gain_frac[1] == 0.4
    (hiding,) = combined(rank(Told(a_b=Joint(150, 700, 50)), A, B))
    assert hiding.gain_frac[1] == 0.45


def test_the_lower_end_may_be_below_that_of_its_best_fix_where_another_may_cost_time() -> None:
    fixes = (FIXES[0], planned("HST-4", "b", -0.03, 0.2))
    (pair,) = combined(rank(Told(a_b=Joint(80, 300, 0)), A, B), fixes=fixes)
    assert pair.gain_frac == (0.08, 0.3)


def test_a_rank_where_one_was_not_found_gives_what_that_acts_on_at_most() -> None:
    other = replace(costs(host_overhead=cost(60, {"gc": 60})), changes=(A,))
    (pair,) = combined(rank(Told(a_b=Joint(150, 300, 0)), A, B), Replayed(other, (A,), 1_000))
    assert pair.gain_frac == ((150 + 100) / 2_000, (300 + 200 + 60) / 2_000)


def test_a_rank_that_is_replayed_together_has_what_was_not_found_there_on_top() -> None:
    other = replace(
        costs(host_overhead=cost(60, {"gc": 60})), changes=(A,), together=Told(a=Joint(90, 100, 0))
    )
    (pair,) = combined(rank(Told(a_b=Joint(150, 300, 0)), A, B), Replayed(other, (A,), 1_000))
    assert pair.gain_frac == ((150 + 90) / 2_000, (300 + 100 + 60) / 2_000)


def test_a_recording_too_large_for_it_says_so() -> None:
    large = rank(Missing("replay", "a rank has 600,000 events", "give fewer steps"), A, B)
    found = combined_of(FIXES, Run(), [large])
    assert found == Missing("combined", "a rank has 600,000 events", "give fewer steps")
