"""A ticket in Jira's wiki markup: foreign text made harmless, tables, what is folded elsewhere at the end.

After Atlassian's Text Formatting Notation Help (jira.atlassian.com/secure/WikiRendererHelpAction.jspa).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from reports.markdown_blocks import (
    Block,
    Code,
    Command,
    Fold,
    Items,
    Line,
    Page,
    Phrase,
    Section,
    Strong,
    Table,
)
from reports.words import printable

_TEXT_WIDTH: Final = 600
_DANGER: Final = re.compile(
    r"[\\&]"  # escapes, entities
    r"|[*\[\]{}|^~!@]"  # effects, links, macros, cells, images, mentions
    r"|(?<![0-9A-Za-z])[_+-]|[_+-](?![0-9A-Za-z])"  # effects and dashes; inside a word they are none
    r"|(?<=[0-9A-Z_])-(?=[0-9])"  # the key of an issue, as COM-2 is of a project COM
    r"|\?(?=\?)|(?<=\?)\?"  # citations
    r"|\((?=(?:[xyni/!?+-]|\*[rgby]?|on|off|flag(?:off)?)\))"  # pictures: (x), (!), (on)
    r"|[:;](?=[()DPp-])|:(?=//)|(?<=mailto):"  # faces, addresses
    r"|^#|(?<=^h[1-6])\.|(?<=^bq)\."  # what begins a block
)
_ENTITIES: Final = {"\\": "&#92;", "&": "&amp;", ".": "&#46;"}
_DEEPEST: Final = 6


def jira(page: Page) -> str:
    """The page as Jira's wiki renderer reads it, ending in a line break: what folds elsewhere stands last."""
    lines = [f"h2. {jira_plain(page.title)}"]
    for one in page.sections:
        lines += ["", f"h3. {jira_plain(one.title)}"] if one.title else []
        lines += [line for block in one.blocks for line in _apart(block)]
    if details := list(_details(page.sections)):
        lines += ["", "h3. Details", *details]
    return "\n".join(lines) + "\n"


def jira_size(text: str) -> int:
    """Characters as Jira counts them: UTF-16 units, and a line break sent by a browser is two."""
    return len(text.encode("utf-16-le")) // 2 + text.count("\n")


def jira_plain(text: str, width: int = _TEXT_WIDTH) -> str:
    """Text of whatever origin that reads as itself: one line, no effect, link, macro or cell."""
    return _harmless(printable(text, width).strip())


def _harmless(text: str) -> str:
    """What begins a block does so after blanks as well, and those at the begin of a line are stripped."""
    rest = text.lstrip()
    escaped = _DANGER.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), rest)
    return text[: len(text) - len(rest)] + escaped


def _words(words: Phrase) -> str:
    pieces = (words,) if isinstance(words, str) else words
    return "".join(map(_piece, pieces)).strip()


def _piece(piece: str | Code | Strong) -> str:
    if isinstance(piece, Code):
        return f"{{{{{jira_plain(piece.text, piece.width)}}}}}"
    if isinstance(piece, Strong):
        return f"*{jira_plain(piece.text)}*"
    return _harmless(printable(piece, _TEXT_WIDTH))


def _apart(block: Block) -> Iterator[str]:
    if not isinstance(block, Fold):
        yield ""
        yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Line():
            yield _words(block.words)
        case Command():
            yield from _command(printable(block.text, _TEXT_WIDTH))
        case Items():
            yield from _list(block)
        case Table():
            yield from _table(block)


def _command(text: str) -> Iterator[str]:
    """As it is typed; one with a brace could end the block, so it is escaped instead."""
    yield from (_words((Code(text),)),) if "{" in text else ("{noformat}", text, "{noformat}")


def _list(block: Items) -> Iterator[str]:
    mark = "#" if block.numbered else "*"
    for item in block.items:
        yield f"{mark} {_words(item.words)}"
        yield from (f"{mark}* {_words(words)}" for words in item.under)


def _table(block: Table) -> Iterator[str]:
    """An empty cell keeps a space: two bars in a row would begin a heading."""
    yield f"||{'||'.join(_words(one) or ' ' for one in block.headers)}||"
    for row in block.rows:
        yield f"|{'|'.join(_words(one) or ' ' for one in row)}|"


def _details(sections: Iterable[Section]) -> Iterator[str]:
    blocks = chain.from_iterable(one.blocks for one in sections)
    yield from (line for block in blocks if isinstance(block, Fold) for line in _detail(block, 4))


def _detail(fold: Fold, level: int) -> Iterator[str]:
    yield from ("", f"h{min(level, _DEEPEST)}. {jira_plain(fold.title)}")
    yield from (line for block in fold.blocks for line in _apart(block))
    yield from (
        line for block in fold.blocks if isinstance(block, Fold) for line in _detail(block, level + 1)
    )
