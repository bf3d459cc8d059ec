"""Colours and patterns of the looks in `reports.html.colours`, as matplotlib draws them on white."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reports.html.colours import look

COLOURS: Final[Mapping[str, str]] = {
    "blue": "#0072B2",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "orange": "#E69F00",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
    "grey": "#6A6A6A",
    "pale": "#E2E5E9",
    "dark": "#2B2F36",
}
"""Of Okabe and Ito (https://jfly.uni-koeln.de/color/), and three greys apart from them for everybody."""

HATCHES: Final[Mapping[str, str]] = {
    "solid": "",
    "slash": "///",
    "dots": "..",
    "cross": "xx",
    "rows": "--",
    "columns": "||",
    "back": "\\\\\\",
    "grid": "++",
}

INK: Final = "#1B1F24"
SOFT: Final = "#545B64"
HAIR: Final = "#D5D9DE"
_LIGHT_INK: Final = "#FFFFFF"
_DARK_PATTERN: Final = frozenset({"yellow", "pale"})
"""Colours too bright for a white pattern."""

Paint = tuple[str, str]
"""A colour, and a hatch of matplotlib."""


def paint_of(key: str) -> Paint:
    """How the pieces of a row, bucket, key of a timeline or reason are painted."""
    seen = look(key)
    return COLOURS[seen.colour], HATCHES[seen.pattern]


def pattern_ink(colour: str) -> str:
    """The colour in which a pattern shows on `colour`."""
    bright = {COLOURS[name] for name in _DARK_PATTERN}
    return SOFT if colour in bright else _LIGHT_INK


def label_ink(paint: Paint) -> str:
    """The colour of a label on a plain piece: the one with more contrast, by WCAG 2.1."""
    luminance = relative_luminance(paint[0])
    return INK if (luminance + 0.05) ** 2 >= 0.05 * 1.05 else _LIGHT_INK


def relative_luminance(colour: str) -> float:
    """0 for black to 1 for white, of `#rrggbb` (https://www.w3.org/TR/WCAG21/#dfn-relative-luminance)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
