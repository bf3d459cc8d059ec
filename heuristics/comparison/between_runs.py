"""Several recordings of one thing as base: how much runs vary by themselves, and the interval with
that.

Steps of one run do not show it. k runs of base have k means, and a further run of the same thing
lies within t * s * sqrt(1 + 1/k) of their mean, s being their standard deviation and t Student's
for k - 1 degrees. It is the interval's least half width, as runs may lie close together by luck
where their steps vary much.
"""

from collections.abc import Sequence
from fractions import Fraction
from statistics import mean

from heuristics.comparison.difference.matched import mean_ns
from heuristics.comparison.difference.subject import Subject
from heuristics.comparison.ranks import pair_ranks
from heuristics.comparison.same_work import same_recording
from heuristics.result.compared import Comparable
from heuristics.result.compared_runs import BaseRun, BetweenRuns
from heuristics.result.result import Result
from heuristics.words import say
from traces.frozen import frozen
from traces.sections.rank import Rank
from traces.statistics.interval import LEVEL, MANY
from traces.statistics.student import one_more


@frozen
class Runs:
    """What several runs of base say: their mean, and half of the interval that they make by
    themselves.
    """

    mean_ns: Fraction
    half_ns: int
    told: BetweenRuns


def lengths_of(side: Subject, by_log: bool) -> tuple[int, ...]:
    """Its steps in order: those of the log, or the used ones of the trace."""
    if by_log:
        return side.logged_ns
    return side.rank.lengths_ns


def is_logged(side: Subject) -> bool:
    """Whether its log holds enough iterations after their start."""
    return len(side.logged_ns) >= MANY.value


def rank_like(base: Subject, result: Result, gpu: int | None) -> Rank:
    """The rank of a further result that is the same place of the run as that of base."""
    pairs = pair_ranks(base.result, result, gpu, gpu)
    return next((pair.new for pair in pairs if pair.base == base.rank), pairs[0].new)


def why_no_run(run: Subject, earlier: Sequence[Subject], comparable: Comparable) -> str:
    """Why a recording is no further run of base; empty where it is one. `earlier`: base and runs
    before it.
    """
    if comparable.state == "no":
        differ = ", ".join(other.what for other in comparable.differences if other.state == "no")
        return say("comparison.no-run-of-base", differ=differ)
    if not run.rank.steps.found:
        return say("comparison.run-without-steps")
    # the same recording twice would make runs vary less than they do
    if any(
        same_recording(run.rank, other.rank) and run.logged_ns == other.logged_ns
        for other in earlier
    ):
        return say("comparison.run-given-twice")
    return ""


def runs_of(bases: Sequence[Subject], by_log: bool) -> Runs | None:
    """Base and further recordings of it; None where it stands alone."""
    if len(bases) < 2:
        return None
    means_ns, runs = [], []
    for base in bases:
        lengths = lengths_of(base, by_log)
        means_ns.append(mean_ns(lengths))
        runs.append(BaseRun(base.rank.trace, len(lengths), round(mean_ns(lengths))))
    spread, half_ns = one_more(means_ns, LEVEL)
    return Runs(mean(means_ns), half_ns, BetweenRuns(tuple(runs), round(spread), half_ns))
