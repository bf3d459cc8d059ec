"""Texts in figures: harmless, in glyphs the font has, measured before they are drawn."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font, LoadFlags

from traces.patterns import compiled
from traces.spelling import printable

FONT: Final = "DejaVu Sans"
MONO: Final = "DejaVu Sans Mono"
"""The fonts that matplotlib brings along, so that a figure looks alike everywhere."""
MORE: Final = " ..."
"""After the last line of a text that goes on."""

_POINTS_PER_INCH: Final = 72.0
_MEASURED: Final = 100
"""Points at which characters are measured."""
_FIXED: Final = 65_536
"""FreeType gives advances in parts of a pixel."""
_LONGEST: Final = 400
_UNIT: Final = compiled(r"%|ms(?:[^A-Za-z]|$)")
"""What begins so stays behind its number."""


def harmless(text: str, width: int = _LONGEST) -> str:
    """A foreign text on one line, cut in the middle; a glyph that the font lacks becomes a question
    mark.
    """
    known = _glyphs()
    return "".join(char if ord(char) in known else "\ufffd" for char in printable(text, width))


def inches(text: str, size: float, *, bold: bool = False) -> float:
    """How wide a text is drawn, at `size` points; letters are not moved together."""
    return sum(_advance(char, bold) for char in text) * size / _POINTS_PER_INCH


def mono_inches(size: float) -> float:
    return 0.6021 * size / _POINTS_PER_INCH


def fitted(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """The text, cut in the middle until it takes no more than `width` inches; empty where nothing
    fits.
    """
    clean = harmless(text)
    if inches(clean, size, bold=bold) <= width:
        return clean
    least, most = 3, len(clean)
    while least < most:
        middle = (least + most + 1) // 2
        fits = inches(printable(clean, middle), size, bold=bold) <= width
        least, most = (middle, most) if fits else (least, middle - 1)
    cut = printable(clean, least)
    if inches(cut, size, bold=bold) <= width:
        return cut
    return ""


def wrapped(text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """Lines of whole words; a number and its unit are one."""
    lines = list[str]()
    for word in _words(harmless(text, 10 * _LONGEST)):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and inches(longer, size, bold=bold) <= width:
            lines[-1] = longer
        else:
            lines.append(fitted(word, width, size, bold=bold))
    return lines


def _words(text: str) -> list[str]:
    joined = list[str]()
    for word in filter(None, text.split(" ")):
        if joined and _UNIT.match(word):
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined


def cut(lines: Sequence[str], most: int) -> list[str]:
    if len(lines) <= most:
        return [*lines]
    return [*lines[: most - 1], f"{lines[most - 1]}{MORE}"]


@cache
def _advance(char: str, bold: bool) -> float:
    """Width of one character at a size of one."""
    return (
        _font(bold).load_char(ord(char), flags=LoadFlags.NO_HINTING).linearHoriAdvance
        / _FIXED
        / _MEASURED
    )


@cache
def _font(bold: bool) -> FT2Font:
    """A font of our own: matplotlib shares one per file, and sets its size as it draws."""
    font = FT2Font(findfont(FontProperties(family=FONT, weight="bold" if bold else "normal")))
    font.set_size(_MEASURED, _POINTS_PER_INCH)
    return font


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(_font(False).get_charmap())
