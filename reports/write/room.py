"""What a ticket has room for, in characters: what folds goes first, the last first, and is named."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from reports.content.blocks import Block, Fold, Page, Part
from traces.limits import Limit

_NAMED: Final = 12
"""Parts left out that are named."""


def within(page: Page, write: Callable[[Page], str], limit: Limit, size: Callable[[str], int] = len) -> str:
    """The page as `write` writes it, no longer than the limit where leaving out parts can reach that.

    A line says what was left out, and where it is. `size`: of a text, as whoever takes the ticket counts it.
    """
    text, left = write(page), list[str]()
    while size(text) > limit.value and (shorter := _shorter(page.blocks)):
        blocks, title = shorter
        page, left = replace(page, blocks=blocks), [title, *left]
        text = write(_naming(page, left, limit))
    return text


def _shorter(blocks: tuple[Block, ...]) -> tuple[tuple[Block, ...], str] | None:
    """Blocks without the last fold or part, the innermost first, and its title; None where none is left."""
    for place in reversed(range(len(blocks))):
        one = blocks[place]
        if not isinstance(one, Fold | Part):
            continue
        if inner := _shorter(one.blocks):
            kept, title = inner
            return (*blocks[:place], replace(one, blocks=kept), *blocks[place + 1 :]), title
        return blocks[:place] + blocks[place + 1 :], one.title
    return None


def _naming(page: Page, left: list[str], limit: Limit) -> Page:
    more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    named = "; ".join(left[:_NAMED]) + more
    said = (
        f"Left out, as a ticket takes {int(limit.value):,} characters: {named}. See the report with -f html."
    )
    return replace(page, more=f"{page.more} {said}".strip())
