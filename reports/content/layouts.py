"""The page of `plan`: layouts that fit, in the order to try them, and what is not known of them."""

from collections.abc import Iterator
from typing import Final

from heuristics.result.layouts import Layouts, PlannedLayout
from reports.content.blocks import (
    Block,
    Code,
    CodeBlock,
    Command,
    Detail,
    Headline,
    Page,
    Part,
    Row,
    Sentence,
    Table,
    Tone,
    Words,
    items,
    row,
    table,
    words,
)
from reports.content.check_numbers import memory_table
from reports.content.normal import normal_details, normal_lines
from reports.redaction import redaction_words
from traces.missing import known
from traces.spelling import billions, counted, gigabytes, percent

_FIRST: Final = 6
"""Layouts on the first screen."""
_HEADS: Final = ("", "TP", "CP", "PP", "VPP", "EP", "MBS", "Recompute", "Dispatcher", "Memory")
_NUMBERS: Final = (1, 2, 3, 4, 5, 6, 9, 10)
_TONES: Final = {"room": Tone.PLAIN, "tight": Tone.PLAIN, "none": Tone.BAD}


def page(found: Layouts, detail: Detail) -> Page:
    """The first screen; with `Detail.FULL` every layout with its costs, memory and lines."""
    everything = detail is Detail.FULL
    blocks: list[Block] = [_headline(found), *_warnings(found)]
    if found.layouts:
        blocks += [_table(found, everything), *_first(found, everything), *normal_lines(found.normal)]
    blocks += _unknown(found, everything)
    if everything:
        blocks += [_layout(one) for one in found.layouts]
        blocks += items("Sources of the published layouts", _sources(found))
        blocks.append(Sentence(words(redaction_words(found.redacted))))
    elif found.layouts:
        blocks.append(Command(("Why this order, every layout with its lines:",), f"{found.command} --full"))
    more = "" if everything else "--full: every layout, its memory and lines | -f json | page: -o out.html"
    return Page(words(Code(found.about)), _facts(found), tuple(blocks), detail, more)


def _facts(found: Layouts) -> Words:
    counts = billions(found.parameters_count), billions(found.active_count)
    parameters = f"{counts[0]} billion parameters, {counts[1]} active"
    size = gigabytes(found.capacity_bytes)
    run = f"{found.gpus:,} {found.gpu} of {size}, NVLink domain {found.nvlink_domain}"
    batch = f"global batch {found.global_batch:,} x {found.seq_length:,} tokens, {found.precision.upper()}"
    return words(f"{parameters}; {run}; {batch}")


def _headline(found: Layouts) -> Headline:
    if not found.layouts:
        least = f": the least that one needs is {gigabytes(found.least_bytes)}" if found.least_bytes else ""
        said = f"none of {counted(found.counted.divide, 'layout')} that divide fits{least}"
        under: tuple[Words, ...] = (
            words("More GPUs, or offload of activations and optimizer state (MEM-6, MEM-7), make room."),
        )
        return Headline("NO LAYOUT FITS", words(said), Tone.BAD, under)
    first = found.layouts[0]
    how = f"{layout_words(first)}, micro-batch {first.micro_batch}"
    mark = " (the configuration's own)" if first.own else ""
    memory = known(first.memory)
    held = f"{gigabytes(memory.total_bytes)} of {gigabytes(found.capacity_bytes)}" if memory else ""
    counts = found.counted
    under = (
        words(f"{held} by the estimate ({percent(first.filled_frac)}). {_recompute_words(first)}"),
        words(f"{counts.divide:,} layouts divide, {counts.fit:,} fit. Ordered by rules: nothing was run."),
    )
    return Headline("TRY FIRST", words(f"{how}{mark}"), Tone.GOOD, under)


def layout_words(one: PlannedLayout) -> str:
    """The parallel sizes of a layout: `TP 1, PP 4, VPP 4, EP 64`."""
    sizes = {"TP": one.tp, "CP": one.cp, "PP": one.pp, "VPP": one.vpp or 1, "EP": one.ep, "ETP": one.etp}
    shown = [f"{name} {size}" for name, size in sizes.items() if size > 1 or name in ("TP", "PP", "EP")]
    return ", ".join(shown)


def _recompute_words(one: PlannedLayout) -> str:
    if one.recompute == "none":
        return "Nothing is recomputed."
    what = ", ".join(one.recompute_modules) or "whole layers"
    return f"Recompute: {what}."


def _warnings(found: Layouts) -> Iterator[Block]:
    for one in found.warnings:
        yield Sentence(words(f"{one[:1].upper()}{one[1:]}."), "Note", Tone.NOTICE)


