"""Whether fixes gained what was predicted: by the step, never by the part alone that a fix takes away."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from heuristics.comparison.difference.changed import (
    Observed,
    difference,
    trace_facts,
)
from heuristics.comparison.difference.interval import interval_of
from heuristics.comparison.difference.matched import added, budget_rows
from heuristics.comparison.difference.rows import NOISE, Facts
from heuristics.comparison.difference.subject import Settings, Value
from heuristics.comparison.size import Judged
from heuristics.comparison.suspects.direction import is_off, way
from heuristics.comparison.suspects.movers import GO_ALONG, rows_of
from heuristics.comparison.suspects.view import matches
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.result.compared import (
    ComparedSize,
    Conclusion,
    Ends,
    Expected,
    ExpectedBy,
    ExpectedOutcome,
    ExpectedPart,
    PredictedEnds,
)
from heuristics.result.judged import Knobs
from traces.limits import Limit
from traces.missing import Missing, OrMissing, known
from traces.settings.printed import change_of
from traces.settings.settings import Framework

SURE_PART: Final = Limit(
    0.5,
    "of the predicted lower end",
    "ours: a prediction is met where the interval reaches it and at least half of it is beyond chance",
)
_NO_LOWER: Final = Missing("", "the plan has an upper end alone", "give a prediction: --expect FIX=6ms")
_NO_RANGE: Final = Missing("", "the plan has no range for this fix", "give a prediction: --expect FIX=6ms")
_FEW: Final = Missing("", "too few steps a side for an interval", "record at least 8 steps a side")
_OBSERVED: Final[Mapping[str, str]] = {
    "overlap_moe_expert_parallel_comm": "detected.ep_overlap",
    "comm_overlap.overlap_moe_expert_parallel_comm": "detected.ep_overlap",
    "moe_flex_dispatcher_backend": "detected.dispatcher",
    "cuda_graph_impl": "detected.graph_share_frac",
}
"""Knob -> what a trace shows of it, where the trace alone shows whether it runs."""


_WRITTEN: Final[Mapping[str, Framework]] = {
    "megatron_lm": "megatron_lm",
    "megatron_bridge": "megatron_bridge",
    "bridge_harness": "megatron_bridge",
}
"""Ways to write a change, by the field of `Knobs`, and the framework whose words they are."""


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


def judge_expected(
    facts: Facts,
    size: ComparedSize,
    judged: Judged,
    predictions: Sequence[Prediction] = (),
) -> tuple[Expected, ...]:
    """One entry a fix that the new side has and base has not."""
    found = taken(facts, predictions)
    ids = dict.fromkeys(id_ for one in found for id_ in one.ids)
    others = tuple(_no_fix(found, facts))
    return tuple(
        _judged(one, facts, size, judged, (*(id_ for id_ in ids if id_ not in one.ids), *others))
        for one in found
    )


def _no_fix(found: Sequence[Taken], facts: Facts) -> Iterator[str]:
    """What changed beside all fixes and can explain what moved; what a trace shows is no cause."""
    own = {knob for one in found for knob in one.sets}
    for change in facts.changed:
        if (
            change.can_explain
            and change.what not in own
            and (change.source != "trace" or change.what == "gpu")
        ):
            yield change.what


def _judged(
    one: Taken, facts: Facts, size: ComparedSize, judged: Judged, together_with: tuple[str, ...]
) -> Expected:
    predicted, part = _predicted_ns(one, size.base_mean_ns), _part(one, facts)
    ends = (-size.ends_ns[1], -size.ends_ns[0]) if size.ends_ns else None
    open_ = _why_undecided(known(predicted), ends, judged, together_with)
    outcome = _outcome(known(predicted), ends, judged) if open_ is None else "undecided"
    inactive = is_inactive(one, trace_facts(facts.new.rank))
    grew = (row.row for row in facts.attribution.rows if row.delta_ns > 0 and row.row != NOISE)
    return Expected(
        fixes=one.ids,
        by=one.by,
        predicted_ns=predicted,
        gained_ns=-size.delta_ns,
        ci95_ns=ends or _FEW,
        part=part,
        outcome=outcome,
        conclusion=open_ or _conclusion(outcome, ends, part, inactive),
        together_with=together_with,
        grew=tuple(row for row in grew if part is None or row not in part.rows),
    )


def _predicted_ns(one: Taken, step_ns: int) -> OrMissing[PredictedEnds]:
    if one.gain_ns is not None:
        return one.gain_ns, one.gain_ns
    gain = known(one.gain_frac)
    if gain is None:
        return _NO_RANGE
    low = known(gain[0])
    return _NO_LOWER if low is None else round(low * step_ns), round(gain[1] * step_ns)


def _part(one: Taken, facts: Facts) -> ExpectedPart | None:
    """What fixes act on, by the rows of the step that are theirs; None where they act on no single row."""
    own = {row for id_ in one.ids if id_ in CATALOGUE for row in rows_of(CATALOGUE[id_])}
    rows = [row for row in budget_rows(facts.base.rank, facts.new.rank) if row.row in own]
    if not rows:
        return None
    whole = added(rows)
    around = interval_of(whole.base.per_step_ns, whole.new.per_step_ns)
    return ExpectedPart(
        rows=tuple(row.row for row in rows),
        base_ns=round(whole.base.mean_ns),
        gained_ns=round(-whole.delta_ns),
        ci95_ns=(-around.high_ns, -around.low_ns) if around else _FEW,
    )


def _why_undecided(
    predicted: PredictedEnds | None, ends: Ends | None, judged: Judged, together_with: Sequence[str]
) -> Conclusion | None:
    """Why a fix cannot be judged, the gravest reason first; None where it can."""
    if judged.verdict == "not_comparable":
        return "not_comparable"
    if together_with:
        return "changed_together"
    if predicted is None:
        return "no_prediction"
    return "too_few_steps" if ends is None else None


def _outcome(predicted: PredictedEnds | None, ends: Ends | None, judged: Judged) -> ExpectedOutcome:
    """By the step's interval: out of reach of the range, above it, or in it and beyond chance."""
    if predicted is None or ends is None:
        return "undecided"
    (low_ns, high_ns), least = ends, max(known(predicted[0]) or 0, 0)
    unchanged = not least and judged.verdict == "no_change" and high_ns < predicted[1]
    if high_ns < max(least, 1) or unchanged:
        return "missed"
    if low_ns > max(predicted[1], 0):
        return "more"
    return "met" if low_ns > 0 and low_ns >= SURE_PART.value * least else "undecided"


