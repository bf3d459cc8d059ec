"""Colours of hues and tones, alike in every picture: on white and on dark, apart for colour-blind
readers.

Of Okabe and Ito (https://jfly.uni-koeln.de/color/), with greys apart from them; a pattern tells
hues apart where there is no colour at all.
"""

from collections.abc import Mapping
from typing import Final

from reports.content.blocks import Hue, Tone
from traces.frozen import frozen

INK: Final = "#191d22"
SOFT: Final = "#555d67"
HAIR: Final = "#dde1e6"
SHEET: Final = "#f5f6f8"


@frozen
class Paint:
    """A hue on white and on dark, the ink that can be read on it, and its hatch in matplotlib's
    letters.
    """

    light: str
    dark: str
    ink: str
    hatch: str = ""


HUES: Final[Mapping[Hue, Paint]] = {
    Hue.COMPUTE: Paint("#0072b2", "#0072b2", "#ffffff"),
    Hue.COMMUNICATION: Paint("#d55e00", "#d55e00", "#000000", "//"),
    Hue.COPY: Paint("#f0e442", "#f0e442", "#000000", ".."),
    Hue.IDLE: Paint("#dfe3e8", "#3c434c", INK),
    Hue.HOST: Paint("#cc79a7", "#cc79a7", "#000000", "\\\\"),
    Hue.MEMORY: Paint("#009e73", "#009e73", "#000000", "xx"),
    Hue.OTHER: Paint("#6a6a6a", "#6a6a6a", "#ffffff", "--"),
}

TONES: Final[Mapping[Tone, tuple[str, str]]] = {
    Tone.PLAIN: (INK, "#e9ebee"),
    Tone.GOOD: ("#1b6e3c", "#7fd0a0"),
    Tone.NOTICE: ("#8f4e00", "#f2b866"),
    Tone.BAD: ("#b3261e", "#ff9389"),
    Tone.MUTED: (SOFT, "#a9b1bb"),
}
"""Ink of words, on white and on dark."""
