"""From the step of base to that of new, row by row: the waterfall of the attribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from reports.comparison.figures import exact, share
from reports.comparison.sentences import has_steps, per
from reports.document import Document
from reports.figures.both import NOISE, about_both, row_words
from reports.figures.canvas import INNER, SMALL, Area, Panel, notice
from reports.figures.legend import draw_legend, legend_height
from reports.figures.lettering import fitted, inches
from reports.figures.paint import COLOURS, HAIR, HATCHES, INK, SOFT, Paint
from reports.figures.stacks import quiet
from reports.words import milliseconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS: Final = 12
_ROW: Final = 0.29
_BAR: Final = 0.19
_NAMES: Final = 2.9
_GAP: Final = 0.07
_SLOWER: Final[Paint] = (COLOURS["vermillion"], "")
_FASTER: Final[Paint] = (COLOURS["blue"], HATCHES["slash"])
_NOISE: Final[Paint] = (COLOURS["pale"], HATCHES["grid"])
_ENTRIES: Final = (("slower", _SLOWER), ("faster", _FASTER), ("noise: no more than steps scatter", _NOISE))


@dataclass(frozen=True, slots=True)
class _Move:
    """One bar: from where the sum stood to where it stands after it, in ns away from base."""

    name: str
    from_ns: int
    to_ns: int
    paint: Paint
    said: str


def waterfall_panel(document: Document) -> Panel:
    """The largest rows, the others as one, noise apart; they add up exactly."""
    about = about_both(document, f"{per(document)}, new less base")
    if document["verdict"] == "not_comparable":
        why = "The runs are not comparable: the rows of their difference say nothing of a cause."
        return notice("Where the difference lies", about, why)
    named = [row for row in document["attribution"] if row["row"] != NOISE]
    if not named:
        return notice("Where the difference lies", about, "No row differs by more than steps scatter.")
    moves = _moves(document)
    what = "step" if has_steps(document) else "window"
    ends = (f"{what} of base: {milliseconds(document['base']['step_ns'])} ms",
            f"{what} of new: {milliseconds(document['new']['step_ns'])} ms")  # fmt: skip
    lines = (len(moves) + 2) * _ROW
    above = legend_height(_ENTRIES) + 0.1

    def draw(area: Area) -> None:
        draw_legend(area, 0, _ENTRIES)
        _draw(area.below(above), moves, ends, per(document))

    title = f"Where the difference lies: rows that add up to {exact(document['step_delta_ns'])} ms"
    return Panel(title, about, above + lines + 0.42, draw)


def _moves(document: Document) -> list[_Move]:
    named = [row for row in document["attribution"] if row["row"] != NOISE]
    noise = [row for row in document["attribution"] if row["row"] == NOISE]
    shown = named if len(named) <= _ROWS else named[: _ROWS - 1]
    steps = [(row_words(row["row"]), row["delta_ns"], share(row["share_frac"])) for row in shown]
    if smaller := named[len(shown) :]:
        steps.append((f"{len(smaller)} smaller rows", sum(row["delta_ns"] for row in smaller), ""))
    steps += [(row_words(NOISE), row["delta_ns"], share(row["share_frac"])) for row in noise]
    sums = list(accumulate((delta_ns for _, delta_ns, _ in steps), initial=0))
    return [
        _Move(name, sums[place], sums[place + 1], _paint(name, delta_ns), _said(delta_ns, part))
        for place, (name, delta_ns, part) in enumerate(steps)
    ]


def _paint(name: str, delta_ns: int) -> Paint:
    if name == row_words(NOISE):
        return _NOISE
    return _SLOWER if delta_ns > 0 else _FASTER


def _said(delta_ns: int, part: str) -> str:
    return f"{exact(delta_ns)} ms" + (f", {part}" if part else "")


def _draw(area: Area, moves: Sequence[_Move], ends: tuple[str, str], unit: str) -> None:
    width, height = INNER - _NAMES, (len(moves) + 2) * _ROW
    low, high = _limits(moves, ends, width)
    per_inch = (high - low) / width
    axes = area.axes(_NAMES, 0, width, height)
    axes.set(xlim=(low, high), ylim=(height, 0))
    quiet(axes)
    axes.set_xlabel(
        f"{unit}, from the step of base", fontsize=SMALL - 0.5, color=SOFT, loc="left", labelpad=2
    )
    axes.grid(axis="x", color=HAIR, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.axvline(0, color=INK, linewidth=1)
    _draw_end(area, axes, 0.5 * _ROW, 0.0, "base", ends[0], per_inch)
    for place, move in enumerate(moves, start=1):
        _draw_move(area, axes, (place + 0.5) * _ROW, move, per_inch)
    last = (len(moves) + 1.5) * _ROW
    _draw_end(area, axes, last, moves[-1].to_ns / 1e6, "new", ends[1], per_inch)


def _limits(moves: Sequence[_Move], ends: tuple[str, str], width: float) -> tuple[float, float]:
    """Ends of the axis, so that the words right of every bar are on it."""
    places = [0.0, *(move.to_ns / 1e6 for move in moves)]
    low, high = min(places), max(places)
    reach = (high - low) or 1.0
    low -= reach * 0.04
    words = [(max(move.from_ns, move.to_ns) / 1e6, move.said) for move in moves]
    words += [(0.0, ends[0]), (places[-1], ends[1])]
    return low, max(
        low + (at - low) * width / (width - inches(said, SMALL, bold=True) - 2 * _GAP) for at, said in words
    )


def _draw_end(area: Area, axes: Axes, at: float, place: float, name: str, said: str, per_inch: float) -> None:
    area.text(_NAMES - 0.1, at, name, ha="right", weight="bold")
    axes.plot([place], [at], marker="D", markersize=6, color=INK, clip_on=False)
    _write(axes, place + 1.4 * _GAP * per_inch, at, said, weight="bold", fontsize=SMALL - 0.5)


def _draw_move(area: Area, axes: Axes, at: float, move: _Move, per_inch: float) -> None:
    left, right = sorted((move.from_ns / 1e6, move.to_ns / 1e6))
    colour, hatch = move.paint
    edge = SOFT if colour == COLOURS["pale"] else "white"
    length = max(right - left, 0.01 * per_inch)
    axes.barh(at, length, _BAR, left, color=colour, hatch=hatch or None, edgecolor=edge, linewidth=0)
    axes.plot([move.to_ns / 1e6] * 2, [at + _BAR / 2, at + _ROW - _BAR / 2], color=SOFT, linewidth=0.8)
    area.text(_NAMES - 0.1, at, fitted(move.name, _NAMES - 0.12, SMALL), ha="right")
    _write(axes, right + _GAP * per_inch, at, move.said, fontsize=SMALL - 0.5)


def _write(axes: Axes, left: float, at: float, words: str, **style: Any) -> None:
    box = {"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none"}
    axes.text(left, at, words, color=INK, ha="left", va="center_baseline", bbox=box, **style)
