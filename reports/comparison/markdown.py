"""The comparison as GitHub markdown, for a ticket: Verdict, Why, What changed, Next on top, tables folded."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Final

from reports.comparison.figures import listed
from reports.comparison.markdown_rows import detail_lines, row_lines
from reports.comparison.sentences import (
    before_suspects,
    change_words,
    difference_sentence,
    headline,
    next_sentences,
    no_suspect,
    sharing_sentence,
    side_sentence,
    suspect_sentence,
    verdict_sentences,
)
from reports.document import Document
from reports.markdown_marks import code, folded, plain, table

_WARNINGS: Final = 3
_SUSPECTS: Final = 3
_EVIDENCE: Final = 3
_CHANGED: Final = 5
_LIMITS: Final = 3


def render_comparison_markdown(document: Document, everything: bool = False) -> str:
    """The whole report, ending in a line break; `everything`: every suspect, change and limit unfolded.

    Otherwise at most 60 lines are open. Foreign text cannot change how the page reads.
    """
    forbidden = document["verdict"] == "not_comparable"
    limits = list(_limits(document, everything))
    lines = [
        *_head(document),
        *_verdict(document),
        *(limits if forbidden else ()),
        *_why(document, everything),
        *(folded("Rows, though the runs are not comparable", row_lines(document)) if forbidden else ()),
        *(() if forbidden else ("", *row_lines(document))),
        *detail_lines(document),
        *_changed(document, everything),
        *(() if forbidden else limits),
        *_next(document, everything),
        *_gaps(document),
        *_foot(document),
    ]
    return "\n".join(lines) + "\n"


def _head(document: Document) -> Iterator[str]:
    yield from ("# moe-diag: new against base", "")
    for side in ("base", "new"):
        about = document[side]
        yield f"- {side} {code(about['name'], 120)}: {plain(side_sentence(about))}"
    for warning in document["warnings"][:_WARNINGS]:
        yield f"- Warning: {plain(warning)}"
    if (more := len(document["warnings"]) - _WARNINGS) > 0:
        yield f"- and {more} more warnings in the JSON document"


def _verdict(document: Document) -> Iterator[str]:
    yield from ("", "## Verdict", "", f"**{plain(headline(document))}**", "")
    yield from (f"- {plain(said)}" for said in verdict_sentences(document))


def _why(document: Document, everything: bool) -> Iterator[str]:
    suspects = document["suspects"]
    yield from ("", "## Why", "")
    if not suspects:
        yield plain(no_suspect(document))
    if before := before_suspects(document):
        yield from (before, "")
    shown = len(suspects) if everything else _SUSPECTS
    for place, one in enumerate(suspects[:shown], start=1):
        yield from _suspect(document, place, one, everything)
    if sharing := sharing_sentence(suspects[:shown]):
        yield from ("", plain(sharing))
    rest = [
        line
        for place, one in enumerate(suspects[shown:], start=shown + 1)
        for line in _suspect(document, place, one, everything)
    ]
    yield from folded("Less likely causes", rest)


def _suspect(document: Document, place: int, suspect: Document, everything: bool) -> Iterator[str]:
    yield f"{place}. **{plain(suspect['title'])}.** {plain(suspect_sentence(document, suspect))}"
    evidence = suspect["because"] if everything else suspect["because"][:_EVIDENCE]
    yield from (f"   - {plain(said)}" for said in evidence)
    if everything:
        yield f"   - source: {plain(suspect['source'])}"


def _changed(document: Document, everything: bool) -> Iterator[str]:
    """What can explain something first, the rest folded."""
    ordered = sorted(document["changed"], key=lambda one: not one["can_explain"])
    shown = len(ordered) if everything else _CHANGED
    yield from ("", "## What changed", "")
    if not ordered:
        yield "Nothing that either side says of configuration, versions or the run."
        return
    yield from _changes(ordered[:shown])
    yield from folded("What else changed", _changes(ordered[shown:]) if ordered[shown:] else ())


def _changes(changes: Iterable[Document]) -> Iterator[str]:
    rows = [
        [
            code(one["what"], 120),
            plain(change_words(one)),
            plain(one["source"]),
            plain(listed(one["can_explain"]) or "no row that moved"),
        ]
        for one in changes
    ]
    yield from table(["What", "base -> new", "Said by", "Can explain"], rows)


def _limits(document: Document, everything: bool) -> Iterator[str]:
    """What limits or forbids the comparison, the gravest first."""
    grave = ("no", "with_differences", "yes")
    ordered = sorted(document["comparable"]["differences"], key=lambda one: grave.index(one["state"]))
    if not ordered:
        return
    shown = len(ordered) if everything else _LIMITS
    yield from ("", "## Limits", "")
    yield from (f"- {plain(difference_sentence(one))}" for one in ordered[:shown])
    yield from folded("More limits", (f"- {plain(difference_sentence(one))}" for one in ordered[shown:]))


def _next(document: Document, everything: bool) -> Iterator[str]:
    shown = len(document["suspects"]) if everything else _SUSPECTS
    said = list(next_sentences(document, shown)) or ["Nothing more is needed."]
    yield from ("", "## Next", "")
    yield from (f"- {plain(one)}" for one in said)


def _gaps(document: Document) -> Iterator[str]:
    rows = [[code(gap["path"]), plain(gap["reason"]), plain(gap["cure"])] for gap in document["missing"]]
    yield from folded("What could not be told", table(["Where", "Why", "To tell"], rows) if rows else ())


def _foot(document: Document) -> Iterator[str]:
    """The command that gives the same again, and what wrote this."""
    names = " ".join(shlex.quote(document[side]["name"]) for side in ("base", "new"))
    gate = f" --gate {document['gate']['limit_frac'] * 100:g}%" if document["gate"] else ""
    name, version = (plain(document["tool"][key]) for key in ("name", "version"))
    yield from ("", code(f"moe-diag compare {names}{gate} -f markdown", 600))
    yield from ("", f"{name} {version}, document {plain(document['schema_version'])}.")
