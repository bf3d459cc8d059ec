"""A ticket in GitHub's markdown: foreign text made harmless, tables, blocks that fold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from reports.markdown_blocks import Block, Code, Command, Fold, Items, Line, Page, Phrase, Strong, Table
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


def github(page: Page) -> str:
    """The page as GitHub reads it, ending in a line break. Foreign text cannot change how it reads."""
    lines = [f"# {plain(page.title)}"]
    for one in page.sections:
        lines += ["", f"## {plain(one.title)}"] if one.title else []
        lines += [line for block in one.blocks for line in ("", *_block(block))]
    return "\n".join(lines) + "\n"


def plain(text: str, width: int = _TEXT_WIDTH) -> str:
    """Text of whatever origin that reads as itself: one line, no marks, tags, links or turned reading.

    Safe within a line, a table's cell and a `<summary>`. Dangerous characters become entities, which by the
    CommonMark specification never start a structure.
    """
    return _harmless(text, width).strip()


def code(text: str, width: int = _TEXT_WIDTH) -> str:
    """A name in fixed width."""
    return f"<code>{plain(text, width)}</code>"


def _harmless(text: str, width: int = _TEXT_WIDTH) -> str:
    return _DANGER.sub(lambda found: _APART.get(found[0], f"&#{ord(found[0])};"), printable(text, width))


def _words(words: Phrase) -> str:
    pieces = (words,) if isinstance(words, str) else words
    return "".join(map(_piece, pieces)).strip()


def _piece(piece: str | Code | Strong) -> str:
    if isinstance(piece, Code):
        return code(piece.text, piece.width)
    return f"**{plain(piece.text)}**" if isinstance(piece, Strong) else _harmless(piece)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Line():
            yield _words(block.words)
        case Command():
            yield code(block.text)
        case Items():
            yield from _list(block)
        case Table():
            yield from _table(block)
        case Fold():
            yield from _fold(block.title, block.blocks)


def _list(block: Items) -> Iterator[str]:
    for place, item in enumerate(block.items, start=1):
        mark = f"{place}." if block.numbered else "-"
        yield f"{mark} {_words(item.words)}"
        yield from (f"{' ' * (len(mark) + 1)}- {_words(words)}" for words in item.under)


def _table(block: Table) -> Iterator[str]:
    marks = [":--"] * (len(block.headers) - block.numbers) + ["--:"] * block.numbers
    for cells in (map(_words, block.headers), marks, *(map(_words, row) for row in block.rows)):
        yield f"| {' | '.join(cells)} |"


def _fold(title: str, blocks: Iterable[Block]) -> Iterator[str]:
    yield f"<details><summary>{plain(title)}</summary>"
    yield from (line for block in blocks for line in ("", *_block(block)))
    yield from ("", "</details>")
