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
    elif pipeline is not None:
        rows = []
        for place, one in enumerate(pipeline.stages):
            # by their numbers; where these are not recorded, how many
            named, recorded = counted(len(one.ranks), "rank"), numbers_of(run, one.ranks)
            if len(recorded) == len(one.ranks):
                named = numbers(recorded)
            phases = (one.warm_up_ns, one.steady_ns, one.cool_down_ns)
            times = (one.step_ns, one.own_work_ns, one.bubble_ns, *phases)
            rows.append((f"{place}", named, *map(told_ms, times)))
        why = ""
        if isinstance(missing := pipeline.stages[0].warm_up_ns, Missing):
            why = f" Its phases are unknown: {ended(missing.reason)}"
        yield shaped("stages", rows, why=why)
        yield statement(_against_formula(pipeline), "Bubble")


def _against_formula(found: Pipeline) -> str:
    formula = found.formula_frac
    parts = [told(found.bubble_frac, lambda frac: f"{percent(frac)} of the steps")]
    microbatches, chunks = known(found.microbatches), known(found.chunks)
    if isinstance(formula, Missing):
        parts.append(f"what the schedule needs is unknown: {formula.reason}")
    elif formula is None or microbatches is None or chunks is None:
        parts.append("what the schedule needs is unknown: no schedule is known")
    else:
        virtual = when(chunks > 1, f", {counted(chunks, 'virtual stage')} a rank")
        of = counted(microbatches, "microbatch", "microbatches")
        schedule = f"{len(found.stages)} equal stages with {of}{virtual}"
        parts.append(f"the formula gives {percent(formula)} for {schedule}")
        if more := [
            f"{percent(one.formula_frac)} with {one.chunks}" for one in found.with_more_chunks
        ]:
            parts.append(f"it leaves {' and '.join(more)} virtual stages a rank")
    if (imbalance := known(found.stage_imbalance)) is not None:
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
    found = run.experts
    if not found:
        return
    most = sorted(found.uneven_layers, key=lambda one: -one.imbalance)
    rows = []
    for one in most[:_LISTED]:
        layer = (f"{one.layer}", f"{one.expert_group + 1}", f"{rounded(one.imbalance)} x")
        rows.append((*layer, name(one.hot_index)))
    groups = counted(len(found.groups), "group")
    yield shaped("experts", rows, max(0, len(most) - _LISTED), groups=groups)
    at = f"Worst: layer {found.worst.layer} in step {found.worst.step}, "
    more = (
        f": {rounded(found.worst.imbalance)} times the mean, {duration(found.worst.above_ns)} more."
    )
    worst = words(at, name(found.worst.hot_index), more)
    pattern, said = found.pattern, "Whether routing or placement makes it uneven is unknown"
    if isinstance(pattern, Missing):
        said = f"{said}: {pattern.reason}"
    elif pattern is not None:
        said = words_of("hot_rank")[pattern]
    yield Items((words(sentence(said)), worst, *notes), "What it points to")


def traffic(run: Run) -> Blocks:
    """Bytes and speeds; who sends how much to whom is for programs, in the JSON document."""
    found = run.traffic
    if isinstance(found, Missing):
        yield statement(unknown_words(found), "Bytes")
        return
    speeds = found.speeds if found else ()
    if isinstance(speeds, Missing):
        yield statement(f"Speed is unknown: {speeds.reason}.", "Bytes")
    elif speeds:
        rows = []
        for one in speeds:
            size, time = gigabytes(one.size_bytes), milliseconds(one.transfer_ns)
            speed = told(one.bytes_per_s, lambda rate: f"{gigabytes(rate)}/s")
            rows.append((Term(one.kind), f"{one.collectives:,}", size, time, speed))
        yield shaped("speeds", rows)
