"""The page of `plan`: layouts that fit, in the order to try them, and what is not known of them."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from heuristics.result.layouts import Layouts, PlannedLayout
from reports.content.blocks import (
    Block,
    BlockRow,
    Blocks,
    Code,
    CodeBlock,
    Command,
    Headline,
    Part,
    Table,
    Tone,
    items,
    row,
    words,
)
from reports.content.check_numbers import memory_parts, memory_table
from reports.content.names import beyond, capital, optional, statement, told, when
from reports.content.normal import normal_details, normal_lines
from reports.content.page import Detail, Page
from reports.content.tables import shaped
from reports.redaction import redaction_words
from reports.rows import each
from traces.sizes.memory import MemoryEstimate
from traces.spelling import billions, counted, gigabytes, percent

_FIRST: Final = 6
"""Layouts on the first screen."""
_FEW: Final = 3
"""Of what is assumed and not known there."""
_OWN: Final = " (the configuration's own)"
_NUMBERS: Final = (1, 2, 3, 4, 5, 6, 9)


def page(plan: Layouts, detail: Detail) -> Page:
    """The first screen; with `Detail.FULL` every layout with its costs, memory and lines."""
    everything = detail is Detail.FULL
    blocks: list[Block] = [_headline(plan)]
    for warning in plan.warnings:
        blocks.append(statement(f"{capital(warning)}.", "Note", Tone.NOTICE))
    if plan.layouts:
        first = plan.layouts[0]
        blocks.append(_table(plan, everything))
        if plan.counted.fit and not everything:  # the whole is in the parts of a long page
            memory_text = told(first.memory, _memory_words)
            blocks += (*items("Why 1", first.because), statement(memory_text, "Memory"))
            blocks += lines_of(first)
        blocks += normal_lines(plan.normal)
    most = None if everything else _FEW
    blocks += (*items("Assumed", plan.assumed[:most]), *items("Not known", plan.unknown[:most]))
    if everything:
        sources = dict[str, None]()
        for near in chain.from_iterable(each(plan.layouts, "nearest")):
            sources.setdefault(f"{near.text}, {near.layout}: {near.source}")
        blocks += (*normal_details(plan.normal), *map(_layout, plan.layouts))
        blocks += items("Sources of the published layouts", sources)
        blocks.append(statement(redaction_words(plan.redacted)))
    elif plan.layouts:
        blocks.append(
            Command("Why this order, every layout with its lines:", f"{plan.command} --full")
        )
    more = "--full: every layout, its memory and lines | -f json | page: -o out.html"
    parameters = (
        f"{billions(plan.parameters_count)} billion parameters, "
        f"{billions(plan.active_count)} active"
    )
    size = gigabytes(plan.capacity_bytes)
    run = f"{plan.gpus:,} {plan.gpu} of {size}, NVLink domain {plan.nvlink_domain}"
    batch = (
        f"global batch {plan.global_batch:,} x {plan.seq_length:,} tokens, {plan.precision.upper()}"
    )
    facts = words(f"{parameters}; {run}; {batch}")
    return Page(words(Code(plan.about)), facts, tuple(blocks), detail, when(not everything, more))


def _headline(plan: Layouts) -> Headline:
    counts = plan.counted
    room = "More GPUs, or offload of activations and optimizer state (MEM-6, MEM-7), make room."
    large = when(counts.too_large, f", {counts.too_large:,} are too large")
    refused = when(counts.refused, f", {counts.refused:,} are refused")
    counted_text = f"{counts.divide:,} layouts divide{large}{refused}, {counts.fit:,} fit."
    if not counts.fit:
        least = optional(": the least that one needs is {}", plan.least_bytes or None, gigabytes)
        none_fits = f"none of {counted(counts.divide, 'layout')} that divide fits{least}"
        why = words(f"{counted_text} {when(counts.too_large, room)}")
        return Headline("NO LAYOUT FITS", words(none_fits), Tone.BAD, (why,))
    first = plan.layouts[0]
    none_fits = f"{layout_words(first)}, micro-batch {first.micro_batch}{when(first.own, _OWN)}"
    what = ", ".join(first.recompute_modules) or "whole layers"
    recompute = "Nothing is recomputed." if first.recompute == "none" else f"Recompute: {what}."
    capacity = gigabytes(plan.capacity_bytes)
    memory_text = optional(
        f"{{}} of {capacity}", first.memory, lambda memory: gigabytes(memory.total_bytes)
    )
    under = (
        words(f"{memory_text} by the estimate ({percent(first.filled_frac)}). {recompute}"),
        words(f"{counted_text} Ordered by rules: nothing was run."),
    )
    return Headline("TRY FIRST", words(none_fits), Tone.GOOD, under)


def layout_words(split: PlannedLayout) -> str:
    """The parallel sizes of a layout: `TP 1, PP 4, VPP 4, EP 64`."""
    sizes = {"TP": split.tp, "CP": split.cp, "PP": split.pp, "VPP": split.vpp or 1, "EP": split.ep}
    sizes["ETP"], shown = split.etp, []
    for name, size in sizes.items():
        if size > 1 or name in ("TP", "PP", "EP"):
            shown.append(f"{name} {size}")
    return ", ".join(shown)


def _table(plan: Layouts, everything: bool) -> Table:
    """On a first screen the first ones, and the configuration's own wherever it stands."""
    rows, tight = [], False
    for place, layout in enumerate(plan.layouts):
        if place < _FIRST or layout.own or everything:
            rows.append(_row(layout))
            tight |= layout.room == "tight"
    left_out = len(plan.layouts) - len(rows)
    return shaped("layouts", rows, left_out, full=when(tight, "!: nearly full."))


