"""Steps that are left out as hiccups, as many of both sides, and a difference that holds with them.

What is a hiccup is judged by each recording alone. Batches that are late in a sixth of the steps
are hiccups to one recording and, a few more of them, how the run goes to the next: the same run
twice then differs by all of them. So both sides leave out what is as long as the shortest hiccup of
either, the same part of their steps at most, and where that is many, or where it holds what the
kernels of the others take less, the interval holds that of the used steps and that of all steps.
Few steps show no deviation by which one of them is long: where a side has few, both leave out the
same part, whatever its length, or neither does.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import inf
from operator import attrgetter
from statistics import median

from heuristics.comparison.difference.matched import mean_step_ns
from traces.limits import FEWEST, MOST, WALL
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.steps import Step, Steps
from traces.statistics.interval import Interval, interval_of
from traces.steps.rules import SLOW_STEPS


def left_out_alike(base: Steps, new: Steps) -> tuple[frozenset[int], frozenset[int]]:
    """Indices of the steps that each side has to leave out beside the other."""
    part = max(_left_out_part(base), _left_out_part(new))
    sides = _by_usual(base), _by_usual(new)
    few = min(map(len, sides)) < SLOW_STEPS.value
    least = -inf if few else min(map(_shortest, (base, new), sides))
    longest = [_longest(side, part, least) for side in sides]
    if few and not all(longest):
        longest = [frozenset()] * 2
    return longest[0], longest[1]


def _by_usual(steps: Steps) -> dict[int, Fraction]:
    """How many times the usual step each used one and each hiccup lasts, by index."""
    usual_ns = Fraction(median(step.length_ns for step in steps.used)) if steps.used else Fraction()
    return {step.index: step.length_ns / usual_ns for step in _whole(steps)}


def _shortest(steps: Steps, by_usual: Mapping[int, Fraction]) -> Fraction | float:
    return min(map(by_usual.__getitem__, steps.slow), default=inf)


def _longest(
    by_usual: Mapping[int, Fraction], part: Fraction, least: Fraction | float
) -> frozenset[int]:
    rising = sorted(by_usual, key=by_usual.__getitem__)
    longest = rising[round((1 - part) * len(rising)) :]
    return frozenset(index for index in longest if by_usual[index] >= least)


def _whole(steps: Steps) -> list[Step]:
    """Used steps and hiccups, in order."""
    hiccups = (step for step in steps.dropped if step.index in steps.slow)
    return sorted((*steps.used, *hiccups), key=attrgetter("index"))


def _left_out_part(steps: Steps) -> Fraction:
    return Fraction(len(steps.slow), len(_whole(steps)) or 1)


def counted_too(interval: Interval, base: Rank, new: Rank) -> Interval:
    """The interval; as wide as that of all steps beside it where hiccups may be how a run goes."""
    if not counts_hiccups(base, new):
        return interval
    whole = interval_of(all_ns(base), all_ns(new), interval.level)
    assert whole is not None  # of more steps than the interval is of
    return replace(
        interval,
        low_ns=min(interval.low_ns, whole.low_ns),
        high_ns=max(interval.high_ns, whole.high_ns),
        method=f"{interval.method}; with and without the hiccups of each side",
    )


def counts_hiccups(base: Rank, new: Rank) -> bool:
    """Whether hiccups may be how a run goes: they are many, or with them the same kernels take no
    longer.
    """
    return leaves_out_many(base) or leaves_out_many(new) or _is_made_up(base, new)


def _is_made_up(base: Rank, new: Rank) -> bool:
    """Whether steps differ by their kernels for the most part, and as many kernels of the whole
    recordings, hiccups included, by less than half of that.
    """
    whole, new_whole = known(base.totals), known(new.totals)
    if not (whole and new_whole and (base.steps.slow or new.steps.slow)):
        return False
    if whole.kernel_count != new_whole.kernel_count:
        return False
    half, delta_ns = Fraction(MOST.value), mean_step_ns(new) - mean_step_ns(base)
    longer_ns = _compute_ns(new) - _compute_ns(base)
    steps = min(len(base.lengths_ns), len(new.lengths_ns))
    whole_ns = Fraction(new_whole.kernel_work_ns - whole.kernel_work_ns, steps)
    return longer_ns * delta_ns > half * delta_ns**2 and whole_ns * longer_ns < half * longer_ns**2


def _compute_ns(rank: Rank) -> Fraction:
    return Fraction(rank.budget_ns.compute, len(rank.lengths_ns))


def leaves_out_many(rank: Rank) -> bool:
    """Whether hiccups are so many that they may be how the run goes."""
    return len(rank.steps.slow) >= FEWEST.value and _left_out_part(rank.steps) > WALL.value


def all_ns(rank: Rank) -> tuple[int, ...]:
    """Lengths of the used steps and of the hiccups, as recorded."""
    return tuple(step.length_ns for step in _whole(rank.steps))
