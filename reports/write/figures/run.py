"""Ranks put together on one sheet: the sentence, a map with a column a rank, what it rests on."""

from functools import partial
from typing import Final

from heuristics.result.result import Merged
from reports.content.analysis.run import merged_text, page
from reports.content.blocks import Hue, Part
from reports.content.page import Head
from reports.write.figures.canvas import BODY, SMALL, Area
from reports.write.figures.frame import APART, draw_frame, draw_sentences
from reports.write.html.ranks import Maps, heat_of
from reports.write.palette import HUES, INK

_NAMES: Final = 3.2
"""Inches of what a row is and its range."""
_APART_UP_TO: Final = 64
"""Columns that have a gap between them."""
_TITLE, _ROW, _GAP, _TICKS, _FOOT = 0.3, 0.26, 0.06, 0.3, 0.3


def draw_run(area: Area, merged: Merged, head: Head) -> None:
    shown = head.over(page(merged))
    top = draw_frame(area, shown, merged.tool.version)
    heat = heat_of(merged.run, partial(merged_text, merged))
    if heat:
        top = draw_heat(area, heat, top) + APART
    sentences = [block for block in shown.blocks if not isinstance(block, Part)]
    draw_sentences(area.across(top, area.height - top - _FOOT), sentences)


def heat_height(heat: Maps) -> float:
    return _TITLE + len(heat.maps) * (_ROW + _GAP) + _TICKS


def draw_heat(area: Area, heat: Maps, top: float) -> float:
    area.strong(0, top + 0.05, "All ranks")
    area.note(_NAMES, top + 0.05, heat.of)
    top += _TITLE
    column_width = (area.width - _NAMES) / heat.columns
    shown = column_width * (0.94 if heat.columns <= _APART_UP_TO else 1.0)
    for figure in heat.maps:
        area.text(0, top + _ROW / 2, figure.name, BODY)
        area.note(_NAMES - 0.15, top + _ROW / 2, figure.range, ha="right")
        axes = area.part(_NAMES, top, area.width - _NAMES, _ROW).axes()
        (row,) = figure.rows
        colour = HUES[Hue(figure.hue)].light
        for place, shade in enumerate(row.shades):
            if shade:
                left, alpha = place * column_width, float(shade)
                axes.barh(_ROW / 2, shown, _ROW, left=left, color=colour, alpha=alpha)
        top += _ROW + _GAP
    for column, number in heat.ticks:
        area.text(
            _NAMES + (column + 0.5) * column_width, top, number, SMALL, color=INK, ha="center"
        )
    return top + _TICKS
