"""A page in Jira's wiki markup: foreign text made harmless, what folds elsewhere under headings at
the end.

After Atlassian's Text Formatting Notation Help
(jira.atlassian.com/secure/WikiRendererHelpAction.jspa).
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from reports.content.blocks import Span
from reports.content.page import Page, View
from reports.write.danger import dangers
from reports.write.markup import (
    COMMAND_WIDTH,
    TEXT_WIDTH,
    Item,
    Marked,
    Markup,
    Said,
    Writer,
    shown_line,
    within,
)
from traces.limits import Limit
from traces.patterns import compiled
from traces.spelling import printable

LENGTH: Final = Limit(
    32_767,
    "characters",
    "Atlassian, JRASERVER-64351: no longer text in a field of Jira Cloud",
)
_UNPICTURED: Final = compiled(r"[!|^{}\[\]\\]|^\s|\s$|://")
"""What no name between the marks of a picture may have."""
_WIDTH: Final = 960
"""Of a picture in a ticket, in pixels: its texts can be read, and no screen scrolls sideways."""
_ENTITIES: Final = {"\\": "&#92;", "&": "&amp;", ".": "&#46;"}


def write_jira(page: Page, view: View) -> str:
    return within(page, lambda shown: Writer(shown, view, Jira()).write(), LENGTH, jira_size)


def jira_size(text: str) -> int:
    """Characters as Jira counts them: UTF-16 units, and a line break sent by a browser is two."""
    return len(text.encode("utf-16-le")) // 2 + text.count("\n")


def harmless(text: str, width: int = TEXT_WIDTH) -> str:
    """Text of whatever origin that reads as itself: one line, no effect, link, macro or cell.

    What begins a block does so after blanks as well, and those at the begin of a line are stripped.
    """
    shown = printable(text, width)
    stripped = shown.lstrip()
    escaped = dangers("jira").sub(lambda mark: _ENTITIES.get(mark, f"\\{mark}"), stripped)
    return shown[: len(shown) - len(stripped)] + escaped


def _row(border: str, cells: Sequence[str]) -> str:
    return border + border.join(cell or " " for cell in cells) + border


class Jira(Markup):
    """Jira's spelling."""

    folds_last = True

    def plain(self, text: str) -> str:
        return harmless(text)

    def code(self, text: str, width: int = TEXT_WIDTH) -> str:
        return f"{{{{{harmless(printable(text, width).strip(), width)}}}}}"

    def strong(self, spans: Sequence[Span], said: Said) -> str:
        """In stars, which hold no other effect: a name in fixed width stays as it is."""
        pieces = []
        for span in spans:
            mark = "*" if isinstance(span, str) and span.strip() else ""
            pieces.append(f"{mark}{said((span,))}{mark}")
        return " ".join(filter(None, pieces))

    def heading(self, level: int, marked: str) -> str:
        return f"h{min(level + 1, 6)}. {marked}"

    def listed(self, items: Iterable[Item], is_numbered: bool) -> Marked:
        mark = "#" if is_numbered else "*"
        for line, under in items:
            yield f"{mark} {line}"
            for note in under:
                yield f"{mark}* {note}"

    def table(
        self, titles: Sequence[str], numbers: Sequence[bool], rows: Iterable[Sequence[str]]
    ) -> Marked:
        """An empty cell keeps a space: two bars in a row would begin a heading. All stand to the
        left.
        """
        yield _row("||", titles)
        yield from map(partial(_row, "|"), rows)

    def copied(self, lines: Sequence[str], language: str) -> Marked:
        """As it is typed; what has a brace could end the block, so it is escaped instead."""
        shown = [*map(shown_line, lines)]
        if "{" in "".join(shown):
            for line in shown:
                yield self.code(line, COMMAND_WIDTH)
        else:
            yield from ("{noformat}", *shown, "{noformat}")

    def picture(self, name: str, shows: str) -> str:
        """A name that Jira cannot take between its marks is only named."""
        if _UNPICTURED.search(name) or not name.isprintable():
            return f"{harmless('Picture: ')}{self.code(name)}"
        return f"!{name}|width={_WIDTH}!"

    def folded(self, level: int, title: str, inside: Iterable[str]) -> Marked:
        yield from (self.heading(level, harmless(title).strip()), *inside)