def _table(found: Layouts, everything: bool) -> Table:
    listed = found.layouts if everything else _shown(found)
    rows = (_row(one) for one in listed)
    note = "!: nearly full." if any(one.room == "tight" for one in listed) else ""
    left = len(found.layouts) - len(listed)
    return table("Layouts", _HEADS, rows, _NUMBERS, note, left_out=left)


def _shown(found: Layouts) -> list[PlannedLayout]:
    """The first ones, and the configuration's own wherever it stands."""
    first = list(found.layouts[:_FIRST])
    return first + [one for one in found.layouts[_FIRST:] if one.own]


def _short(modules: tuple[str, ...]) -> str:
    """The first module, and how many more."""
    return modules[0] if len(modules) == 1 else f"{modules[0]} +{len(modules) - 1}"


def _row(one: PlannedLayout) -> Row:
    recompute = {"none": "-", "full": "whole layers"}.get(one.recompute) or _short(one.recompute_modules)
    memory = known(one.memory)
    mark = {"room": "", "tight": " !", "none": " too large"}[one.room]
    held = f"{gigabytes(memory.total_bytes)}{mark}" if memory else ""
    sizes = (one.tp, one.cp, one.pp, one.vpp or "-", one.ep, one.micro_batch)
    name = f"{one.place} yours" if one.own else f"{one.place}"
    cells = (name, *map(str, sizes), recompute, one.dispatcher, held)
    return row(cells, _NUMBERS, _TONES[one.room], f"layout-{one.place}")


def _first(found: Layouts, everything: bool) -> Iterator[Block]:
    """Why the first one, its memory, and what to type; the whole is in the parts of a long page."""
    if everything:
        return
    first = found.layouts[0]
    yield from items("Why 1", first.because)
    yield Sentence(words(_memory_words(first)), "Memory")
    yield from lines_of(first)


def _memory_words(one: PlannedLayout) -> str:
    memory = known(one.memory)
    if memory is None:
        return "unknown"
    parts = {
        "parameters": memory.parameters_bytes,
        "gradients": memory.gradients_bytes,
        "optimizer": memory.optimizer_bytes,
        "activations": memory.activations_bytes,
        "logits": memory.logits_bytes,
    }
    said = ", ".join(f"{name} {gigabytes(size)}" for name, size in parts.items() if size)
    return f"{said} (pipeline stage {memory.stage}, the fullest)."


def lines_of(one: PlannedLayout, both: bool = False) -> Iterator[Block]:
    """What to type: flags of Megatron-LM, overrides of Bridge, the environment."""
    knobs = one.knobs
    if knobs.environment:
        yield CodeBlock(knobs.environment)
    if knobs.megatron_lm:
        yield CodeBlock(tuple(_packed(knobs.megatron_lm)))
    if knobs.megatron_bridge and (both or not knobs.megatron_lm):
        yield CodeBlock(knobs.megatron_bridge)


def _packed(flags: tuple[str, ...]) -> Iterator[str]:
    """Several flags a line, as a command has them."""
    line = ""
    for flag in flags:
        if line and len(line) + len(flag) > 70:
            yield f"{line} \\"
            line = ""
        line = f"{line} {flag}".strip()
    yield line


def _unknown(found: Layouts, everything: bool) -> Iterator[Block]:
    yield from items("Assumed", found.assumed if everything else found.assumed[:3])
    yield from items("Not known", found.unknown if everything else found.unknown[:3])
    if everything:
        yield from normal_details(found.normal)


def _layout(one: PlannedLayout) -> Part:
    memory = known(one.memory)
    own = " (the configuration's own)" if one.own else ""
    blocks: list[Block] = [*items("Why", one.because), *items("Not known", one.unknown)]
    blocks += items("Refused by", one.broken)
    rows = ((cost.text, percent(cost.frac)) for cost in sorted(one.costs, key=lambda cost: -cost.frac))
    blocks.append(table("What orders it", ("Rule", "Cost"), rows))
    if memory is not None:
        blocks.append(memory_table(memory))
    if one.stages:
        blocks.append(Sentence(words(Code(one.stages)), "Stages"))
    blocks += lines_of(one, both=True)
    return Part(f"{one.place}: {layout_words(one)}{own}", tuple(blocks), f"layout-{one.place}")


def _sources(found: Layouts) -> tuple[str, ...]:
    near = (each for one in found.layouts for each in one.nearest)
    return tuple(dict.fromkeys(f"{each.text}, {each.layout}: {each.source}" for each in near))
