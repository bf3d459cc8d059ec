"""How launches use the SMs: theoretical occupancy and fill, by class of compute."""

from __future__ import annotations

from typing import Any, Final

from reports.document import Document
from reports.figures.canvas import Area, Panel, notice
from reports.figures.legend import draw_legend, legend_height
from reports.figures.paint import COLOURS, HATCHES, Paint
from reports.figures.rows import Bar, Row, draw_rows, rows_height
from reports.figures.stacks import Piece
from reports.figures.told import about_run, divisor, ms, why_untold
from reports.words import kind_words, percent

_SEEN: Final = "theoretical occupancy and fill by class of compute"
_ABOUT: Final = "% from launch shapes, not measured"
_SHOWN: Final = 11
_OCCUPANCY: Final[Paint] = (COLOURS["blue"], "")
_FILL: Final[Paint] = (COLOURS["orange"], HATCHES["slash"])
_ENTRIES: Final = (
    ("occupancy: how much of an SM's warps the blocks could fill", _OCCUPANCY),
    ("fill: how many of the SMs get blocks", _FILL),
)
_UNTOLD: Final = "not told (persistent or short kernels, or no launch shape)"


def occupancy_panel(document: Document, place: int) -> Panel:
    """All compute first, then the classes that take most time."""
    rank = document["ranks"][place]
    about = about_run(document, place, _ABOUT)
    use = rank["sm"]
    if use["occupancy_frac"] is None and use["fill_frac"] is None:
        return notice(
            f"SMs: {_SEEN}", about, why_untold(document, place, ["sm.fill_frac", "sm.occupancy_frac", "sm"])
        )
    times = rank["compute_by_class_ns"]
    classes = sorted(use["by_class"].items(), key=lambda one: (-times.get(one[0], 0), one[0]))[:_SHOWN]
    rows = [_row("all compute", use)]
    rows += [_row(f"{kind_words(name)}, {_time(rank, times, name)}", of) for name, of in classes]
    above = legend_height(_ENTRIES) + 0.08

    def draw(area: Area) -> None:
        draw_legend(area, 0, _ENTRIES)
        draw_rows(area.below(above), rows, "%", whole=100.0)

    sms = "SMs" if use["sm_count"] is None else f"The {use['sm_count']} SMs"
    return Panel(f"{sms}: {_SEEN}", about, above + rows_height(rows), draw)


def _time(rank: dict[str, Any], times: dict[str, int], name: str) -> str:
    return f"{ms(times.get(name, 0) / divisor(rank))} ms"


def _row(name: str, use: dict[str, Any]) -> Row:
    bars = []
    for key, paint in (("occupancy_frac", _OCCUPANCY), ("fill_frac", _FILL)):
        value = use[key]
        if value is None:
            bars.append(Bar((), _UNTOLD))
        else:
            bars.append(Bar((Piece(value * 100, paint),), percent(value)))
    if all(not bar.pieces for bar in bars):
        return Row(name, (Bar((), _UNTOLD),))
    return Row(name, tuple(bars))
