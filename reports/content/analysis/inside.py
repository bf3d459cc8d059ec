"""What several ranks show inside a run: stages of the pipeline, experts, and bytes between ranks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from heuristics.result.result import Result
from reports.content.blocks import Block, Entry, Items, Sentence, Term, Words, table, words
from reports.content.names import capital, ended, how_to_learn, is_set, told
from traces.missing import Missing, known
from traces.sections.cause import HotRank
from traces.sections.run import ExpertGroups, Pipeline, PipelineStage, Run, Traffic
from traces.spelling import counted, duration, gigabytes, milliseconds, numbers, percent, rounded


def stages(run: Run) -> Iterator[Block]:
    pipeline = run.pipeline
    if isinstance(pipeline, Missing):
        yield Sentence(words(f"unknown: {ended(pipeline.reason)}"), "Pipeline stages")
    elif pipeline is not None:
        heads = ("stage", "ranks", "step", "own work", "bubble", "warm-up", "steady", "cool-down")
        rows = (_stage(run, place, one) for place, one in enumerate(pipeline.stages))
        note = "bubble: waiting for other stages without compute; warm-up, steady and cool-down add up to it."
        if isinstance(missing := pipeline.stages[0].warm_up_ns, Missing):
            note += f" Its phases are unknown: {ended(missing.reason)}"
        yield table("Pipeline stages, ms in a mean step", heads, rows, range(2, 8), note)
        yield Sentence(words(_against_formula(pipeline)), "Bubble")


def _stage(run: Run, place: int, one: PipelineStage) -> Sequence[str]:
    times = (one.step_ns, one.own_work_ns, one.bubble_ns, one.warm_up_ns, one.steady_ns, one.cool_down_ns)
    return (str(place), _ranks(run, one), *(told(time_ns, milliseconds) for time_ns in times))


def _ranks(run: Run, one: PipelineStage) -> str:
    """By their numbers; where these are not recorded, how many."""
    seen = [run.ranks[place].rank for place in one.ranks]
    known_ones = [number for number in seen if number is not None]
    return numbers(known_ones) if len(known_ones) == len(seen) else counted(len(seen), "rank")


def _against_formula(found: Pipeline) -> str:
    frac, expected = known(found.bubble_frac), known(found.formula_frac)
    parts = ["unknown" if frac is None else f"{percent(frac)} of the steps"]
    microbatches, chunks = known(found.microbatches), known(found.chunks)
    if expected is None or microbatches is None or chunks is None:
        missing = found.formula_frac
        reason = missing.reason if isinstance(missing, Missing) else "no schedule is known"
        parts.append(f"what the schedule needs is unknown: {reason}")
    else:
        virtual = f", {counted(chunks, 'virtual stage')} a rank" if chunks > 1 else ""
        of = counted(microbatches, "microbatch", "microbatches")
        schedule = f"{len(found.stages)} equal stages with {of}{virtual}"
        parts.append(f"the formula gives {percent(expected)} for {schedule}")
        if more := [f"{percent(one.formula_frac)} with {one.chunks}" for one in found.with_more_chunks]:
            parts.append(f"it leaves {' and '.join(more)} virtual stages a rank")
    if (imbalance := known(found.stage_imbalance)) is not None:
        parts.append(f"the largest own work of a stage is {rounded(imbalance)} times the mean")
    return f"{'; '.join(parts)}."


_LISTED: Final = 8
"""Layers, or pairs of ranks, that a table has: the largest ones."""
_PATTERNS: Final[Mapping[HotRank, str]] = {
    HotRank.EVEN: "no rank has more than balanced routing leaves.",
    HotRank.SAME_RANK: "the same rank has the most in all layers: this points to the placement of experts.",
    HotRank.BY_LAYER: "another rank has the most by layer, the same in all steps: this points to routing.",
    HotRank.BY_STEP: "another rank has the most from step to step: this points to routing.",
}
_FORCED: Final = "Routing is forced to balance, so expert work shows nothing of real routing."
_MOCK: Final = "The data is mock data, so expert work shows nothing of real routing."
_MOCK_KNOB: Final = "data.mock"


def routing_notes(result: Result) -> tuple[Words, ...]:
    """What the configuration, the options or the log say that makes expert work no evidence of routing."""
    found = ((_FORCED, result.forced_routing is True), (_MOCK, is_set(result, _MOCK_KNOB)))
    return tuple(words(text) for text, holds in found if holds)


def experts(run: Run, name: Callable[[int], Words], notes: Sequence[Words] = ()) -> Iterator[Block]:
    """The most uneven layers and the pattern; nothing where no layers are known. `notes`: of the routing."""
    found = known(run.experts)
    if found is None:
        return
    most = sorted(found.uneven_layers, key=lambda one: -one.imbalance)
    rows = (
        (str(one.layer), str(one.expert_group + 1), f"{rounded(one.imbalance)} x", name(one.hot_index))
        for one in most[:_LISTED]
    )
    title = f"Expert work, {counted(len(found.groups), 'group')} of ranks that exchange tokens"
    note = "GEMMs of experts, of a median step; layers as the rank counts them. The most uneven first."
    left = max(0, len(most) - _LISTED)
    yield table(title, ("layer", "group", "largest / mean", "rank"), rows, range(1, 3), note, left)
    at = f"Worst: layer {found.worst.layer} in step {found.worst.step}, "
    more = f": {rounded(found.worst.imbalance)} times the mean, {duration(found.worst.above_ns)} more."
    worst = words(at, name(found.worst.hot_index), more)
    yield Items((words(_pattern(found)), worst, *notes), "What it points to")


def _pattern(found: ExpertGroups) -> str:
    unknown = "Whether routing or placement makes it uneven is unknown"
    if isinstance(found.pattern, Missing):
        return f"{unknown}: {ended(found.pattern.reason)}"
    return f"{unknown}." if found.pattern is None else capital(_PATTERNS[found.pattern])


def traffic(run: Run) -> Iterator[Block]:
    """Bytes and speeds; who sends how much to whom is for programs, in the JSON document."""
    found = run.traffic
    if isinstance(found, Missing):
        yield Sentence(words(f"unknown: {ended(found.reason)}{how_to_learn(found.cure)}"), "Bytes")
    elif found is not None:
        yield from _speeds(found)


def _speeds(found: Traffic) -> Iterator[Block]:
    if isinstance(found.speeds, Missing):
        yield Sentence(words(f"Speed is unknown: {found.speeds.reason}."), "Bytes")
    elif found.speeds:
        heads = ("kind", "collectives", "size", "transfer, ms", "size / transfer")
        rows: Iterator[Sequence[Entry]] = (
            (
                Term(one.kind),
                f"{one.collectives:,}",
                gigabytes(one.size_bytes),
                milliseconds(one.transfer_ns),
                told(one.bytes_per_s, lambda rate: f"{gigabytes(rate)}/s"),
            )
            for one in found.speeds
        )
        note = "Algorithm bandwidth, as in nccl-tests; of collectives that all their ranks recorded."
        yield table("Bytes and transfer by kind", heads, rows, note=note)
