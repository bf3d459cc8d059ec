"""The page of one analysed run: the first screen, and everything behind it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from heuristics.result.result import Result
from reports.content.analysis.closing import (
    layout_changes,
    more,
    next_command,
    top_kernels,
    unknown_kernels,
    warnings,
)
from reports.content.analysis.communication import communication
from reports.content.analysis.costs import savings, step_bar
from reports.content.analysis.evidence import evidence
from reports.content.analysis.headline import facts, headline, title
from reports.content.analysis.kernels import kernels
from reports.content.analysis.lost_time import lost_time
from reports.content.analysis.memory import memory
from reports.content.analysis.moe import moe
from reports.content.analysis.plan import framework_note, plan, whole_plan
from reports.content.analysis.recording import recording
from reports.content.analysis.run import ranks_part, run_lines
from reports.content.analysis.scale import telling_rank
from reports.content.analysis.sms import sms
from reports.content.analysis.step import hiccups, outside, step
from reports.content.blocks import Block, Detail, Page, Part
from reports.content.check_parts import configuration_parts
from reports.content.names import who
from traces.sections.rank import Rank

__all__ = ["details", "page", "rank_parts"]

RANKS: Final = 8
"""Ranks whose details a page shows at most; the rest are in the JSON document."""


def page(result: Result, detail: Detail) -> Page:
    """The first screen; with `Detail.FULL` all else after it. Without a step, what to do comes early."""
    rank, what_to_do = telling_rank(result), plan(result)
    costs: tuple[Block | None, ...] = (step_bar(rank), savings(result))
    found: list[Block | None] = [
        headline(result),
        *warnings(result),
        *((*run_lines(result), *costs) if what_to_do.steps else ()),
        what_to_do,
        *(() if what_to_do.steps else (*costs, *run_lines(result))),
        outside(rank),
        hiccups(rank),
        framework_note(result),
        top_kernels(rank),
        *unknown_kernels(result),
        *layout_changes(result),
        next_command(result),
    ]
    blocks = tuple(block for block in found if block is not None)
    if detail is Detail.FIRST:
        return Page(title(result), facts(result), blocks, detail, more(result))
    return Page(title(result), facts(result), (*blocks, *details(result)), detail)


def details(result: Result) -> tuple[Part, ...]:
    """All that is behind the first screen, by subject."""
    telling, several = telling_rank(result), len(result.ranks) > 1
    ranks = sorted(result.ranks, key=lambda rank: rank is not telling)[:RANKS]
    together = ranks_part(result)
    parts = [whole_plan(result), evidence(result), *([together] if together else ())]
    for place, rank in enumerate(ranks):
        for part in rank_parts(result, rank):
            whose = replace(part, title=f"{part.title}, {who(rank)}", id=f"{part.id}-{place}")
            parts.append(whose if several else part)
    return (*parts, *configuration_parts(result), recording(result))


def rank_parts(result: Result, rank: Rank) -> Iterator[Part]:
    """What was measured of one rank, a part a subject."""
    found = (
        step(rank),
        lost_time(rank),
        communication(result, rank),
        moe(rank),
        memory(rank),
        sms(rank),
        kernels(rank),
    )
    yield from (part for part in found if part is not None)
