"""What a terminal shows: words and tones as rich's styled texts, tables and bars, and lines as one
string.
"""

from collections.abc import Iterable
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from reports.content.blocks import Bar, BlockRow, Code, Quantity, Table, Term, Words
from reports.content.names import name_of, when
from reports.content.page import View
from reports.measures import words_of
from reports.rows import each
from traces.frozen import frozen
from traces.patterns import compiled
from traces.spelling import percent, printable

Lines = list[Text]
FIXED: Final = "\N{NO-BREAK SPACE}"
"""A space at which no line ends."""
_WORD: Final = compiled(r"[^ ]+(?: (?:%\B|(?:ms|us|s|GB)\b))?[^ ]* *")
"""A word, or a number with its unit, and the spaces behind it."""
_ARGUMENT: Final = compiled(r"""(?:'[^']*'|"[^"]*"|\$\(\([^)]*\)\)|[^\s'"])+""")
"""A word of a command; what is quoted or computed stays whole."""
_MARKS: Final = compiled(r"[(){}\[\]\"]|(?P<end>; |[.?] (?:[A-Z0-9]))")
"""What opens or closes brackets and quotes, and the end of a sentence or of an item of a list."""
_ON: Final = " \\"
"""The command goes on in the next line."""
_ASIDE: Final = ("(", "#")
"""How a line begins that is no command."""
_LEAST: Final = 10
"""Columns that a text has at least, however far it is indented."""
_ENDLESS: Final = 10**6
"""Columns of the terminal that never wraps what was wrapped here."""


def text_of(spoken: Words, view: View, style: str = "") -> Text:
    line = Text(style=style)
    for span in spoken:
        if isinstance(span, Code):
            line.append(plain(span.text, "cyan"))
        elif isinstance(span, Term):
            line.append(plain(name_of(span.key) + when(view.keys, f" [{span.key}]")))
        else:
            line.append(plain(span))
    return line


def plain(text: str, style: str = "") -> Text:
    return Text(printable(text, len(text)), style=style)


def wrapped(line: Text, width: int, first: str = "", hanging: str = "") -> Lines:
    """Lines no wider than `width` but for words that are; `hanging` indents those after the first,
    without it blanks as wide as what begins that.
    """
    indent = hanging or " " * len(first)
    room, breaks, used = max(_LEAST, width - max(len(first), len(indent))), [], 0
    for word in _WORD.finditer(line.plain):
        if used and used + cell_len(word[0].rstrip()) > room:
            breaks.append(word.start())
            used = 0
        used += cell_len(word[0])
    folded = line.divide(breaks)
    for part in folded:
        part.rstrip()
        part.plain = part.plain.replace(FIXED, " ")
    return [plain(indent if place else first) + piece for place, piece in enumerate(folded)]


def shortened(line: Text, width: int, most: int, first: str = "") -> Lines:
    """The same in not more than `most` lines, 0 for all, by leaving out whole sentences or items at
    its end.

    The first stays whole, however long it is: a reader cannot type, or trust, half of one.
    """
    ends, depth, quoted = [], 0, False
    # where sentences and items end, outside brackets and quotes
    for mark in _MARKS.finditer(line.plain):
        quoted ^= mark[0] == '"'
        depth += (mark[0] in "([{") - (mark[0] in ")]}")
        if mark["end"] and not quoted and depth <= 0:
            ends.append(mark.start() + 1)
    lines = wrapped(line, width, first)
    while most and len(lines) > most and ends:
        lines = wrapped(line[: ends.pop()] + plain(" ..."), width, first)
    return lines


def continued(line: str, width: int, indent: str) -> Lines:
    """A command in lines that a shell reads as one: a backslash ends each but the last.

    It breaks between words, never within quotes. What is in parentheses is for people: it is
    wrapped.
    """
    if len(indent) + len(line) <= width:
        return [plain(indent + line, "cyan")]
    if line.startswith(_ASIDE):
        return wrapped(plain(line, "cyan"), width, indent)
    room, rows = max(_LEAST, width - len(indent) - len(_ON)), [""]
    for word in _ARGUMENT.findall(line):
        if rows[-1] and len(rows[-1]) + 1 + len(word) > room:
            rows.append(f"  {word}")
        else:
            rows[-1] += f" {word}" if rows[-1] else word
    return [plain(indent + row + when(row is not rows[-1], _ON), "cyan") for row in rows]


def printed(lines: Iterable[Text], view: View) -> str:
    if not view.colour:
        return "".join(line.plain.rstrip() + "\n" for line in lines)
    from rich.color import ColorSystem
    from rich.console import Console

    console, written = Console(width=_ENDLESS, color_system="standard", force_terminal=True), []
    for line in lines:
        line.rstrip()
        for text, style, _ in line.render(console, end="\n"):
            written.append(style.render(text, color_system=ColorSystem.STANDARD) if style else text)
    return "".join(written)


_GAP: Final = "  "
_WIDEST_BAR: Final = 24
_NARROWEST_BAR: Final = 6
_LEAST_CELL: Final = 12
_MOST_ROWS: Final = 40
"""Rows of one table at most: nobody reads a thousand kernels on a terminal."""


