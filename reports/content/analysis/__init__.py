"""The page of one analysed run: the first screen with its end, and everything behind it.

The first screen ends with kernels, unknown ones, warnings, where to read more and what to type
next.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from heuristics.result.result import Result
from reports.content.analysis.about import facts, title
from reports.content.analysis.afterwards import next_command
from reports.content.analysis.called import called
from reports.content.analysis.find_out import STEPS
from reports.content.analysis.gpu import kernel_blocks, memory, sm_blocks
from reports.content.analysis.hang import hang_lines, witness_part
from reports.content.analysis.headline import headline
from reports.content.analysis.memory_snapshot import snapshot_part
from reports.content.analysis.moe import communication, moe
from reports.content.analysis.plan import plan, whole_plan
from reports.content.analysis.rates import rates
from reports.content.analysis.recording import recording
from reports.content.analysis.run import ranks_part, run_lines
from reports.content.analysis.step import budget, lost_time, outside, step_blocks
from reports.content.analysis.times import telling_rank
from reports.content.analysis.walls import evidence, savings, step_bar
from reports.content.blocks import Block, Blocks, Part, Sentence, Term, Tone, words
from reports.content.check_numbers import configuration_parts
from reports.content.incidents import logged_incidents, met_incidents
from reports.content.legal import condition_line
from reports.content.names import (
    WHOLE_NAME,
    beyond,
    joined,
    kernel_code,
    kernel_name,
    names_apart,
    short_code,
    statement,
    titled,
    when,
)
from reports.content.page import SCREEN, Detail, Page
from reports.result.left_out import left_out
from reports.rows import each, those
from traces.missing import known
from traces.sections.rank import Rank
from traces.spelling import percent, printable

_TOP: Final = 3
_WORTH: Final = 0.01
_STEP: Final = 8
"""Rows of a taller terminal for one more step of the plan, with its settings and conditions."""


def kernel_lines(result: Result) -> Blocks:
    """The kernels with the most work of a rank, those that nothing names, and changes of layout."""
    rank = telling_rank(result)
    window_ns, by_name = rank.budget_ns.window, Counter[tuple[str, str]]()
    recorded = dict[str, str]()
    for row in rank.kernel_table.rows:
        name = kernel_name(row.name, WHOLE_NAME)
        recorded.setdefault(name, row.name)
        by_name[name, row.key] += row.work_ns
    top = by_name.most_common(_TOP)
    short = names_apart([name for (name, _), _ in top])
    costly = [
        words(
            short_code(printable(recorded[name], WHOLE_NAME), short[name]),
            f" {percent(work_ns / window_ns)} (",
            Term(key),
            ")",
        )
        for (name, key), work_ns in top
        if work_ns >= _WORTH * window_ns
    ]
    if costly:
        yield Sentence(joined(costly, "; "), "Top kernels")
    unnamed = chain.from_iterable(each(result.ranks, "unknown_kernels"))
    if unknown := those(unnamed, finding=True):
        largest = max(unknown, key=lambda kernel: kernel.frac)
        share = f" {percent(largest.frac)}{beyond(len({*each(unknown, 'name')}), 1)}"
        purpose = "probably communication" if largest.probably_communication else "purpose unknown"
        sentence = words(kernel_code(largest.name), f"{share}: counted as compute, {purpose}.")
        yield Sentence(sentence, "Unknown kernel", Tone.NOTICE)
    layouts = "tensors go from NCHW to NHWC and back. Channels last throughout avoids it [CMP-10]."
    of_what = "of the rest" if result.verdict.startup_ns else "of the time"
    for wall in result.walls:
        for layout_share in those(wall.evidence, measure="layout_frac"):
            share = f"{percent(layout_share.value)} {of_what}: "
            yield statement(share + layouts, "Layout changes", Tone.NOTICE)


def warnings(result: Result) -> Blocks:
    """The first warning that no other line holds already, and how many more there are."""
    elsewhere = left_out(result.run)
    unsaid = [warning for warning in result.warnings if warning not in elsewhere]
    # a start-up recording warns of that first, and its headline says it
    if unsaid and not result.verdict.startup_ns:
        more = when(len(unsaid) > 1, f" (first of {len(unsaid)})")
        yield statement(f"{unsaid[0]}.{more}", "Warning", Tone.NOTICE)


RANKS: Final = 8
"""Ranks whose details a page shows at most; the rest are in the JSON document."""


def page(result: Result, detail: Detail, rows: int = SCREEN) -> Page:
    rank, what_to_do = telling_rank(result), plan(result, STEPS + max(0, rows - SCREEN) // _STEP)
    if detail is Detail.FULL and (left := what_to_do.left_out):
        together = words(what_to_do.together, f" {left} more at the end: The whole plan.")
        what_to_do = replace(what_to_do, together=together, left_out=0)
    costs: tuple[Block, ...] = (step_bar(result, rank), savings(result))
    if what_to_do.steps:
        middle = (*run_lines(result), *costs, what_to_do)
    else:
        middle = (what_to_do, *costs, *run_lines(result))
    blocks = (
        headline(result),
        *hang_lines(result),
        *warnings(result),
        *logged_incidents(result),
        *middle,
        *condition_line(result),
        *met_incidents(result),
        *outside(rank),
        *kernel_lines(result),
        next_command(result),
    )
    head = title(result), facts(result)
    if detail is Detail.FIRST:
        planned = result.framework == "megatron" and (result.fixes or result.levers)
        unchecked = planned and not result.configuration
        more = f"--full | -o page.html{when(unchecked, ' | --config FILE checks flags')}"
        return Page(*head, blocks, detail, more)
    parts = details(result)
    titles = "; ".join(("The first screen", *each(parts, "title")))
    contents = statement(titles, "Contents", whole=True)
    return Page(*head, (contents, *blocks, *parts), detail)


def details(result: Result) -> tuple[Part, ...]:
    """The plan closes a long page, so that it stands where a terminal ends."""
    telling = telling_rank(result)
    ranks = sorted(result.ranks, key=lambda rank: rank is not telling)[:RANKS]
    parts = [evidence(result), *ranks_part(result), *witness_part(result)]
    parts += snapshot_part(result)
    for place, rank in enumerate(ranks):
        for part in rank_parts(result, rank):
            if len(result.ranks) > 1:
                title, id = f"{part.title}, {called(result, rank)}", f"{part.id}-{place}"
                part = replace(part, title=title, id=id)
            parts.append(part)
    return (*parts, *configuration_parts(result), recording(result), whole_plan(result))


def rank_parts(result: Result, rank: Rank) -> Iterator[Part]:
    yield titled("step", (*step_blocks(rank), budget(rank)))
    yield titled("lost-time", lost_time(rank))
    yield from communication(result, rank)
    yield from moe(rank)
    yield memory(rank)
    yield from rates(rank, known(result.throughput))
    yield titled("sms", sm_blocks(rank))
    yield titled("kernels", kernel_blocks(rank))
