"""What files say of a run: the step of the log, throughput beside published rows, memory by part.

Also as parts of a long page, beside the configuration and what the guides say.
"""

from dataclasses import replace
from typing import Final

from heuristics.result.configured import Configuration, GroupedSpeed, Log, Throughput
from heuristics.result.result import Result
from reports.content.blocks import (
    Blocks,
    Code,
    Fold,
    Part,
    Quantity,
    Span,
    Table,
    Words,
    items,
    row,
    words,
)
from reports.content.check_defects import (
    Weight,
    answer_words,
    defect_words,
    defects,
)
from reports.content.check_workflow import experiment_blocks, workflow_rules
from reports.content.incidents import incident_items
from reports.content.legal import conditions, is_written, legal_words
from reports.content.names import around, beyond, joined, optional, statement, titled, when
from reports.content.normal import normal_details, normal_lines
from reports.content.page import Detail
from reports.content.tables import shaped
from reports.measures import words_of
from reports.rows import each
from traces.missing import Missing, known
from traces.settings.derive import DEFAULT
from traces.sizes.memory import MemoryEstimate
from traces.sizes.references import Nearest
from traces.spelling import counted, duration, gigabytes, percent, rounded

_PARTS: Final = ("parameters", "gradients", "optimizer", "activations", "logits")


def number_lines(result: Result) -> Blocks:
    if log := result.log:
        yield from _log(log, result)
    yield from _throughput(result)
    yield from normal_lines(result.normal)
    yield from _memory(result)


def number_tables(result: Result) -> Blocks:
    if (found := result.throughput) and found.references:
        speeds = (rounded(found.tokens_per_s_per_gpu), rounded(found.model_tflops_per_gpu))
        rows = [("this run", "", *speeds)]
        for one in found.references:
            gpus = f"{one.gpus} {one.gpu}" if one.gpus else one.gpu
            forced = when(one.routing == "balanced", ", routing forced to balance")
            what = f"{one.model}, {gpus}{optional(', {}', one.precision)}{forced}"
            speeds = (rounded(one.tokens_per_s_per_gpu), rounded(one.tflops_per_gpu))
            rows.append((what, one.layout or "", *speeds))
        yield shaped("published", rows, source=found.source)
        sources = each(found.references, "source")
        yield from items("Sources of the published rows, in their order", sources, numbered=True)
    yield from normal_details(result.normal)
    if estimate := result.memory_estimate:
        yield memory_table(estimate)


def _log(log: Log, result: Result) -> Blocks:
    lines = log.overlaps_on.items()
    overlaps = [words(Code(knob), f" (line {line:,})") for knob, line in lines]
    if overlaps:
        named = around("Set up, by the log's own lines: ", joined(overlaps), ".")
        yield statement(named, "Overlaps")
    step, peak = known(log.steady_step_ns), log.peak_allocated_bytes
    if step is None:
        return
    of = f"{log.steady_count:,} steady of {counted(log.iteration_count, 'iteration')}"
    last, planned = known(log.last_iteration), known(log.planned_iterations)
    if last is not None and planned is not None and last < planned:
        of += f"; it ends at iteration {last:,} of {planned:,}"
    said = (
        f"{duration(step)} a step in the log "
        f"({of}){optional('; peak memory {}', peak or None, gigabytes)}."
    )
    for trace in result.traces:
        longer = known(trace.capture.perturbation_frac)
        if longer is not None:
            than = "longer" if longer >= 0 else "shorter"
            said += f" The profiled step is {percent(abs(longer))} {than}."
    yield statement(said, "Step")


def _throughput(result: Result) -> Blocks:
    found = result.throughput
    if isinstance(found, Missing):
        yield from _unknown(found, "Throughput", result)
    elif found is not None:
        said = (
            f"{rounded(found.tokens_per_s_per_gpu)} tokens/s and "
            f"{rounded(found.model_tflops_per_gpu)} model"
        )
        said += f" TFLOP/s per GPU at {duration(found.step_ns)} a step"
        if of_peak := mfu_words(found):
            band = optional(", {}", found.mfu_band, words_of("mfu_band").__getitem__)
            said += f"; MFU {of_peak}{band}"
        yield statement(f"{said}.", "Throughput")
        if said := grouped_words(found):
            yield statement(said, "Experts")
        if found.nearest is not None:
            yield statement(_nearest(found.nearest), "Published")


def mfu_words(found: Throughput) -> str:
    """MFU and the peak that it is of; empty where that is not known."""
    peak, share = found.peak, known(found.mfu_frac)
    if not peak or share is None:
        return ""
    return f"{percent(share)} of {rounded(peak.tflops)} TFLOP/s ({peak.gpu}, {peak.precision})"


