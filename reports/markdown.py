"""The document as GitHub markdown, for a ticket: Verdict, Why, Next on top, the rest in folded blocks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, Final

from reports.document import Document
from reports.markdown_config import config_lines
from reports.markdown_marks import code, plain
from reports.markdown_next import gap_lines, next_lines
from reports.markdown_rank import rank_lines
from reports.markdown_verdict import verdict_lines, wall_lines
from reports.sentences import origin

_SHOWN: Final = 8
"""Traces and warnings that are named; all are in the JSON document."""


def render_markdown(document: Document, everything: bool = False) -> str:
    """The whole report, ending in a line break; `everything`: all fixes, those refused, and every gap.

    About 60 lines are open at most. Foreign text cannot change how the page reads.
    """
    lines = [
        *_head(document),
        *verdict_lines(document),
        *wall_lines(document),
        *config_lines(document, everything),
        *next_lines(document, everything),
        *rank_lines(document),
        *gap_lines(document, everything),
        *_foot(document),
    ]
    return "\n".join(lines) + "\n"


def _head(document: Document) -> Iterator[str]:
    yield from ("# moe-diag: where the step goes", "")
    for trace in _shown(document):
        yield f"- {code(trace['name'])}: {plain(origin(trace))}"
    if (more := len(document["traces"]) - _SHOWN) > 0:
        yield f"- and {more} more"
    for warning in document["warnings"][:_SHOWN]:
        yield f"- Warning: {plain(warning)}"


def _shown(document: Document) -> list[dict[str, Any]]:
    traces: list[dict[str, Any]] = document["traces"]
    return traces[:_SHOWN]


def _foot(document: Document) -> Iterator[str]:
    """The command that gives the same again, and what wrote this."""
    names = " ".join(shlex.quote(trace["name"]) for trace in _shown(document))
    more = " and the others" if len(document["traces"]) > _SHOWN else ""
    yield from ("", "## How to reproduce", "")
    yield f"{code(f'moe-diag analyze {names} -f markdown', 600)}{more}"
    if any(rank["steps"]["source"] == "user" for rank in document["ranks"]):
        yield from ("", "The steps or the window were chosen: give the same choice.")
    tool = document["tool"]
    guidance = f", guidance {plain(tool['guidance'])}" if tool["guidance"] else ""
    schema = plain(document["schema_version"])
    yield from ("", f"{plain(tool['name'])} {plain(tool['version'])}{guidance}, document {schema}.")
    yield "What a word here means: " + code("moe-diag explain WORD") + "."
