"""Whether fixes gained what was predicted: by the step, never by the part alone that a fix takes
away.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from heuristics.comparison.difference.changed import TraceFact, is_off, trace_facts, went
from heuristics.comparison.difference.matched import added, budget_rows
from heuristics.comparison.difference.rows import NOISE, Facts, names_of
from heuristics.comparison.difference.subject import Value, Values
from heuristics.comparison.extent import extent_of
from heuristics.comparison.size import Judged
from heuristics.comparison.suspects.table import GO_ALONG, rows_of
from heuristics.comparison.suspects.view import matches
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.result.compared import ComparedSize, Ends
from heuristics.result.expected import (
    Conclusion,
    Expected,
    ExpectedBy,
    ExpectedExtent,
    ExpectedOutcome,
    ExpectedPart,
    PredictedEnds,
)
from heuristics.result.judged import Knobs
from heuristics.words import lacking
from traces.frozen import frozen
from traces.limits import MOST
from traces.missing import OrMissing, known, or_gap
from traces.sections.section import copied
from traces.settings.printed import change_of
from traces.settings.settings import Framework
from traces.statistics.interval import interval_of
from traces.texts import Texts

_NO_LOWER: Final = lacking("comparison.no-lower-end", cure="comparison.no-prediction-cure")
_NO_RANGE: Final = lacking("comparison.no-range", cure="comparison.no-prediction-cure")
_FEW: Final = lacking("comparison.few-per-side")
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


@frozen
class Prediction:
    """What the user predicts that a fix gains of a step: a time, or a part of the base's step."""

    fix: str
    ns: int | None = None
    frac: float | None = None


@frozen
class Taken:
    """A fix, or several that the plan replayed together.

    `sets`: knobs in every way to write them; `gain_frac`: as in the plan; `gain_ns`: as the user
    gave it. `extent`: where the new run has other values than the plan names; `gain_frac` is for
    those if `ranged`.
    """

    ids: Texts
    by: ExpectedBy
    sets: Values
    gain_frac: OrMissing[tuple[OrMissing[float], float]]
    gain_ns: int | None = None
    extent: ExpectedExtent | None = None


def judge_expected(
    facts: Facts, size: ComparedSize, judged: Judged, predictions: Sequence[Prediction]
) -> Iterator[Expected]:
    """One entry a fix that the new side has and base has not.

    Beside all fixes stands what changed and can explain what moved; what a trace shows is no cause.
    """
    single = tuple(_single(facts, {prediction.fix: prediction for prediction in predictions}))
    ids, sets = list[str](), dict[str, Value]()
    for taken in single:
        ids += taken.ids
        sets.update(taken.sets)
    other_changes = []
    for change in facts.changed:
        is_cause = change.source != "trace" or change.what == "gpu"
        if change.can_explain and change.what not in sets and is_cause:
            other_changes.append(change.what)
    for taken in (*_together(facts, tuple(ids), sets, single), *single):
        beside = [id_ for id_ in ids if id_ not in taken.ids]
        yield _judged(taken, facts, size, judged, (*beside, *other_changes))


def _together(facts: Facts, ids: Texts, sets: Values, single: Sequence[Taken]) -> Iterator[Taken]:
    """All fixes that are new as one, where the plan has a range for just these together."""
    for combined in facts.base.result.combined:
        if {*combined.ids} == {*ids}:
            yield Taken(ids, single[0].by, sets, combined.gain_frac)
            return


def _judged(
    taken: Taken, facts: Facts, size: ComparedSize, judged: Judged, together_with: Texts
) -> Expected:
    predicted, part = _predicted_ns(taken, size.base_mean_ns), _part(taken, facts)
    ends = _gained(size.ends_ns)
    outcome, conclusion = _concluded(known(predicted), ends, judged, together_with)
    if outcome == "missed":
        conclusion = _why_missed(taken, facts, ends, part)
    if outcome in ("missed", "more") and taken.extent and not taken.extent.ranged:
        outcome, conclusion = "undecided", "other_extent"
    own = (*part.rows, NOISE) if part else (NOISE,)
    grew = (row for row in facts.attribution.rows if row.delta_ns > 0 and row.row not in own)
    return copied(
        Expected,
        taken,
        fixes=taken.ids,
        predicted_ns=predicted,
        gained_ns=-size.delta_ns,
        ci95_ns=ends or _FEW,
        part=part,
        outcome=outcome,
        conclusion=conclusion,
        together_with=together_with,
        grew=names_of(grew),
    )


def _gained(ends_ns: Ends | None) -> Ends | None:
    if ends_ns:
        return -ends_ns[1], -ends_ns[0]
    return None


def _predicted_ns(taken: Taken, step_ns: int) -> OrMissing[PredictedEnds]:
    if taken.gain_ns is not None:
        return taken.gain_ns, taken.gain_ns
    gain = known(taken.gain_frac)
    if gain is None:
        return _NO_RANGE
    low = known(gain[0])
    return _NO_LOWER if low is None else round(low * step_ns), round(gain[1] * step_ns)


