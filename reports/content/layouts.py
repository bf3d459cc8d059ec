"""The page of `plan`: layouts that fit, in the order to try them, and what is not known of them."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from heuristics.result.layouts import Layouts, PlannedLayout
from reports.content.blocks import (
    Block,
    Blocks,
    Code,
    CodeBlock,
    Command,
    Headline,
    Part,
    Row,
    Table,
    Tone,
    items,
    row,
    table,
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
from traces.texts import Texts

_FIRST: Final = 6
"""Layouts on the first screen."""
_FEW: Final = 3
"""Of what is assumed and not known there."""
_OWN: Final = " (the configuration's own)"
_NUMBERS: Final = (1, 2, 3, 4, 5, 6, 9)
_TONES: Final = {"room": Tone.PLAIN, "tight": Tone.PLAIN, "none": Tone.BAD}


def page(found: Layouts, detail: Detail) -> Page:
    """The first screen; with `Detail.FULL` every layout with its costs, memory and lines."""
    everything = detail is Detail.FULL
    blocks: list[Block] = [_headline(found)]
    for one in found.warnings:
        blocks.append(statement(f"{capital(one)}.", "Note", Tone.NOTICE))
    if found.layouts:
        first = found.layouts[0]
        blocks.append(_table(found, everything))
        if not everything:  # the whole is in the parts of a long page
            held = told(first.memory, _memory_words)
            blocks += (*items("Why 1", first.because), statement(held, "Memory"))
            blocks += lines_of(first)
        blocks += normal_lines(found.normal)
    most = None if everything else _FEW
    blocks += (*items("Assumed", found.assumed[:most]), *items("Not known", found.unknown[:most]))
    if everything:
        sources = dict[str, None]()
        for near in chain.from_iterable(each(found.layouts, "nearest")):
            sources.setdefault(f"{near.text}, {near.layout}: {near.source}")
        blocks += (*normal_details(found.normal), *map(_layout, found.layouts))
        blocks += items("Sources of the published layouts", sources)
        blocks.append(statement(redaction_words(found.redacted)))
    elif found.layouts:
        blocks.append(
            Command("Why this order, every layout with its lines:", f"{found.command} --full")
        )
    more = "--full: every layout, its memory and lines | -f json | page: -o out.html"
    parameters = (
        f"{billions(found.parameters_count)} billion parameters, "
        f"{billions(found.active_count)} active"
    )
    size = gigabytes(found.capacity_bytes)
    run = f"{found.gpus:,} {found.gpu} of {size}, NVLink domain {found.nvlink_domain}"
    batch = (
        f"global batch {found.global_batch:,} x {found.seq_length:,} tokens, "
        f"{found.precision.upper()}"
    )
    facts = words(f"{parameters}; {run}; {batch}")
    return Page(words(Code(found.about)), facts, tuple(blocks), detail, when(not everything, more))


def _headline(found: Layouts) -> Headline:
    counts = found.counted
    room = "More GPUs, or offload of activations and optimizer state (MEM-6, MEM-7), make room."
    if not found.layouts:
        least = optional(": the least that one needs is {}", found.least_bytes or None, gigabytes)
        said = f"none of {counted(counts.divide, 'layout')} that divide fits{least}"
        return Headline("NO LAYOUT FITS", words(said), Tone.BAD, (words(room),))
    first = found.layouts[0]
    said = f"{layout_words(first)}, micro-batch {first.micro_batch}{when(first.own, _OWN)}"
    what = ", ".join(first.recompute_modules) or "whole layers"
    recompute = "Nothing is recomputed." if first.recompute == "none" else f"Recompute: {what}."
    capacity = gigabytes(found.capacity_bytes)
    held = optional(
        f"{{}} of {capacity}", first.memory, lambda memory: gigabytes(memory.total_bytes)
    )
    under = (
        words(f"{held} by the estimate ({percent(first.filled_frac)}). {recompute}"),
        words(
            f"{counts.divide:,} layouts divide, {counts.fit:,} fit. Ordered by rules: nothing was "
            f"run."
        ),
    )
    return Headline("TRY FIRST", words(said), Tone.GOOD, under)


def layout_words(one: PlannedLayout) -> str:
    """The parallel sizes of a layout: `TP 1, PP 4, VPP 4, EP 64`."""
    sizes = {"TP": one.tp, "CP": one.cp, "PP": one.pp, "VPP": one.vpp or 1, "EP": one.ep}
    sizes["ETP"], shown = one.etp, []
    for name, size in sizes.items():
        if size > 1 or name in ("TP", "PP", "EP"):
            shown.append(f"{name} {size}")
    return ", ".join(shown)


def _table(found: Layouts, everything: bool) -> Table:
    """On a first screen the first ones, and the configuration's own wherever it stands."""
    rows, tight = [], False
    for place, one in enumerate(found.layouts):
        if place < _FIRST or one.own or everything:
            rows.append(_row(one))
            tight |= one.room == "tight"
    left_out = len(found.layouts) - len(rows)
    return table(
        "Layouts",
        ("", "TP", "CP", "PP", "VPP", "EP", "MBS", "Recompute", "Dispatcher", "Memory"),
        rows,
        _NUMBERS,
        when(tight, "!: nearly full."),
        left_out=left_out,
    )