def grouped_words(found: Throughput) -> str:
    """How fast grouped GEMMs ran; empty where that is not known."""
    if not isinstance(speed := found.grouped_gemm, GroupedSpeed):
        return ""
    said = (
        f"Grouped GEMMs run at {rounded(speed.tflops_per_s)} TFLOP/s, {duration(speed.work_ns)} of "
        "a step"
    )
    if (share := known(speed.peak_frac)) is not None:
        said += f" and {percent(share)} of the peak"
    return f"{said}, by the configuration's sizes and for tokens spread evenly."


def _nearest(found: Nearest) -> str:
    row = found.reference
    run = ", ".join(filter(None, (row.model, f"{row.gpus or ''} {row.gpu}".strip(), row.precision)))
    called = words_of("aspect")
    differs = [f"{called[one.what]} {one.here} ({one.published})" for one in found.differs]
    unknown = [called[one] for one in found.unknown_settings]
    said = (
        f"{percent(found.tokens_frac)} of the tokens/s per GPU of the nearest published run "
        f"({run})."
    )
    said += optional(" Different here (published): {}.", differs, ", ".join)
    said += when(not differs, " No known setting differs.")
    return said + optional(" Not known of both: {}.", unknown, ", ".join)


def _memory(result: Result) -> Blocks:
    found = result.memory_estimate
    if isinstance(found, Missing):
        yield from _unknown(found, "Memory", result)
    elif found is not None:
        rest = found.rest_bytes or 0
        fullest = f"the fullest GPU (pipeline stage {found.stage})"
        said = f"{gigabytes(found.total_bytes - rest)} estimated on {fullest}"
        if rest:
            than = f"{gigabytes(abs(rest))} {'more' if rest > 0 else 'less'} than estimated"
            said += f"; the measured peak is {gigabytes(found.total_bytes)}, {than}"
        yield statement(f"{said}.", "Memory")


def _unknown(gap: Missing, label: str, result: Result) -> Blocks:
    configuration = result.configuration
    if configuration and is_written(configuration):
        yield statement(
            f"Unknown: {gap.reason.rstrip('.')}. Needed: {gap.cure.rstrip('.')}.", label
        )


def memory_parts(found: MemoryEstimate) -> dict[str, int]:
    return {part: getattr(found, f"{part}_bytes") for part in _PARTS}


def memory_table(found: MemoryEstimate) -> Table:
    sizes = memory_parts(found)
    if rest := found.rest_bytes:
        sizes["measured peak beside the estimate"] = rest
    sizes["total"] = found.total_bytes
    rows = []
    for name, size in sizes.items():
        share = size / (found.total_bytes or 1)
        bar = share if 0 <= share <= 1 else None
        rows.append(row((name, gigabytes(size).removesuffix(" GB"), Quantity(percent(share), bar))))
    assumed = optional("Assumed: {}.", found.assumed, ", ".join)
    made = shaped("memory_parts", rows[:-1], stage=f"{found.stage}", assumed=assumed)
    return replace(made, total=rows[-1])


_DEFECTS: Final = 4
"""Entries on the first screen."""


def configuration_parts(result: Result) -> tuple[Part, ...]:
    """What files say of a run, as parts of a long page; none where no configuration was given."""
    configuration = result.configuration
    if not configuration:
        return ()
    parts = (
        titled("configuration", _configuration(result, configuration)),
        titled("numbers", (*number_lines(result), *number_tables(result))),
        titled("workflow", workflow_rules(result)),
        titled("experiments", experiment_blocks(result)),
    )
    return tuple(one for one in parts if one.blocks)


def _configuration(result: Result, configuration: Configuration) -> Blocks:
    yield statement(legal_words(result, configuration))
    yield from map(statement, answer_words(configuration.checked))
    yield from conditions(result, Detail.FULL)
    yield from incident_items(result, Detail.FULL)
    yield from defect_items(result, Detail.FULL)
    rows = []
    for one in configuration.settings:
        value: Span = "null" if one.value is None else Code(f"{one.value}")
        if one.withheld:
            value = "withheld: it may hold a path or a name"
        if one.said != DEFAULT:
            rows.append((Code(one.knob), value, Code(one.said)))
    if rows:
        at_default = "{} at the default: in the JSON document."
        others = beyond(len(configuration.settings), len(rows), at_default, "more setting")
        made = shaped("settings", rows, others=others)
        yield Fold(f"{counted(len(rows), 'setting')} that somebody set", (made,), "settings")


def defect_items(result: Result, detail: Detail) -> Blocks:
    found = defects(result)
    named = found if detail is Detail.FULL else found[:_DEFECTS]
    first = list[str | Words]()
    others = list[str | Words]()
    for one in named:
        listed = first if one.weight <= Weight.NOT_AS_WRITTEN else others
        listed.append(defect_words(one, detail))
    others.append(beyond(len(found), len(named), "{}: --full", "more entry", "more entries"))
    yield from items("Fix first", first, numbered=True)
    yield from items("Also found", others)
