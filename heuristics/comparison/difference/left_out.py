"""Steps that one side leaves out as hiccups, and a difference that has to hold with them.

What is a hiccup is judged by each recording alone. Batches that are late in a sixth of the steps
are hiccups to one recording and, a few more of them, how the run goes to the next: the same run
twice then differs by all of them. So where a side leaves out many, the interval holds that of the
used steps and that of all steps.
"""

from dataclasses import replace

from traces.limits import FEWEST, WALL
from traces.sections.rank import Rank
from traces.statistics.interval import Interval, interval_of


def counted_too(interval: Interval, base: Rank, new: Rank) -> Interval:
    """The interval; as wide as that of all steps beside it where a side leaves out many as
    hiccups.
    """
    if not (leaves_out_many(base) or leaves_out_many(new)):
        return interval
    whole = interval_of(_all_ns(base), _all_ns(new), interval.level)
    if whole is None:
        return interval
    low_ns, high_ns = min(interval.low_ns, whole.low_ns), max(interval.high_ns, whole.high_ns)
    return replace(
        interval,
        low_ns=low_ns,
        high_ns=high_ns,
        method=f"{interval.method}; with and without the hiccups of each side",
    )


def leaves_out_many(rank: Rank) -> bool:
    """Whether hiccups are so many that they may be how the run goes."""
    steps = rank.steps
    return len(steps.slow) >= FEWEST.value and len(steps.slow) > WALL.value * (
        len(steps.used) + len(steps.slow)
    )


def _all_ns(rank: Rank) -> tuple[int, ...]:
    """Lengths of the used steps and of the hiccups, as recorded."""
    hiccups = (step for step in rank.steps.dropped if step.index in rank.steps.slow)
    steps = sorted((*rank.steps.used, *hiccups), key=lambda step: step.index)
    return tuple(step.end_ns - step.start_ns for step in steps)
