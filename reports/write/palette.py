"""Colours of hues and tones, alike in every picture: on white and on dark, apart for colour-blind
readers.

Of Okabe and Ito (https://jfly.uni-koeln.de/color/), with greys apart from them; a pattern tells
hues apart where there is no colour at all.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from traces.toml_tables import read_table

INK: Final = "#191d22"
SOFT: Final = "#555d67"
HAIR: Final = "#dde1e6"
SHEET: Final = "#f5f6f8"


class Paint(NamedTuple):
    """A hue on white and on dark, the ink that can be read on it, and its hatch in matplotlib's
    letters.
    """

    light: str
    dark: str
    ink: str
    hatch: str


class _Palette(Struct):
    hues: Mapping[str, Paint]
    tones: Mapping[str, tuple[str, str]]


_FOUND: Final = read_table("reports.write", "palette.toml", _Palette)
HUES: Final = _FOUND.hues
TONES: Final = _FOUND.tones
"""Ink of words, on white and on dark."""
