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
    if (speed := result.throughput) and speed.references:
        speeds = rounded(speed.tokens_per_s_per_gpu), rounded(speed.model_tflops_per_gpu)
        rows = [("this run", "", *speeds)]
        for reference in speed.references:
            gpus = f"{reference.gpus} {reference.gpu}" if reference.gpus else reference.gpu
            forced = when(reference.routing == "balanced", ", routing forced to balance")
            what = f"{reference.model}, {gpus}{optional(', {}', reference.precision)}{forced}"
            speeds = rounded(reference.tokens_per_s_per_gpu), rounded(reference.tflops_per_gpu)
            rows.append((what, reference.layout or "", *speeds))
        yield shaped("published", rows, source=speed.source)
        sources = each(speed.references, "source")
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
    printed = [
        words_of("printed")[key].format(" to ".join(dict.fromkeys(map(rounded, span))))
        for key, span in (log.figures or {}).items()
    ]
    if printed:
        yield statement(f"{'; '.join(printed)}.", "Printed")
    step, peak = known(log.steady_step_ns), log.peak_allocated_bytes
    if step is None:
        return
    of = f"{log.steady_count:,} steady of {counted(log.iteration_count, 'iteration')}"
    last, planned = known(log.last_iteration), known(log.planned_iterations)
    if last is not None and planned is not None and last < planned:
        of += f"; it ends at iteration {last:,} of {planned:,}"
    step_words = (
        f"{duration(step)} a step in the log "
        f"({of}){optional('; peak memory {}', peak or None, gigabytes)}."
    )
    for trace in result.traces:
        longer = known(trace.capture.perturbation_frac)
        if longer is not None:
            than = "longer" if longer >= 0 else "shorter"
            step_words += f" The profiled step is {percent(abs(longer))} {than}."
    yield statement(step_words, "Step")


def _throughput(result: Result) -> Blocks:
    speed = result.throughput
    if isinstance(speed, Missing):
        yield from _unknown(speed, "Throughput", result)
    elif speed:
        speed_words = (
            f"{rounded(speed.tokens_per_s_per_gpu)} tokens/s and "
            f"{rounded(speed.model_tflops_per_gpu)} model"
        )
        speed_words += f" TFLOP/s per GPU at {duration(speed.step_ns)} a step"
        if of_peak := mfu_words(speed):
            band = optional(", {}", speed.mfu_band, words_of("mfu_band").__getitem__)
            speed_words += f"; MFU {of_peak}{band}"
        yield statement(f"{speed_words}.", "Throughput")
        if speed_words := grouped_words(speed):
            yield statement(speed_words, "Experts")
        if speed.nearest is not None:
            yield statement(_nearest(speed.nearest), "Published")


def mfu_words(throughput: Throughput) -> str:
    """MFU and the peak that it is of; empty where that is not known."""
    peak, share = throughput.peak, known(throughput.mfu_frac)
    if not peak or share is None:
        return ""
    return f"{percent(share)} of {rounded(peak.tflops)} TFLOP/s ({peak.gpu}, {peak.precision})"


def grouped_words(throughput: Throughput) -> str:
    """How fast grouped GEMMs ran; empty where that is not known."""
    if not isinstance(speed := throughput.grouped_gemm, GroupedSpeed):
        return ""
    gemm_words = (
        f"Grouped GEMMs run at {rounded(speed.tflops_per_s)} TFLOP/s, {duration(speed.work_ns)} of "
        "a step"
    )
    if (share := known(speed.peak_frac)) is not None:
        gemm_words += f" and {percent(share)} of the peak"
    return f"{gemm_words}, by the configuration's sizes and for tokens spread evenly."


