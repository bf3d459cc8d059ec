"""One run on one sheet for a ticket: the sentence, the step, what could be saved, what to do, a timeline."""

from heuristics.result.result import Result
from reports.content.analysis import page
from reports.content.analysis.times import telling_rank
from reports.content.blocks import Bar, Detail, Page, Plan, Sentence, Table
from reports.write.figures.bars import draw_bar, draw_savings
from reports.write.figures.canvas import Area, FigureForm, drawn
from reports.write.figures.frame import APART, draw_frame, draw_sentences
from reports.write.figures.plan import draw_plan
from reports.write.figures.timeline import draw_timeline, timeline_height

_COLUMNS = (0.44, 0.52)
_FOOT = 0.26


def draw_analysis(result: Result, form: FigureForm) -> bytes:
    return drawn(lambda area: draw_on(area, result), form)


def draw_on(area: Area, result: Result) -> None:
    shown = page(result, Detail.FIRST)
    top = draw_frame(area, shown, result.tool.version)
    for block in shown.blocks:
        if isinstance(block, Bar):
            top += draw_bar(area.part(0, top, area.width, 1.2), block) + APART
    timeline = telling_rank(result).timeline
    high = timeline_height(timeline)
    lower = area.height - _FOOT - high
    left, right = (area.width * one for one in _COLUMNS)
    _middle(
        area.part(0, top, left, lower - top - APART),
        area.part(area.width - right, top, right, lower - top - APART),
        shown,
    )
    draw_timeline(area.part(0, lower, area.width, high), timeline)


def _middle(left: Area, right: Area, shown: Page) -> None:
    for block in shown.blocks:
        if isinstance(block, Table):
            draw_savings(left, block)
        elif isinstance(block, Plan):
            draw_plan(right, block)
    if not any(isinstance(block, Plan) for block in shown.blocks):
        draw_sentences(right, [block for block in shown.blocks if isinstance(block, Sentence)])
