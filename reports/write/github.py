"""A page in GitHub's markdown: foreign text made harmless, tables, blocks that fold."""

import os
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote

from reports.content.blocks import Span
from reports.content.page import Page, View
from reports.write.danger import dangers
from reports.write.markup import TEXT_WIDTH, Item, Marked, Markup, Said, Writer, shown_line, within
from traces.limits import Limit
from traces.patterns import compiled
from traces.spelling import printable

LENGTH: Final = Limit(65_536, "characters", "GitHub's API refuses a longer body of a comment")
_APART: Final = {"@": "<span>@</span>", "#": "<span>#</span>"}
"""GitHub looks for mentions and references in the finished text, so an entity does not hide
them."""
_FENCE: Final = compiled("`+")
_STARTS: Final = compiled(r"(\s*)(?:(>)|([-+])(?:\s|$|-+\s*$)|\d{1,9}([.)])(?:\s|$))")
"""What would begin a list or a rule at the begin of a line."""


def write_github(page: Page, view: View) -> str:
    return within(page, lambda shown: Writer(shown, view, GitHub()).write(), LENGTH)


def harmless(text: str, width: int = TEXT_WIDTH) -> str:
    """Text of whatever origin that reads as itself: one line, no marks, tags, links or turned
    reading.

    Safe within a line, a table's cell and a `<summary>`. Dangerous characters become entities,
    which by the CommonMark specification never start a structure.
    """
    shown = dangers("github").sub(
        lambda mark: _APART.get(mark, _entity(mark)), printable(text, width)
    )
    start = _STARTS.match(shown)
    if not start:
        return shown
    at = max(map(start.start, (2, 3, 4)))
    return f"{shown[:at]}{_entity(shown[at])}{shown[at + 1 :]}"


def _entity(char: str) -> str:
    return f"&#{ord(char)};"


class GitHub(Markup):
    """GitHub's spelling."""

    folds_last = False

    def plain(self, text: str) -> str:
        return harmless(text)

    def code(self, text: str, width: int = TEXT_WIDTH) -> str:
        """As HTML, in which entities count, unlike in backticks."""
        return f"<code>{harmless(text, width).strip()}</code>"

    def strong(self, spans: Sequence[Span], said: Said) -> str:
        return f"**{said(spans)}**"

    def heading(self, level: int, marked: str) -> str:
        return f"{'#' * min(level + 1, 6)} {marked}"

    def listed(self, items: Iterable[Item], is_numbered: bool) -> Marked:
        for place, (line, under) in enumerate(items, start=1):
            mark = f"{place}." if is_numbered else "-"
            yield f"{mark} {line}"
            for note in under:
                yield f"{' ' * (len(mark) + 1)}- {note}"

    def table(
        self, titles: Sequence[str], numbers: Sequence[bool], rows: Iterable[Sequence[str]]
    ) -> Marked:
        marks = ["--:" if number else ":--" for number in numbers]
        for cells in (titles, marks, *rows):
            yield f"| {' | '.join(cells)} |"

    def copied(self, lines: Sequence[str], language: str) -> Marked:
        """Between fences longer than any run of backticks within, so that none of them ends it."""
        shown = [*map(shown_line, lines)]
        longest = max(map(len, _FENCE.findall("\n".join(shown))), default=0)
        fence = "`" * max(3, longest + 1)
        yield from (f"{fence}{language}", *shown, fence)

    def picture(self, name: str, shows: str) -> str:
        """By the name of a file beside the page, in which every character but the plainest is
        escaped.
        """
        return f"![{harmless(shows)}]({quote(os.fsencode(name))})"

    def folded(self, level: int, title: str, inside: Iterable[str]) -> Marked:
        yield f"<details><summary>{harmless(title).strip()}</summary>"
        yield from (*inside, "", "</details>")
