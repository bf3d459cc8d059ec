"""What a ticket is made of, whatever its markup: sections of lines, lists, tables, and folds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """A name or a setting in fixed width; longer than `width` it is cut in the middle."""

    text: str
    width: int = 600


@dataclass(frozen=True, slots=True)
class Strong:
    """Words that are seen first."""

    text: str


Phrase = str | tuple[str | Code | Strong, ...]
"""Words of one line. A text may be foreign: whoever writes it in a markup makes it harmless."""


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph."""

    words: Phrase


@dataclass(frozen=True, slots=True)
class Item:
    """One of a list, and what stands under it."""

    words: Phrase
    under: tuple[Phrase, ...] = ()


@dataclass(frozen=True, slots=True)
class Items:
    """A list, in the order to follow where it is `numbered`."""

    items: tuple[Item, ...]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of as many cells as there are headers; the last `numbers` columns are numbers."""

    headers: tuple[str, ...]
    rows: tuple[tuple[Phrase, ...], ...]
    numbers: int = 0


@dataclass(frozen=True, slots=True)
class Command:
    """A line to type, alone so that it can be copied."""

    text: str


@dataclass(frozen=True, slots=True)
class Fold:
    """What shows when a reader asks for it."""

    title: str
    blocks: tuple[Block, ...]


Block = Line | Items | Table | Command | Fold


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part; without a title it is the page's head or foot. `first`: it never folds."""

    title: str
    blocks: tuple[Block, ...]
    first: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """A whole ticket: its head, the sections in their order, its foot."""

    title: str
    sections: tuple[Section, ...]


def section(title: str, blocks: Iterable[Block], first: bool = True) -> Section:
    """A section of whatever yields blocks."""
    return Section(title, tuple(blocks), first)


def items(words: Iterable[Phrase | Item]) -> Iterator[Items]:
    """One list, or nothing where there is nothing to list."""
    if listed := tuple(one if isinstance(one, Item) else Item(one) for one in words):
        yield Items(listed)


def table(headers: Sequence[str], rows: Iterable[Sequence[Phrase]], numbers: int = 0) -> Iterator[Table]:
    """One table, or nothing where it would have no row."""
    if cells := tuple(tuple(row) for row in rows):
        yield Table(tuple(headers), cells, numbers)


def folded(title: str, blocks: Iterable[Block]) -> Iterator[Fold]:
    """One fold, or nothing where nothing is in it."""
    if inside := tuple(blocks):
        yield Fold(title, inside)


def joined(pieces: Iterable[Code | str], between: str = " ") -> tuple[str | Code | Strong, ...]:
    """Pieces with a text between each two."""
    said: list[str | Code | Strong] = []
    for piece in pieces:
        said += [between, piece] if said else [piece]
    return tuple(said)
