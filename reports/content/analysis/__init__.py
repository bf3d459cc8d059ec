"""The page of one analysed run: the first screen, and everything behind it."""

from __future__ import annotations

from heuristics.result.result import Result
from reports.content.analysis.closing import more, next_command, top_kernels, unknown_kernels, warnings
from reports.content.analysis.costs import group_line, savings, step_bar
from reports.content.analysis.headline import facts, headline, title
from reports.content.analysis.plan import plan
from reports.content.analysis.scale import telling_rank
from reports.content.blocks import Block, Detail, Page

__all__ = ["page"]


def page(result: Result, detail: Detail) -> Page:
    """The first screen; with `Detail.FULL` everything else after it."""
    rank = telling_rank(result)
    found: list[Block | None] = [
        headline(result),
        *warnings(result),
        group_line(result),
        step_bar(result, rank),
        savings(result),
        plan(result),
        top_kernels(rank),
        *unknown_kernels(result),
        next_command(result),
    ]
    blocks = tuple(block for block in found if block is not None)
    return Page(title(result), facts(result), blocks, detail, more(result))
