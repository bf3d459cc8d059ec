"""Who makes the others wait and why: as the one sentence of a page names it, and in full."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from heuristics.result.result import Result, late_rank
from reports.content.blocks import Span, Words, words
from reports.content.names import beyond, joined, listed, name_of, optional, rank_numbers
from reports.measures import words_of
from reports.rows import known_of
from traces.frozen import frozen
from traces.sections.cause import Cause
from traces.sections.run import Late, Run
from traces.spelling import duration, numbers, percent, rounded

_NAMED: Final = 2
NAMED: Final = 3
"""Ranks or recordings that a line names."""
Called = Callable[[int], str]
"""What a page calls the rank in a place where that has no number."""


@frozen
class Names:
    """What a page calls the rank in a place: in a sentence, and in a table or a map."""

    full: Callable[[int], Words]
    short: Callable[[int], Words]


def leading(result: Result) -> Late | None:
    """Who makes others wait, where the repair comes before all other changes."""
    late = late_rank(result)
    if late and late.repair_first:
        return late
    return None


def late_words(run: Run, late: Late, called: Called) -> str:
    """The late ranks or their node, the cause, and what its repair saves."""
    ranks = _ranks(run, late, called)
    named = f"{late.host} ({ranks})" if late.host and ranks else ranks
    saves, longer = optional("; repair saves {}", saved_words(run, late)), ""
    factors = _told_of(run, late.places, "device_factor")
    if late.cause is Cause.SLOW_DEVICE and factors and len(factors) == len(late.places):
        longer = f", kernels take {rounded(sum(factors) / len(factors))} x"
    return f"{optional('{}: ', named)}{name_of(late.cause)}{longer}{saves}"


def saved_words(run: Run, late: Late) -> str | None:
    """What the repair saves; of layers that go to other stages at most that."""
    without = run.without
    if not without:
        return None
    saved = percent(without.saved_frac)
    if late.cause is Cause.PIPELINE_IMBALANCE:
        return f"up to {saved}"
    return saved


def _ranks(run: Run, late: Late, called: Called) -> str:
    numbered = numbers_of(run, late.places)
    if numbered and len(numbered) == len(late.places):
        return rank_numbers(numbered)
    named = listed([*map(called, late.places[:_NAMED])])
    return named + beyond(len(late.places), _NAMED)


def numbers_of(run: Run, places: Sequence[int]) -> list[int]:
    """The numbers of the ranks in some places, of those that have one."""
    return _told_of(run, places, "rank")


def _told_of(run: Run, places: Sequence[int], field: str) -> list[Any]:
    return known_of((run.ranks[place] for place in places), field)


def why_words(run: Run, names: Names, late: Late) -> Words:
    if late.index is not None:
        factor = run.ranks[late.index].device_factor
        longer = optional("{} times as long", factor, rounded) or "longer"
        why = words_of("late_one").get(late.cause, "it arrives last").format(factor=longer)
        return words(names.full(late.index), f": {why}{_uneven(run, late)}.")
    if late.places:
        factors = [run.ranks[place].device_factor or 1.0 for place in late.places]
        longer = f"{rounded(sum(factors) / len(factors))} times as long"
        why = words_of("late_together").get(late.cause, "they arrive last").format(factor=longer)
        return words(optional("{}: ", late.host), _all_of(run, names, late.places), f": {why}.")
    why = words_of("late_several").get(late.cause, "no single one")
    if late.group is not None:
        return words(_all_of(run, names, run.groups[late.group].ranks), f": {why}.")
    late_places = [place for place in late.by_step if place is not None]
    if not late_places:
        return words(f"{why}{_uneven(run, late)}.")
    of = f" (in {len(late_places)} of {len(late.by_step)} steps: "
    return words(
        why, of, first_of([*map(names.full, dict.fromkeys(late_places))]), f"){_uneven(run, late)}."
    )


def _all_of(run: Run, names: Names, places: Sequence[int]) -> Words:
    """Several ranks: by their numbers where each has one."""
    rank_ids = numbers_of(run, places)
    if len(rank_ids) == len(places) > 1:
        return words(f"ranks {numbers(rank_ids)}")
    return words(first_of([*map(names.full, places)]))


def _uneven(run: Run, late: Late) -> str:
    if late.cause is not Cause.ROUTING_IMBALANCE:
        return ""
    return optional("; the largest expert work is {} times the mean", run.imbalance, rounded)


def costs_words(run: Run, late: Late) -> str:
    of = "a step" if run.steps else "the recording"
    cost_words = f"Costs {duration(late.cost_ns)} of {of}"
    if run.wait_ns:
        cost_words += f" and {percent(min(1.0, late.wait_ns / run.wait_ns))} of all waiting"
    saved = optional("{} (replayed)", saved_words(run, late)) or "an unknown share"
    return f"{cost_words}; repair saves {saved}."


def first_of(named: Sequence[Span | Words]) -> Words:
    """Ranks or recordings as a sentence names them: the first, and how many more there are."""
    return words(joined(named[:NAMED]), beyond(len(named), NAMED))
