"""The document as GitHub markdown, for a ticket: Verdict, Why, Next on top, the rest in folded blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reports.document import Document
from reports.markdown_blocks import Block, Code, Item, Page, items, section
from reports.markdown_config import config_blocks
from reports.markdown_foot import foot_blocks
from reports.markdown_marks import github
from reports.markdown_next import gap_blocks, next_blocks
from reports.markdown_rank import about_rank, rank_blocks
from reports.markdown_room import GITHUB_LENGTH, opened, within
from reports.markdown_verdict import verdict_blocks, wall_blocks
from reports.sentences import origin

_NAME_WIDTH: Final = 120
_TRACES: Final = 2
_WARNINGS: Final = 2
"""Traces and warnings that are named; all are in the JSON document."""


def render_markdown(document: Document, everything: bool = False) -> str:
    """The whole report, ending in a line break; `everything`: every fix open, and every gap.

    Otherwise at most 60 lines are open. Foreign text cannot change how the page reads.
    """
    return within(analysis_page(document, everything), github, GITHUB_LENGTH)


def analysis_page(document: Document, everything: bool) -> Page:
    """The ticket of one diagnosis, for any markup."""
    sections = [
        section("", _head(document)),
        section("Verdict", verdict_blocks(document)),
        section("Why", wall_blocks(document)),
        section("Next", next_blocks(document, everything)),
    ]
    if document.get("configuration") is not None:  # results of earlier versions have none
        sections.append(section("Configuration", config_blocks(document, everything), first=False))
    sections += [
        section("Where the time goes", rank_blocks(document), first=False),
        section("", gap_blocks(document, everything)),
        section("", foot_blocks(document)),
    ]
    page = Page("moe-diag: where the step goes", tuple(sections))
    return page if everything else opened(page)


def _head(document: Document) -> Iterator[Block]:
    """What was read, and of one rank its steps: how many, how long, where."""
    traces, warnings = document["traces"], document["warnings"]
    said: list[Item] = [
        Item((Code(one["name"], _NAME_WIDTH), f": {origin(one)[:_NAME_WIDTH]}")) for one in traces[:_TRACES]
    ]
    if (more := len(traces) - _TRACES) > 0:
        said.append(Item(f"and {more} more traces"))
    if len(document["ranks"]) == 1:
        said.append(Item(about_rank(document["ranks"][0])))
    said += [Item(f"Warning: {warning}") for warning in warnings[:_WARNINGS]]
    if (more := len(warnings) - _WARNINGS) > 0:
        said.append(Item(f"and {more} more warnings in the JSON document"))
    yield from items(said)
