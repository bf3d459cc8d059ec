"""Both steps one above the other: bars of the same scale and order, and their parts in figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reports.comparison.sentences import has_steps, per
from reports.document import Document
from reports.figures.both import NOISE, SMALLER, about_both, row_words
from reports.figures.canvas import INNER, LINE, SMALL, Area, Panel
from reports.figures.legend import SWATCH, draw_swatch
from reports.figures.lettering import fitted
from reports.figures.paint import COLOURS, HATCHES, SOFT, Paint, paint_of
from reports.figures.stacks import Piece, draw_stack, quiet
from reports.words import milliseconds

_SHOWN: Final = 16
_NAMES: Final = 0.5
_BAR, _BETWEEN, _AXIS = 0.48, 0.14, 0.5
_GAP: Final = 0.4
_COLUMN: Final = (INNER - _GAP) / 2
_FIGURES: Final = (_COLUMN - 0.95, _COLUMN)
"""Right ends of the figures of base and of new, in inches from the left of their column."""
_NAME: Final = _COLUMN - 1.85 - SWATCH
_ORDER: Final = ("compute", "busy", "exposed_comm", "exposed_copy")
_PAINT: Final[dict[str, Paint]] = {
    NOISE: (COLOURS["pale"], HATCHES["grid"]),
    SMALLER: (COLOURS["pale"], ""),
}


@dataclass(frozen=True, slots=True)
class _Part:
    """A row of both steps, in ns per step."""

    row: str
    name: str
    base_ns: int
    new_ns: int

    @property
    def paint(self) -> Paint:
        return _PAINT.get(self.row) or paint_of(self.row)


def two_steps_panel(document: Document) -> Panel:
    """Every row of both steps; the smallest added up as one."""
    parts = _parts(document)
    bars = 2 * _BAR + _BETWEEN
    height = bars + _AXIS + (_lines(parts) + 1) * LINE

    def draw(area: Area) -> None:
        _draw_bars(area, document, parts, bars)
        _draw_table(area.below(bars + _AXIS), document, parts)

    what = "steps" if has_steps(document) else "windows"
    return Panel(f"Both {what} on one scale", about_both(document, per(document)), height, draw)


def _parts(document: Document) -> list[_Part]:
    """Rows in the order of the bar; of the attribution in results of versions that list no budget."""
    base, new = (
        {one["row"]: one["mean_ns"] for one in document[side].get("budget_rows") or ()}
        for side in ("base", "new")
    )
    if not base:
        rows = document["attribution"]
        base, new = ({one["row"]: one[key] for one in rows} for key in ("base_ns", "new_ns"))
    names = [row for row in {**base, **new} if base.get(row) or new.get(row)]
    found = [_Part(row, row_words(row), base.get(row, 0), new.get(row, 0)) for row in names]
    by_size = sorted(found, key=lambda one: (-max(one.base_ns, one.new_ns), one.row))
    large = by_size if len(by_size) <= _SHOWN else by_size[: _SHOWN - 1]
    parts = sorted(large, key=lambda one: (_place(one.row), -one.base_ns - one.new_ns, one.row))
    if small := by_size[len(large) :]:
        sums = (sum(one.base_ns for one in small), sum(one.new_ns for one in small))
        parts.append(_Part(SMALLER, f"{len(small)} smaller rows", *sums))
    return parts


def _place(row: str) -> int:
    head = row.partition(".")[0]
    if row == NOISE:
        return len(_ORDER) + 1
    return _ORDER.index(head) if head in _ORDER else len(_ORDER)


def _draw_bars(area: Area, document: Document, parts: Sequence[_Part], height: float) -> None:
    width = INNER - _NAMES
    longest = max(document["base"]["step_ns"], document["new"]["step_ns"]) / 1e6 or 1.0
    axes = area.axes(_NAMES, 0, width, height)
    axes.set(xlim=(0, longest), ylim=(height, 0))
    quiet(axes)
    axes.set_xlabel(per(document), fontsize=SMALL - 0.5, color=SOFT, loc="left", labelpad=2)
    for place, side in enumerate(("base", "new")):
        at = place * (_BAR + _BETWEEN) + _BAR / 2
        area.text(_NAMES - 0.1, at, side, ha="right", weight="bold")
        pieces = [_piece(part, part.base_ns if side == "base" else part.new_ns) for part in parts]
        draw_stack(axes, at, _BAR, pieces, longest / width)


def _piece(part: _Part, ns: int) -> Piece:
    time = f"{ns / 1e6:,.3f}"
    short = part.name.partition(": ")[2] or part.name
    return Piece(ns / 1e6, part.paint, (f"{short}\n{time} ms", time))


def _draw_table(area: Area, document: Document, parts: Sequence[_Part]) -> None:
    """Two columns, the step at the end of the second."""
    lines = _lines(parts)
    ends = [document[side]["step_ns"] for side in ("base", "new")]
    step = _Part("", "step" if has_steps(document) else "window", ends[0], ends[1])
    for column in range(2):
        left = column * (_COLUMN + _GAP)
        for right, words in zip(_FIGURES, ("base", "new"), strict=True):
            area.text(left + right, 0, words, ha="right", color=SOFT)
        mine = [*parts, step][column * lines : (column + 1) * lines]
        for place, part in enumerate(mine, start=1):
            _draw_line(area, left, place * LINE, part)


def _lines(parts: Sequence[_Part]) -> int:
    return (len(parts) + 2) // 2


def _draw_line(area: Area, left: float, at: float, part: _Part) -> None:
    weight = "normal" if part.row else "bold"
    if part.row:
        draw_swatch(area, left, at, part.paint)
    area.text(left + SWATCH, at, fitted(part.name, _NAME, SMALL), weight=weight)
    for right, ns in zip(_FIGURES, (part.base_ns, part.new_ns), strict=True):
        area.text(left + right, at, milliseconds(ns), ha="right", weight=weight)
