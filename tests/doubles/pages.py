"""Pages of results as tests read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heuristics.result.result import Result
from reports.content import analysis
from reports.content.page import Detail, View
from reports.result.codec import decode
from reports.write.text import write_text


def first_screen(document: Mapping[str, Any], width: int = 80) -> str:
    """The first screen of an analysis as text."""
    return write_text(analysis.page(decode(document, Result), Detail.FIRST), View(width=width))


def whole_text(document: Mapping[str, Any]) -> str:
    """Everything about an analysis as text."""
    return write_text(analysis.page(decode(document, Result), Detail.FULL), View(width=80))


def flat(text: str) -> str:
    """A text as one line, so that a phrase is found wherever it wraps."""
    return " ".join(text.split())
