"""Which fixes the new side has that base lacks: by its configuration, its trace, or as given."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from heuristics.comparison.configured import Settings, Value, settings_of
from heuristics.comparison.difference.changed import Changed
from heuristics.comparison.difference.observed import Observed, trace_facts
from heuristics.comparison.facts import Facts
from heuristics.comparison.suspects.direction import is_off, way
from heuristics.comparison.suspects.movers import GO_ALONG
from heuristics.comparison.suspects.view import matches
from heuristics.fixes.ways import sets_of, ways_of
from heuristics.result.compared import ExpectedBy
from traces.missing import OrMissing

_OBSERVED: Final[Mapping[str, str]] = {
    "overlap_moe_expert_parallel_comm": "detected.ep_overlap",
    "comm_overlap.overlap_moe_expert_parallel_comm": "detected.ep_overlap",
    "moe_flex_dispatcher_backend": "detected.dispatcher",
    "cuda_graph_impl": "detected.graph_share_frac",
}
"""Knob -> what a trace shows of it, where the trace alone shows whether it runs."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the user predicts that a fix gains of a step: a time, or a part of the base's step."""

    fix: str
    ns: int | None = None
    frac: float | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """A fix, or several that the plan replayed together.

    `sets`: knobs in every way to write them; `gain_frac`: as in the plan; `gain_ns`: as the user gave it.
    """

    ids: tuple[str, ...]
    by: ExpectedBy
    sets: Mapping[str, Value]
    gain_frac: OrMissing[tuple[OrMissing[float], float]]
    gain_ns: int | None = None


def taken(facts: Facts, predictions: Sequence[Prediction]) -> tuple[Taken, ...]:
    """Each fix that is new, those that the plan has a range for together first as one."""
    single = tuple(_single(facts, {one.fix: one for one in predictions}))
    ids = tuple(id_ for one in single for id_ in one.ids)
    both = next((one for one in facts.base.combined if set(one.ids) == set(ids)), None)
    if both is None or len(single) < 2:
        return single
    sets = dict(chain.from_iterable(one.sets.items() for one in single))
    return (Taken(ids, single[0].by, sets, both.gain_frac), *single)


def is_inactive(one: Taken, observed: Mapping[str, Observed]) -> bool:
    """Whether a trace shows that something which a fix switches on does not run."""
    return any(_is_observed(knob, value, observed) is False for knob, value in one.sets.items())


def _single(facts: Facts, given: Mapping[str, Prediction]) -> Iterator[Taken]:
    planned = {one.id: one for one in (*facts.base.fixes, *facts.base.levers)}
    for id_ in dict.fromkeys((*planned, *given)):
        fix, prediction = planned.get(id_), given.get(id_)
        ways = ways_of(fix.knobs) if fix else ()
        sets = sets_of(fix.knobs) if fix else {}
        by = _by(ways, facts)
        if prediction is not None:
            frac = None if prediction.frac is None else (prediction.frac, prediction.frac)
            yield Taken((id_,), by or "given", sets, frac, prediction.ns)
        elif fix and by:
            yield Taken((id_,), by, sets, fix.gain_frac)


def _by(ways: Sequence[Mapping[str, Value]], facts: Facts) -> ExpectedBy | None:
    """How the new side is known to have a fix that base has not; None where it is not."""
    sides = settings_of(facts.base), settings_of(facts.new)
    own = [{knob: value for knob, value in one.items() if not matches(knob, GO_ALONG)} for one in ways]
    if any(_is_configured(one, *sides) for one in own):
        return "configuration"
    base, new = trace_facts(facts.base_rank), trace_facts(facts.new_rank)
    knobs = chain.from_iterable(one.items() for one in own)
    is_new = (_is_observed(*one, new) and _is_observed(*one, base) is False for one in knobs)
    return "trace" if any(is_new) else None


def _is_configured(sets: Mapping[str, Value], base: Settings, new: Settings) -> bool:
    """Whether the new side sets all that one way of a fix sets, and base not all of it."""
    before = {knob: base.values.get(knob) for knob in sets}
    now = {knob: new.values.get(knob) for knob in sets}
    is_new = any(
        before[knob] != now[knob] and not (is_off(before[knob]) and is_off(now[knob])) for knob in sets
    )
    return is_new and all(_is_set(value, before[knob], now[knob]) for knob, value in sets.items())


def _is_set(wanted: Value, before: Value, now: Value) -> bool:
    """Whether a value is the wanted one, or a number or list that went the same way, further or less far."""
    if now == wanted or (is_off(now) and is_off(wanted)):
        return True
    if before is None or isinstance(wanted, bool | str | None):
        return False
    went, planned = (way(Changed("", before, after, "configuration")) for after in (now, wanted))
    return went == planned != 0


def _is_observed(knob: str, value: Value, observed: Mapping[str, Observed]) -> bool | None:
    """Whether a trace shows what a knob asks for; None where it shows nothing of it."""
    one = observed.get(_OBSERVED.get(knob, ""))
    if one is None or one.value == "unknown" or is_off(value):
        return None
    return one.value == value if isinstance(one.value, str) else bool(one.value)
