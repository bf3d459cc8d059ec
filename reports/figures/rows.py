"""Rows of a name, one or more bars from zero, and what each bar comes to in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reports.figures.canvas import INNER, SMALL, Area
from reports.figures.lettering import fitted, inches
from reports.figures.paint import HAIR, SOFT
from reports.figures.stacks import Piece, draw_stack, quiet

_NAMES: Final = 2.9
"""Inches for names."""
_BAR: Final = 0.17
_BETWEEN: Final = 0.02
_AROUND: Final = 0.09
_AXIS: Final = 0.42
_GAP: Final = 0.07


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its pieces, and the words at its end."""

    pieces: tuple[Piece, ...]
    said: str

    @property
    def length(self) -> float:
        """All pieces added up."""
        return sum(piece.length for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Row:
    """A name and its bars, one below the other."""

    name: str
    bars: tuple[Bar, ...]

    @property
    def height(self) -> float:
        """Inches the row takes."""
        return len(self.bars) * _BAR + (len(self.bars) - 1) * _BETWEEN + _AROUND


def rows_height(rows: Sequence[Row]) -> float:
    """Inches that rows take with the axis under them."""
    return sum(row.height for row in rows) + _AXIS


def draw_rows(area: Area, rows: Sequence[Row], axis: str, whole: float | None = None) -> None:
    """The rows on one scale. `axis`: its words; `whole`: where it ends, else at the longest bar."""
    height = sum(row.height for row in rows)
    width = INNER - _NAMES
    bars = [bar for row in rows for bar in row.bars]
    per_inch = _scale(bars, width, whole)
    axes = area.axes(_NAMES, 0, width, height)
    axes.set(xlim=(0, per_inch * width), ylim=(height, 0))
    quiet(axes)
    axes.set_xlabel(axis, fontsize=SMALL - 0.5, color=SOFT, loc="left", labelpad=2)
    if whole is not None:
        axes.set_xticks([whole * part / 4 for part in range(5)])
    axes.grid(axis="x", color=HAIR, linewidth=0.5)
    axes.set_axisbelow(True)
    top = 0.0
    for row in rows:
        name = fitted(row.name, _NAMES - 0.12, SMALL)
        area.text(_NAMES - 0.1, top + row.height / 2, name, ha="right")
        at = top + _AROUND / 2 + _BAR / 2
        for bar in row.bars:
            draw_stack(axes, at, _BAR, bar.pieces, per_inch, SMALL - 1)
            end = bar.length + _GAP * per_inch
            axes.text(end, at, bar.said, fontsize=SMALL - 0.5, va="center_baseline", ha="left")
            at += _BAR + _BETWEEN
        top += row.height


def _scale(bars: Sequence[Bar], width: float, whole: float | None) -> float:
    """The unit in an inch of paper, so that the words at the end of every bar fit beside it."""
    rooms = [(bar.length, width - inches(bar.said, SMALL) - 2 * _GAP) for bar in bars]
    if whole is not None:
        rooms.append((whole, width - 0.3))
    return max((length / room for length, room in rooms), default=0.0) or 1.0
