"""What a page is made of. A block says what something is; how it looks is each writer's.

Words are spans: plain text, `Code` (what is typed or was recorded, always escaped and never wrapped
within a word) and `Term` (a key of the document under its human name).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from reports.content.plane import Plane
from reports.rows import each
from traces.frozen import frozen
from traces.texts import Texts


@frozen
class Code:
    """A name, a flag or a command exactly as typed or recorded; `whole`: what a name was cut
    from.
    """

    text: str
    whole: str = ""


@frozen
class Term:
    """A key of the document: shown by its name in `measures.toml`, the key in a tooltip or with
    `--keys`.
    """

    key: str


Span = str | Code | Term
Words = tuple[Span, ...]
Several = tuple[Words, ...]
"""Sentences, or items of a list."""


def words(*spans: Span | Words) -> Words:
    """Spans and words as one, in order; empty texts are left out."""
    flat = list[Span]()
    for span in spans:
        flat += span if isinstance(span, tuple) else (span,)
    return tuple(filter(None, flat))


class Tone(StrEnum):
    """What a block or a part of one means to the reader; writers choose the colour."""

    PLAIN = "plain"
    GOOD = "good"
    NOTICE = "notice"
    BAD = "bad"
    MUTED = "muted"


class Hue(StrEnum):
    """What a piece of time is, alike in every bar, table and picture; `figures/palette` has the
    colours.
    """

    COMPUTE = "compute"
    COMMUNICATION = "communication"
    COPY = "copy"
    IDLE = "idle"
    HOST = "host"
    MEMORY = "memory"
    OTHER = "other"


@frozen
class Headline:
    """The one sentence. `label` stands before it in capitals: SLOWED BY, NO BOTTLENECK, NOT STEADY
    STATE.

    `figure`: the one number that leads it, large where there is room, and `amount` the same in its
    unit.
    """

    label: str
    said: Words
    tone: Tone
    under: Several = ()
    """Sentences that belong to it: the confidence with its reason, what routing was."""
    figure: str = ""
    amount: str = ""

    @property
    def whole(self) -> Words:
        """The number, then what is said of it; what is said alone where there is no number."""
        return words(f"{self.figure}, {self.amount}: ", self.said) if self.figure else self.said


@frozen
class Sentence:
    """One sentence or a few. `label`: two or three words in front, such as `Top kernels`; may be
    empty.

    `whole`: what a short page does not cut, however narrow it is.
    """

    said: Words
    label: str = ""
    tone: Tone = Tone.PLAIN
    whole: bool = False


@frozen
class Items:
    """A list of sentences; numbered where their order matters. `whole`: none of them is cut
    short.
    """

    items: Several
    title: str = ""
    numbered: bool = False
    whole: bool = False


def filled(entries: Iterable[str | Words]) -> Several:
    """Those that are not empty."""
    return tuple(words(entry) for entry in entries if entry)


def items(
    title: str, entries: Iterable[str | Words], numbered: bool = False, whole: bool = False
) -> Iterator[Items]:
    """Entries that are not empty under a title; nothing where there are none."""
    if not_empty := filled(entries):
        yield Items(not_empty, title, numbered, whole)


@frozen
class Quantity:
    """A number as people read it, its unit apart; `share` draws a bar beside it where it is a
    share.

    `text` is empty where the value does not apply and `unknown` where it could not be told.
    """

    text: str
    share: float | None = None
    hue: Hue = Hue.OTHER


Cell = Words | Quantity
Entry = Cell | Span
"""A cell as `table` takes it: one span, or a text in a column of numbers, may stand for the
whole."""


Cells = tuple[Entry, ...]
"""A row as `table` takes it."""


@frozen
class Column:
    """A column of a table; numbers stand to the right."""

    title: str
    number: bool = False


@frozen
class BlockRow:
    """One row; `depth` 1 is a part of the row of depth 0 before it. `id`: what it is of, such as a
    wall.
    """

    cells: tuple[Cell, ...]
    depth: int = 0
    tone: Tone = Tone.PLAIN
    id: str = ""


@frozen
class Table:
    """Rows under columns. `total` closes it where the rows add up; `left_out` says how many rows
    were cut.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[BlockRow, ...]
    total: BlockRow | None = None
    left_out: int = 0
    note: Words = ()


