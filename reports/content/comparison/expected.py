"""Fixes that the new run has: what was predicted, what the step gained, and what to conclude."""

from collections.abc import Iterator
from typing import Final

from heuristics.result.compared import Compared, Conclusion, Ends, Expected, ExpectedOutcome
from reports.content.blocks import Block, Items, Sentence, Tone, Words, words
from reports.content.comparison.headline import unit
from reports.content.comparison.rows import named
from traces.missing import OrMissing, known
from traces.spelling import counted, milliseconds, signed

_SHOWN: Final = 2
_LABELS: Final[dict[ExpectedOutcome, tuple[str, Tone]]] = {
    "met": ("AS PREDICTED", Tone.GOOD),
    "more": ("MORE THAN PREDICTED", Tone.GOOD),
    "missed": ("PREDICTION MISSED", Tone.BAD),
    "undecided": ("PREDICTION OPEN", Tone.NOTICE),
}
_CONCLUSIONS: Final[dict[Conclusion, str]] = {
    "as_predicted": "The step gained what was predicted.",
    "more_than_predicted": "Something else may have helped: repeat both runs with this change alone.",
    "less_than_predicted": "The step gained less than predicted.",
    "came_back_elsewhere": "Its part got shorter, the step did not: judge a fix by the step, not by its part",
    "part_unchanged": "Its part did not get shorter: check in the new run's log that the setting is active.",
    "not_active": "The new trace does not show it at work: find out why before you judge it.",
    "changed_together": "The gain cannot be credited to it alone. Changed together with it",
    "no_prediction": "The plan of the base has no range for it. Give one: --expect FIX=6ms.",
    "too_few_steps": "Too few steps to separate a gain from chance.",
    "within_noise": "The steps vary too much to decide whether the prediction holds: record more of them.",
    "not_comparable": "The runs are not comparable, so no fix is judged.",
}


def expected(compared: Compared, everything: bool) -> Iterator[Block]:
    """One sentence a fix, and below it its part and the conclusion."""
    shown = compared.expected if everything else compared.expected[:_SHOWN]
    for one in shown:
        label, tone = _LABELS[one.outcome]
        yield Sentence((_step(one, compared),), label, tone)
        yield Items((*_part(one), _conclusion(one)))
    if left := len(compared.expected) - len(shown):
        yield Sentence((f"{counted(left, 'more fix', 'more fixes')} of the plan: --full",), tone=Tone.MUTED)


def _step(one: Expected, compared: Compared) -> str:
    predicted, ends = known(one.predicted_ns), known(one.ci95_ns)
    names = " and ".join(one.fixes)
    range_ = (
        f"predicted to save {_range(predicted)} {unit(compared)}" if predicted else "without a prediction"
    )
    return f"{names}, {range_}: the step changed by {_change(one.gained_ns, ends)}."


def _range(predicted: tuple[OrMissing[int], int]) -> str:
    low, high = known(predicted[0]), predicted[1]
    if low is None:
        return f"at most {milliseconds(high)}"
    return milliseconds(high) if low == high else f"{milliseconds(low)} to {milliseconds(high)}"


def _change(gained_ns: int, ends: Ends | None) -> str:
    """A gain as the page has all differences: new less base."""
    change = f"{signed(milliseconds(-gained_ns))} ms"
    if ends is None:
        return f"{change} (no interval)"
    low, high = (signed(milliseconds(-one)) for one in reversed(ends))
    return f"{change} (95 % interval {low} to {high})"


def _part(one: Expected) -> Iterator[Words]:
    if one.part is not None:
        change = _change(one.part.gained_ns, known(one.part.ci95_ns))
        yield words("Its part, ", named(one.part.rows), f": {milliseconds(one.part.base_ns)} ms, {change}")


def _conclusion(one: Expected) -> Words:
    conclusion = _CONCLUSIONS[one.conclusion]
    if one.conclusion == "changed_together":
        return words(f"{conclusion}: {', '.join(one.together_with)}.")
    if one.conclusion == "came_back_elsewhere":
        return words(conclusion, *((". Longer now: ", named(one.grew)) if one.grew else ()), ".")
    return words(conclusion)
