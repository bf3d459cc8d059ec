"""A page of blocks as an HTML file; the page of an analysis with its walls, its ticks and its timelines.

At its top: what can be saved at most, how sure that is, and the walls as cards.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from msgspec import UNSET

from heuristics.result.result import Merged, Result, index_of
from reports.content.analysis import (
    RANKS,
    layout_changes,
    rank_parts,
    top_kernels,
    unknown_kernels,
    warnings,
)
from reports.content.analysis.afterwards import next_command
from reports.content.analysis.called import called, short_name
from reports.content.analysis.hang import hang_lines, leading_hang, witness_part
from reports.content.analysis.headline import facts, headline, leading, title
from reports.content.analysis.memory_snapshot import snapshot_part
from reports.content.analysis.plan import plan, whole_plan
from reports.content.analysis.recording import recording
from reports.content.analysis.run import merged_name, ranks_part, run_lines
from reports.content.analysis.run import page as run_page
from reports.content.analysis.times import scale_of, telling_rank
from reports.content.analysis.walls import evidence, savings, step_bar
from reports.content.blocks import PLAIN, Block, Detail, Fold, Head, Items, Page, Part, Plan, View
from reports.content.names import plain
from reports.write.html.environment import SCRIPTS, STYLES, TIMELINE_SCRIPTS, Marks, assemble, shared
from reports.write.html.icicle import icicle_of
from reports.write.html.ranks import heat_of, pair_of, step_maps_of
from reports.write.html.timeline import Shown, WallOf, grids_of, stretches, timelines
from traces.missing import known
from traces.sections.rank import Rank
from traces.spelling import percent, saving


def hero_of(result: Result) -> tuple[str, str, str]:
    """The large figure, what it is of, and the confidence; empty where it is not known.

    Of the repair of a late rank where that leads, else of the verdict's wall, else of the largest; no figure
    where what is not known could be larger.
    """
    costs = {wall.id: cost for wall in result.walls if (cost := known(wall.cost_frac)) is not None}
    decided, confidence = known(result.verdict.wall), known(result.verdict.confidence) or ""
    repaired = known(result.run.without) if result.run is not UNSET and leading(result) else None
    if repaired is not None:
        return percent(repaired.saved_frac), "of the step is saved by the repair (replayed)", confidence
    all_judged = len(costs) == len(result.walls)
    most = costs[decided] if decided in costs else max(costs.values(), default=0) if all_judged else 0
    whole = scale_of(telling_rank(result)).whole
    whole += " without start-up" if result.verdict.startup_ns else ""
    return saving(None, most) if most else "", f"of the {whole} could be saved", confidence


_ROOM: Final = 1_000_000
"""Bytes of a page at most."""
_LEAST: Final = 40_000
"""Bytes for the timelines, however much else there is."""
_TABS: Final = {
    "summary": "Summary",
    "timeline": "Timeline",
    "kernels": "Kernels",
    "moe": "MoE layers",
    "ranks": "Ranks",
    "recording": "Recording",
}
_OF_PART: Final = {
    "kernels": "kernels",
    "rates": "kernels",
    "sms": "kernels",
    "moe": "moe",
    "recording": "recording",
    "ranks": "ranks",
    "witness": "ranks",
}
"""The tab of a part of a rank; all others are folds of the summary."""
_ROWS: Final = {"exposed_comm": "comm", "exposed_copy": "copy"}
"""Rows of the ledger, and what a timeline calls the same kernels."""
Replayed = list[tuple[list[str], float | None, float, str]]
"""Ids of changes, what they save at least and at most as shares of the step, and that in words."""


Tab = tuple[str, str, list[Block]]
"""Its anchor, its title, what stands in it."""


def write_html(page: Page, view: View) -> str:
    return assemble("base.html.j2", shared(Marks(view), page), SCRIPTS, STYLES)


def write_analysis_html(result: Result, view: View, head: Head = PLAIN) -> str:
    """The page of one run, with everything that there is of it.

    It asks for nothing, and without JavaScript only the drawing of the timeline is missing. It stays under
    1 MB: the timelines take what room the rest leaves.
    """
    rank, steps, whole = telling_rank(result), plan(result, None), whole_plan(result).blocks
    more_of = {step.id: step.notes for one in whole if isinstance(one, Plan) for step in one.steps}
    places = [plain(short_name(result, place)) for place in range(len(result.ranks))]
    page = head.over(Page(title(result), facts(result), (), Detail.FULL))
    analysis = {
        "headline": headline(result),
        "bar": step_bar(result, rank),
        "hero": hero_of(result),
        "walls": savings(result),
        "worst": known(result.verdict.wall),
        "tabs": _tabs(result, rank, steps, [block for block in whole if isinstance(block, Items)]),
        "replayed": _replayed(result, steps),
        "heat": None if result.run is UNSET else heat_of(result.run, places.__getitem__),
        "steps": None if result.run is UNSET else step_maps_of(result.run, places.__getitem__),
        "pair": pair_of(result),
        "icicle": icicle_of(rank),
    }

    def written(timeline: Shown | None) -> str:
        content = {**analysis, **shared(Marks(view, more_of), page), "timeline": timeline}
        return assemble("analysis.html.j2", content, TIMELINE_SCRIPTS, STYLES)

    found = stretches(result.ranks, lambda one: places[index_of(result, one)]) if view.timelines else ()
    if not found:
        return written(None)
    room = max(_LEAST, _ROOM - len(written(Shown("timeline", "", {}, ())).encode()))
    return written(timelines(found, walls_of(result.ranks), grids_of(result.ranks), room))


def write_run_html(merged: Merged, view: View, head: Head = PLAIN) -> str:
    """The page of a run that was put together: who is late, every rank as a column, and each by step."""
    page, places = head.over(run_page(merged)), range(len(merged.run.ranks))
    names = [plain(merged_name(merged, place)) for place in places]
    first, *others = page.blocks
    before = [one for one in others if not isinstance(one, Part)]
    content = {
        "headline": first,
        "before": before,
        "blocks": [one for one in others if isinstance(one, Part)],
        "heat": heat_of(merged.run, names.__getitem__),
        "steps": step_maps_of(merged.run, names.__getitem__),
        **shared(Marks(view), page),
    }
    return assemble("run.html.j2", content, SCRIPTS, STYLES)


def walls_of(ranks: Sequence[Rank]) -> WallOf:
    walls: dict[str, str] = {}
    for rank in ranks:
        for row in known(rank.ledger) or ():
            group, _, name = row.row.partition(".")
            if (wall := known(row.wall)) is not None and row.group != "moe":
                walls[f"{_ROWS.get(group, group)}.{name}"] = wall
    return walls


def _tabs(result: Result, rank: Rank, steps: Plan, beside: Sequence[Items]) -> list[Tab]:
    """`beside`: what was refused, and what the guides choose."""
    top, together = top_kernels(rank), ranks_part(result)
    found: dict[str, list[Block]] = {id: [] for id in _TABS}
    hangs = hang_lines(result, leading_hang(result) is not None)
    found["summary"] += (*hangs, *warnings(result), *run_lines(result), steps)
    found["summary"] += (Fold(one.title, (replace(one, title=""),)) for one in beside)
    found["summary"] += (next_command(result), _folded(evidence(result)))
    found["kernels"] += (*([top] if top else ()), *unknown_kernels(result), *layout_changes(result))
    measured = sorted(rank_parts(result, rank), key=lambda part: part.id != "kernels")
    for part in (
        *measured,
        *([together] if together else ()),
        *witness_part(result.witness),
        *snapshot_part(result),
        recording(result),
    ):
        tab = _OF_PART.get(part.id, "summary")
        found[tab].append(_folded(part) if tab == "summary" else part)
    found["summary"] += _other_ranks(result, rank)
    return [(id, title, found[id]) for id, title in _TABS.items()]


def _folded(part: Part, place: str = "") -> Fold:
    return Fold(part.title, part.blocks, f"{part.id}{place}")


def _other_ranks(result: Result, rank: Rank) -> Iterator[Fold]:
    others = [one for one in result.ranks if one is not rank]
    for place, one in enumerate(others[: RANKS - 1], 1):
        parts = tuple(_folded(part, f"-{place}") for part in rank_parts(result, one))
        yield Fold(f"All of {called(result, one)}", parts, f"rank-{place}")


def _replayed(result: Result, steps: Plan) -> Replayed:
    alone = [(step.id, step.low, step.high) for step in steps.steps if step.replayed]
    found: Replayed = [([id], low, high, saving(low, high)) for id, low, high in alone if high is not None]
    return found + [([*one.ids], *one.gain_frac, saving(*one.gain_frac)) for one in result.combined]
