"""A bar of pieces that add up, with a label on each piece that has room for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.figures.canvas import SMALL
from reports.figures.lettering import inches
from reports.figures.paint import INK, SOFT, Paint, label_ink, pattern_ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAPER: Final = "#FFFFFF"
_PADDING: Final = 0.08
"""Inches that a label needs beside it to stand on its piece."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of a bar: how long in the bar's unit, how painted, and labels to try, the longest first."""

    length: float
    paint: Paint
    labels: tuple[str, ...] = ()


def draw_stack(
    axes: Axes, at: float, height: float, pieces: Sequence[Piece], per_inch: float, size: float = SMALL
) -> None:
    """Pieces one after the other from 0, `at` their middle; `per_inch`: of the bar's unit in an inch."""
    start = 0.0
    for piece in pieces:
        colour, hatch = piece.paint
        edge = pattern_ink(colour) if hatch else _PAPER
        axes.barh(
            at, piece.length, height, start, color=colour, hatch=hatch or None, edgecolor=edge, linewidth=0
        )
        if start:
            axes.plot([start, start], [at - height / 2, at + height / 2], color=_PAPER, linewidth=1.0)
        _label(axes, at, start + piece.length / 2, piece, piece.length / per_inch, size)
        start += piece.length


def _label(axes: Axes, at: float, middle: float, piece: Piece, width: float, size: float) -> None:
    """The first label that fits; on a pattern it stands on white, so that it can be read."""
    room = width - _PADDING - (0.06 if piece.paint[1] else 0)
    fitting = (one for one in piece.labels if max(inches(line, size) for line in one.split("\n")) <= room)
    words = next(fitting, None)
    if words is None:
        return
    box = {"boxstyle": "square,pad=0.2", "facecolor": _PAPER, "edgecolor": "none"} if piece.paint[1] else None
    ink = INK if piece.paint[1] else label_ink(piece.paint)
    axes.text(
        middle, at, words, fontsize=size, color=ink, ha="center", va="center", bbox=box, linespacing=1.15
    )


def quiet(axes: Axes, *, ticks: bool = True) -> None:
    """Only the axis at the bottom is left, in grey; `ticks`: with its figures."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_visible(ticks)
    axes.spines["bottom"].set_color(SOFT)
    axes.set_yticks([])
    if ticks:
        axes.tick_params(axis="x", labelsize=SMALL - 0.5, colors=SOFT, length=3)
        axes.ticklabel_format(axis="x", useOffset=False, style="plain")
    else:
        axes.set_xticks([])
    axes.patch.set_visible(False)
