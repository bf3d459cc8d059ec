"""The page of a comparison: one number, from base to new part by part, why, both steps on one
axis.
"""

from collections import Counter
from dataclasses import replace
from typing import Final

from heuristics.result.compared import Compared
from reports.content.blocks import Cell, Fold, Headline, Hue, Table
from reports.content.comparison import closing
from reports.content.comparison import page as page_of
from reports.content.comparison.causes import limits
from reports.content.comparison.changed import changed
from reports.content.comparison.difference import (
    delta,
    longest_drawn_ns,
    longest_ns,
    sides,
    waterfall,
)
from reports.content.comparison.moves import moves_of, reach
from reports.content.names import cell_text, hue_of
from reports.content.page import Detail, Head, View
from reports.measures import words_of
from reports.rows import each
from reports.write.html.environment import STYLES, TIMELINE_SCRIPTS, PageMarks, assemble, shared
from reports.write.html.timeline import length, step_words, timelines
from reports.write.lanes import DrawnTimeline
from traces.frozen import frozen
from traces.spelling import chosen, in_ms

_ROOM: Final = 400_000
"""Bytes for each side's timeline: both and the rest stay under 1 MB."""
_WHOLE: Final = "whole"
"""The fold that stands open beside the causes: what stands outside the steps is part of the
answer."""
_LEAST: Final = 0.004
"""Of a chart's width, that a bar has at least, so that it can be seen."""
_MARGIN: Final = 0.06
"""Of the length of an interval with zero, left free at either end."""


@frozen
class WaterfallBar:
    """A row of the waterfall: what the table has of it, and where its bar is drawn, as SVG lengths.

    `before`, `after`: where the sum stood and stands, for the lines between bars; `after` ends the
    last part.
    """

    name: Cell
    base: str
    new: str
    change: str
    hue: str
    left: str
    width: str
    before: str
    after: str


@frozen
class Waterfall:
    """The parts, their sum, and where zero is, which is the step of base."""

    title: str
    parts: tuple[WaterfallBar, ...]
    total: WaterfallBar
    zero: str


@frozen
class Interval:
    """The change of a step between the ends of its interval, on an axis with zero, as SVG
    lengths.
    """

    zero: str
    low: str
    width: str
    at: str
    anchor: str
    label: str


@frozen
class Strip:
    """One side's step in pieces of one colour: hue, begin, width and what is said of each."""

    name: str
    length: str
    pieces: tuple[tuple[str, str, str, str], ...]


def write_comparison_html(compared: Compared, view: View, head: Head) -> str:
    page = head.over(page_of(compared, Detail.FULL))
    (headline,), folds = page.of_kind(Headline), page.of_kind(Fold)
    around = [*changed(compared, everything=True), *closing(compared)]
    beside = [*limits(compared, everything=True)]
    drawn = None
    if compared.verdict != "not_comparable":
        around[1:1] = beside
        beside = [*waterfall(compared)]
        for block in beside:
            if isinstance(block, Table) and not drawn:
                drawn = waterfall_of(compared, block)
    above = (headline, *beside, *around, *folds)
    why = [block for block in page.blocks if block not in above]
    for fold in folds:  # all that was recorded, as a table that is seen at once
        if fold.id == _WHOLE:
            why += (
                replace(part, title=fold.title) for part in fold.blocks if isinstance(part, Table)
            )
    strips, hues = strips_of(compared), set()
    for strip in strips:
        for hue, *_ in strip.pieces:
            hues.add(hue)
    shown, axis = [], {"axis_ns": longest_drawn_ns(compared)}
    for name, side in sides(compared).items():
        timeline = side.timeline
        if timeline.lanes and view.timelines:
            stretch = DrawnTimeline(name, f"{name}: {step_words(timeline)}", timeline, timeline)
            figure = timelines([stretch], {}, {}, _ROOM, f"timeline-{name}")
            shown.append(replace(figure, data={**figure.data, **axis}, linked="both"))
    content = {
        **shared(PageMarks(view), page),
        "headline": headline,
        "interval": interval_of(compared),
        "waterfall": drawn,
        "beside": [] if drawn else beside,
        "strips": strips,
        "hues": {hue: name for hue, name in words_of("hue").items() if hue in hues},
        "why": why,
        "around": around,
        "folds": [behind for behind in folds if behind.id != _WHOLE],
        "timelines": shown,
    }
    return assemble("comparison.html.j2", content, TIMELINE_SCRIPTS, (*STYLES, "comparison.css"))


def interval_of(compared: Compared) -> Interval | None:
    """None without an interval."""
    size = compared.size
    if size.ends_ns is None:
        return None
    low_ns, high_ns = size.ends_ns
    least, most = min(0, low_ns, size.delta_ns), max(0, high_ns, size.delta_ns)
    room = (most - least) * _MARGIN or 1.0

    def at(time_ns: float) -> float:
        return (time_ns - least + room) / (most - least + 2 * room)

    zero, anchor = at(0), "middle"
    if zero < 0.25:
        anchor = "start"
    elif zero > 0.75:
        anchor = "end"
    width = length(max(_LEAST, at(high_ns) - at(low_ns)))
    level = chosen(size.level_frac or 0)
    label = f"{level} interval {delta(low_ns)} to {delta(high_ns)} ms beside zero"
    return Interval(
        length(zero), length(at(low_ns)), width, length(at(size.delta_ns)), anchor, label
    )


def waterfall_of(compared: Compared, table: Table) -> Waterfall:
    """The table's rows as bars; the last holds all parts that are left out."""
    moves = moves_of(compared, len(table.rows) - 1)
    least, most = reach(moves)
    whole = (most - least) or 1

    def at(time_ns: float) -> float:
        return (time_ns - least) / whole * (1 - _LEAST)

    bars = []
    for row, move in zip(filter(None, (*table.rows, table.total)), moves, strict=True):
        left, right = sorted((at(move.from_ns), at(move.to_ns)))
        base, new, change = map(cell_text, row.cells[1:])
        drawn = length(left), length(max(_LEAST, right - left)), length(at(move.from_ns))
        bars.append(
            WaterfallBar(
                row.cells[0], base, new, change, move.hue.value, *drawn, length(at(move.to_ns))
            )
        )
    return Waterfall(table.title, tuple(bars[:-1]), bars[-1], length(at(0)))


def strips_of(compared: Compared) -> list[Strip]:
    """Both steps by colour, on the axis of the longer one."""
    whole_ns = longest_ns(compared)
    rows = (*compared.base.budget_rows, *compared.new.budget_rows)
    order, strips = dict.fromkeys(map(hue_of, each(rows, "row"))), []
    for name, side in sides(compared).items():
        pieces, left_ns, times_ns = [], 0, Counter[Hue]()
        for row in side.budget_rows:
            times_ns[hue_of(row.row)] += row.mean_ns
        for hue in order:
            if (time_ns := times_ns[hue]) > 0:
                title = f"{words_of('hue')[hue]}: {in_ms(time_ns)}"
                drawn = length(left_ns / whole_ns), length(time_ns / whole_ns)
                pieces.append((hue.value, *drawn, title))
                left_ns += time_ns
        strips.append(Strip(name, in_ms(side.step_ns), tuple(pieces)))
    return strips
