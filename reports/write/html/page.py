"""A page of blocks as an HTML file; the page of an analysis with its walls, its ticks and its
timelines.

At its top: what can be saved at most, how sure that is, and the walls as cards.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from heuristics.result.result import Merged, Result, index_of
from reports.content.analysis import RANKS, kernel_lines, rank_parts, warnings
from reports.content.analysis.about import facts, title
from reports.content.analysis.afterwards import next_command
from reports.content.analysis.called import called
from reports.content.analysis.hang import hang_lines, witness_part
from reports.content.analysis.headline import headline
from reports.content.analysis.late import leading
from reports.content.analysis.memory_snapshot import snapshot_part
from reports.content.analysis.plan import plan, whole_plan
from reports.content.analysis.recording import recording
from reports.content.analysis.run import merged_text, ranks_part, run_lines
from reports.content.analysis.run import page as run_page
from reports.content.analysis.times import scale_of, telling_rank
from reports.content.analysis.walls import evidence, savings, step_bar
from reports.content.blocks import Block, Fold, Items, Part, Plan
from reports.content.names import optional, when
from reports.content.page import Detail, Head, Page, View
from reports.measures import words_of
from reports.rows import known_of, those
from reports.write.html.environment import (
    SCRIPTS,
    STYLES,
    TIMELINE_SCRIPTS,
    PageMarks,
    assemble,
    shared,
)
from reports.write.html.icicle import icicle_of
from reports.write.html.ranks import heat_of, pair_of, step_maps_of
from reports.write.html.timeline import TimelineFigure, WallOf, grids_of, stretches, timelines
from traces.missing import known
from traces.sections.rank import Rank
from traces.spelling import percent, saving


def hero_of(result: Result) -> tuple[str, str, str]:
    """The large figure, what it is of, and the confidence; empty where it is not known.

    Of the repair of a late rank where that leads, else of the verdict's wall, else of the largest;
    no figure where what is not known could be larger.
    """
    confidence, run = result.verdict.confidence or "", result.run
    if run and leading(result) and (repaired := run.without):
        return (
            percent(repaired.saved_frac),
            "of the step is saved by the repair (replayed)",
            confidence,
        )
    costs = known_of(those(result.walls, id=result.verdict.wall), "cost_frac")
    if not costs and len(every := known_of(result.walls, "cost_frac")) == len(result.walls):
        costs = every
    whole = scale_of(telling_rank(result)).whole
    whole += when(result.verdict.startup_ns, " without start-up")
    figure = optional("{}", max(costs, default=None) or None, partial(saving, None))
    return figure, f"of the {whole} could be saved", confidence


_ROOM: Final = 1_000_000
"""Bytes of a page at most."""
_LEAST: Final = 40_000
"""Bytes for the timelines, however much else there is."""
_ROWS: Final = {"exposed_comm": "comm", "exposed_copy": "copy"}
"""Rows of the ledger, and what a timeline calls the same kernels."""
Tab = tuple[str, str, list[Block]]
"""Its anchor, its title, what stands in it."""


def write_html(page: Page, view: View) -> str:
    return assemble("base.html.j2", shared(PageMarks(view), page), SCRIPTS, STYLES)


def write_analysis_html(result: Result, view: View, head: Head) -> str:
    """The page of one run, with everything that there is of it.

    It asks for nothing, and without JavaScript only the drawing of the timeline is missing. It
    stays under 1 MB: the timelines take what room the rest leaves.
    """
    rank, steps, whole = telling_rank(result), plan(result, None), whole_plan(result).blocks
    more_of, refused = {}, []
    for block in whole:
        if isinstance(block, Plan):
            for step in block.steps:
                more_of[step.id] = step.notes
        elif isinstance(block, Items):
            refused.append(block)
    places = [*map(partial(called, result), result.ranks)]
    page = head.over(Page(title(result), facts(result), (), Detail.FULL))
    run, replayed = known(result.run), []  # ids of changes; what they save; that in words
    for step in steps.steps:
        if step.replayed and step.high is not None:
            replayed.append(([step.id], step.low, step.high, saving(step.low, step.high)))
    for together in result.combined:
        replayed.append(([*together.ids], *together.gain_frac, saving(*together.gain_frac)))
    analysis = {
        "headline": headline(result),
        "bar": step_bar(result, rank),
        "hero": hero_of(result),
        "walls": savings(result),
        "worst": known(result.verdict.wall),
        "tabs": _tabs(result, rank, steps, refused),
        "replayed": replayed,
        "heat": run and heat_of(run, places.__getitem__),
        "steps": run and step_maps_of(run, places.__getitem__),
        "pair": pair_of(result),
        "icicle": icicle_of(rank),
    }

    def written(timeline: TimelineFigure | None) -> str:
        content = {**analysis, **shared(PageMarks(view, more_of), page), "timeline": timeline}
        return assemble("analysis.html.j2", content, TIMELINE_SCRIPTS, STYLES)

    drawn = (
        stretches(result.ranks, lambda other: places[index_of(result, other)])
        if view.timelines
        else ()
    )
    if not drawn:
        return written(None)
    room = max(_LEAST, _ROOM - len(written(TimelineFigure("timeline", "", {}, ())).encode()))
    return written(timelines(drawn, walls_of(result.ranks), grids_of(result.ranks), room))


def write_run_html(merged: Merged, view: View, head: Head) -> str:
    """The page of a run that was put together: who is late, every rank as a column, and each by
    step.
    """
    page, name = head.over(run_page(merged)), partial(merged_text, merged)
    first, *others = page.blocks
    content = {
        "headline": first,
        "before": [block for block in others if not isinstance(block, Part)],
        "blocks": page.of_kind(Part),
        "heat": heat_of(merged.run, name),
        "steps": step_maps_of(merged.run, name),
        **shared(PageMarks(view), page),
    }
    return assemble("run.html.j2", content, SCRIPTS, STYLES)


def walls_of(ranks: Sequence[Rank]) -> WallOf:
    walls = {}
    for rank in ranks:
        for row in rank.ledger or ():
            group, _, name = row.row.partition(".")
            if (wall := row.wall) and row.group != "moe":
                walls[f"{_ROWS.get(group, group)}.{name}"] = wall
    return walls


def _tabs(result: Result, rank: Rank, steps: Plan, beside: Sequence[Items]) -> list[Tab]:
    """`beside`: what was refused, and what the guides choose."""
    tabs = defaultdict[str, list[Block]](list)
    tabs["summary"] += (*hang_lines(result), *warnings(result), *run_lines(result), steps)
    for block in beside:
        tabs["summary"].append(Fold(block.title, (replace(block, title=""),)))
    tabs["summary"] += (next_command(result), _folded(evidence(result)))
    tabs["kernels"] += kernel_lines(result)
    parts = sorted(rank_parts(result, rank), key=lambda part: part.id != "kernels")
    parts += (*ranks_part(result), *witness_part(result), *snapshot_part(result), recording(result))
    for part in parts:
        tab = words_of("tab_of_part").get(part.id, "summary")
        tabs[tab].append(_folded(part) if tab == "summary" else part)
    others = [rank_shown for rank_shown in result.ranks if rank_shown is not rank]
    # the rank of the other tabs is one of `RANKS`
    for place, other in enumerate(others[: RANKS - 1], 1):
        inner = tuple(_folded(part, f"-{place}") for part in rank_parts(result, other))
        tabs["summary"].append(Fold(f"All of {called(result, other)}", inner, f"rank-{place}"))
    return [(id, title, tabs[id]) for id, title in words_of("tab").items()]


def _folded(part: Part, place: str = "") -> Fold:
    return Fold(part.title, part.blocks, f"{part.id}{place}")
