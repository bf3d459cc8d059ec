"""A configuration judged without a trace, as GitHub markdown: legal or not, what breaks, what to try."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reports.config_sentences import no_plan_sentence, step_sentences, untold_sentence
from reports.document import Document
from reports.markdown_blocks import (
    Block,
    Code,
    Item,
    Line,
    Page,
    Strong,
    folded,
    items,
    section,
    table,
)
from reports.markdown_config import config_folds, legal_blocks
from reports.markdown_foot import foot_blocks
from reports.markdown_marks import github
from reports.markdown_next import plan_blocks
from reports.markdown_room import GITHUB_LENGTH, opened, within
from reports.sentences import choice_sentences, wall_sentence
from reports.words import percent, wall_words

_NAME_WIDTH: Final = 120
_BROKEN: Final = 8
_VIOLATED: Final = 6
_TELLS: Final = 4


def render_check_markdown(document: Document, everything: bool = False) -> str:
    """The whole report, ending in a line break; `everything`: every rule, fix and refusal open.

    Otherwise at most 60 lines are open. Foreign text cannot change how the page reads.
    """
    return within(check_page(document, everything), github, GITHUB_LENGTH)


def check_page(document: Document, everything: bool) -> Page:
    """The ticket of one configuration, for any markup."""
    said = [Item((Code(document["about"], _NAME_WIDTH), ": a configuration, judged without a trace"))]
    said += [Item(f"Warning: {warning}") for warning in document["warnings"][:2]]
    sections = [
        section("", items(said)),
        section("Verdict", legal_blocks(document, everything, _BROKEN)),
        section("Next", _next(document, everything)),
        section("Workflow", _workflow(document, everything), first=False),
    ]
    if document["judged"]:
        sections.append(section("Symptoms", _walls(document), first=False))
    chosen = folded("What the guides choose", items(choice_sentences(document, everything=True)))
    sections += [
        section("", [*chosen, *config_folds(document, everything)]),
        section("", foot_blocks(document)),
    ]
    page = Page("moe-diag: is this configuration legal", tuple(sections))
    return page if everything else opened(page)


def _next(document: Document, everything: bool) -> Iterator[Block]:
    no_plan = f"No change is planned: {no_plan_sentence(document)}"
    yield from plan_blocks(document, everything, no_plan, mends=0)


def _workflow(document: Document, everything: bool) -> Iterator[Block]:
    """Rules that are violated, and what would tell of the others."""
    violated = [said for _, said in step_sentences(document, violated=True)]
    shown = violated if everything else violated[:_VIOLATED]
    yield Line(f"{len(violated)} of {len(document['workflow'])} rules of the workflow are violated.")
    yield from items(shown)
    if untold := untold_sentence(document, _TELLS):
        yield Line(untold)
    yield from folded("More that is violated", items(violated[len(shown) :]))


def _walls(document: Document) -> Iterator[Block]:
    """What the symptoms that were given say of each wall."""
    yield Line((Strong(wall_sentence(document)),))
    rows = [
        [
            wall_words(one["id"]),
            one["outcome"],
            "not told" if one["cost_frac"] is None else percent(one["cost_frac"]),
            "; ".join(one["missing"]),
        ]
        for one in sorted(document["walls"], key=lambda one: -(one["cost_frac"] or 0))
    ]
    yield from table(["Wall", "Outcome", "At most", "What is missing"], rows)
