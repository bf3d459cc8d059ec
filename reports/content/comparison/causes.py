"""What changed that can explain the difference, the likeliest first, each with its evidence."""

from collections.abc import Iterator, Sequence
from typing import Final

from heuristics.result.compared import Compared, ComparisonVerdict, Suspect
from reports.content.blocks import Block, Items, Sentence, Tone, Words, words
from reports.content.comparison.headline import unit
from reports.content.comparison.rows import named
from reports.content.wording import ended, sentence
from traces.spelling import counted, milliseconds, signed

_SHOWN: Final = 2
_EVIDENCE: Final = 2
_BEFORE: Final[dict[ComparisonVerdict, str]] = {
    "undecided": "IF REAL",
    "no_change": "IN PARTS",
    "not_comparable": "POSSIBLY",
}
"""What the first cause is called where no difference of the step is certain."""
_NONE: Final[dict[ComparisonVerdict, str]] = {
    "no_change": "Nothing to explain: the difference is within what steps vary.",
    "not_comparable": "No cause is named: the runs are not comparable.",
}


def causes(compared: Compared, everything: bool) -> Iterator[Block]:
    """The first causes with their strongest evidence, or all of both."""
    suspects = compared.suspects
    if not suspects:
        none = "Unknown: nothing that is known to have changed can change the parts that differ."
        yield Sentence((_NONE.get(compared.verdict, none),), "Cause", Tone.NOTICE)
    shown = suspects if everything else suspects[: 1 if compared.verdict == "not_comparable" else _SHOWN]
    for place, one in enumerate(shown):
        first = _BEFORE.get(compared.verdict) or (
            "LIKELY CAUSE" if one.confidence != "low" else "POSSIBLE CAUSE"
        )
        yield Sentence(_cause(compared, one), first if place == 0 else "OR", Tone.NOTICE)
        if evidence := tuple(_evidence(one, everything)):
            yield Items(evidence)
    if shared := _sharing(shown):
        yield Sentence((shared,))
    if len(suspects) > len(shown):
        yield Sentence(
            (f"{counted(len(suspects) - len(shown), 'less likely cause')}: --full",), tone=Tone.MUTED
        )


def _cause(compared: Compared, suspect: Suspect) -> Words:
    rows = named(suspect.rows)
    through = words(", by ", rows) if rows else ()
    sure = f". Confidence {suspect.confidence}."
    return words(f"{sentence(suspect.title)} {_explains(compared, suspect)}", through, sure)


def _explains(compared: Compared, suspect: Suspect) -> str:
    """How much a suspect explains, never more than the whole."""
    explains_ns, delta_ns = suspect.explains_ns, compared.step_delta_ns
    explains, whole = (signed(milliseconds(one)) for one in (explains_ns, delta_ns))
    if explains_ns * delta_ns < 0:
        return f"Works the other way: {explains} {unit(compared)}"
    if abs(explains_ns) > abs(delta_ns):
        rest = signed(milliseconds(delta_ns - explains_ns))
        return f"Its parts changed by {explains} {unit(compared)}, all others by {rest}"
    return f"Explains {explains} of {whole} {unit(compared)}"


def _evidence(suspect: Suspect, everything: bool) -> Iterator[Words]:
    """A short page has the figures of rows in its table, so there it is what else was seen."""
    shown = suspect.because if everything else suspect.seen[:_EVIDENCE]
    yield from map(words, shown)
    if suspect.next:
        yield words(f"To be sure: {ended(suspect.next)}")
    if everything:
        yield words(f"Source: {suspect.source}")


def _sharing(suspects: Sequence[Suspect]) -> str:
    """Whether causes explain the same rows, so that one of them may be enough."""
    rows = [{*one.rows} for one in suspects]
    alike = any(rows[one] & rows[other] for one in range(len(rows)) for other in range(one))
    return "Causes above explain the same parts: one of them may be enough." if alike else ""
