"""The comparison as GitHub markdown, for a ticket: Verdict, Why, Next on top, tables folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reports.comparison.figures import listed
from reports.comparison.markdown_rows import detail_blocks, row_blocks
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
from reports.markdown_blocks import (
    Block,
    Code,
    Fold,
    Item,
    Items,
    Line,
    Page,
    Phrase,
    Section,
    Strong,
    folded,
    items,
    section,
    table,
)
from reports.markdown_foot import foot_blocks
from reports.markdown_marks import github
from reports.markdown_room import GITHUB_LENGTH, opened, within

_WARNINGS: Final = 3
_SUSPECTS: Final = 3
_EVIDENCE: Final = 3
_CHANGED: Final = 5
_LIMITS: Final = 3
_NAME: Final = 120


def render_comparison_markdown(document: Document, everything: bool = False) -> str:
    """The whole report, ending in a line break; `everything`: every suspect, change and limit unfolded.

    Otherwise at most 60 lines are open. Foreign text cannot change how the page reads.
    """
    return within(comparison_page(document, everything), github, GITHUB_LENGTH)


def comparison_page(document: Document, everything: bool) -> Page:
    """The ticket of one comparison, for any markup. What forbids it stands before all that it finds."""
    forbidden = document["verdict"] == "not_comparable"
    limits = list(_limits(document, everything))
    rows = list(row_blocks(document))
    parts = [
        section("", _head(document)),
        section("Verdict", _verdict(document)),
        section("Limits", limits if forbidden else ()),
        section("Why", _why(document, everything)),
        section("Next", _next(document, everything)),
        section("Where the difference lies", () if forbidden else rows, first=False),
        section("Limits", () if forbidden else limits, first=False),
        section("What changed", _changed(document, everything), first=False),
        section("", folded("Rows, though the runs are not comparable", rows if forbidden else ())),
        section("", detail_blocks(document)),
        section("", _gaps(document)),
        section("", foot_blocks(document)),
    ]
    page = Page("moe-diag: new against base", tuple(filter(_is_told, parts)))
    return page if everything else opened(page)


def _is_told(one: Section) -> bool:
    return bool(one.blocks)


def _head(document: Document) -> Iterator[Block]:
    said = [
        Item((f"{side} ", Code(document[side]["name"], _NAME), f": {side_sentence(document[side])}"))
        for side in ("base", "new")
    ]
    warnings = document["warnings"]
    said += [Item(f"Warning: {warning}") for warning in warnings[:_WARNINGS]]
    if (more := len(warnings) - _WARNINGS) > 0:
        said.append(Item(f"and {more} more warnings in the JSON document"))
    yield from items(said)


def _verdict(document: Document) -> Iterator[Block]:
    yield Line((Strong(headline(document)),))
    yield from items(verdict_sentences(document))


def _why(document: Document, everything: bool) -> Iterator[Block]:
    suspects = document["suspects"]
    if not suspects:
        yield Line(no_suspect(document))
        return
    if before := before_suspects(document):
        yield Line(before)
    shown = len(suspects) if everything else _SUSPECTS
    yield Items(tuple(_suspect(document, one, everything) for one in suspects[:shown]), numbered=True)
    if sharing := sharing_sentence(suspects[:shown]):
        yield Line(sharing)
    rest = (_suspect(document, one, everything) for one in suspects[shown:])
    yield from folded("Less likely causes", items(rest))


def _suspect(document: Document, suspect: Document, everything: bool) -> Item:
    evidence: list[Phrase] = suspect["because"] if everything else suspect["because"][:_EVIDENCE]
    source = [f"source: {suspect['source']}"] if everything else []
    words = (Strong(f"{suspect['title']}."), f" {suspect_sentence(document, suspect)}")
    return Item(words, (*evidence, *source))


def _changed(document: Document, everything: bool) -> Iterator[Block]:
    """What can explain something first, the rest folded."""
    ordered = sorted(document["changed"], key=lambda one: not one["can_explain"])
    shown = len(ordered) if everything else _CHANGED
    if not ordered:
        yield Line("Nothing that either side says of configuration, versions or the run.")
    yield from _changes(ordered[:shown])
    yield from folded("What else changed", _changes(ordered[shown:]))


def _changes(changes: Iterable[Document]) -> Iterator[Block]:
    rows = [
        [
            (Code(one["what"], _NAME),),
            change_words(one),
            one["source"],
            listed(one["can_explain"]) or "no row that moved",
        ]
        for one in changes
    ]
    yield from table(["What", "base -> new", "Said by", "Can explain"], rows)


def _limits(document: Document, everything: bool) -> Iterator[Block]:
    """What limits or forbids the comparison, the gravest first."""
    grave = ("no", "with_differences", "yes")
    ordered = sorted(document["comparable"]["differences"], key=lambda one: grave.index(one["state"]))
    shown = len(ordered) if everything else _LIMITS
    yield from items(map(difference_sentence, ordered[:shown]))
    yield from folded("More limits", items(map(difference_sentence, ordered[shown:])))


def _next(document: Document, everything: bool) -> Iterator[Block]:
    shown = len(document["suspects"]) if everything else _SUSPECTS
    yield from items(list(next_sentences(document, shown)) or ["Nothing more is needed."])


def _gaps(document: Document) -> Iterator[Fold]:
    rows = [((Code(gap["path"]),), gap["reason"], gap["cure"]) for gap in document["missing"]]
    yield from folded("What could not be told", table(["Where", "Why", "To tell"], rows))
