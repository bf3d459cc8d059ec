"""The page of a comparison: its blocks, and one step of each side on one axis."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from heuristics.result.compared import Compared
from reports.content.blocks import Block, Detail, Fold, Headline, Table, View
from reports.content.comparison import page as page_of
from reports.write.html.environment import STYLES, TIMELINE_SCRIPTS, Marks, assemble, shared
from reports.write.html.timeline import Shown, step_words, timelines
from reports.write.lanes import Stretch

_ROOM: Final = 400_000
"""Bytes for each side's timeline: both and the rest stay under 1 MB."""


def write_comparison_html(compared: Compared, view: View) -> str:
    page = page_of(compared, Detail.FULL)
    headline = next((block for block in page.blocks if isinstance(block, Headline)), None)
    beside = next((block for block in page.blocks if isinstance(block, Table)), None)
    folds = tuple(block for block in page.blocks if isinstance(block, Fold))
    above: tuple[Block | None, ...] = (headline, beside, *folds)
    content = {
        **shared(Marks(view), page),
        "headline": headline,
        "beside": beside,
        "said": [block for block in page.blocks if block not in above],
        "folds": folds,
        "timelines": list(_timelines(compared)),
    }
    return assemble("comparison.html.j2", content, TIMELINE_SCRIPTS, STYLES)


def _timelines(compared: Compared) -> Iterator[Shown]:
    sides = (("base", compared.base.timeline), ("new", compared.new.timeline))
    longest_ns = max(one.end_ns - one.start_ns for _, one in sides)
    for name, timeline in sides:
        if timeline.lanes:
            stretch = Stretch(name, f"{name}: {step_words(timeline)}", timeline, timeline)
            drawn = timelines([stretch], {}, {}, _ROOM, f"timeline-{name}")
            yield replace(drawn, data={**drawn.data, "axis_ns": longest_ns}, linked="both")
