"""Blocks -> lines of a markup for tickets: the walk that GitHub's and Jira's share, in a ticket's room.

Room is counted in characters: what folds goes first, the last first, and is named.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Final

from reports.content import blocks
from reports.content.blocks import Block, Fold, Hue, Page, Part, Quantity, Span, Table, View, Words, words
from reports.content.names import capital, name_of, plain
from traces.limits import Limit
from traces.spelling import counted, percent

TEXT_WIDTH: Final = 600
COMMAND_WIDTH: Final = 4000
BAR_WIDTH: Final = 48
CELL_WIDTH: Final = 16
GLYPHS: Final = {
    Hue.COMPUTE: "█",
    Hue.COMMUNICATION: "▒",
    Hue.COPY: "▓",
    Hue.MEMORY: "▚",
    Hue.HOST: "░",
    Hue.IDLE: "·",
    Hue.OTHER: "─",
}
"""What a piece of a bar is drawn of, where there is no colour."""

Item = tuple[str, tuple[str, ...]]
"""A marked line of a list, and marked lines under it."""


class Markup(ABC):
    """How one markup spells what a ticket holds. Every text may be foreign and is made harmless here."""

    @abstractmethod
    def plain(self, text: str) -> str:
        """Text that reads as itself, with the blanks at its ends."""

    @abstractmethod
    def code(self, text: str, width: int = TEXT_WIDTH) -> str:
        """A name in fixed width; longer than `width` it is cut in the middle."""

    @abstractmethod
    def strong(self, spans: Sequence[Span], said: Callable[[Sequence[Span]], str]) -> str:
        """Words that are seen first."""

    @abstractmethod
    def heading(self, level: int, marked: str) -> str:
        """A heading: 1 is the page's."""

    @abstractmethod
    def listed(self, items: Iterable[Item], is_numbered: bool) -> Iterator[str]:
        """A list."""

    @abstractmethod
    def table(
        self, titles: Sequence[str], numbers: Sequence[bool], rows: Iterable[Sequence[str]]
    ) -> Iterator[str]:
        """A table of marked cells; `numbers`: which columns stand to the right."""

    @abstractmethod
    def copied(self, lines: Sequence[str], language: str) -> Iterator[str]:
        """Lines to copy."""

    @abstractmethod
    def picture(self, name: str, shows: str) -> str:
        """The attached picture of that name, with what it shows for who does not see it."""

    @abstractmethod
    def folded(self, level: int, title: str, inside: Iterable[str]) -> Iterator[str]:
        """What shows when a reader asks for it."""

    folds_last: bool
    """Whether folds stand after all else of their part, for want of an end of their own."""


