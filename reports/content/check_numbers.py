"""What files say of a run: the step of the log, throughput beside published rows, memory by part.

Also as parts of a long page, beside the configuration and what the guides say.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from heuristics.result.configured import Configuration, GroupedSpeed, Log, Throughput
from heuristics.result.result import Result
from reports.content.blocks import (
    Block,
    Code,
    Detail,
    Entry,
    Fold,
    Part,
    Quantity,
    Sentence,
    Span,
    Table,
    items,
    row,
    table,
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
from reports.content.names import joined
from reports.content.normal import normal_details, normal_lines
from traces.missing import Missing, known
from traces.settings.derive import DEFAULT
from traces.sizes.memory import MemoryEstimate
from traces.sizes.references import Aspect, Nearest, Reference
from traces.spelling import counted, duration, gigabytes, percent, rounded

_ASPECTS: Final[dict[Aspect, str]] = {
    "gpu": "GPU",
    "precision": "precision",
    "routing": "routing",
    "sequence_length": "sequence length",
    "gpu_count": "number of GPUs",
    "global_batch_size": "global batch",
    "micro_batch_size": "micro-batch",
    "tp": "TP",
    "pp": "PP",
    "vpp": "VPP",
    "ep": "EP",
}
_PARTS: Final = ("parameters", "gradients", "optimizer", "activations", "logits")


def number_lines(result: Result) -> Iterator[Block]:
    if (log := known(result.log)) is not None:
        yield from _log(log, result)
    yield from _throughput(result)
    yield from normal_lines(result.normal)
    yield from _memory(result)


def number_tables(result: Result) -> Iterator[Block]:
    if (found := known(result.throughput)) is not None and found.references:
        heads = ("Model and GPUs", "Layout TP/PP/VP/EP", "tokens/s", "TFLOP/s")
        speeds = (rounded(found.tokens_per_s_per_gpu), rounded(found.model_tflops_per_gpu))
        rows = (("this run", "", *speeds), *map(_reference, found.references))
        note = f"Per GPU. This run: {found.source}. Other shapes are no target for it."
        yield table("Published throughput of this model", heads, rows, range(2, 4), note)
        sources = (one.source for one in found.references)
        yield from items("Sources of the published rows, in their order", sources, numbered=True)
    yield from normal_details(result.normal)
    if (estimate := known(result.memory_estimate)) is not None:
        yield memory_table(estimate)


def _log(log: Log, result: Result) -> Iterator[Sentence]:
    if log.overlaps_on:
        named = [words(Code(knob), f" (line {line:,})") for knob, line in log.overlaps_on.items()]
        yield Sentence(words("Set up, by the log's own lines: ", joined(named), "."), "Overlaps")
    step, peak = known(log.steady_step_ns), known(log.peak_allocated_bytes)
    if step is None:
        return
    of = f"{log.steady_count:,} steady of {counted(log.iteration_count, 'iteration')}"
    last, planned = known(log.last_iteration), known(log.planned_iterations)
    if last is not None and planned is not None and last < planned:
        of += f"; it ends at iteration {last:,} of {planned:,}"
    room = f"; peak memory {gigabytes(peak)}" if peak else ""
    slower = [known(trace.capture.perturbation_frac) for trace in result.traces]
    beside = [
        f" The profiled step is {percent(abs(one))} {'longer' if one >= 0 else 'shorter'}."
        for one in slower
        if one is not None
    ]
    yield Sentence(words(f"{duration(step)} a step in the log ({of}){room}.", *beside), "Step")


_BANDS: Final[Mapping[str, str]] = {
    "below": "below the guide's band of untuned runs (low teens)",
    "untuned": "in the guide's band of untuned runs (low teens)",
    "between": "between the guide's bands of untuned (low teens) and tuned runs (from the high teens)",
    "tuned": "in the guide's band of tuned runs (high teens to low 20s)",
    "above": "above the guide's band of tuned runs (high teens to low 20s)",
}


def _throughput(result: Result) -> Iterator[Sentence]:
    found = result.throughput
    if isinstance(found, Missing):
        yield from _unknown(found, "Throughput", known(result.configuration))
    elif found is not None:
        said = (
            f"{rounded(found.tokens_per_s_per_gpu)} tokens/s and {rounded(found.model_tflops_per_gpu)} model"
        )
        said += f" TFLOP/s per GPU at {duration(found.step_ns)} a step"
        peak, share = known(found.peak), known(found.mfu_frac)
        if peak is not None and share is not None:
            said += f"; MFU {percent(share)} of {rounded(peak.tflops)} TFLOP/s ({peak.gpu}, {peak.precision})"
            said += f", {_BANDS[found.mfu_band]}" if found.mfu_band else ""
        yield Sentence(words(f"{said}."), "Throughput")
        if said := grouped_words(found):
            yield Sentence(words(said), "Experts")
        if found.nearest is not None:
            yield Sentence(words(_nearest(found.nearest)), "Published")


def grouped_words(found: Throughput) -> str:
    """How fast grouped GEMMs ran; empty where that is not known."""
    if not isinstance(speed := found.grouped_gemm, GroupedSpeed):
        return ""
    said = f"Grouped GEMMs run at {rounded(speed.tflops_per_s)} TFLOP/s, {duration(speed.work_ns)} of a step"
    if (share := known(speed.peak_frac)) is not None:
        said += f" and {percent(share)} of the peak"
    return f"{said}, by the configuration's sizes and for tokens spread evenly."


def _nearest(found: Nearest) -> str:
    row = found.reference
    run = ", ".join(filter(None, (row.model, f"{row.gpus or ''} {row.gpu}".strip(), row.precision)))
    differs = ", ".join(f"{_ASPECTS[one.what]} {one.here} ({one.published})" for one in found.differs)
    unknown = ", ".join(_ASPECTS[one] for one in found.unknown_settings)
    said = f"{percent(found.tokens_frac)} of the tokens/s per GPU of the nearest published run ({run})."
    said += f" Different here (published): {differs}." if differs else " No known setting differs."
    return f"{said} Not known of both: {unknown}." if unknown else said


def _memory(result: Result) -> Iterator[Sentence]:
    found = result.memory_estimate
    if isinstance(found, Missing):
        yield from _unknown(found, "Memory", known(result.configuration))
    elif found is not None:
        rest = known(found.rest_bytes) or 0
        fullest = f"the fullest GPU (pipeline stage {found.stage})"
        said = f"{gigabytes(found.total_bytes - rest)} estimated on {fullest}"
        if rest:
            than = f"{gigabytes(abs(rest))} {'more' if rest > 0 else 'less'} than estimated"
            said += f"; the measured peak is {gigabytes(found.total_bytes)}, {than}"
        yield Sentence(words(f"{said}."), "Memory")


def _unknown(gap: Missing, label: str, configuration: Configuration | None) -> Iterator[Sentence]:
    if configuration is not None and is_written(configuration):
        yield Sentence(words(f"Unknown: {gap.reason.rstrip('.')}. Needed: {gap.cure.rstrip('.')}."), label)


def _reference(one: Reference) -> tuple[str, ...]:
    gpus = f"{one.gpus} {one.gpu}" if one.gpus else one.gpu
    precision = f", {one.precision}" if one.precision else ""
    forced = ", routing forced to balance" if one.routing == "balanced" else ""
    what = f"{one.model}, {gpus}{precision}{forced}"
    return what, one.layout or "", rounded(one.tokens_per_s_per_gpu), rounded(one.tflops_per_gpu)


def memory_table(found: MemoryEstimate) -> Table:
    sizes = {part: getattr(found, f"{part}_bytes") for part in _PARTS}
    if rest := known(found.rest_bytes):
        sizes["measured peak beside the estimate"] = rest
    title = f"Memory of the fullest GPU (pipeline stage {found.stage})"
    rows = (_size(part, size, found.total_bytes) for part, size in sizes.items())
    note = f"Assumed: {', '.join(found.assumed)}." if found.assumed else ""
    made = table(title, ("Part", "GB", "Share"), rows, note=note)
    return replace(made, total=row(_size("total", found.total_bytes, found.total_bytes)))


def _size(name: str, size: int, whole: int) -> tuple[Entry, ...]:
    share = size / whole if whole else 0.0
    bar = share if 0 <= share <= 1 else None
    return name, gigabytes(size).removesuffix(" GB"), Quantity(percent(share), bar)


_DEFECTS: Final = 4
"""Entries on the first screen."""


def configuration_parts(result: Result) -> tuple[Part, ...]:
    """What files say of a run, as parts of a long page; none where no configuration was given."""
    configuration = known(result.configuration)
    if configuration is None:
        return ()
    parts = (
        Part("Configuration", tuple(_configuration(result, configuration)), "configuration"),
        Part("Throughput and memory", (*number_lines(result), *number_tables(result)), "numbers"),
        Part("Workflow", tuple(workflow_rules(result)), "workflow"),
        Part("Experiments", tuple(experiment_blocks(result)), "experiments"),
    )
    return tuple(one for one in parts if one.blocks)


def _configuration(result: Result, configuration: Configuration) -> Iterator[Block]:
    yield Sentence(words(legal_words(result, configuration)))
    yield from (Sentence(words(one)) for one in answer_words(configuration.checked))
    yield from conditions(result, Detail.FULL)
    yield from incident_items(result, Detail.FULL)
    yield from defect_items(result, Detail.FULL)
    written = [one for one in configuration.settings if one.said != DEFAULT]
    if written:
        rows = ((Code(one.knob), _value(one.value, one.withheld), Code(one.said)) for one in written)
        defaults = len(configuration.settings) - len(written)
        note = f"{counted(defaults, 'more setting')} at the default: in the JSON document."
        made = table("Settings", ("Setting", "Value", "From"), rows, (), note if defaults else "")
        yield Fold(f"{counted(len(written), 'setting')} that somebody set", (made,), "settings")


def _value(value: object, is_withheld: bool) -> Span:
    if is_withheld:
        return "withheld: it may hold a path or a name"
    return "null" if value is None else Code(str(value))


def defect_items(result: Result, detail: Detail) -> Iterator[Block]:
    found = defects(result)
    named = found if detail is Detail.FULL else found[:_DEFECTS]
    first = [defect_words(one, detail) for one in named if one.weight <= Weight.NOT_AS_WRITTEN]
    others = [defect_words(one, detail) for one in named if one.weight > Weight.NOT_AS_WRITTEN]
    if left := len(found) - len(named):
        others.append(words(f"{counted(left, 'more entry', 'more entries')}: --full"))
    yield from items("Fix first", first, numbered=True)
    yield from items("Also found", others)