def _conclusion(
    outcome: ExpectedOutcome, ends: Ends | None, part: ExpectedPart | None, inactive: bool
) -> Conclusion:
    """What an outcome means. Where it missed: the fix does not run, its part stayed, or its part fell and the
    time came back elsewhere."""
    simple: dict[ExpectedOutcome, Conclusion] = {
        "met": "as_predicted",
        "more": "more_than_predicted",
        "undecided": "within_noise",
    }
    if outcome != "missed":
        return simple[outcome]
    if inactive:
        return "not_active"
    if part is None or (ends and ends[0] > 0):
        return "less_than_predicted"
    around = known(part.ci95_ns)
    return "came_back_elsewhere" if (around[0] if around else part.gained_ns) > 0 else "part_unchanged"


def taken(facts: Facts, predictions: Sequence[Prediction]) -> tuple[Taken, ...]:
    """Each fix that is new, those that the plan has a range for together first as one."""
    single = tuple(_single(facts, {one.fix: one for one in predictions}))
    ids = tuple(id_ for one in single for id_ in one.ids)
    both = next((one for one in facts.base.result.combined if set(one.ids) == set(ids)), None)
    if both is None or len(single) < 2:
        return single
    sets = dict(chain.from_iterable(one.sets.items() for one in single))
    return (Taken(ids, single[0].by, sets, both.gain_frac), *single)


def is_inactive(one: Taken, observed: Mapping[str, Observed]) -> bool:
    """Whether a trace shows that something which a fix switches on does not run."""
    return any(_is_observed(knob, value, observed) is False for knob, value in one.sets.items())


def _single(facts: Facts, given: Mapping[str, Prediction]) -> Iterator[Taken]:
    planned = {one.id: one for one in (*facts.base.result.fixes, *facts.base.result.levers)}
    for id_ in dict.fromkeys((*planned, *given)):
        fix, prediction = planned.get(id_), given.get(id_)
        ways = ways_of(fix.knobs) if fix else ()
        sets = {knob: value for way in ways for knob, value in way.items()}
        by = _by(ways, facts)
        if prediction is not None:
            frac = None if prediction.frac is None else (prediction.frac, prediction.frac)
            yield Taken((id_,), by or "given", sets, frac, prediction.ns)
        elif fix and by:
            yield Taken((id_,), by, sets, fix.gain_frac)


def ways_of(knobs: Knobs) -> tuple[Mapping[str, Value], ...]:
    """The knobs that each way of writing a change sets; a way that sets none is left out."""
    found = (
        change_of((*getattr(knobs, way), *knobs.environment), framework)
        for way, framework in _WRITTEN.items()
    )
    return tuple(one for one in found if one)


def _by(ways: Sequence[Mapping[str, Value]], facts: Facts) -> ExpectedBy | None:
    """How the new side is known to have a fix that base has not; None where it is not."""
    sides = facts.base.settings, facts.new.settings
    own = [{knob: value for knob, value in one.items() if not matches(knob, GO_ALONG)} for one in ways]
    if any(_is_configured(one, *sides) for one in own):
        return "configuration"
    base, new = trace_facts(facts.base.rank), trace_facts(facts.new.rank)
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
    went, planned = (way(difference("", before, after, "configuration")) for after in (now, wanted))
    return went == planned != 0


def _is_observed(knob: str, value: Value, observed: Mapping[str, Observed]) -> bool | None:
    """Whether a trace shows what a knob asks for; None where it shows nothing of it."""
    one = observed.get(_OBSERVED.get(knob, ""))
    if one is None or one.value == "unknown" or is_off(value):
        return None
    return one.value == value if isinstance(one.value, str) else bool(one.value)
