"""The bar of a step, and the table of what could be saved with a bar to each row."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from reports.content.blocks import Bar, BlockRow, Hue, Piece, Quantity, Table
from reports.content.names import cell_text, plain
from reports.measures import words_of
from reports.write.figures.canvas import BODY, LARGE, LINE, SMALL, Area
from reports.write.figures.lettering import cut, fitted, inches, wrapped
from reports.write.palette import HAIR, HUES, TONES
from traces.spelling import percent

_HIGH: Final = 0.44
_GAP: Final = 0.08
_ROW: Final = 0.355
_METER: Final = 0.075


def fill(axes: Axes, box: tuple[float, float, float, float], hue: Hue) -> None:
    left, top, width, height = box
    paint = HUES[hue]
    draw = partial(Rectangle, (left, top), width, height, linewidth=0)
    axes.add_patch(draw(facecolor=paint.light, edgecolor="white"))
    if paint.hatch and width > 0.04:
        axes.add_patch(draw(fill=False, edgecolor="#ffffff60", hatch=paint.hatch))


def draw_bar(area: Area, bar: Bar) -> float:
    """The bar under its title, pieces too narrow for their names named below; the inches it
    takes.
    """
    title, note = f"{bar.title}, {bar.whole}", plain(bar.note)
    area.strong(0, 0.08, title, LARGE)
    room = area.width - inches(title, LARGE, bold=True) - 0.3
    area.note(area.width, 0.08, fitted(note, room, SMALL), ha="right")
    axes = area.across(0.27, _HIGH).axes()
    left, unlabelled = 0.0, []
    for piece in bar.pieces:
        width = piece.share * area.width
        fill(axes, (left, 0, width, _HIGH), piece.hue)
        if left:
            axes.plot([left, left], [0, _HIGH], color="white", linewidth=1.2)
        if not _label(area.part(left, 0.27, width, _HIGH), piece):
            unlabelled.append(piece)
        left += width
    top = 0.27 + _HIGH + 0.16
    if unlabelled:
        return _legend(area, unlabelled, top)
    return top


def _label(area: Area, piece: Piece) -> bool:
    whole, share = _said(piece), percent(piece.share)
    for words in (whole, f"{piece.name} {share}", share):
        if inches(words, BODY, bold=True) + 2 * _GAP <= area.width:
            paint = HUES[piece.hue]
            box = {"boxstyle": "square,pad=0.12", "facecolor": paint.light, "edgecolor": "none"}
            area.strong(_GAP, _HIGH / 2, words, color=paint.ink, bbox=box)
            return words == whole
    return False


def _said(piece: Piece) -> str:
    return f"{piece.name} {percent(piece.share)}, {piece.amount} ms"


def _legend(area: Area, pieces: Sequence[Piece], top: float) -> float:
    left = 0.0
    for piece in pieces:
        words = _said(piece)
        width = 0.2 + inches(words, BODY) + 0.3
        if left and left + width > area.width + 0.3:
            left, top = 0.0, top + LINE
        fill(area.part(left, top - 0.06, 0.13, 0.13).axes(), (0, 0, 0.13, 0.13), piece.hue)
        area.text(left + 0.2, top, words, BODY)
        left += width
    return top + LINE


def draw_savings(area: Area, table: Table) -> None:
    """Rows with their amount, share and bar."""
    area.strong(0, 0.08, fitted(table.title, area.width, LARGE, bold=True), LARGE)
    top, ends = 0.06, draw_heads(area, table, 0.7)
    for row in table.rows:
        top += _ROW
        top += _saving(area, row, top, ends)


def draw_heads(area: Area, table: Table, apart: float) -> tuple[float, float]:
    """The titles of two columns of figures, and where these end."""
    ends = (area.width - apart, area.width)
    for right, column in zip(ends, table.columns[1:3], strict=True):
        area.note(right, 0.08, column.title, ha="right")
    return ends


def _saving(area: Area, row: BlockRow, top: float, ends: tuple[float, float]) -> float:
    """Name and what it mostly is, figures to the right, the bar below; what is unknown says why.

    The inches that it takes beyond those of a row.
    """
    name, amount, share, mostly = row.cells
    colour = TONES[row.tone][0]
    name_text, beside = cell_text(name), cell_text(mostly)
    area.strong(0, top, name_text, color=colour)
    left = inches(name_text, BODY, bold=True) + 0.15
    if not isinstance(share, Quantity) or share.share is None:
        lines = cut(wrapped(beside, area.width - left - 0.2, SMALL), 2)
        for place, line in enumerate(lines):
            area.note(left, top + place * 0.17, line)
        return 0.05 * max(0, len(lines) - 1)
    area.note(left, top, "".join(cut(wrapped(beside, ends[0] - 0.85 - left, SMALL), 1)))
    for right, cell in zip(ends, (amount, share), strict=True):
        area.strong(right, top, cell_text(cell), ha="right")
    axes = area.across(top + 0.13, _METER).axes()
    axes.axhspan(0, _METER, color=HAIR, linewidth=0)
    fill(axes, (0, 0, min(1.0, share.share) * area.width, _METER), share.hue)
    return 0.0


def draw_legend(area: Area, seen: Collection[Hue]) -> None:
    right = area.width
    for hue in reversed([known for known in map(Hue, words_of("hue")) if known in seen]):
        name = words_of("hue")[hue]
        area.note(right, 0.08, name, ha="right")
        right -= inches(name, SMALL) + 0.18
        fill(area.part(right, 0.02, 0.12, 0.12).axes(), (0, 0, 0.12, 0.12), hue)
        right -= 0.2