def bar_lines(bar: Bar, view: View, most: int) -> Lines:
    label = f"{bar.title}  "
    # each piece at least one character, the largest takes what rounding leaves
    room = min(view.width - 1, 120) - len(label) - len(bar.pieces) - 1
    drawn = plain(label, "bold") + plain("|")
    cells = [max(1, round(piece.share * room)) for piece in bar.pieces]
    if cells:
        cells[cells.index(max(cells))] += room - sum(cells)
    for piece, length in zip(bar.pieces, cells, strict=True):
        labels = f" {piece.name} {percent(piece.share)} ", f" {percent(piece.share)} "
        inside = next((label for label in labels if len(label) + 2 <= length), "")
        style = words_of("hue_style")[piece.hue]
        drawn += plain(inside.center(length, words_of("hue_fill")[piece.hue]), style) + plain("|")
    lines = [drawn]
    amounts = [f"{piece.name} {piece.amount}".replace(" ", FIXED) for piece in bar.pieces]
    line = Text(f"{' + '.join(amounts)} = {bar.whole.replace(' ', FIXED)}")
    lines += wrapped(line, view.width, " " * len(label))
    if bar.note:
        lines += shortened(text_of(bar.note, view), view.width, most, " " * len(label))
    return lines


def table_lines(table: Table, view: View, longest: int) -> Lines:
    """The table; `longest`: how many lines a row may take, 0 for all that it needs."""
    rows = list(filter(None, (*table.rows[:_MOST_ROWS], table.total)))
    cells = []
    for row in rows:
        texts = [
            text_of((cell.text,) if isinstance(cell, Quantity) else cell, view)
            for cell in row.cells
        ]
        texts[0] = plain("  " * row.depth) + texts[0]
        cells.append(texts)
    grid = _grid(table, cells, view.width)
    lines = []
    heads = [plain(column.title, "dim") for column in table.columns]
    if not heads[0].plain:
        heads[0] = plain(table.title, "bold")
    elif table.title:
        lines.append(plain(table.title, "bold"))
    if any(each(heads, "plain")):
        last = "".join(each(heads[len(grid.sizes) :], "plain"))
        lines.append(grid.joined(heads, "") + plain(" " * (grid.words - grid.start) + last))
    for row, line in zip(rows, cells, strict=True):
        lines += _row_lines(row, line, grid, longest)
    if left_out := table.left_out + max(0, len(table.rows) - _MOST_ROWS):
        lines.append(plain(f"  {left_out:,} more: -f json", "dim"))
    if table.note:
        lines += wrapped(text_of(table.note, view), view.width, "  ")
    return lines


@frozen
class _Grid:
    """Widths of a table's columns, of its bars, and where the words of the last column begin."""

    sizes: tuple[int, ...]
    numbers: tuple[bool, ...]
    bar: int
    width: int

    @property
    def start(self) -> int:
        return 2 + sum(self.sizes) + len(_GAP) * len(self.sizes)

    @property
    def words(self) -> int:
        return self.start + (self.bar + len(_GAP) if self.bar else 0)

    def joined(self, cells: Lines, indent: str = "  ") -> Text:
        line = plain(indent)
        for at, (size, number) in enumerate(zip(self.sizes, self.numbers, strict=True)):
            size = size + 2 - len(indent) if at == 0 else size
            space = plain(" " * max(0, size - cells[at].cell_len))
            line += (space + cells[at] if number else cells[at] + space) + plain(_GAP)
        return line


def _grid(table: Table, cells: list[Lines], width: int) -> _Grid:
    """The last column, where it holds words, takes what the others and the bars leave."""
    count = len(table.columns)
    if count > 1 and not table.columns[-1].number:
        count -= 1
    sizes = [
        max([len(column.title), *each(below, "cell_len")])
        for column, *below in zip(table.columns[:count], *cells, strict=False)
    ]
    if not table.columns[0].title:
        sizes[0] = max(sizes[0], min(len(table.title) - 2, width // 2))
    spare = width - 2 - sum(sizes) - len(_GAP) * count
    tails = []
    for row, line in zip(table.rows[:_MOST_ROWS], cells, strict=False):
        if _shares(row):
            tails.append(line[-1].cell_len if count < len(table.columns) else 0)
    bar = min(_WIDEST_BAR, spare - max(tails, default=0) - len(_GAP))
    if not tails or bar < _NARROWEST_BAR:
        bar = 0
    return _Grid(tuple(sizes), tuple(each(table.columns[:count], "number")), bar, width)


def _row_lines(row: BlockRow, cells: Lines, grid: _Grid, longest: int) -> Lines:
    """One row: its figures, its bar, and the words of the last column wrapped in what is left.

    Where a row has words in place of figures they stand where the figures would.
    """
    tail = cells[len(grid.sizes) :]
    shares = _shares(row)
    bare = bool(tail) and not any(each(cells[1 : len(grid.sizes)], "plain"))
    start, head = grid.start, grid.joined(cells)
    if bare:
        start, head = 2 + grid.sizes[0] + len(_GAP), plain("  ") + cells[0]
    if shares:
        start = grid.words
    if bare:
        head += plain(" " * (start - head.cell_len))
    head.stylize(words_of("tone_style")[row.tone])
    if shares and grid.bar:
        length = round(min(1.0, shares[0].share or 0.0) * grid.bar)
        head += plain("#" * length, words_of("hue_style")[shares[0].hue])
        head += plain(" " * (grid.bar - length) + _GAP)
    if not tail or not tail[0].plain:
        head.rstrip()
        return [head]
    parts = shortened(tail[0], max(_LEAST_CELL, grid.width - start), longest)
    return [head + parts[0], *map(plain(" " * start).__add__, parts[1:])]


def _shares(row: BlockRow) -> list[Quantity]:
    return [cell for cell in row.cells if isinstance(cell, Quantity) and cell.share is not None]
