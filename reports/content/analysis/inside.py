"""What several ranks show inside a run: stages of the pipeline, experts, and bytes between
ranks.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from heuristics.result.result import Result
from reports.content.blocks import Block, Items, Term, Words, table, words
from reports.content.names import ended, is_set, sentence, statement, told, unknown_words, when
from reports.measures import words_of
from traces.missing import Missing, known
from traces.sections.run import Pipeline, Run
from traces.spelling import counted, duration, gigabytes, milliseconds, numbers, percent, rounded


def stages(run: Run) -> Iterator[Block]:
    pipeline = run.pipeline
    if isinstance(pipeline, Missing):
        yield statement(f"unknown: {ended(pipeline.reason)}", "Pipeline stages")
    elif pipeline is not None:
        heads = ("stage", "ranks", "step", "own work", "bubble", "warm-up", "steady", "cool-down")
        rows = []
        for place, one in enumerate(pipeline.stages):
            # by their numbers; where these are not recorded, how many
            ranks = [run.ranks[at].rank for at in one.ranks]
            recorded = [number for number in ranks if number is not None]
            named = numbers(recorded) if recorded == ranks else counted(len(ranks), "rank")
            phases = (one.warm_up_ns, one.steady_ns, one.cool_down_ns)
            times = (one.step_ns, one.own_work_ns, one.bubble_ns, *phases)
            rows.append((f"{place}", named, *(told(time_ns, milliseconds) for time_ns in times)))
        note = (
            "bubble: waiting for other stages without compute; warm-up, steady and cool-down "
            "add up to it."
        )
        if isinstance(missing := pipeline.stages[0].warm_up_ns, Missing):
            note += f" Its phases are unknown: {ended(missing.reason)}"
        yield table("Pipeline stages, ms in a mean step", heads, rows, range(2, 8), note)
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


def routing_notes(result: Result) -> tuple[Words, ...]:
    """What the configuration, the options or the log say that makes expert work no evidence of
    routing.
    """
    found = (when(result.forced_routing, _FORCED), when(is_set(result, "data.mock"), _MOCK))
    return tuple(map(words, filter(None, found)))


def experts(run: Run, name: Callable[[int], Words], notes: Sequence[Words] = ()) -> Iterator[Block]:
    """The most uneven layers and the pattern; nothing where no layers are known. `notes`: of the
    routing.
    """
    found = known(run.experts)
    if found is None:
        return
    most = sorted(found.uneven_layers, key=lambda one: -one.imbalance)
    rows = (
        (
            str(one.layer),
            str(one.expert_group + 1),
            f"{rounded(one.imbalance)} x",
            name(one.hot_index),
        )
        for one in most[:_LISTED]
    )
    title = f"Expert work, {counted(len(found.groups), 'group')} of ranks that exchange tokens"
    note = (
        "GEMMs of experts, of a median step; layers as the rank counts them. The most uneven first."
    )
    left = max(0, len(most) - _LISTED)
    yield table(title, ("layer", "group", "largest / mean", "rank"), rows, range(1, 3), note, left)
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


def traffic(run: Run) -> Iterator[Block]:
    """Bytes and speeds; who sends how much to whom is for programs, in the JSON document."""
    found = run.traffic
    if isinstance(found, Missing):
        yield statement(unknown_words(found), "Bytes")
        return
    speeds = found.speeds if found else ()
    if isinstance(speeds, Missing):
        yield statement(f"Speed is unknown: {speeds.reason}.", "Bytes")
    elif speeds:
        heads = ("kind", "collectives", "size", "transfer, ms", "size / transfer")
        rows = []
        for one in speeds:
            size, time = gigabytes(one.size_bytes), milliseconds(one.transfer_ns)
            speed = told(one.bytes_per_s, lambda rate: f"{gigabytes(rate)}/s")
            rows.append((Term(one.kind), f"{one.collectives:,}", size, time, speed))
        note = (
            "Algorithm bandwidth, as in nccl-tests; of collectives that all their ranks recorded."
        )
        yield table("Bytes and transfer by kind", heads, rows, note=note)
