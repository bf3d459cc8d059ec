"""One run of several ranks, analysed and held beside its truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.score.ranks.known import Case, Known, known, recorded, simulated
from bench.simulate.ranks.described import Cause
from tests.recordings.ranks import analyse_run
from traces.missing import Missing
from traces.ranks.summaries.summary import RankSummary
from traces.sections.run import Late, Run, RunWithout

NEAR_WAIT: Final = 0.05
"""A charged wait this far from the true one, as part of it, is right."""
NEAR_WIN: Final = 0.03
"""A win of mending this far from the true one, as part of the step, is right."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A run and what was found. `cause` is None where nothing is claimed, `why` says why not.

    `whom`: the ranks that were named. Waits and wins are None where there is none, or none was found.
    `error`: why there is no analysis, or no run of this seed and cause.
    """

    case: Case
    cause: str | None = None
    whom: tuple[int | None, ...] = ()
    true_whom: tuple[int, ...] = ()
    wait_ns: int | None = None
    true_wait_ns: int = 0
    saved_frac: float | None = None
    true_saved_frac: float = 0.0
    problems: tuple[str, ...] = ()
    why: str = ""
    made: str = ""
    error: str = ""
    impossible: bool = False

    @property
    def cause_right(self) -> bool:
        """Whether the true cause was named; of a healthy run that no other was."""
        if self.case.cause is Cause.NONE:
            return not self.error and self.cause in (None, Cause.NONE.value)
        return self.cause is not None and self.cause == str(self.case.cause.value)

    @property
    def rank_right(self) -> bool:
        """Whether the cause is right, and whom it makes late."""
        return self.cause_right and self.whom == self.true_whom

    @property
    def wait_right(self) -> bool:
        """Whether the wait charged to the cause is the true one."""
        if self.wait_ns is None or not self.cause_right:
            return False
        return abs(self.wait_ns - self.true_wait_ns) <= NEAR_WAIT * self.true_wait_ns

    @property
    def win_right(self) -> bool:
        """Whether the replay wins what mending truly wins."""
        if self.saved_frac is None or not self.cause_right:
            return False
        return abs(self.saved_frac - self.true_saved_frac) <= NEAR_WIN


def score(case: Case) -> Scored:
    """Simulate, record, analyse and compare; whatever goes wrong in the analysis is a result."""
    try:
        truth = simulated(case)
    except ValueError as error:  # no layout, or too weak however strong: no run of the product's
        return Scored(case, error=str(error), impossible=True)
    facts = known(case, truth)
    try:
        return compared(facts, recorded(truth))
    except Exception as error:  # a run that cannot be analysed is a result, and the others go on
        return Scored(case, made=facts.made, error=f"{type(error).__name__}: {error}")


def compared(facts: Known, summaries: Sequence[RankSummary]) -> Scored:
    """Analyse the summaries of a run, and hold the result beside its truth."""
    run = analyse_run(summaries)
    skipped = max(0, facts.step_count - run.steps)
    late = run.late
    saved_frac = run.without.saved_frac if isinstance(run.without, RunWithout) else None
    true = facts.case.cause
    return Scored(
        case=facts.case,
        cause=late.cause.value if isinstance(late, Late) else None,
        whom=_whom(run, late) if isinstance(late, Late) else (),
        true_whom=facts.ranks,
        wait_ns=late.wait_ns if isinstance(late, Late) else None,
        true_wait_ns=0 if true is Cause.NONE else facts.wait_ns(skipped),
        saved_frac=saved_frac,
        true_saved_frac=0.0 if true is Cause.NONE else facts.saved_frac(skipped),
        problems=tuple(problem.kind.value for problem in run.problems),
        why=late.reason if isinstance(late, Missing) else "",
        made=facts.made,
    )


def _whom(run: Run, late: Late) -> tuple[int | None, ...]:
    """The ranks that are named: one, those of a node or a stage, or none."""
    if late.index is not None:
        return (late.rank,)
    if late.indices and late.cause.value != Cause.ROUTING_IMBALANCE.value:
        return tuple(run.ranks[place].rank for place in late.indices)
    if late.group is None:
        return ()
    return tuple(run.ranks[place].rank for place in run.groups[late.group].ranks)
