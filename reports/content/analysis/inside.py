"""What several ranks show inside a run: stages of the pipeline, experts, and bytes between
ranks.
"""

from collections.abc import Callable, Sequence
from typing import Final

from heuristics.result.result import Result
from reports.content.analysis.late import numbers_of
from reports.content.blocks import Blocks, Items, Several, Term, Words, filled, words
from reports.content.names import (
    ended,
    is_set,
    sentence,
    statement,
    told,
    told_ms,
    unknown_words,
    when,
)
from reports.content.tables import shaped
from reports.measures import words_of
from traces.missing import Missing, known
from traces.sections.run import Pipeline, Run
from traces.spelling import counted, duration, gigabytes, milliseconds, numbers, percent, rounded


def stages(run: Run) -> Blocks:
    pipeline = run.pipeline
    if isinstance(pipeline, Missing):
        yield statement(f"unknown: {ended(pipeline.reason)}", "Pipeline stages")
    elif pipeline:
        rows = []
        for place, stage in enumerate(pipeline.stages):
            # by their numbers; where these are not recorded, how many
            ranks_words, recorded = counted(len(stage.ranks), "rank"), numbers_of(run, stage.ranks)
            if len(recorded) == len(stage.ranks):
                ranks_words = numbers(recorded)
            phases = stage.warm_up_ns, stage.steady_ns, stage.cool_down_ns
            times = (stage.step_ns, stage.own_work_ns, stage.bubble_ns, *phases)
            rows.append((f"{place}", ranks_words, *map(told_ms, times)))
        why = ""
        if isinstance(missing := pipeline.stages[0].warm_up_ns, Missing):
            why = f" Its phases are unknown: {ended(missing.reason)}"
        yield shaped("stages", rows, why=why)
        yield statement(_against_formula(pipeline), "Bubble")


def _against_formula(pipeline: Pipeline) -> str:
    formula = pipeline.formula_frac
    parts = [told(pipeline.bubble_frac, lambda frac: f"{percent(frac)} of the steps")]
    microbatches, chunks = known(pipeline.microbatches), known(pipeline.chunks)
    if isinstance(formula, Missing):
        parts.append(f"what the schedule needs is unknown: {formula.reason}")
    elif formula is None or microbatches is None or chunks is None:
        parts.append("what the schedule needs is unknown: no schedule is known")
    else:
        virtual = when(chunks > 1, f", {counted(chunks, 'virtual stage')} a rank")
        of = counted(microbatches, "microbatch", "microbatches")
        schedule = f"{len(pipeline.stages)} equal stages with {of}{virtual}"
        parts.append(f"the formula gives {percent(formula)} for {schedule}")
        if better := [
            f"{percent(row.formula_frac)} with {row.chunks}" for row in pipeline.with_more_chunks
        ]:
            parts.append(f"it leaves {' and '.join(better)} virtual stages a rank")
    if (imbalance := known(pipeline.stage_imbalance)) is not None:
        parts.append(f"the largest own work of a stage is {rounded(imbalance)} times the mean")
    return f"{'; '.join(parts)}."


_LISTED: Final = 8
"""Layers, or pairs of ranks, that a table has: the largest ones."""
_FORCED: Final = "Routing is forced to balance, so expert work shows nothing of real routing."
_MOCK: Final = "The data is mock data, so expert work shows nothing of real routing."


def routing_notes(result: Result) -> Several:
    """What the configuration, the options or the log say that makes expert work no evidence of
    routing.
    """
    return filled((when(result.forced_routing, _FORCED), when(is_set(result, "data.mock"), _MOCK)))


def experts(run: Run, name: Callable[[int], Words], notes: Sequence[Words] = ()) -> Blocks:
    """The most uneven layers and the pattern; nothing where no layers are known. `notes`: of the
    routing.
    """
    load = run.experts
    if not load:
        return
    layers = sorted(load.uneven_layers, key=lambda uneven: -uneven.imbalance)
    rows = []
    for layer in layers[:_LISTED]:
        cells = f"{layer.layer}", f"{layer.expert_group + 1}", f"{rounded(layer.imbalance)} x"
        rows.append((*cells, name(layer.hot_index)))
    groups = counted(len(load.groups), "group")
    yield shaped("experts", rows, max(0, len(layers) - _LISTED), groups=groups)
    at = f"Worst: layer {load.worst.layer} in step {load.worst.step}, "
    more = (
        f": {rounded(load.worst.imbalance)} times the mean, {duration(load.worst.above_ns)} more."
    )
    worst = words(at, name(load.worst.hot_index), more)
    pattern, cause = load.pattern, "Whether routing or placement makes it uneven is unknown"
    if isinstance(pattern, Missing):
        cause = f"{cause}: {pattern.reason}"
    elif pattern is not None:
        cause = words_of("hot_rank")[pattern]
    yield Items((words(sentence(cause)), worst, *notes), "What it points to")


def traffic(run: Run) -> Blocks:
    """Bytes and speeds; who sends how much to whom is for programs, in the JSON document."""
    traffic_of_run = run.traffic
    if isinstance(traffic_of_run, Missing):
        yield statement(unknown_words(traffic_of_run), "Bytes")
        return
    speeds = traffic_of_run.speeds if traffic_of_run else ()
    if isinstance(speeds, Missing):
        yield statement(f"Speed is unknown: {speeds.reason}.", "Bytes")
    elif speeds:
        rows = []
        for speed in speeds:
            size, time = gigabytes(speed.size_bytes), milliseconds(speed.transfer_ns)
            rate_text = told(speed.bytes_per_s, lambda rate: f"{gigabytes(rate)}/s")
            rows.append((Term(speed.kind), f"{speed.collectives:,}", size, time, rate_text))
        yield shaped("speeds", rows)
