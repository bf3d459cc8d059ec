"""The verdict where neither side has steps: by all that the same work takes, and by launches.

Launches of a kernel vary about its mean, so the sum of what all of them take longer has an error:
the root of the sum of the squares of theirs. That is within one recording: the clock of the GPU
moves all kernels of the next one alike.
"""

from fractions import Fraction
from math import sqrt
from statistics import NormalDist
from typing import Final

from heuristics.comparison.difference.kernels import pair_kernels
from heuristics.comparison.difference.matched import mean_step_ns
from heuristics.comparison.difference.subject import Subject, same_count
from heuristics.comparison.same_work import counts_of, shared_work_frac
from heuristics.comparison.witnesses import weigh
from heuristics.figures.startup import CAUSES as STARTUP
from heuristics.result.compared import ComparedSize, ComparisonVerdict
from heuristics.words import say
from traces.account.calls import LONG
from traces.frozen import frozen
from traces.limits import HALF_A_WALL, LITTLE, MOST, NEARLY_ALL, Limit
from traces.missing import known, of_known
from traces.sections.rank import Rank
from traces.spelling import percent, signed
from traces.statistics.interval import LEVEL, MANY

RERUN: Final = Limit(
    0.15,
    "of a window",
    "measured on public pairs: recordings of one thing that waits for its host differ by up to 12 "
    "% (measurement.md, section 8)",
)
_ERRORS: Final = NormalDist().inv_cdf((1 + LEVEL) / 2)
Decided = tuple[ComparisonVerdict, str]
"""A verdict and why."""


@frozen
class Launched:
    """Kernels that both sides launch often: how much longer new takes a step, within `half_ns`.
    `least_ns`: their work, of each on the side on which it takes less; `apart_ns`: by how much they
    differ other than all alike.
    """

    least_ns: float
    longer_ns: float
    half_ns: float
    apart_ns: float

    @property
    def by_clock(self) -> bool:
        """Whether they differ as the clock from run to run moves them: little, and most of it
        alike.
        """
        longer_ns = abs(self.longer_ns)
        is_little = longer_ns <= HALF_A_WALL.value * self.least_ns
        return is_little and self.apart_ns <= MOST.value * longer_ns


def judge_windows(size: ComparedSize, base: Subject, new: Subject) -> Decided | None:
    """None where a side has steps, or a log decides, or where neither tells."""
    if size.base_count or size.new_count or size.source == "log":
        return None
    if verdict := _by_rerun(size, base, new):
        return verdict, say("comparison.same-work")
    verdict = _by_launches(size, base.rank, new.rank)
    if verdict == "undecided":
        return verdict, say("comparison.as-clocks-move", part=signed(percent(size.delta_frac)))
    return of_known(lambda known: (known, say("comparison.same-kernels")), verdict)


def _by_rerun(size: ComparedSize, base: Subject, new: Subject) -> ComparisonVerdict | None:
    """Where the same work takes so much longer that it is no other run of one thing, and more than
    one interrupt and than a few odd launches among many; of what is longer most. Windows of which
    most is start-up, or communication, tell nothing.
    """
    before_ns, after_ns = _steady_ns(base.rank), _steady_ns(new.rank)
    own_fracs = before_ns / mean_step_ns(base.rank), after_ns / mean_step_ns(new.rank)
    if min(own_fracs) < MOST.value:
        return None
    least_ns = max(
        RERUN.value * float(min(before_ns, after_ns)),
        MOST.value * abs(size.delta_ns),
        LONG.value,
        _scatter_ns(base.rank, new.rank),
    )
    longer_ns = after_ns - before_ns
    if abs(longer_ns) < least_ns or longer_ns * size.delta_ns <= 0 or not weigh(base, new).same:
        return None
    return _verdict(size)


def _scatter_ns(*ranks: Rank) -> float:
    """By how much the sum of all launches of both sides may differ by chance."""
    squares = 0.0
    for rank in ranks:
        squares += sum(kernel.count * kernel.std_ns**2 for kernel in rank.kernel_table.rows)
    return _ERRORS * sqrt(squares)


def _steady_ns(rank: Rank) -> Fraction:
    """A step without what start-up holds it back, and without exposed communication, in which a
    rank may wait for others.
    """
    absent, budget = known(rank.absent_ns), rank.budget_ns
    starved = absent.launch_starved if absent else {}
    startup_ns = sum(starved.get(cause, 0) for cause in STARTUP)
    own_ns = budget.window - startup_ns - (known(budget.exposed_comm) or 0)
    return Fraction(own_ns, len(rank.lengths_ns))


def _by_launches(size: ComparedSize, base: Rank, new: Rank) -> ComparisonVerdict | None:
    """Where launches of the same kernels, as many on both sides, make most of the difference beyond
    their error; or where they are nearly all there is, and neither they nor the whole differ.
    """
    # windows of other or fewer launches hold another amount of work
    kernels = [sum(counts_of(side).values()) for side in (base, new)]
    if not same_count(*kernels) or (shared_work_frac(base, new) or 0.0) < NEARLY_ALL.value:
        return None
    launched, shorter_ns = _launched(base, new), float(min(mean_step_ns(base), mean_step_ns(new)))
    matters_ns = LITTLE.value * shorter_ns
    if abs(size.delta_ns) > matters_ns:
        makes_most = launched.longer_ns * size.delta_ns >= MOST.value * size.delta_ns**2
        if makes_most and abs(launched.longer_ns) > launched.half_ns:
            return "undecided" if launched.by_clock else _verdict(size)
    elif (
        abs(launched.longer_ns) + launched.half_ns <= matters_ns
        and launched.least_ns >= NEARLY_ALL.value * shorter_ns
    ):
        return "no_change"
    return None


def _launched(base: Rank, new: Rank) -> Launched:
    pairs, least_ns, squares = list[tuple[float, float]](), 0.0, 0.0
    for mine, theirs in pair_kernels(base, new):
        if mine and theirs and min(mine.count, theirs.count) >= MANY.value:
            works_ns = float(mine.work_per_step_ns), float(theirs.work_per_step_ns)
            pairs.append(works_ns)
            least_ns += min(works_ns)
            squares += sum((float(side.per_step) * side.error_ns) ** 2 for side in (mine, theirs))
    before_ns, after_ns = map(sum, zip(*pairs, strict=True)) if pairs else (1.0, 1.0)
    apart_ns = sum(abs(new - before * after_ns / before_ns) for before, new in pairs)
    return Launched(least_ns, after_ns - before_ns, _ERRORS * sqrt(squares), apart_ns)


def _verdict(size: ComparedSize) -> ComparisonVerdict:
    if size.delta_ns > 0:
        return "regression"
    return "improvement"
