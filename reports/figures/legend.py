"""Legends: what a colour with its pattern stands for, side by side in as many lines as they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reports.figures.canvas import INNER, LINE, SMALL, Area
from reports.figures.lettering import fitted, inches
from reports.figures.paint import Paint, pattern_ink

SWATCH: Final = 0.24
"""Inches of a swatch and the room after it."""
_AFTER: Final = 0.22
_WIDEST: Final = 4.8

Entry = tuple[str, Paint]


def legend_height(entries: Sequence[Entry]) -> float:
    """Inches that a legend takes."""
    return len(_lines(entries)) * LINE


def draw_legend(area: Area, top: float, entries: Sequence[Entry]) -> None:
    """The legend from `top` inches of the area down."""
    for place, line in enumerate(_lines(entries)):
        left = 0.0
        for name, paint in line:
            draw_swatch(area, left, top + (place + 0.5) * LINE, paint)
            words = fitted(name, _WIDEST, SMALL)
            area.text(left + SWATCH, top + (place + 0.5) * LINE, words)
            left += SWATCH + inches(words, SMALL) + _AFTER


def draw_swatch(area: Area, left: float, middle: float, paint: Paint) -> None:
    """A small field painted like the pieces it stands for."""
    from matplotlib.patches import Rectangle

    whole_width, whole_height = area.figure.get_size_inches()
    place = (area.left + left) / whole_width, 1 - (area.top + middle + 0.055) / whole_height
    colour, hatch = paint
    field = Rectangle(
        place,
        0.17 / whole_width,
        0.11 / whole_height,
        facecolor=colour,
        hatch=hatch or None,
        edgecolor=pattern_ink(colour) if hatch else "none",
        linewidth=0,
        transform=area.figure.transFigure,
    )
    area.figure.add_artist(field)


def _lines(entries: Sequence[Entry]) -> list[list[Entry]]:
    lines: list[list[Entry]] = []
    taken = INNER
    for name, paint in entries:
        wide = SWATCH + inches(fitted(name, _WIDEST, SMALL), SMALL) + _AFTER
        if taken + wide - _AFTER > INNER:
            lines.append([])
            taken = 0.0
        lines[-1].append((name, paint))
        taken += wide
    return lines
