"""Two runs on one sheet: the verdict, from base to new part by part, likely causes, both steps."""

from typing import Final

from heuristics.result.compared import Compared
from reports.content.blocks import Table
from reports.content.comparison import page
from reports.content.comparison.difference import longest_ns, sides
from reports.content.names import hue_of
from reports.content.page import Detail, Head
from reports.rows import each
from reports.write.figures.bars import draw_legend, fill
from reports.write.figures.canvas import BODY, Area
from reports.write.figures.frame import APART, draw_frame, draw_sentences
from reports.write.figures.waterfall import draw_waterfall
from traces.spelling import in_ms

_LOWER: Final = 1.35
"""Inches of both steps with the foot."""
_SIDE: Final = 0.28
_NAMES: Final = 0.7
_LENGTHS: Final = 1.1
_COLUMNS: Final = (0.58, 0.38)


def draw_comparison(area: Area, compared: Compared, head: Head) -> None:
    shown = head.over(page(compared, Detail.FIRST))
    top = draw_frame(area, shown, compared.tool.version)
    tables = shown.of_kind(Table)[:1]
    lower = area.height - _LOWER
    left, right = map(area.width.__mul__, _COLUMNS)
    if compared.verdict != "not_comparable" and tables:
        draw_waterfall(area.part(0, top, left, lower - top - APART), compared, tables[0])
    else:
        left, right = 0.0, area.width
    rest = [block for block in shown.blocks if block not in tables]
    draw_sentences(area.part(area.width - right, top, right, lower - top - APART), rest)
    _draw_steps(area.across(lower, _LOWER), compared)


def _draw_steps(area: Area, compared: Compared) -> None:
    rows = (*compared.base.budget_rows, *compared.new.budget_rows)
    draw_legend(area, {*map(hue_of, each(rows, "row"))})
    per_ns = (area.width - _NAMES - _LENGTHS) / longest_ns(compared)
    for place, (name, side) in enumerate(sides(compared).items()):
        middle = 0.25 + place * (_SIDE + 0.1) + _SIDE / 2
        area.strong(0, middle, name)
        axes = area.part(_NAMES, middle - _SIDE / 2, area.width - _NAMES - _LENGTHS, _SIDE).axes()
        left, order = 0.0, [*map(hue_of, each(side.budget_rows, "row"))]
        for row in sorted(side.budget_rows, key=lambda row: order.index(hue_of(row.row))):
            if row.mean_ns > 0:
                fill(axes, (left, 0, row.mean_ns * per_ns, _SIDE), hue_of(row.row))
                left += row.mean_ns * per_ns
        area.text(_NAMES + side.step_ns * per_ns + 0.1, middle, in_ms(side.step_ns), BODY)
