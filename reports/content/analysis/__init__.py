"""The page of one analysed run: the first screen with its end, and everything behind it.

The first screen ends with kernels, unknown ones, warnings, where to read more and what to type next.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from heuristics.result.result import Result
from reports.content.analysis.afterwards import next_command
from reports.content.analysis.gpu import kernels, memory, sms
from reports.content.analysis.hang import hang_lines, leading_hang, witness_part
from reports.content.analysis.headline import facts, headline, title
from reports.content.analysis.memory_snapshot import snapshot_part
from reports.content.analysis.moe import communication, moe
from reports.content.analysis.plan import framework_note, plan, whole_plan
from reports.content.analysis.rates import rates
from reports.content.analysis.recording import recording
from reports.content.analysis.run import ranks_part, run_lines
from reports.content.analysis.step import hiccups, lost_time, outside, step
from reports.content.analysis.times import telling_rank
from reports.content.analysis.walls import evidence, savings, step_bar
from reports.content.blocks import Block, Code, Detail, Page, Part, Sentence, Tone, words
from reports.content.check_numbers import configuration_parts
from reports.content.incidents import incident_items
from reports.content.names import joined, kernel_name, name_of, who
from reports.result.left_out import left_out
from traces.missing import known
from traces.sections.rank import Rank
from traces.spelling import percent

_TOP: Final = 3
_WORTH: Final = 0.01


def top_kernels(rank: Rank) -> Sentence | None:
    window_ns, by_name = rank.budget_ns.window, Counter[tuple[str, str]]()
    for row in rank.kernel_table.rows:
        by_name[kernel_name(row.name), row.key] += row.work_ns
    named = [
        words(Code(name), f" {percent(work_ns / window_ns)} ({name_of(key)})")
        for (name, key), work_ns in by_name.most_common(_TOP)
        if work_ns >= _WORTH * window_ns
    ]
    return Sentence(joined(named, "; "), "Top kernels") if named else None


def unknown_kernels(result: Result) -> Iterator[Sentence]:
    found = [one for rank in result.ranks for one in rank.unknown_kernels if one.finding]
    if found:
        first = max(found, key=lambda one: one.frac)
        names = {one.name for one in found}
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        said = f" {percent(first.frac)}{more}: counted as compute, purpose unknown."
        yield Sentence(words(Code(kernel_name(first.name)), said), "Unknown kernel", Tone.NOTICE)


def layout_changes(result: Result) -> Iterator[Sentence]:
    compute = next((wall for wall in result.walls if wall.id == "compute"), None)
    for one in compute.evidence if compute else ():
        if one.measure == "layout_frac":
            said = f"{percent(one.value)} of the time: tensors go from NCHW to NHWC and back. "
            yield Sentence(
                words(said, "Channels last throughout avoids it [CMP-10]."), "Layout changes", Tone.NOTICE
            )


def warnings(result: Result) -> Iterator[Sentence]:
    """The first warning that no other line holds already, and how many more there are."""
    elsewhere = left_out(result.run)
    found = [one for one in result.warnings if one not in elsewhere]
    if found and not result.verdict.startup_ns:
        more = f" (first of {len(found)})" if len(found) > 1 else ""
        yield Sentence(words(f"{found[0]}.{more}"), "Warning", Tone.NOTICE)


def more(result: Result) -> str:
    planned = bool(result.fixes or result.levers)
    unchecked = planned and result.framework == "megatron" and known(result.configuration) is None
    checks = " | --config FILE checks flags" if unchecked else ""
    return f"--full | -o page.html{checks}"


__all__ = ["details", "page", "rank_parts"]

RANKS: Final = 8
"""Ranks whose details a page shows at most; the rest are in the JSON document."""


def page(result: Result, detail: Detail) -> Page:
    rank, what_to_do = telling_rank(result), plan(result)
    costs: tuple[Block | None, ...] = (step_bar(result, rank), savings(result))
    found: list[Block | None] = [
        headline(result),
        *hang_lines(result, leading_hang(result) is not None),
        *warnings(result),
        *incident_items(result, Detail.FIRST, most=1),
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
    telling, several = telling_rank(result), len(result.ranks) > 1
    ranks = sorted(result.ranks, key=lambda rank: rank is not telling)[:RANKS]
    together = ranks_part(result)
    parts = [
        whole_plan(result),
        evidence(result),
        *([together] if together else ()),
        *witness_part(result.witness),
        *snapshot_part(result),
    ]
    for place, rank in enumerate(ranks):
        for part in rank_parts(result, rank):
            whose = replace(part, title=f"{part.title}, {who(rank)}", id=f"{part.id}-{place}")
            parts.append(whose if several else part)
    return (*parts, *configuration_parts(result), recording(result))


def rank_parts(result: Result, rank: Rank) -> Iterator[Part]:
    found = (
        step(rank),
        lost_time(rank),
        communication(result, rank),
        moe(rank),
        memory(rank),
        rates(rank, known(result.throughput)),
        sms(rank),
        kernels(rank),
    )
    yield from (part for part in found if part is not None)