def _row(one: PlannedLayout) -> Row:
    recompute = {"none": "-", "full": "whole layers"}.get(one.recompute)
    if recompute is None:  # the first module, and how many more
        recompute = one.recompute_modules[0] + beyond(len(one.recompute_modules), 1, " +{}")
    mark = {"room": "", "tight": " !", "none": " too large"}[one.room]
    held = optional(f"{{}}{mark}", one.memory, lambda memory: gigabytes(memory.total_bytes))
    sizes = (one.tp, one.cp, one.pp, one.vpp or "-", one.ep, one.micro_batch)
    name = f"{one.place}{when(one.own, ' yours')}"
    cells = (name, *map(str, sizes), recompute, one.dispatcher, held)
    return row(cells, _NUMBERS, _TONES[one.room], f"layout-{one.place}")


def _memory_words(memory: MemoryEstimate) -> str:
    parts = memory_parts(memory).items()
    said = ", ".join(f"{name} {gigabytes(size)}" for name, size in parts if size)
    return f"{said} (pipeline stage {memory.stage}, the fullest)."


def lines_of(one: PlannedLayout, both: bool = False) -> Blocks:
    """What to type: flags of Megatron-LM, overrides of Bridge, the environment."""
    knobs = one.knobs
    if knobs.environment:
        yield CodeBlock(knobs.environment)
    if knobs.megatron_lm:
        yield CodeBlock(tuple(_packed(knobs.megatron_lm)))
    if knobs.megatron_bridge and (both or not knobs.megatron_lm):
        yield CodeBlock(knobs.megatron_bridge)


def _packed(flags: Texts) -> Iterator[str]:
    """Several flags a line, as a command has them."""
    line = ""
    for flag in flags:
        if line and len(line) + len(flag) > 70:
            yield f"{line} \\"
            line = ""
        line = f"{line} {flag}".strip()
    yield line


def _layout(one: PlannedLayout) -> Part:
    blocks: list[Block] = [*items("Why", one.because), *items("Not known", one.unknown)]
    blocks += items("Refused by", one.broken)
    costs = sorted(one.costs, key=lambda cost: -cost.frac)
    rows = [(cost.text, percent(cost.frac)) for cost in costs]
    blocks.append(shaped("layout_costs", rows))
    if memory := one.memory:
        blocks.append(memory_table(memory))
    if one.stages:
        blocks.append(statement(Code(one.stages), "Stages"))
    blocks += lines_of(one, both=True)
    title = f"{one.place}: {layout_words(one)}{when(one.own, _OWN)}"
    return Part(title, tuple(blocks), f"layout-{one.place}")