@dataclass(frozen=True, slots=True)
class Writer:
    """One page in one markup."""

    page: Page
    view: View
    markup: Markup

    def write(self) -> str:
        lines = [self.markup.heading(1, self.said(self.page.title))]
        lines += [self.said(self.page.facts)] if self.page.facts else []
        for line in self.page.note:
            lines += ["", self.said((line,))]
        first = self.page.blocks[:1] if self.page.picture else ()
        lines += self.lines(first, 2)
        lines += ["", self.markup.picture(self.page.picture, self._drawn(first))] if first else []
        lines += self.lines(self.page.blocks[len(first) :], 2)
        lines += ["", self.said((self.page.more,))] if self.page.more else []
        return "\n".join(lines) + "\n"

    def lines(self, several: Sequence[Block], level: int) -> Iterator[str]:
        """Lines of blocks, an empty line before each but a list right after what it belongs to."""
        last, moved = None, (Fold | Part) if self.markup.folds_last else ()
        for block in sorted(several, key=lambda one: isinstance(one, moved)):
            untitled = isinstance(block, blocks.Items) and not block.title
            yield from () if untitled and isinstance(last, blocks.Sentence) else ("",)
            yield from self.block(block, level)
            last = block

    def block(self, block: Block, level: int) -> Iterator[str]:
        match block:
            case blocks.Headline():
                yield f"{self.strong((block.label,))} {self.said(block.whole)}".strip()
                yield from self._list(block.under)
            case blocks.Sentence():
                label = f"{self.strong((f'{block.label}:',))} " if block.label else ""
                yield f"{label}{self.said(block.said)}"
            case blocks.Items():
                yield from (self.strong((block.title,)),) if block.title else ()
                yield from self._list(block.items, block.numbered)
            case blocks.Table():
                yield from self._table(block)
            case blocks.Bar():
                yield from self._bar(block)
            case blocks.CodeBlock() | blocks.Drawing():
                language = block.language if isinstance(block, blocks.CodeBlock) else "text"
                yield from self.markup.copied(block.lines, language)
            case blocks.Plan():
                yield from self._plan(block)
            case blocks.Command():
                yield f"{self.said(block.said)} {self.markup.code(block.line, COMMAND_WIDTH)}".strip()
            case blocks.Fold():
                yield from self.markup.folded(level, block.title, self.lines(block.blocks, level + 1))
            case blocks.Part():
                yield self.markup.heading(level, self.said((block.title,)))
                yield from self.lines(block.blocks, level + 1)

    def _drawn(self, first: Sequence[Block]) -> str:
        """What the picture shows, for who does not see it."""
        head = first[0]
        return f"{head.label} {plain(head.whole)}" if isinstance(head, blocks.Headline) else "The report"

    def said(self, spans: Sequence[Span]) -> str:
        return "".join(map(self._span, spans)).strip()

    def strong(self, spans: Sequence[Span]) -> str:
        return self.markup.strong(spans, self.said)

    def _span(self, span: Span) -> str:
        if isinstance(span, blocks.Code):
            return self.markup.code(span.text)
        if isinstance(span, blocks.Term):
            key = f" ({self.markup.code(span.key)})" if self.view.keys else ""
            return self.markup.plain(name_of(span.key)) + key
        return self.markup.plain(span)

    def _list(self, items: Sequence[Words], is_numbered: bool = False) -> Iterator[str]:
        yield from self.markup.listed(((self.said(one), ()) for one in items), is_numbered)

    def _table(self, table: Table) -> Iterator[str]:
        titles = [self.said((column.title,)) for column in table.columns]
        if titles[0] or not table.title:
            yield from (self.strong((table.title,)), "") if table.title else ()
        else:
            titles[0] = self.said((table.title,))
        numbers = [column.number for column in table.columns]
        rows = (*table.rows, *([table.total] if table.total else ()))
        drawn = [self._row(row, row is table.total) for row in rows]
        if (place := _place_of_shares(table)) is not None:
            shares = [_share(row.cells[place]) for row in table.rows]
            bars = ["█" * round(share / max(shares) * CELL_WIDTH) for share in shares]
            for cells, bar in zip(drawn, (*bars, ""), strict=False):
                cells.insert(place + 1, bar)
            titles.insert(place + 1, "")
            numbers.insert(place + 1, False)
        yield from self.markup.table(titles, numbers, drawn)
        more = f"{counted(table.left_out, 'more row')} left out. " if table.left_out else ""
        if note := words(more, table.note) if more else table.note:
            yield from ("", self.said(note))

    def _row(self, row: blocks.Row, is_total: bool) -> list[str]:
        cells = [self._cell(cell, is_total) for cell in row.cells]
        cells[0] = f"└ {cells[0]}" if row.depth else cells[0]
        return cells

    def _cell(self, cell: blocks.Cell, is_strong: bool) -> str:
        spans = (cell.text,) if isinstance(cell, Quantity) else cell
        return self.strong(spans) if is_strong and any(spans) else self.said(spans)

    def _bar(self, bar: blocks.Bar) -> Iterator[str]:
        yield f"{self.strong((bar.title,))} {self.said((bar.whole,))}: {self.markup.code(drawn_bar(bar))}"
        pieces = (f"{GLYPHS[one.hue]} {one.name} {one.amount} ({percent(one.share)})" for one in bar.pieces)
        yield self.said(("; ".join(pieces),))
        yield from (self.said(bar.note),) if bar.note else ()

    def _plan(self, plan: blocks.Plan) -> Iterator[str]:
        yield self.strong((plan.title,))
        yield from self.markup.listed(map(self._step, plan.steps), is_numbered=True)
        more = f" {counted(plan.left_out, 'more step')} left out." if plan.left_out else ""
        if plan.together or more:
            yield from ("", self.said(words(plan.together, more)))

    def _step(self, step: blocks.Step) -> Item:
        said = (f"[{step.id}]" if step.id else "", f"{capital(step.saves)}." if step.saves else "")
        head = " ".join([self.strong(step.title), *(self.said((one,)) for one in said if one)])
        shown = step.spellings if self.page.detail is blocks.Detail.FULL else step.in_use
        code = partial(self.markup.code, width=COMMAND_WIDTH)
        ways = (f"{self.said((one.name,))}: {' '.join(map(code, one.code.lines))}" for one in shown)
        return head, (*ways, *map(self.said, step.notes))


def attached(markup: Markup, names: Sequence[str]) -> str:
    return f"{markup.plain('Attached: ')}{', '.join(map(markup.code, names))}\n"


def drawn_bar(bar: blocks.Bar, width: int = BAR_WIDTH) -> str:
    drawn, start = "", 0
    for piece, sum_share in zip(bar.pieces, accumulate(one.share for one in bar.pieces), strict=True):
        end = round(sum_share * width)
        drawn += GLYPHS[piece.hue] * max(1, end - start)
        start = max(end, start + 1)
    return drawn


def _place_of_shares(table: Table) -> int | None:
    for place in range(len(table.columns)):
        if any(_share(row.cells[place]) for row in table.rows):
            return place
    return None


def _share(cell: blocks.Cell) -> float:
    return abs(cell.share or 0.0) if isinstance(cell, Quantity) else 0.0


_NAMED: Final = 12
"""Parts left out that are named."""


def within(page: Page, write: Callable[[Page], str], limit: Limit, size: Callable[[str], int] = len) -> str:
    """The page as `write` writes it, no longer than the limit where leaving out parts can reach that.

    A line says what was left out, and where it is. `size`: of a text, as whoever takes the ticket counts it.
    """
    page = replace(page, more="")  # options of a command mean nothing to who reads a ticket
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
    return replace(page, more=said)