def _nearest(near: Nearest) -> str:
    row = near.reference
    run = ", ".join(filter(None, (row.model, f"{row.gpus or ''} {row.gpu}".strip(), row.precision)))
    names = words_of("aspect")
    differs = [
        f"{names[difference.what]} {difference.here} ({difference.published})"
        for difference in near.differs
    ]
    unknown = [names[setting] for setting in near.unknown_settings]
    reached = (
        f"{percent(near.tokens_frac)} of the tokens/s per GPU of the nearest published run ({run})."
    )
    reached += optional(" Different here (published): {}.", differs, ", ".join)
    reached += when(not differs, " No known setting differs.")
    return reached + optional(" Not known of both: {}.", unknown, ", ".join)


def _memory(result: Result) -> Blocks:
    estimate = result.memory_estimate
    if isinstance(estimate, Missing):
        yield from _unknown(estimate, "Memory", result)
    elif estimate:
        over = estimate.rest_bytes or 0
        fullest = f"the fullest GPU (pipeline stage {estimate.stage})"
        estimated = f"{gigabytes(estimate.total_bytes - over)} estimated on {fullest}"
        if over:
            than = f"{gigabytes(abs(over))} {'more' if over > 0 else 'less'} than estimated"
            estimated += f"; the measured peak is {gigabytes(estimate.total_bytes)}, {than}"
        yield statement(f"{estimated}.", "Memory")


def _unknown(gap: Missing, label: str, result: Result) -> Blocks:
    configuration = result.configuration
    if configuration and is_written(configuration):
        yield statement(
            f"Unknown: {gap.reason.rstrip('.')}. Needed: {gap.cure.rstrip('.')}.", label
        )


def memory_parts(estimate: MemoryEstimate) -> dict[str, int]:
    return {part: getattr(estimate, f"{part}_bytes") for part in _PARTS}


def memory_table(estimate: MemoryEstimate) -> Table:
    sizes = memory_parts(estimate)
    if rest_bytes := estimate.rest_bytes:
        sizes["measured peak beside the estimate"] = rest_bytes
    sizes["total"] = estimate.total_bytes
    rows = []
    for name, size in sizes.items():
        share = size / (estimate.total_bytes or 1)
        bar = share if 0 <= share <= 1 else None
        rows.append(row((name, gigabytes(size).removesuffix(" GB"), Quantity(percent(share), bar))))
    assumed = optional("Assumed: {}.", estimate.assumed, ", ".join)
    parts_table = shaped("memory_parts", rows[:-1], stage=f"{estimate.stage}", assumed=assumed)
    return replace(parts_table, total=rows[-1])


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
    return tuple(part for part in parts if part.blocks)


def _configuration(result: Result, configuration: Configuration) -> Blocks:
    yield statement(legal_words(result, configuration))
    yield from map(statement, answer_words(configuration.checked))
    yield from conditions(result, Detail.FULL)
    yield from incident_items(result, Detail.FULL)
    yield from defect_items(result, Detail.FULL)
    rows = []
    for setting in configuration.settings:
        value = "null" if setting.value is None else Code(f"{setting.value}")
        if setting.withheld:
            value = "withheld: it may hold a path or a name"
        if setting.said != DEFAULT:
            rows.append((Code(setting.knob), value, Code(setting.said)))
    if rows:
        at_default = "{} at the default: in the JSON document."
        others = beyond(len(configuration.settings), len(rows), at_default, "more setting")
        made = shaped("settings", rows, others=others)
        yield Fold(f"{counted(len(rows), 'setting')} that somebody set", (made,), "settings")


def defect_items(result: Result, detail: Detail) -> Blocks:
    every = defects(result)
    shown = every if detail is Detail.FULL else every[:_DEFECTS]
    first = list[str | Words]()
    others = list[str | Words]()
    for defect in shown:
        listed = first if defect.weight <= Weight.NOT_AS_WRITTEN else others
        listed.append(defect_words(defect, detail))
    others.append(beyond(len(every), len(shown), "{}: --full", "more entry", "more entries"))
    yield from items("Fix first", first, numbered=True, whole=True)
    yield from items("Also found", others)
