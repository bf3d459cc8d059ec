"""From the step of base to that of new, part by part: the table of a comparison as a waterfall."""

from typing import Final

from heuristics.result.compared import Compared
from reports.content.blocks import Table
from reports.content.comparison.moves import moves_of, reach
from reports.content.names import cell_text
from reports.write.figures.bars import draw_heads, fill
from reports.write.figures.canvas import BODY, LARGE, Area
from reports.write.figures.lettering import fitted, inches
from reports.write.palette import HAIR, INK, SOFT

_NAMES: Final = 3.0
_GAP: Final = 0.1
_FIGURES: Final = 1.9
"""Inches right of the bars for the lengths of both sides."""
_LEAST: Final = 0.02
"""Inches of a bar at least, so that it can be seen."""


def draw_waterfall(area: Area, compared: Compared, table: Table) -> None:
    """Its rows in their order, as the table words them; the last holds all parts that are left
    out.
    """
    area.strong(0, 0.08, table.title, LARGE)
    moves = moves_of(compared, len(table.rows) - 1)
    rows = list(filter(None, (*table.rows, table.total)))
    high = min(0.36, (area.height - 0.45) / (len(rows) + 1))
    width = area.width - _NAMES - _FIGURES
    ends = draw_heads(area, table, 0.8)
    chart = area.part(_NAMES, 0.35, width, high * len(rows))
    # words right of every bar are on the chart
    room = chart.width - inches(
        max((cell_text(row.cells[3]) for row in rows), key=len), BODY, bold=True
    )
    least, most = reach(moves)
    per_ns = (room - 2 * _GAP) / ((most - least) or 1)

    def place_of(time_ns: float) -> float:
        return (time_ns - least) * per_ns

    axes = chart.axes()
    zero = place_of(0)
    axes.plot([zero, zero], [0, chart.height], color=SOFT, linewidth=0.8)
    for place, row in enumerate(rows):
        middle, is_total = 0.35 + (place + 0.5) * high, place == len(table.rows)
        weight = "bold" if is_total else "normal"
        area.text(
            0, middle, fitted(cell_text(row.cells[0]), _NAMES - 0.15, BODY), BODY, weight=weight
        )
        move = moves[place]
        left, right = sorted((place_of(move.from_ns), place_of(move.to_ns)))
        fill(axes, (left, (place + 0.2) * high, max(right - left, _LEAST), high * 0.6), move.hue)
        if not is_total:
            after = place_of(move.to_ns)
            axes.plot(
                [after, after],
                [(place + 0.8) * high, (place + 1.2) * high],
                color=INK,
                linewidth=0.8,
            )
        area.strong(_NAMES + right + _GAP, middle, cell_text(row.cells[3]))
        for at, cell in zip(ends, row.cells[1:3], strict=True):
            area.text(at, middle, cell_text(cell), BODY, ha="right", weight=weight)
    axes.axhline((len(rows) - 1) * high, color=HAIR, linewidth=1)
