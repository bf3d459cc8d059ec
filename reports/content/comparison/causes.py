"""Why two runs differ: the likeliest causes with their evidence, what limits that, what fixes were
to gain.

A fix has what was predicted and what was gained.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from heuristics.comparison.suspects.find import UNPROVEN
from heuristics.result.compared import (
    Compared,
    ComparisonVerdict,
    Difference,
    Ends,
    Suspect,
    TwoRuns,
)
from heuristics.result.expected import Expected
from reports.content.blocks import Blocks, Code, Items, Sentence, Tone, Words, filled, items, words
from reports.content.comparison.difference import certain, delta, named, unit
from reports.content.names import around, ended, keyed, sentence, statement, when
from reports.measures import words_of
from reports.rows import each, those
from traces.missing import OrMissing, known
from traces.spelling import between, counted, in_ms, milliseconds, signed_ms

NO_CAUSE: Final = "No cause is named: the runs are not comparable."
_SHOWN: Final = 2
_EVIDENCE: Final = 2
_NONE: Final[dict[ComparisonVerdict, str]] = {
    "no_change": "Nothing to explain: the difference is within what steps vary.",
    "not_comparable": NO_CAUSE,
}


Told = tuple[str, Words, Sequence[Words]]
"""A cause: what it is called, its sentence, and its evidence."""


def named_causes(labelled_causes: Iterable[Told]) -> Blocks:
    """Causes, the likeliest first, each with its evidence."""
    for label, cause_words, evidence in labelled_causes:
        yield Sentence(cause_words, label, Tone.NOTICE)
        yield from items("", evidence)


def left_out(count: int, one: str, many: str = "", of: str = "") -> Blocks:
    if count:
        yield statement(f"{counted(count, one, many)}{of}: --full", tone=Tone.MUTED)


def causes(compared: Compared, everything: bool) -> Blocks:
    """The first causes with their strongest evidence, or all of both."""
    suspects, verdict = compared.suspects, compared.verdict
    if not suspects:
        none = "Unknown: nothing that is known to have changed can change the parts that differ."
        yield statement(_NONE.get(verdict, none), "Cause", Tone.NOTICE)
    shown = suspects
    if not everything:
        shown = suspects[: 1 if verdict == "not_comparable" else _SHOWN]
    told, rows = list[Told](), Counter[str]()
    in_parts = certain(compared)
    for suspect in shown:
        label = "OR" if told else words_of("first_cause").get(verdict) or _how_sure(suspect)
        if not told and verdict == "undecided" and in_parts.issuperset(suspect.rows):
            label = words_of("first_cause")["no_change"]
        told.append((label, _cause(compared, suspect), tuple(_evidence(suspect, everything))))
        rows.update({*suspect.rows})
    yield from named_causes(told)
    if rows.total() > len(rows):
        yield statement("Causes above explain the same parts: one of them may be enough.")
    yield from left_out(len(suspects) - len(shown), "less likely cause")


def _how_sure(suspect: Suspect) -> str:
    if suspect.id.startswith(UNPROVEN):
        return "NO PROVEN CAUSE"
    if suspect.confidence == "low":
        return "POSSIBLE CAUSE"
    return "LIKELY CAUSE"


def _cause(compared: Compared, suspect: Suspect) -> Words:
    rows = named(suspect.rows)
    if suspect.id.startswith(UNPROVEN):
        moved, whole = delta(suspect.explains_ns), delta(compared.step_delta_ns)
        return words(
            keyed(sentence(suspect.title)), " ", rows, f": {moved} of {whole} {unit(compared)}."
        )
    title_words, explains = keyed(sentence(suspect.title)), _explains(compared, suspect)
    ends = f". Confidence {suspect.confidence}."
    return words(title_words, f" {explains}", around(", by ", rows), ends)


def _explains(compared: Compared, suspect: Suspect) -> str:
    """How much a suspect explains, never more than the whole."""
    explains_ns, delta_ns = suspect.explains_ns, compared.step_delta_ns
    explains, whole, others = map(delta, (explains_ns, delta_ns, delta_ns - explains_ns))
    if explains_ns * delta_ns < 0:
        return f"Moved the step the other way, by {explains} {unit(compared)}"
    if abs(explains_ns) > abs(delta_ns):
        return f"Its parts changed by {explains} {unit(compared)}, all others by {others}"
    return f"Explains {explains} of {whole} {unit(compared)}"


def _evidence(suspect: Suspect, everything: bool) -> Iterator[Words]:
    """A short page has the figures of rows in its table, so there it is what else was seen."""
    yield from map(keyed, suspect.because if everything else suspect.seen[:_EVIDENCE])
    if suspect.next:
        yield words("To be sure: ", keyed(ended(suspect.next)))
    if everything:
        yield words(f"Source: {suspect.source}")


_LIMITS: Final = 4


def limits(compared: TwoRuns, everything: bool) -> Blocks:
    """What limits or forbids the comparison, the gravest first; a short page names what limits it
    alone.
    """
    differences = compared.comparable.differences
    forbids = those(differences, state="no")
    ordered = sorted(differences, key=lambda difference: difference.state != "no")
    others = ordered[len(forbids) :]
    shown = ordered if everything else forbids[:_LIMITS]
    title = "Why not comparable" if forbids else "Limits of this comparison"
    yield from items(title, map(limit, shown))
    if others and not everything:
        names = f"{', '.join(each(others, 'what'))}. Why that matters: --full"
        if forbids:
            yield statement(names, "Also differ")
        else:
            yield statement(f"The {_DIFFER[compared.kind]} differ in {names}", "Limits")


_DIFFER: Final = {"comparison": "recordings", "files_comparison": "configurations"}


def limit(difference: Difference) -> Words:
    values = "" if difference.base == difference.new else f": {difference.base} -> {difference.new}"
    return words(keyed(difference.what), f"{values}. ", keyed(sentence(difference.because)))


def expected(compared: Compared, everything: bool) -> Blocks:
    """One sentence a fix, and below it its part and the conclusion."""
    shown = compared.expected if everything else compared.expected[:_SHOWN]
    for row in shown:
        label = words_of("prediction")[row.outcome]
        yield statement(_step(row, compared), label, Tone(words_of("prediction_tone")[row.outcome]))
        yield Items(filled((_extent(row), _part(row), _conclusion(row))))
    left = len(compared.expected) - len(shown)
    yield from left_out(left, "more fix", "more fixes", " of the plan")


def _step(row: Expected, compared: Compared) -> str:
    predicted, change = row.predicted_ns, _change(row.gained_ns, row.ci95_ns)
    saves = (
        f"predicted to save {_range(predicted)} {unit(compared)}"
        if predicted
        else "without a prediction"
    )
    return f"{' and '.join(row.fixes)}, {saves}: the step changed by {change}."


def _range(predicted: tuple[OrMissing[int], int]) -> str:
    low, high = known(predicted[0]), predicted[1]
    if low is None:
        return f"at most {milliseconds(high)}"
    return between(milliseconds(low), milliseconds(high))


def _change(gained_ns: int, ends: OrMissing[Ends]) -> str:
    """A gain as the page has all differences: new less base."""
    interval = "no interval"
    if ends:
        interval = f"95 % interval {delta(-ends[1])} to {delta(-ends[0])}"
    return f"{signed_ms(-gained_ns)} ({interval})"


def _part(row: Expected) -> Words:
    if row.part is None:
        return ()
    change = _change(row.part.gained_ns, row.part.ci95_ns)
    return words("Its part, ", named(row.part.rows), f": {in_ms(row.part.base_ns)}, {change}")


def _extent(row: Expected) -> Words:
    """Where the new run has other values of the fix's setting than planned, both, and whose range
    it is.
    """
    if row.extent is None:
        return ()
    planned, now = ", ".join(row.extent.planned), ", ".join(row.extent.now)
    ranged = when(row.extent.ranged, "; predicted for the new run's values")
    return words(Code(row.extent.what), f": {planned} in the plan, {now} in the new run{ranged}.")


def _conclusion(row: Expected) -> Words:
    conclusion = words_of("conclusion")[row.conclusion]
    if row.conclusion == "changed_together":
        return words(f"{conclusion}: {', '.join(row.together_with)}.")
    if row.conclusion != "came_back_elsewhere":
        return words(conclusion)
    return words(conclusion, around(". Longer now: ", named(row.grew)), ".")
