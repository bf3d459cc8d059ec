"""Whether fixes gained what was predicted: by the step, never by the part alone that a fix takes away."""

from collections.abc import Iterator, Sequence
from typing import Final

from heuristics.comparison.difference.interval import interval_of
from heuristics.comparison.difference.matched import added, budget_rows
from heuristics.comparison.difference.observed import trace_facts
from heuristics.comparison.difference.rows import NOISE
from heuristics.comparison.facts import Facts
from heuristics.comparison.size import Judged, Size
from heuristics.comparison.suspects.movers import rows_of
from heuristics.comparison.taken import Prediction, Taken, is_inactive, taken
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.result.compared import (
    Conclusion,
    Ends,
    Expected,
    ExpectedOutcome,
    ExpectedPart,
    PredictedEnds,
)
from traces.limits import Limit
from traces.missing import Missing, OrMissing, known

SURE_PART: Final = Limit(
    0.5,
    "of the predicted lower end",
    "ours: a prediction is met where the interval reaches it and at least half of it is beyond chance",
)
_NO_LOWER: Final = Missing("", "the plan has an upper end alone", "give a prediction: --expect FIX=6ms")
_NO_RANGE: Final = Missing("", "the plan has no range for this fix", "give a prediction: --expect FIX=6ms")
_FEW: Final = Missing("", "too few steps a side for an interval", "record at least 8 steps a side")


def judge_expected(
    facts: Facts,
    size: Size,
    judged: Judged,
    explained: Sequence[tuple[str, ...]],
    predictions: Sequence[Prediction] = (),
) -> tuple[Expected, ...]:
    """One entry a fix that the new side has and base has not. `explained`: as of a comparison."""
    found = taken(facts, predictions)
    ids = dict.fromkeys(id_ for one in found for id_ in one.ids)
    others = tuple(_no_fix(found, facts, explained))
    return tuple(
        _judged(one, facts, size, judged, (*(id_ for id_ in ids if id_ not in one.ids), *others))
        for one in found
    )


def _no_fix(found: Sequence[Taken], facts: Facts, explained: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """What changed beside all fixes and can explain what moved; what a trace shows is no cause."""
    own = {knob for one in found for knob in one.sets}
    for change, rows in zip(facts.changed, explained, strict=True):
        if rows and change.what not in own and (change.source != "trace" or change.what == "gpu"):
            yield change.what


def _judged(one: Taken, facts: Facts, size: Size, judged: Judged, together_with: tuple[str, ...]) -> Expected:
    predicted, part = _predicted_ns(one, size.base_mean_ns), _part(one, facts)
    ends = (-size.interval.high_ns, -size.interval.low_ns) if size.interval else None
    open_ = _why_undecided(known(predicted), ends, judged, together_with)
    outcome = _outcome(known(predicted), ends, judged) if open_ is None else "undecided"
    inactive = is_inactive(one, trace_facts(facts.new_rank))
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
    rows = [row for row in budget_rows(facts.base_rank, facts.new_rank) if row.row in own]
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
