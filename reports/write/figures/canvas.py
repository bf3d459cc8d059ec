"""One sheet of 1600 x 900 points, in inches from its upper left corner; the same bytes each
time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final, Literal, TypeVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.content.page import Head
from reports.write.figures.lettering import FONT
from reports.write.palette import INK, SOFT
from traces.frozen import frozen

FigureForm = Literal["png", "svg", "pdf"]

DOTS_PER_INCH: Final = 120
WIDTH, HEIGHT = 1600 / DOTS_PER_INCH, 900 / DOTS_PER_INCH
"""Inches of a sheet: it fits a screen and a ticket without scrolling."""
MARGIN: Final = 0.36
SMALL, BODY, LARGE, HUGE = 9.5, 10.5, 12.5, 19.0
"""Points of notes, of most texts, of titles, of the one sentence."""
LINE: Final = 0.215
"""Inches from one line of body text to the next."""

NO_DATE: Final = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@frozen
class Area:
    """A part of a sheet: `left`, `top`, `width`, `height` in inches from the sheet's upper left
    corner.
    """

    figure: Figure
    left: float
    top: float
    width: float
    height: float

    def part(self, left: float, top: float, width: float, height: float) -> "Area":
        return Area(self.figure, self.left + left, self.top + top, width, height)

    def across(self, top: float, height: float) -> "Area":
        return self.part(0, top, self.width, height)

    def axes(self) -> Axes:
        box = (self.left / WIDTH, 1 - (self.top + self.height) / HEIGHT)
        axes = self.figure.add_axes((*box, self.width / WIDTH, self.height / HEIGHT))
        axes.set(xlim=(0, self.width), ylim=(self.height, 0))
        axes.axis("off")
        return axes

    def text(self, left: float, top: float, words: str, size: float = BODY, **style: Any) -> None:
        """A text whose line's middle is `top` inches down; `words` are drawn as they are."""
        place = (self.left + left) / WIDTH, 1 - (self.top + top) / HEIGHT
        self.figure.text(
            *place, words, fontsize=size, **{"color": INK, "va": "center_baseline", **style}
        )

    def note(self, left: float, top: float, words: str, **style: Any) -> None:
        """A text that stands beside others."""
        self.text(left, top, words, SMALL, color=SOFT, **style)

    def strong(self, left: float, top: float, words: str, size: float = BODY, **style: Any) -> None:
        """A text that is seen first."""
        self.text(left, top, words, size, weight="bold", **style)


R = TypeVar("R")


@contextmanager
def own_style() -> Iterator[None]:
    """Within it nothing depends on the user's settings, and no text is read as mathematics."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # not what the user's own style file says
        matplotlib.rcParams["svg.hashsalt"] = "moe-diag"
        matplotlib.rcParams["text.parse_math"] = False  # a name may hold a dollar sign
        matplotlib.rcParams["font.family"] = FONT
        matplotlib.rcParams["axes.unicode_minus"] = False  # as in the texts
        matplotlib.rcParams["hatch.linewidth"] = 0.5
        matplotlib.rcParams["text.hinting"] = "none"  # as wide as measured
        yield


def new_sheet() -> Area:
    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=DOTS_PER_INCH)
    return Area(figure, MARGIN, MARGIN, WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN)


def drawn(draw: Callable[[Area, R, Head], None], of: R, form: FigureForm, head: Head) -> bytes:
    file = BytesIO()
    with own_style():
        area = new_sheet()
        draw(area, of, head)
        area.figure.savefig(file, format=form, dpi=DOTS_PER_INCH, metadata=NO_DATE[form])
    return file.getvalue()
