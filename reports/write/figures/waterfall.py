"""From the step of base to that of new, part by part: the table of a comparison as a waterfall."""

from collections.abc import Callable, Sequence
from typing import Final

from heuristics.result.compared import Compared
from reports.content.blocks import Cell, Quantity, Table
from reports.content.comparison.moves import Move, moves_of, reach
from reports.content.names import plain
from reports.write.figures.bars import fill
from reports.write.figures.canvas import BODY, LARGE, SMALL, Area
from reports.write.figures.lettering import fitted, inches
from reports.write.palette import HAIR, INK, SOFT

_NAMES: Final = 3.0
_GAP: Final = 0.1
_FIGURES: Final = 1.9
"""Inches right of the bars for the lengths of both sides."""
_LEAST: Final = 0.02
"""Inches of a bar at least, so that it can be seen."""


def draw_waterfall(area: Area, compared: Compared, table: Table) -> None:
    """Its rows in their order, as the table words them; the last holds all parts that are left out."""
    area.text(0, 0.08, table.title, LARGE, weight="bold")
    moves = moves_of(compared, len(table.rows) - 1)
    rows = [*table.rows, *([table.total] if table.total else [])]
    high = min(0.36, (area.height - 0.45) / (len(rows) + 1))
    width = area.width - _NAMES - _FIGURES
    ends = (area.width - 0.8, area.width)
    for right, column in zip(ends, table.columns[1:3], strict=True):
        area.text(right, 0.08, column.title, SMALL, color=SOFT, ha="right")
    chart = area.part(_NAMES, 0.35, width, high * len(rows))
    place_of = _scale(moves, chart.width, max((_words(row.cells[3]) for row in rows), key=len))
    axes = chart.axes()
    zero = place_of(0)
    axes.plot([zero, zero], [0, chart.height], color=SOFT, linewidth=0.8)
    for place, row in enumerate(rows):
        middle, is_total = 0.35 + (place + 0.5) * high, place == len(table.rows)
        weight = "bold" if is_total else "normal"
        area.text(0, middle, fitted(_words(row.cells[0]), _NAMES - 0.15, BODY), BODY, weight=weight)
        move = moves[place]
        left, right = sorted((place_of(move.from_ns), place_of(move.to_ns)))
        fill(axes, (left, (place + 0.2) * high, max(right - left, _LEAST), high * 0.6), move.hue)
        if not is_total:
            after = place_of(move.to_ns)
            axes.plot([after, after], [(place + 0.8) * high, (place + 1.2) * high], color=INK, linewidth=0.8)
        area.text(_NAMES + right + _GAP, middle, _words(row.cells[3]), BODY, weight="bold")
        for at, cell in zip(ends, row.cells[1:3], strict=True):
            area.text(at, middle, _words(cell), BODY, ha="right", weight=weight)
    axes.axhline((len(rows) - 1) * high, color=HAIR, linewidth=1)


def _words(cell: Cell) -> str:
    return cell.text if isinstance(cell, Quantity) else plain(cell)


def _scale(moves: Sequence[Move], width: float, longest: str) -> Callable[[int], float]:
    """Inches from the left for a time, so that the words right of every bar are on the chart."""
    least, most = reach(moves)
    per_ns = (width - inches(longest, BODY, bold=True) - 2 * _GAP) / ((most - least) or 1)
    return lambda time_ns: (time_ns - least) * per_ns
