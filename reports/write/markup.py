"""Blocks -> lines of a markup for tickets: the walk that GitHub's and Jira's share, in a ticket's
room.

Room is counted in characters: what folds goes first, the last first, and is named.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, repeat
from typing import Final

from reports.content import blocks
from reports.content.blocks import Block, Fold, Part, Quantity, Span, Table, Words, words
from reports.content.names import beyond, capital, name_of, optional, plain, when
from reports.content.page import Detail, Page, View
from reports.measures import words_of
from reports.rows import each
from traces.frozen import frozen
from traces.limits import Limit
from traces.spelling import percent, printable
from traces.texts import Texts

TEXT_WIDTH: Final = 600
COMMAND_WIDTH: Final = 4000
BAR_WIDTH: Final = 48
CELL_WIDTH: Final = 16


def shown_line(line: str) -> str:
    """A line to copy, made harmless."""
    return printable(line, COMMAND_WIDTH)


Marked = Iterator[str]
"""Lines of a markup."""
Said = Callable[[Sequence[Span]], str]
Item = tuple[str, Texts]
"""A marked line of a list, and marked lines under it."""


class Markup(ABC):
    """How one markup spells what a ticket holds. Every text may be foreign and is made harmless
    here.
    """

    @abstractmethod
    def plain(self, text: str) -> str:
        """Text that reads as itself, with the blanks at its ends."""

    @abstractmethod
    def code(self, text: str, width: int = TEXT_WIDTH) -> str:
        """A name in fixed width; longer than `width` it is cut in the middle."""

    @abstractmethod
    def strong(self, spans: Sequence[Span], said: Said) -> str:
        """Words that are seen first."""

    @abstractmethod
    def heading(self, level: int, marked: str) -> str:
        """A heading: 1 is the page's."""

    @abstractmethod
    def listed(self, items: Iterable[Item], is_numbered: bool) -> Marked:
        """A list."""

    @abstractmethod
    def table(
        self, titles: Sequence[str], numbers: Sequence[bool], rows: Iterable[Sequence[str]]
    ) -> Marked:
        """A table of marked cells; `numbers`: which columns stand to the right."""

    @abstractmethod
    def copied(self, lines: Sequence[str], language: str) -> Marked:
        """Lines to copy."""

    @abstractmethod
    def picture(self, name: str, shows: str) -> str:
        """The attached picture of that name, with what it shows for who does not see it."""

    @abstractmethod
    def folded(self, level: int, title: str, inside: Iterable[str]) -> Marked:
        """What shows when a reader asks for it."""

    folds_last: bool
    """Whether folds stand after all else of their part, for want of an end of their own."""