def _row(layout: PlannedLayout) -> BlockRow:
    recompute = {"none": "-", "full": "whole layers"}.get(layout.recompute)
    if recompute is None:  # the first module, and how many more
        recompute = layout.recompute_modules[0] + beyond(len(layout.recompute_modules), 1, " +{}")
    mark = {"room": "", "tight": " !", "none": " too large"}[layout.room]
    memory_text = optional(
        f"{{}}{mark}", layout.memory, lambda memory: gigabytes(memory.total_bytes)
    )
    sizes = layout.tp, layout.cp, layout.pp, layout.vpp or "-", layout.ep, layout.micro_batch
    name = f"{layout.place}{when(layout.own, ' yours')}{when(layout.broken, ', refused')}"
    cells = (name, *map(str, sizes), recompute, layout.dispatcher, memory_text)
    tone = {"none": Tone.BAD}.get(layout.room, Tone.PLAIN)
    return row(cells, _NUMBERS, tone, f"layout-{layout.place}")


def _memory_words(memory: MemoryEstimate) -> str:
    parts = memory_parts(memory).items()
    part_sizes = ", ".join(f"{name} {gigabytes(size)}" for name, size in parts if size)
    return f"{part_sizes} (pipeline stage {memory.stage}, the fullest)."


def lines_of(layout: PlannedLayout, both: bool = False) -> Blocks:
    """What to type: the environment, flags of Megatron-LM, overrides of Bridge; beside them what no
    line can say.
    """
    knobs = layout.knobs
    if knobs.environment:
        yield CodeBlock(knobs.environment)
    for lines in (knobs.megatron_lm, knobs.megatron_bridge)[: 1 + (both or not knobs.megatron_lm)]:
        aside = tuple(line for line in lines if line.startswith("("))
        if packed := tuple(_packed(line for line in lines if line not in aside)):
            yield CodeBlock(packed)
        if aside:
            yield statement(" ".join(aside))


def _packed(flags: Iterable[str]) -> Iterator[str]:
    """Several flags a line, as a command has them."""
    line = ""
    for flag in flags:
        if line and len(line) + len(flag) > 70:
            yield f"{line} \\"
            line = ""
        line = f"{line} {flag}".strip()
    if line:
        yield line


def _layout(layout: PlannedLayout) -> Part:
    blocks: list[Block] = [*items("Why", layout.because), *items("Not known", layout.unknown)]
    blocks += items("Refused by", layout.broken)
    costs = sorted(layout.costs, key=lambda cost: -cost.frac)
    blocks.append(shaped("layout_costs", [(cost.text, percent(cost.frac)) for cost in costs]))
    if memory := layout.memory:
        blocks.append(memory_table(memory))
    if layout.stages:
        blocks.append(statement(Code(layout.stages), "Stages"))
    blocks += lines_of(layout, both=True)
    title = f"{layout.place}: {layout_words(layout)}{when(layout.own, _OWN)}"
    return Part(title, tuple(blocks), f"layout-{layout.place}")
