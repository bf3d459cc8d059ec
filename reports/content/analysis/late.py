"""Who makes the others wait, as the one sentence of a page names it."""

from collections.abc import Callable
from typing import Final

from reports.content.names import listed, name_of
from traces.missing import known
from traces.sections.cause import Cause
from traces.sections.run import Late, Run
from traces.spelling import numbers, percent, rounded

_NAMED: Final = 2
Called = Callable[[int], str]
"""What a page calls the rank in a place where that has no number."""


def late_words(run: Run, late: Late, called: Called) -> str:
    """The late ranks or their node, the cause, and what its repair saves."""
    ranks = _ranks(run, late, called)
    named = f"{late.host} ({ranks})" if late.host and ranks else ranks
    saved = saved_words(run, late)
    saves = f"; repair saves {saved}" if saved else ""
    return (f"{named}: " if named else "") + f"{name_of(late.cause)}{_times(run, late)}{saves}"


def saved_words(run: Run, late: Late) -> str | None:
    """What the repair saves; of layers that go to other stages at most that."""
    without = known(run.without)
    if without is None:
        return None
    saved = percent(without.saved_frac)
    return f"up to {saved}" if late.cause is Cause.PIPELINE_IMBALANCE else saved


def _ranks(run: Run, late: Late, called: Called) -> str:
    numbered = [number for place in late.places if (number := known(run.ranks[place].rank)) is not None]
    if numbered and len(numbered) == len(late.places):
        return f"{'rank' if len(numbered) == 1 else 'ranks'} {numbers(numbered)}"
    named = listed([called(place) for place in late.places[:_NAMED]])
    return named + (f" and {len(late.places) - _NAMED} more" if len(late.places) > _NAMED else "")


def _times(run: Run, late: Late) -> str:
    """How many times as long the kernels of slow GPUs take, where all of them are compared."""
    if late.cause is not Cause.SLOW_DEVICE or not late.places:
        return ""
    factors = [known(run.ranks[place].device_factor) for place in late.places]
    there = [one for one in factors if one is not None]
    return f", kernels take {rounded(sum(there) / len(there))} x" if len(there) == len(factors) else ""
