"""A page: blocks under a title, how much of a result they say, and how they are written.

What blocks are, `reports.content.blocks` says.
"""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum
from typing import Final, TypeVar

from reports.content.blocks import Block, Words, words
from traces.frozen import frozen
from traces.texts import Texts

SCREEN: Final = 40
"""Rows that a first screen may fill where it is not known how many there are, or fewer are."""


B = TypeVar("B", bound=Block)


class Detail(Enum):
    """How much a page says."""

    FIRST = "first"
    FULL = "full"


@frozen
class Page:
    """A finished page. `title`: the inputs' names; `facts`: one line about them: GPU, steps, step
    time.
    """

    title: Words
    facts: Words
    blocks: tuple[Block, ...]
    detail: Detail = Detail.FIRST
    more: str = ""
    """What the whole has beyond this page, in one line; empty where this is all."""
    note: Texts = ()
    """What a user wrote for the head of it, line by line."""
    picture: str = ""
    """The name of the file that a ticket shows on top; empty where none is attached."""

    def of_kind(self, kind: type[B]) -> list[B]:
        """Its blocks of one kind, in their order."""
        return [block for block in self.blocks if isinstance(block, kind)]


@frozen
class Head:
    """What a page has beyond a result: a title in place of the names of its inputs, a note, a
    picture.
    """

    title: str = ""
    note: Texts = ()
    picture: str = ""

    def over(self, page: Page) -> Page:
        """The page with this head; the names of the inputs begin the facts then."""
        title, facts = page.title, page.facts
        if self.title:
            between = "; " if facts else ""
            title, facts = (self.title,), words(title, between, facts)
        return replace(page, title=title, facts=facts, note=self.note, picture=self.picture)


PLAIN: Final = Head()


@frozen
class View:
    """How a page is written: `width` in columns; `rows`: lines of a first screen at most.

    `keys`: a term with its key beside it. `timelines`: an HTML page draws them; they are most of
    its bytes.
    """

    width: int = 80
    rows: int = SCREEN
    keys: bool = False
    colour: bool = False
    timelines: bool = True


@frozen
class Asked:
    """How much a result is to say; pictures and data have one selection. `brief`: JSON in short."""

    detail: Detail = Detail.FIRST
    view: View = field(default_factory=View)
    brief: bool = False
    head: Head = PLAIN
