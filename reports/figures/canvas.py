"""The sheet that figures are drawn on, in inches from its upper left corner; the same bytes each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, Literal

from reports.figures.lettering import FONT, fitted, wrapped, wrapped_all
from reports.figures.paint import HAIR, INK, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FigureForm = Literal["png", "svg", "pdf"]

WIDTH: Final = 11.0
PAGE_HEIGHT: Final = 8.5
"""Inches of a sheet and of a page: letter paper, lying; a page that needs more is higher."""
INNER: Final = 10.1
"""Inches between the margins."""
DOTS_PER_INCH: Final = 110
LINE: Final = 0.19
"""Inches from one line of small text to the next."""
SMALL: Final = 8.5
"""Points of most texts."""

NO_DATE: Final[Mapping[str, dict[str, Any]]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_MARGIN: Final = (WIDTH - INNER) / 2
_TITLE, _VERDICT = 12.0, 12.5
_VERDICT_LINE: Final = 0.25
_HEADING: Final = 0.62
"""Inches of a panel's title and the line under it."""
_APART: Final = 0.42


@dataclass(frozen=True, slots=True)
class Area:
    """A part of a sheet: `left`, `top`, `width`, `height` in inches from the sheet's upper left corner."""

    figure: Figure
    left: float
    top: float
    width: float
    height: float

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Axes at a place in this area."""
        whole_width, whole_height = self.figure.get_size_inches()
        bottom = whole_height - self.top - top - height
        box = (self.left + left) / whole_width, bottom / whole_height
        return self.figure.add_axes((*box, width / whole_width, height / whole_height))

    def text(self, left: float, top: float, words: str, size: float = SMALL, **style: Any) -> None:
        """A text whose line's middle is `top` inches down; `words` are drawn as they are."""
        whole_width, whole_height = self.figure.get_size_inches()
        place = (self.left + left) / whole_width, 1 - (self.top + top) / whole_height
        style = {"color": INK, "va": "center_baseline", **style}
        self.figure.text(*place, words, fontsize=size, **style)

    def below(self, top: float) -> Area:
        """What is left of this area from `top` inches down."""
        return Area(self.figure, self.left, self.top + top, self.width, self.height - top)


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: a title that says what is seen, what it is of, and who draws it in `height` inches."""

    title: str
    about: str
    height: float
    draw: Callable[[Area], None]


@dataclass(frozen=True, slots=True)
class Header:
    """What stands above the pictures: what was read, the verdict, sentences that explain it."""

    about: str
    verdict: str
    sentences: tuple[str, ...]


def notice(title: str, about: str, why: str) -> Panel:
    """A panel that could not be filled, and why."""
    lines = wrapped(why, INNER, SMALL)

    def draw(area: Area) -> None:
        for place, line in enumerate(lines):
            area.text(0, 0.1 + place * LINE, line, color=SOFT, style="italic")

    return Panel(title, about, len(lines) * LINE, draw)


@contextmanager
def own_style() -> Iterator[None]:
    """Within it nothing depends on the user's settings, and no text is read as mathematics."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # not what the user's own style file says
        matplotlib.rcParams["svg.hashsalt"] = "moe-diag"
        matplotlib.rcParams["text.parse_math"] = False  # a name may hold a dollar sign
        matplotlib.rcParams["font.family"] = FONT
        matplotlib.rcParams["axes.unicode_minus"] = False  # as in the texts
        matplotlib.rcParams["hatch.linewidth"] = 0.7
        matplotlib.rcParams["text.hinting"] = "none"  # as wide as measured
        yield


def draw_sheet(header: Header, panels: Sequence[Panel], form: FigureForm) -> bytes:
    """The file: all panels on one sheet, or in a pdf each on a page of its own under the verdict."""
    file = BytesIO()
    with own_style():
        if form == "pdf":
            _write_pages(file, header, panels)
        else:
            _whole(header, panels).savefig(file, format=form, dpi=DOTS_PER_INCH, metadata=NO_DATE[form])
    return file.getvalue()


def sheets(header: Header, panels: Sequence[Panel], form: FigureForm) -> list[Figure]:
    """The figures that `draw_sheet` writes; within `own_style`."""
    if form == "pdf":
        return [_page(header, panel) for panel in panels]
    return [_whole(header, panels)]


def _write_pages(file: BytesIO, header: Header, panels: Sequence[Panel]) -> None:
    from matplotlib.backends.backend_pdf import PdfPages

    with PdfPages(file, metadata=NO_DATE["pdf"]) as pages:
        for figure in sheets(header, panels, "pdf"):
            pages.savefig(figure, dpi=DOTS_PER_INCH)


def _whole(header: Header, panels: Sequence[Panel]) -> Figure:
    from matplotlib.figure import Figure

    tops, top = [], _MARGIN + header_height(header) + 0.25
    for panel in panels:
        tops.append(top)
        top += _HEADING + panel.height + _APART
    figure = Figure(figsize=(WIDTH, top - _APART + _MARGIN), dpi=DOTS_PER_INCH)
    _draw_header(Area(figure, _MARGIN, _MARGIN, INNER, header_height(header)), header)
    for start, panel in zip(tops, panels, strict=True):
        _draw_panel(Area(figure, _MARGIN, start, INNER, _HEADING + panel.height), panel)
    return figure


def _page(header: Header, panel: Panel) -> Figure:
    from matplotlib.figure import Figure

    short = Header(header.about, header.verdict, ())
    taken = _MARGIN + header_height(short)
    needed = taken + 0.25 + _HEADING + panel.height + _MARGIN
    figure = Figure(figsize=(WIDTH, max(PAGE_HEIGHT, needed)), dpi=DOTS_PER_INCH)
    _draw_header(Area(figure, _MARGIN, _MARGIN, INNER, header_height(short)), short)
    _draw_panel(Area(figure, _MARGIN, taken + 0.25, INNER, _HEADING + panel.height), panel)
    return figure


def header_height(header: Header) -> float:
    """Inches that a header takes."""
    lines = wrapped_all(header.sentences, INNER, SMALL + 0.5)
    return 0.3 + len(_verdict_lines(header)) * _VERDICT_LINE + len(lines) * (LINE + 0.01)


def _verdict_lines(header: Header) -> list[str]:
    return wrapped(header.verdict, INNER, _VERDICT, bold=True)


def _draw_header(area: Area, header: Header) -> None:
    area.text(0, 0.06, fitted(header.about, INNER, SMALL), color=SOFT)
    top = 0.34
    for line in _verdict_lines(header):
        area.text(0, top, line, _VERDICT, weight="bold")
        top += _VERDICT_LINE
    for line in wrapped_all(header.sentences, INNER, SMALL + 0.5):
        area.text(0, top, line, SMALL + 0.5)
        top += LINE + 0.01


def _draw_panel(area: Area, panel: Panel) -> None:
    from matplotlib.lines import Line2D

    whole_width, whole_height = area.figure.get_size_inches()
    across = [area.left / whole_width, (area.left + area.width) / whole_width]
    rule = Line2D(across, [1 - area.top / whole_height] * 2, color=HAIR, linewidth=1)
    area.figure.add_artist(rule)
    area.text(0, 0.17, fitted(panel.title, INNER, _TITLE, bold=True), _TITLE, weight="bold")
    area.text(0, 0.39, fitted(panel.about, INNER, SMALL), color=SOFT)
    panel.draw(area.below(_HEADING))
