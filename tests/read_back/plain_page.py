"""A page as bare lines, so that tests of what is said need no writer: every word, no layout."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from reports.content.blocks import (
    Bar,
    Block,
    Cell,
    Code,
    CodeBlock,
    Command,
    Fold,
    Headline,
    Items,
    Part,
    Plan,
    Quantity,
    Sentence,
    Table,
    Term,
    Words,
)
from reports.content.page import Page
from reports.measures import measures


def plain(page: Page) -> str:
    """Title, facts and blocks at 80 columns."""
    lines = [
        f"{said(page.title)}  {said(page.facts)}",
        *(line for one in page.blocks for line in block_lines(one)),
    ]
    return "\n".join([*lines, page.more]).strip("\n") + "\n"


def said(words: Words) -> str:
    """Words as one text; a term by its name."""
    return "".join(
        one if isinstance(one, str) else one.text if isinstance(one, Code) else _name(one) for one in words
    )


def _name(term: Term) -> str:
    return measures()[term.key].title if term.key in measures() else term.key


def cell(one: Cell) -> str:
    """A cell as text."""
    return one.text if isinstance(one, Quantity) else said(one)


def block_lines(block: Block) -> Iterator[str]:
    """The lines of a block, folds open."""
    match block:
        case Headline():
            yield from _wrapped(f"{block.label}  {said(block.whole)}")
            for one in block.under:
                yield from _wrapped(said(one), "  ")
        case Sentence():
            yield from _wrapped(f"{block.label} {said(block.said)}".strip())
        case Items():
            yield block.title
            for number, one in enumerate(block.items, 1):
                yield from _wrapped(f"{f'{number}.' if block.numbered else '-'} {said(one)}", "  ")
        case Table():
            yield block.title
            for row in (*block.rows, *((block.total,) if block.total else ())):
                yield from _wrapped(" | ".join(map(cell, row.cells)), "  ")
            if block.note:
                yield from _wrapped(said(block.note), "  ")
        case CodeBlock():
            yield from block.lines
        case Command():
            yield from (block.said, f"  {block.line}")
        case Part() | Fold():
            yield from ("", block.title, *(line for one in block.blocks for line in block_lines(one)))
        case Plan():
            for step in block.steps:
                yield f"{step.id} {said(step.title)} {step.saves}"
        case Bar():
            yield f"{block.title} {block.whole}"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        80,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