ALL_BUT_FIRST: Final = range(1, 99)
"""The columns of numbers of most tables."""


def row(
    cells: Sequence[Entry],
    numbers: Container[int] = ALL_BUT_FIRST,
    tone: Tone = Tone.PLAIN,
    id: str = "",
) -> BlockRow:
    """A row of cells or of single spans; a text in a column of numbers is a quantity."""
    cells_made = []
    for place, entry in enumerate(cells):
        if isinstance(entry, str) and place in numbers:
            entry = Quantity(entry)
        cells_made.append(entry if isinstance(entry, Quantity) else words(entry))
    return BlockRow(tuple(cells_made), tone=tone, id=id)


def table(
    title: str,
    heads: Sequence[str],
    rows: Iterable[BlockRow | Sequence[Entry]],
    numbers: Container[int] = ALL_BUT_FIRST,
    note: str | Words = (),
    left_out: int = 0,
) -> Table:
    """A table by the heads of its columns, `numbers` of which stand to the right."""
    columns = tuple(Column(head, place in numbers) for place, head in enumerate(heads))
    made = tuple(cells if isinstance(cells, BlockRow) else row(cells, numbers) for cells in rows)
    return Table(title, columns, made, left_out=left_out, note=words(note))


@frozen
class Piece:
    """A piece of a bar: its name, its share of the whole and what the share is in ms per step."""

    name: str
    share: float
    amount: str
    hue: Hue


@frozen
class Bar:
    """One whole in pieces whose shares add up to 1; `note` stands under it."""

    title: str
    whole: str
    pieces: tuple[Piece, ...]
    note: Words = ()


@frozen
class CodeBlock:
    """Lines to copy: settings or a command. `language`: sh, yaml, python."""

    lines: Texts
    language: str = "sh"


@frozen
class Drawing:
    """Lines drawn in characters of one width, kept as they are; `plane`: the same for what can
    draw. `language`: as of `CodeBlock`.
    """

    lines: Texts
    plane: Plane | None
    language: str = "text"


@frozen
class Spelling:
    """One change as one framework writes it; `id`: megatron_lm, megatron_bridge, environment, ...

    `arm`: whether it is one of several changes to measure against each other, which its name tells
    apart.
    """

    id: str
    name: str
    code: CodeBlock
    arm: bool = False


@frozen
class Step:
    """One step of the plan. `id`: the fix (`COM-2`), which `explain` knows; `saves`: its replayed
    range.

    `spellings`: the framework in use first; short pages show `in_use` alone. `notes`: the
    precondition that matters; `low`, `high`: the range as shares of the step, for a drawn bar, None
    where not known; `replayed`: whether it is the change's own, else `high` is only what the change
    acts on.
    """

    id: str
    title: Words
    saves: str
    spellings: tuple[Spelling, ...]
    notes: Several = ()
    low: float | None = None
    high: float | None = None
    after: Texts = ()
    replayed: bool = True

    @property
    def in_use(self) -> tuple[Spelling, ...]:
        """The spelling in use, of every arm, and the environment, which every spelling needs."""
        used = ("environment", *each(self.spellings[:1], "id"))
        return tuple(spelling for spelling in self.spellings if spelling.id in used)


@frozen
class Plan:
    """What to do, in the order that pays. `together`: what all listed steps win, one replayed
    figure.
    """

    title: str
    steps: tuple[Step, ...]
    together: Words = ()
    left_out: int = 0


@frozen
class Command:
    """The next thing to type, filled in. `moment`: the stretch of the page's timeline it is of, in
    ns.
    """

    said: str
    line: str
    moment: tuple[int, int] | None = None


@frozen
class Fold:
    """What a short page leaves out and a long one shows: open on paper, folded on a page."""

    title: str
    blocks: tuple[Block, ...]
    id: str = ""


@frozen
class Part:
    """A titled part of a long page; `id` is its anchor."""

    title: str
    blocks: tuple[Block, ...]
    id: str


Block = (
    Headline | Sentence | Items | Table | Bar | CodeBlock | Drawing | Plan | Command | Fold | Part
)
Blocks = Iterator[Block]
"""What is said of something, block by block."""
