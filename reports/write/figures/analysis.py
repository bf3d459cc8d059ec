"""One run on one sheet for a ticket: the sentence, the step, what could be saved, what to do, a
timeline.
"""

from heuristics.result.result import Result
from reports.content.analysis import page
from reports.content.analysis.called import short_name
from reports.content.analysis.times import telling_rank
from reports.content.blocks import Bar, Plan, Sentence, Table
from reports.content.names import plain
from reports.content.page import Detail, Head
from reports.write.figures.bars import draw_bar, draw_savings
from reports.write.figures.canvas import Area
from reports.write.figures.frame import APART, draw_frame, draw_sentences
from reports.write.figures.plan import draw_plan
from reports.write.figures.run import draw_heat, heat_height
from reports.write.figures.timeline import draw_timeline, timeline_height
from reports.write.html.ranks import heat_of

_COLUMNS = (0.44, 0.52)
_FOOT = 0.26
_OF_RANKS = ("First", "Repair", "Straggler", "Arrives last")
"""Labels of the lines about ranks that a sheet has."""


def draw_analysis(area: Area, result: Result, head: Head) -> None:
    """Of several ranks who makes whom wait, what to do first and a map stand where one has its
    step.
    """
    shown, timeline = head.over(page(result, Detail.FIRST)), telling_rank(result).timeline
    run = result.run
    heat = heat_of(run, lambda at: plain(short_name(result, at))) if run else None
    high = timeline_height(timeline) if heat is None else heat_height(heat)
    top = draw_frame(area, shown, result.tool.version)
    lower = area.height - _FOOT - high
    left, right = map(area.width.__mul__, _COLUMNS)
    if heat:
        sentences = [block for block in shown.of_kind(Sentence) if block.label in _OF_RANKS]
        top += draw_sentences(area.across(top, lower - top), sentences) + APART
    else:
        for bar in shown.of_kind(Bar):
            top += draw_bar(area.across(top, 1.2), bar) + APART
    for table in shown.of_kind(Table):
        draw_savings(area.part(0, top, left, lower - top - APART), table)
    for plan in shown.of_kind(Plan):
        draw_plan(area.part(area.width - right, top, right, lower - top - APART), plan)
    if heat:
        draw_heat(area, heat, lower)
    else:
        draw_timeline(area.across(lower, high), timeline)
