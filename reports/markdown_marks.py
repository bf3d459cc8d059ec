"""Marks of GitHub's markdown: foreign text made harmless, tables, blocks that fold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reports.words import printable

_TEXT_WIDTH: Final = 600
_DANGER: Final = re.compile(
    r"[\\`*\[\]<>&|~$@#]"  # emphasis, code, links, tags, cells, formulas, mentions, references
    r"|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])"  # emphasis; inside a word an underscore is none
    r"|:(?=\S)"  # addresses, emoji
    r"|(?<=[wW][wW][wW])\."  # addresses
)
_APART: Final = {"@": "<span>@</span>", "#": "<span>#</span>"}
"""GitHub looks for mentions and references in the finished text, so an entity does not hide them."""


def plain(text: str, width: int = _TEXT_WIDTH) -> str:
    """Text of whatever origin that reads as itself: one line, no marks, tags, links or turned reading.

    Safe within a line, a table's cell and a `<summary>`. Dangerous characters become entities, which by the
    CommonMark specification never start a structure.
    """
    return _DANGER.sub(
        lambda found: _APART.get(found[0], f"&#{ord(found[0])};"), printable(text, width).strip()
    )


def code(text: str, width: int = _TEXT_WIDTH) -> str:
    """A name in fixed width."""
    return f"<code>{plain(text, width)}</code>"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> Iterator[str]:
    """A table whose last `numbers` columns are right-aligned. Cells are harmless already."""
    marks = [":--"] * (len(headers) - numbers) + ["--:"] * numbers
    for cells in (headers, marks, *rows):
        yield f"| {' | '.join(cells)} |"


def folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    """Lines that show when the reader asks for them; nothing where there are none."""
    if inside := list(lines):
        yield from ("", f"<details><summary>{plain(summary)}</summary>", "", *inside, "", "</details>")