@frozen
class Writer:
    """One page in one markup."""

    page: Page
    view: View
    markup: Markup

    def write(self) -> str:
        page, lines = self.page, [self.markup.heading(1, self.said(self.page.title))]
        if page.facts:
            lines.append(self.said(page.facts))
        for line in page.note:
            lines += ("", self.text(line))
        first = page.blocks[:1] if page.picture else ()
        lines += self.lines(first, 2)
        for head in first:  # what the picture shows, for who does not see it
            shows = "The report"
            if isinstance(head, blocks.Headline):
                shows = f"{head.label} {plain(head.whole)}"
            lines += ("", self.markup.picture(page.picture, shows))
        lines += self.lines(page.blocks[len(first) :], 2)
        if page.more:
            lines += ("", self.text(page.more))
        return "\n".join(lines) + "\n"

    def lines(self, body: Sequence[Block], level: int) -> Marked:
        """Lines of blocks, an empty line before each but a list right after what it belongs to."""
        last, moved = None, (Fold | Part) if self.markup.folds_last else ()
        for block in sorted(body, key=lambda part: isinstance(part, moved)):
            untitled = isinstance(block, blocks.Items) and not block.title
            if not untitled or not isinstance(last, blocks.Sentence):
                yield ""
            yield from self.block(block, level)
            last = block

    def block(self, block: Block, level: int) -> Marked:
        match block:
            case blocks.Headline():
                yield f"{self.strong((block.label,))} {self.said(block.whole)}".strip()
                yield from self._list(block.under)
            case blocks.Sentence():
                label = optional("{} ", block.label, lambda label: self.strong((f"{label}:",)))
                yield f"{label}{self.said(block.said)}"
            case blocks.Items():
                if block.title:
                    yield self.strong((block.title,))
                yield from self._list(block.items, block.numbered)
            case blocks.Table():
                yield from self._table(block)
            case blocks.Bar():
                yield from self._bar(block)
            case blocks.CodeBlock() | blocks.Drawing():
                yield from self.markup.copied(block.lines, block.language)
            case blocks.Plan():
                yield from self._plan(block)
            case blocks.Command():
                yield (
                    f"{self.text(block.said)} {self.markup.code(block.line, COMMAND_WIDTH)}"
                ).strip()
            case blocks.Fold():
                yield from self.markup.folded(
                    level, block.title, self.lines(block.blocks, level + 1)
                )
            case blocks.Part():
                yield self.markup.heading(level, self.text(block.title))
                yield from self.lines(block.blocks, level + 1)

    def said(self, spans: Sequence[Span]) -> str:
        return "".join(map(self._span, spans)).strip()

    def text(self, text: str) -> str:
        return self.said((text,))

    def strong(self, spans: Sequence[Span]) -> str:
        return self.markup.strong(spans, self.said)

    def _span(self, span: Span) -> str:
        if isinstance(span, blocks.Code):
            return self.markup.code(span.text)
        if isinstance(span, blocks.Term):
            key = when(self.view.keys, f" ({self.markup.code(span.key)})")
            return self.markup.plain(name_of(span.key)) + key
        return self.markup.plain(span)

    def _list(self, items: Sequence[Words], is_numbered: bool = False) -> Marked:
        yield from self.markup.listed(zip(map(self.said, items), repeat(())), is_numbered)

    def _table(self, table: Table) -> Marked:
        titles = [*map(self.text, each(table.columns, "title"))]
        if not titles[0]:
            titles[0] = self.text(table.title)
        elif table.title:
            yield from (self.strong((table.title,)), "")
        numbers = each(table.columns, "number")
        drawn = [self._row(row, self.said) for row in table.rows]
        if table.total:
            drawn.append(self._row(table.total, self.strong))
        for place in range(len(titles)):
            shares = [_share(row.cells[place]) for row in table.rows]
            if any(shares):  # the first column of shares is drawn as bars behind it
                for cells, share in zip(drawn, (*shares, 0.0), strict=False):
                    cells.insert(place + 1, "█" * round(share / max(shares) * CELL_WIDTH))
                titles.insert(place + 1, "")
                numbers.insert(place + 1, False)
                break
        yield from self.markup.table(titles, numbers, drawn)
        if note := words(beyond(table.left_out, 0, "{} left out. ", "more row"), table.note):
            yield from ("", self.said(note))

    def _row(self, row: blocks.BlockRow, said: Said) -> list[str]:
        cells = []
        for cell in row.cells:
            spans = (cell.text,) if isinstance(cell, Quantity) else cell
            cells.append(said(spans) if any(spans) else "")
        if row.depth:
            cells[0] = f"└ {cells[0]}"
        return cells

    def _bar(self, bar: blocks.Bar) -> Marked:
        drawn, pieces = self.markup.code(drawn_bar(bar)), []
        yield f"{self.strong((bar.title,))} {self.text(bar.whole)}: {drawn}"
        for piece in bar.pieces:
            glyph = words_of("hue_glyph")[piece.hue]
            pieces.append(f"{glyph} {piece.name} {piece.amount} ({percent(piece.share)})")
        yield self.text("; ".join(pieces))
        if bar.note:
            yield self.said(bar.note)

    def _plan(self, plan: blocks.Plan) -> Marked:
        yield self.strong((plan.title,))
        yield from self.markup.listed(map(self._step, plan.steps), is_numbered=True)
        if together := words(plan.together, beyond(plan.left_out, 0, " {} left out.", "more step")):
            yield from ("", self.said(together))

    def _step(self, step: blocks.Step) -> Item:
        id_and_saving = optional("[{}]", step.id), optional("{}.", step.saves, capital)
        head = " ".join([self.strong(step.title), *map(self.text, filter(None, id_and_saving))])
        shown = step.spellings if self.page.detail is Detail.FULL else step.in_use
        code = partial(self.markup.code, width=COMMAND_WIDTH)
        ways = [
            f"{self.text(spelling.name)}: {' '.join(map(code, spelling.code.lines))}"
            for spelling in shown
        ]
        return head, (*ways, *map(self.said, step.notes))


def attached(markup: Markup, names: Sequence[str]) -> str:
    return f"{markup.plain('Attached: ')}{', '.join(map(markup.code, names))}\n"


def drawn_bar(bar: blocks.Bar) -> str:
    drawn, start = "", 0
    for piece, sum_share in zip(bar.pieces, accumulate(each(bar.pieces, "share")), strict=True):
        end = round(sum_share * BAR_WIDTH)
        drawn += words_of("hue_glyph")[piece.hue] * max(1, end - start)
        start = max(end, start + 1)
    return drawn


def _share(cell: blocks.Cell) -> float:
    if isinstance(cell, Quantity):
        return abs(cell.share or 0.0)
    return 0.0


_NAMED: Final = 12
"""Parts left out that are named."""


def within(
    page: Page, write: Callable[[Page], str], limit: Limit, size: Callable[[str], int] = len
) -> str:
    """The page as `write` writes it, no longer than the limit where leaving out parts can reach
    that.

    A line says what was left out, and where it is. `size`: of a text, as whoever takes the ticket
    counts it.
    """
    page = replace(page, more="")  # options of a command mean nothing to who reads a ticket
    text, left = write(page), list[str]()
    while size(text) > limit.value and (shorter := _shorter(page.blocks)):
        blocks, title = shorter
        page, left = replace(page, blocks=blocks), [title, *left]
        titles = "; ".join(left[:_NAMED]) + beyond(len(left), _NAMED)
        more = f"Left out, as a ticket takes {int(limit.value):,} characters: {titles}."
        text = write(replace(page, more=f"{more} See the report with -f html."))
    return text


def _shorter(blocks: tuple[Block, ...]) -> tuple[tuple[Block, ...], str] | None:
    """Blocks without the last fold or part, the innermost first, and its title; None where none is
    left.
    """
    for place in reversed(range(len(blocks))):
        block = blocks[place]
        if not isinstance(block, Fold | Part):
            continue
        if inner := _shorter(block.blocks):
            kept, title = inner
            return (*blocks[:place], replace(block, blocks=kept), *blocks[place + 1 :]), title
        return blocks[:place] + blocks[place + 1 :], block.title
    return None
