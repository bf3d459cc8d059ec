"""What a ticket has room for: lines that are open at first sight, and characters in all."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from reports.markdown_blocks import Block, Fold, Line, Page, Section, Table
from traces.limits import Limit

OPEN_LINES: Final = Limit(60, "lines", "ours: about two screens, read in two minutes")
GITHUB_LENGTH: Final = Limit(
    65_536,
    "characters",
    "GitHub's API refuses a longer body of a comment",
)
JIRA_LENGTH: Final = Limit(
    32_767,
    "characters",
    "Atlassian, JRASERVER-64351: no longer text in a field of Jira Cloud",
)
_NAMED: Final = 12
"""Sections left out that are named."""


def opened(page: Page) -> Page:
    """The page with as much open as its reader has time for: later sections fold, the last first."""
    sections = list(page.sections)
    for place in reversed(range(len(sections))):
        if sum(map(_open_lines, sections)) + 1 <= OPEN_LINES.value:
            break
        one = sections[place]
        if not one.first:
            sections[place] = Section("", (Fold(one.title, one.blocks),), first=False)
    return replace(page, sections=tuple(sections))


def _open_lines(one: Section) -> int:
    return bool(one.title) + sum(map(_lines, one.blocks))


def _lines(block: Block) -> int:
    match block:
        case Fold():
            return 0
        case Table():
            return len(block.rows) + 2
        case _:
            return sum(1 + len(item.under) for item in getattr(block, "items", ())) or 1


def within(page: Page, write: Callable[[Page], str], limit: Limit, size: Callable[[str], int] = len) -> str:
    """The page as `write` writes it, no longer than the limit: what is folded goes first, the last first.

    A line says what was left out, and where it is. `size`: of a text, as whoever takes the ticket counts it.
    """
    whole = write(page)
    cuts = [] if size(whole) <= limit.value else list(_cuts(page))
    if not cuts:
        return whole

    def fits(place: int) -> bool:
        return size(write(_naming(*cuts[place], limit))) <= limit.value

    last = len(cuts) - 1
    return write(_naming(*cuts[bisect_left(range(last), True, key=fits)], limit))


def _cuts(page: Page) -> Iterator[tuple[Page, list[str]]]:
    """The page with ever more left out, and the titles of that; the last has its head and foot alone."""
    left: list[str] = []
    while (shorter := _shorter(page)) is not None:
        page, name = shorter
        left = [name, *left]
        yield page, left


def _shorter(page: Page) -> tuple[Page, str] | None:
    """The page without its last fold, or without its last section where none is left; the title of either."""
    for place in reversed(range(len(page.sections))):
        one = page.sections[place]
        folds = [at for at, block in enumerate(one.blocks) if isinstance(block, Fold)]
        if folds:
            gone = one.blocks[folds[-1]]
            kept = replace(one, blocks=one.blocks[: folds[-1]] + one.blocks[folds[-1] + 1 :])
            return _with(page, place, (kept,)), gone.title if isinstance(gone, Fold) else ""
    for place in reversed(range(1, len(page.sections) - 1)):
        return _with(page, place, ()), page.sections[place].title
    return None


def _with(page: Page, place: int, instead: tuple[Section, ...]) -> Page:
    return replace(page, sections=page.sections[:place] + instead + page.sections[place + 1 :])


def _naming(page: Page, left: list[str], limit: Limit) -> Page:
    named = "; ".join(left[:_NAMED]) + (f" and {len(left) - _NAMED} more" if len(left) > _NAMED else "")
    said = f"Left out, as a ticket takes {int(limit.value):,} characters: {named}."
    foot = page.sections[-1]
    told = replace(foot, blocks=(Line(f"{said} It is in the report with -f html."), *foot.blocks))
    return replace(page, sections=(*page.sections[:-1], told))
