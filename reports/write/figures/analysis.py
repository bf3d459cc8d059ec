"""One run on one sheet for a ticket: the sentence, the step, what could be saved, what to do, a timeline."""

from heuristics.result.result import Result
from reports.content.analysis import page
from reports.content.analysis.times import telling_rank
from reports.content.blocks import PLAIN, Bar, Detail, Head, Plan, Table
from reports.write.figures.bars import draw_bar, draw_savings
from reports.write.figures.canvas import Area, FigureForm, drawn
from reports.write.figures.frame import APART, draw_frame
from reports.write.figures.plan import draw_plan
from reports.write.figures.timeline import draw_timeline, timeline_height

_COLUMNS = (0.44, 0.52)
_FOOT = 0.26


def draw_analysis(result: Result, form: FigureForm, head: Head = PLAIN) -> bytes:
    return drawn(lambda area: draw_on(area, result, head), form)


def draw_on(area: Area, result: Result, head: Head = PLAIN) -> None:
    shown, timeline = head.over(page(result, Detail.FIRST)), telling_rank(result).timeline
    top = draw_frame(area, shown, result.tool.version)
    lower = area.height - _FOOT - timeline_height(timeline)
    left, right = (area.width * one for one in _COLUMNS)
    for block in shown.blocks:
        if isinstance(block, Bar):
            top += draw_bar(area.part(0, top, area.width, 1.2), block) + APART
    for block in shown.blocks:
        if isinstance(block, Table):
            draw_savings(area.part(0, top, left, lower - top - APART), block)
        elif isinstance(block, Plan):
            draw_plan(area.part(area.width - right, top, right, lower - top - APART), block)
    draw_timeline(area.part(0, lower, area.width, timeline_height(timeline)), timeline)
