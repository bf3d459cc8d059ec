"""Who makes the others wait and why: as the one sentence of a page names it, and in full."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.content.blocks import Words, words
from reports.content.names import joined, listed, name_of
from traces.missing import known
from traces.sections.cause import Cause
from traces.sections.run import Late, Run
from traces.spelling import duration, numbers, percent, rounded

_NAMED: Final = 2
NAMED: Final = 3
"""Ranks or recordings that a line names."""
_ONE: Final[Mapping[Cause, str]] = {
    Cause.SLOW_DEVICE: "its kernels take {factor} as on ranks with the same work",
    Cause.SLOW_HOST: "its host launches work late, so its GPU is idle longer than others with its work",
    Cause.SLOW_LINK: "it arrives with the others, and its data takes longer to move",
    Cause.ROUTING_IMBALANCE: "its experts get more tokens than those of other ranks",
    Cause.DATA_LOADER: "it begins steps late: its host waits for a batch",
}
"""Why one rank is late."""
_TOGETHER: Final[Mapping[Cause, str]] = {
    Cause.SLOW_DEVICE: "their kernels take {factor} as on ranks with the same work",
    Cause.SLOW_HOST: "their hosts launch work late, so their GPUs idle longer than others with their work",
    Cause.SLOW_LINK: "they arrive with the others, and the data of their group takes longer to move",
    Cause.DATA_LOADER: "they begin steps late: their hosts wait for a batch",
}
"""Why several ranks are late, as those of a node or on one link."""
_SEVERAL: Final[Mapping[Cause, str]] = {
    Cause.ROUTING_IMBALANCE: "another one by layer and step: the router spreads tokens unevenly",
    Cause.ROTATING_JITTER: "another one from step to step",
    Cause.PIPELINE_IMBALANCE: "their pipeline stage has more work than the others",
}
"""Why ranks are late where it is not one rank."""
Called = Callable[[int], str]
"""What a page calls the rank in a place where that has no number."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a page calls the rank in a place: in a sentence, and in a table or a map."""

    full: Callable[[int], Words]
    short: Callable[[int], Words]


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


def why_words(run: Run, names: Names, late: Late) -> Words:
    if late.index is not None:
        factor = known(run.ranks[late.index].device_factor)
        longer = f"{rounded(factor)} times as long" if factor else "longer"
        why = _ONE.get(late.cause, "it arrives last").format(factor=longer)
        return words(names.full(late.index), f": {why}{_uneven(run, late)}.")
    if late.places:
        factors = [known(run.ranks[place].device_factor) or 1.0 for place in late.places]
        longer = f"{rounded(sum(factors) / len(factors))} times as long"
        why = _TOGETHER.get(late.cause, "they arrive last").format(factor=longer)
        named = _all_of(run, names, late.places)
        return words(f"{late.host}: " if late.host else "", named, f": {why}.")
    why = _SEVERAL.get(late.cause, "no single one")
    if late.group is not None:
        return words(_all_of(run, names, run.groups[late.group].ranks), f": {why}.")
    seen = [place for place in late.by_step if place is not None]
    if not seen:
        return words(f"{why}{_uneven(run, late)}.")
    of = f" (in {len(seen)} of {len(late.by_step)} steps: "
    return words(why, of, first_of([*map(names.full, dict.fromkeys(seen))]), f"){_uneven(run, late)}.")


def _all_of(run: Run, names: Names, places: Sequence[int]) -> Words:
    """Several ranks: by their numbers where each has one."""
    found = [number for place in places if (number := known(run.ranks[place].rank)) is not None]
    if len(found) == len(places) > 1:
        return words(f"ranks {numbers(found)}")
    return words(first_of([*map(names.full, places)]))


def _uneven(run: Run, late: Late) -> str:
    most = known(run.imbalance)
    if late.cause is not Cause.ROUTING_IMBALANCE or most is None:
        return ""
    return f"; the largest expert work is {rounded(most)} times the mean"


def costs_words(run: Run, late: Late) -> str:
    of = "a step" if run.steps else "the recording"
    said = f"Costs {duration(late.cost_ns)} of {of}"
    if run.wait_ns:
        said += f" and {percent(min(1.0, late.wait_ns / run.wait_ns))} of all waiting"
    known_saved = saved_words(run, late)
    saved = "an unknown share" if known_saved is None else f"{known_saved} (replayed)"
    return f"{said}; repair saves {saved}."


def first_of(named: Sequence[Words]) -> Words:
    """Ranks or recordings as a sentence names them: the first, and how many more there are."""
    more = len(named) - NAMED
    return words(joined(named[:NAMED]), f" and {more} more" if more > 0 else "")