def _part(taken: Taken, facts: Facts) -> ExpectedPart | None:
    """What fixes act on, by the rows of the step that are theirs; None where they act on no single
    row.
    """
    own = set[str]()
    for id_ in taken.ids:
        if id_ in CATALOGUE:
            own.update(rows_of(CATALOGUE[id_]))
    rows = [row for row in budget_rows(facts.base.rank, facts.new.rank) if row.row in own]
    if not rows:
        return None
    whole = added(rows)
    around = interval_of(whole.base.per_step_ns, whole.new.per_step_ns)
    return ExpectedPart(
        rows=names_of(rows),
        base_ns=round(whole.base.mean_ns),
        gained_ns=round(-whole.delta_ns),
        ci95_ns=_gained(around.ends_ns if around else None) or _FEW,
    )


def _concluded(
    predicted: PredictedEnds | None, ends: Ends | None, judged: Judged, together_with: Sequence[str]
) -> tuple[ExpectedOutcome, Conclusion]:
    """By the step's interval: out of reach of the range, above it, or in it and beyond chance.

    Why a fix cannot be judged comes first, the gravest reason before all.
    """
    if judged.verdict == "not_comparable":
        return "undecided", "not_comparable"
    if together_with:
        return "undecided", "changed_together"
    if predicted is None:
        return "undecided", "no_prediction"
    if ends is None:
        return "undecided", "too_few_steps"
    (low_ns, high_ns), least_ns = ends, max(known(predicted[0]) or 0, 0)
    unchanged = not least_ns and judged.verdict == "no_change" and high_ns < predicted[1]
    if high_ns < max(least_ns, 1) or unchanged:
        return "missed", "less_than_predicted"
    if low_ns > max(predicted[1], 0):
        return "more", "more_than_predicted"
    if low_ns > 0 and low_ns >= MOST.value * least_ns:
        return "met", "as_predicted"
    return "undecided", "within_noise"


def _why_missed(
    taken: Taken, facts: Facts, ends: Ends | None, part: ExpectedPart | None
) -> Conclusion:
    """The fix does not run, its part stayed, or its part fell and the time came back elsewhere."""
    observed = trace_facts(facts.new.rank)
    if any(_is_observed(knob, value, observed) is False for knob, value in taken.sets.items()):
        return "not_active"
    if part is None or (ends and ends[0] > 0):
        return "less_than_predicted"
    least_ns, _ = known(part.ci95_ns) or (part.gained_ns, None)
    if least_ns > 0:
        return "came_back_elsewhere"
    return "part_unchanged"


def _single(facts: Facts, given: Mapping[str, Prediction]) -> Iterator[Taken]:
    planned = {entry.id: entry for entry in (*facts.base.result.fixes, *facts.base.result.levers)}
    for id_ in dict.fromkeys((*planned, *given)):
        fix, prediction = planned.get(id_), given.get(id_)
        ways = [*_ways_of(fix.knobs)] if fix else []
        sets = dict[str, Value]()
        for way in ways:
            sets.update(way)
        by = _by(ways, facts)
        if prediction is not None:
            frac = None if prediction.frac is None else (prediction.frac, prediction.frac)
            yield Taken((id_,), by or "given", sets, frac, prediction.ns)
        elif fix and by:
            (extent, gain), gain_frac = extent_of(sets, facts) or (None, None), fix.gain_frac
            if gain is not None:
                gain_frac = or_gap(gain[0], _NO_LOWER), gain[1]
            yield Taken((id_,), by, sets, gain_frac, extent=extent)


def _ways_of(knobs: Knobs) -> Iterator[Values]:
    for field, framework in _WRITTEN.items():
        if sets := change_of((*getattr(knobs, field), *knobs.environment), framework):
            yield sets


def _by(ways: Sequence[Values], facts: Facts) -> ExpectedBy | None:
    """How the new side is known to have a fix that base has not; None where it is not."""
    base, new = trace_facts(facts.base.rank), trace_facts(facts.new.rank)
    by: ExpectedBy | None = None
    for way in ways:
        own = {knob: value for knob, value in way.items() if not matches(knob, GO_ALONG)}
        if _is_configured(own, facts.base.values, facts.new.values):
            return "configuration"
        for knob, value in own.items():
            if _is_observed(knob, value, new) and _is_observed(knob, value, base) is False:
                by = "trace"
    return by


def _is_configured(sets: Values, base: Values, new: Values) -> bool:
    is_new = False
    for knob, wanted in sets.items():
        before, now = base.get(knob), new.get(knob)
        if not _is_set(wanted, before, now):
            return False
        is_new |= before != now and not (is_off(before) and is_off(now))
    return is_new


def _is_set(wanted: Value, before: Value, now: Value) -> bool:
    """Whether a value is the wanted one, or a number or list that went the same way, further or
    less far.
    """
    if now == wanted or (is_off(now) and is_off(wanted)):
        return True
    if before is None or isinstance(wanted, bool | str | None):
        return False
    return went(before, now) == went(before, wanted) != 0


def _is_observed(knob: str, value: Value, observed: Mapping[str, TraceFact]) -> bool | None:
    """Whether a trace shows what a knob asks for; None where it shows nothing of it."""
    shown = observed.get(_OBSERVED.get(knob, ""))
    if shown is None or is_off(value):
        return None
    if isinstance(shown.value, str):
        return shown.value == value
    return bool(shown.value)
