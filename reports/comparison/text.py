"""The comparison as plain text, at most 80 columns: Verdict, Why, where it lies, what changed, Next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reports.comparison.figures import harmless
from reports.comparison.sentences import (
    before_suspects,
    changed_sentence,
    difference_sentence,
    gap_sentence,
    headline,
    next_sentences,
    no_suspect,
    sharing_sentence,
    side_sentence,
    suspect_sentence,
    verdict_sentences,
)
from reports.comparison.text_rows import kernel_lines, moe_lines, reason_lines, row_lines
from reports.document import Document
from reports.layout import INDENT, titled, wrap
from reports.redaction import redaction_sentence
from reports.words import printable

_NAME: Final = 50
_SUSPECTS: Final = 3
_EVIDENCE: Final = 4
_CHANGED: Final = 6
_LIMITS: Final = 6


def render_comparison_text(document: Document, everything: bool = False) -> str:
    """The whole report, ending in a line break; `everything`: every row, kernel, change and gap."""
    told: Document = harmless(document)
    limits = list(_limits(told, everything))
    forbidden = told["verdict"] == "not_comparable"
    parts = [
        _verdict(told),
        limits if forbidden else [],
        _why(told, everything),
        [] if forbidden and not everything else _where(told, everything),
        _changed(told, everything),
        [] if forbidden else limits,
        _next(told, everything),
        _missing(told) if everything else [],
    ]
    lines = [*_head(told), *(line for part in parts for line in _apart(part))]
    lines += ["", *wrap(redaction_sentence(told), "")]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _apart(part: Iterable[str]) -> Iterator[str]:
    if lines := list(part):
        yield from ("", *lines)


def _head(document: Document) -> Iterator[str]:
    yield f"moe-diag {printable(document['tool']['version'], _NAME)}: new against base"
    for side in ("base", "new"):
        said = f"{side:<5}{printable(document[side]['name'], _NAME)}: {side_sentence(document[side])}"
        yield from wrap(said, "  ", " " * 7)
    for warning in document["warnings"]:
        yield from wrap(f"Warning: {warning}", "  ")


def _verdict(document: Document) -> Iterator[str]:
    yield from titled("Verdict", headline(document))
    for said in verdict_sentences(document):
        yield from wrap(said)


def _why(document: Document, everything: bool) -> Iterator[str]:
    suspects = document["suspects"]
    if not suspects:
        yield from titled("Why", no_suspect(document))
    before = before_suspects(document)
    if before:
        yield from titled("Why", before)
    shown = len(suspects) if everything else _SUSPECTS
    for place, one in enumerate(suspects[:shown], start=1):
        yield from titled("Why" if place == 1 and not before else "", f"{place}. {one['title']}")
        yield from wrap(suspect_sentence(document, one), INDENT + "   ")
        evidence = one["because"] if everything else one["because"][:_EVIDENCE]
        for said in evidence:
            yield from wrap(f"- {said}", INDENT + "   ", INDENT + "     ")
        if everything:
            yield from wrap(f"source: {one['source']}", INDENT + "   ", INDENT + "     ")
    if sharing := sharing_sentence(suspects[:shown]):
        yield from wrap(f"- {sharing}", hanging=INDENT + "  ")
    if (more := len(suspects) - shown) > 0:
        yield from wrap(f"- {more} more: with --all.")


def _where(document: Document, everything: bool) -> Iterator[str]:
    yield from row_lines(document, everything)
    yield from moe_lines(document, everything)
    yield from reason_lines(document, everything)
    yield from kernel_lines(document, everything)


def _changed(document: Document, everything: bool) -> Iterator[str]:
    """What can explain something first."""
    ordered = sorted(document["changed"], key=lambda one: not one["can_explain"])
    shown = len(ordered) if everything else _CHANGED
    if not ordered:
        yield from titled("Changed", "nothing that either side says of configuration, versions or the run.")
    for place, one in enumerate(ordered[:shown]):
        first, *rest = wrap(changed_sentence(one), INDENT, INDENT + "  ")
        yield f"{'Changed' if place == 0 else '':<9}{first.strip()}"
        yield from rest
    if (more := len(ordered) - shown) > 0:
        yield from wrap(f"- {more} more: with --all.")


def _limits(document: Document, everything: bool) -> Iterator[str]:
    """What limits or forbids the comparison, the gravest first."""
    grave = ("no", "with_differences", "yes")
    ordered = sorted(document["comparable"]["differences"], key=lambda one: grave.index(one["state"]))
    shown = len(ordered) if everything else _LIMITS
    for place, one in enumerate(ordered[:shown]):
        yield from titled("Limits" if place == 0 else "", f"- {difference_sentence(one)}")
    if (more := len(ordered) - shown) > 0:
        yield from wrap(f"- {more} more: with --all.")


def _next(document: Document, everything: bool) -> Iterator[str]:
    shown = len(document["suspects"]) if everything else _SUSPECTS
    said = list(next_sentences(document, shown)) or ["Nothing more is needed."]
    if not everything:
        said.append("Every row, kernel and change: with --all.")
    for place, one in enumerate(said):
        yield from titled("Next" if place == 0 else "", f"- {one}")


def _missing(document: Document) -> Iterator[str]:
    for place, gap in enumerate(document["missing"]):
        yield from titled("Not told" if place == 0 else "", f"- {gap_sentence(gap)}")
