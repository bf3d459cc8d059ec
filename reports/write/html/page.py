"""A page of blocks as an HTML file; the page of an analysis with its walls, its ticks and its timelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from heuristics.result.rank import Rank
from heuristics.result.result import Result
from heuristics.result.told import known
from reports.content.analysis.scale import who
from reports.content.blocks import Bar, Block, Headline, Page, Part, Plan, View
from reports.content.quantities import saving
from reports.write.html.environment import assemble
from reports.write.html.hero import cards_of, hero_of, walls_table
from reports.write.html.marks import Marks
from reports.write.html.timeline import Shown, WallOf, grids_of, stretches, timelines

B = TypeVar("B", bound=Block)

_STYLES: Final = ("page.css", "blocks.css", "analysis.css")
_SCRIPTS: Final = ("page.js",)
_ANALYSIS_SCRIPTS: Final = ("page.js", "plan.js", "timeline_draw.js", "timeline.js")
_TABS: Final = {
    "summary": "Summary",
    "timeline": "Timeline",
    "kernels": "Kernels",
    "moe": "MoE layers",
    "recording": "Recording",
}
_OF_PART: Final[Mapping[str, str]] = {"kernels": "kernels", "moe": "moe", "recording": "recording"}
"""The tab of a part; all others are in the summary."""
_ROWS: Final = {"exposed_comm": "comm", "exposed_copy": "copy"}
"""Rows of the ledger, and what a timeline calls the same kernels."""


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab: its anchor, its title, what stands in it."""

    id: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Tabs:
    """The tabs that hold something; `timeline`: whether there is one."""

    shown: tuple[Tab, ...]
    timeline: bool


def write_html(page: Page, view: View) -> str:
    """Any page of blocks, one below the other."""
    marks = Marks(view)
    return assemble("base.html.j2", _content(marks, page), _SCRIPTS, _STYLES)


def write_analysis_html(result: Result, page: Page, view: View) -> str:
    """The page of one run: `page` holds what is said; walls, ticks and timelines come from `result`.

    It asks for nothing, and without JavaScript only the drawing of the timeline is missing. It stays under
    1 MB: the timelines take what room the rest leaves.
    """
    empty = Shown("timeline", "", {}, ())
    found = stretches(result.ranks, who)
    if not found:
        return _analysis(result, page, view, None)
    size = len(_analysis(result, page, view, empty).encode())
    return _analysis(
        result, page, view, timelines(found, walls_of(result.ranks), grids_of(result.ranks), size)
    )


def walls_of(ranks: Sequence[Rank]) -> WallOf:
    """The wall of each key of a timeline, as the ledgers have it."""
    walls: dict[str, str] = {}
    for rank in ranks:
        for row in known(rank.ledger) or ():
            group, _, name = row.row.partition(".")
            if (wall := known(row.wall)) is not None and row.group != "moe":
                walls[f"{_ROWS.get(group, group)}.{name}"] = wall
    return walls


def _analysis(result: Result, page: Page, view: View, timeline: Shown | None) -> str:
    marks = Marks(view)
    headline, bar, walls = _first(page, Headline), _first(page, Bar), walls_table(page)
    rest = tuple(block for block in page.blocks if block not in (headline, bar, walls))
    content = {
        **_content(marks, page),
        "headline": headline,
        "bar": bar,
        "hero": hero_of(result),
        "walls": cards_of(walls, known(result.verdict.wall)) if walls else [],
        "walls_title": walls.title if walls else "",
        "tabs": _tabs(rest, timeline),
        "timeline": timeline,
        "replayed": _replayed(result, page),
    }
    return assemble("analysis.html.j2", content, _ANALYSIS_SCRIPTS, _STYLES)


def _replayed(result: Result, page: Page) -> list[tuple[list[str], float | None, float, str]]:
    """What single changes and sets of them win, as far as they were replayed: ids, low, high, in words."""
    plans = [block for block in page.blocks if isinstance(block, Plan)]
    alone = [(step.id, step.low, step.high) for plan in plans for step in plan.steps]
    found = [([id], low, high, saving(low, high)) for id, low, high in alone if high is not None]
    return found + [([*one.ids], *one.gain_frac, saving(*one.gain_frac)) for one in result.combined]


def _content(marks: Marks, page: Page) -> dict[str, object]:
    return {"page": page, "show": marks.show, "said": marks.said, "glossary": lambda: marks.glossary}


def _first(page: Page, kind: type[B]) -> B | None:
    return next((block for block in page.blocks if isinstance(block, kind)), None)


def _tabs(blocks: Sequence[Block], timeline: Shown | None) -> Tabs:
    within: dict[str, list[Block]] = {tab: [] for tab in _TABS}
    for block in blocks:
        tab = _OF_PART.get(block.id, "summary") if isinstance(block, Part) else "summary"
        within[tab].append(block)
    shown = tuple(
        Tab(id, title, tuple(within[id]))
        for id, title in _TABS.items()
        if within[id] or (id == "timeline" and timeline)
    )
    return Tabs(shown, timeline is not None)
