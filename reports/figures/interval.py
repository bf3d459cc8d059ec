"""The size of the difference: its interval beside zero and beside the limit of a gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reports.comparison.figures import signed, signed_percent
from reports.comparison.sentences import has_steps
from reports.document import Document
from reports.figures.both import about_both
from reports.figures.canvas import INNER, SMALL, Area, Panel, notice
from reports.figures.lettering import inches
from reports.figures.paint import COLOURS, INK, SOFT
from reports.figures.stacks import quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT: Final = 1.5
_GATE: Final = COLOURS["orange"]
_BARS: Final = {"regression": COLOURS["vermillion"], "improvement": COLOURS["blue"]}
_MIDDLE: Final = 0.5
_GAP: Final = 0.12
_UNIT: Final = "ms, new less base: to the right is slower"


def interval_panel(document: Document) -> Panel:
    """The difference of the means with its interval; a line instead where the runs are not comparable."""
    size = document["size"]
    about = about_both(document, _UNIT)
    if document["verdict"] == "not_comparable":
        why = "The runs are not comparable: the size of their difference says nothing of a cause."
        return notice("The size of the difference", about, why)
    of = (
        "iterations in the logs" if size["source"] == "log" else "steps" if has_steps(document) else "windows"
    )
    size_words = f"{signed(size['delta_ns'])} ms ({signed_percent(size['delta_frac'])})"
    title = f"The difference of the {of}: {size_words}"
    return Panel(title, about, _HEIGHT + 0.42, lambda area: _draw(area, document))


def _draw(area: Area, document: Document) -> None:
    size, gate = document["size"], document["gate"]
    delta = size["delta_ns"] / 1e6
    ends = None if size["low_ns"] is None else (size["low_ns"] / 1e6, size["high_ns"] / 1e6)
    limit = None if gate is None else gate["limit_frac"] * size["base_mean_ns"] / 1e6
    places = [0.0, delta, *(ends or ()), *([] if limit is None else [limit])]
    low, high = min(places), max(places)
    reach = (high - low) or max(1.0, abs(delta))
    side = 2.2 / (INNER - 4.4) * reach  # room for words beside the outermost marks
    axes = area.axes(0, 0, INNER, _HEIGHT)
    axes.set(xlim=(low - side, low + reach + side), ylim=(_HEIGHT, 0))
    quiet(axes)
    axes.set_xlabel(_UNIT, fontsize=SMALL - 0.5, color=SOFT, loc="left", labelpad=2)
    axes.plot([0, 0], [0.2, _HEIGHT], color=INK, linewidth=1.2)
    _write(axes, 0, 0.1, "no difference", INK, "center")
    if limit is not None and gate is not None:
        axes.plot([limit, limit], [0.2, _HEIGHT - 0.22], color=_GATE, linewidth=1.4, linestyle="--")
        apart = abs(limit) * INNER / (reach + 2 * side)
        words = f"limit of the gate, {signed_percent(gate['limit_frac'])}: {gate['state']}"
        clear = apart > (inches(words, SMALL) + inches("no difference", SMALL)) / 2 + _GAP
        _write(axes, limit, 0.1 if clear else _HEIGHT - 0.1, words, _GATE, "center")
    _draw_size(axes, document, delta, ends, (reach + 2 * side) / INNER)


def _draw_size(
    axes: Axes, document: Document, delta: float, ends: tuple[float, float] | None, per_inch: float
) -> None:
    size, at = document["size"], _HEIGHT * _MIDDLE
    bar = _BARS.get(document["verdict"], SOFT)
    if ends is not None:
        axes.plot(ends, [at, at], color=bar, linewidth=7, solid_capstyle="butt")
        for end in ends:
            axes.plot([end, end], [at - 0.11, at + 0.11], color=bar, linewidth=2)
    axes.plot(
        [delta], [at], marker="D", markersize=9, color="white", markeredgecolor=INK, markeredgewidth=1.6
    )
    said = (
        f"{size['level_frac'] * 100:g} % interval: {signed(size['low_ns'])} to {signed(size['high_ns'])} ms"
        if ends
        else "no interval: too few steps to tell chance from change"
    )
    mean = f"mean {signed(size['delta_ns'])} ms"
    place = _HEIGHT * _MIDDLE + 0.33
    _write(axes, delta, place, f"{mean}; {said}", INK, _side(axes, delta, f"{mean}; {said}", per_inch))


def _side(axes: Axes, at: float, words: str, per_inch: float) -> str:
    """Centred, or to the side where the words would leave the sheet."""
    low, high = axes.get_xlim()
    half = inches(words, SMALL) / 2 * per_inch
    if at - half < low:
        return "left"
    return "right" if at + half > high else "center"


def _write(axes: Axes, at: float, top: float, words: str, ink: str, side: str) -> None:
    box = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"}
    axes.text(at, top, words, fontsize=SMALL, color=ink, ha=side, va="center", bbox=box)
