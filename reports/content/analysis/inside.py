"""What several ranks show inside a run: stages of the pipeline, experts, and bytes between ranks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from heuristics.result.result import Result
from reports.content.blocks import Block, Column, Items, Quantity, Row, Sentence, Table, Term, Words, words
from reports.content.names import ended
from traces.missing import Missing, OrMissing, known
from traces.sections.cause import HotRank
from traces.sections.run import CollectiveSpeed, ExpertGroups, Pipeline, PipelineStage, Run, Traffic
from traces.spelling import counted, duration, gigabytes, megabytes, milliseconds, numbers, percent, rounded


def stages(run: Run) -> Iterator[Block]:
    """A table of the stages, and how the bubble compares with the formula; nothing without a pipeline."""
    if isinstance(run.pipeline, Missing):
        yield Sentence(words(f"unknown: {ended(run.pipeline.reason)}"), "Pipeline stages")
    pipeline = known(run.pipeline)
    if pipeline is None:
        return
    heads = ("stage", "ranks", "step", "own work", "bubble", "warm-up", "steady", "cool-down")
    columns = tuple(Column(head, number=place > 1) for place, head in enumerate(heads))
    rows = tuple(_row(run, place, one) for place, one in enumerate(pipeline.stages))
    note = "bubble: waiting for other stages without compute; warm-up, steady and cool-down add up to it."
    if isinstance(missing := pipeline.stages[0].warm_up_ns, Missing):
        note += f" Its phases are unknown: {ended(missing.reason)}"
    yield Table("Pipeline stages, ms in a mean step", columns, rows, note=words(note))
    yield Sentence(_against_formula(pipeline), "Bubble")


def _row(run: Run, place: int, one: PipelineStage) -> Row:
    phases = (one.warm_up_ns, one.steady_ns, one.cool_down_ns)
    times = (one.step_ns, one.own_work_ns, one.bubble_ns, *phases)
    return Row((words(str(place)), words(_ranks(run, one)), *map(_ms, times)))


def _ranks(run: Run, one: PipelineStage) -> str:
    """By their numbers; where these are not recorded, how many."""
    seen = [run.ranks[place].rank for place in one.ranks]
    known_ones = [number for number in seen if number is not None]
    return numbers(known_ones) if len(known_ones) == len(seen) else counted(len(seen), "rank")


def _ms(value: OrMissing[int]) -> Quantity:
    told = known(value)
    return Quantity("unknown" if told is None else milliseconds(told))


def _against_formula(found: Pipeline) -> Words:
    frac, expected = known(found.bubble_frac), known(found.formula_frac)
    parts = ["unknown" if frac is None else f"{percent(frac)} of the steps"]
    microbatches, chunks = known(found.microbatches), known(found.chunks)
    if expected is None or microbatches is None or chunks is None:
        reason = (
            found.formula_frac.reason if isinstance(found.formula_frac, Missing) else "no schedule is known"
        )
        parts.append(f"what the schedule needs is unknown: {reason}")
    else:
        virtual = f", {counted(chunks, 'virtual stage')} a rank" if chunks > 1 else ""
        schedule = (
            f"{len(found.stages)} equal stages with {counted(microbatches, 'microbatch', 'microbatches')}"
        )
        parts.append(f"the formula gives {percent(expected)} for {schedule}{virtual}")
        more = [f"{percent(one.formula_frac)} with {one.chunks}" for one in found.with_more_chunks]
        parts += [f"it leaves {' and '.join(more)} virtual stages a rank"] if more else []
    if (imbalance := known(found.stage_imbalance)) is not None:
        parts.append(f"the largest own work of a stage is {rounded(imbalance)} times the mean")
    return words("; ".join(parts) + ".")


_LISTED: Final = 8
"""Layers that a table has: the most uneven ones."""
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
    configuration = known(result.configuration)
    settings = () if configuration is None else configuration.settings
    mock = any(one.knob == _MOCK_KNOB and one.value is True for one in settings)
    found = ((_FORCED, result.forced_routing is True), (_MOCK, mock))
    return tuple(words(text) for text, holds in found if holds)


def experts(run: Run, name: Callable[[int], Words], notes: Sequence[Words] = ()) -> Iterator[Block]:
    """The most uneven layers and the pattern; nothing where no layers are known. `notes`: of the routing."""
    found = known(run.experts)
    if found is None:
        return
    most = sorted(found.uneven_layers, key=lambda one: -one.imbalance)
    columns = (
        Column("layer"), Column("group", number=True), Column("largest / mean", number=True), Column("rank"),
    )  # fmt: skip
    rows = tuple(
        Row(
            (
                words(str(one.layer)),
                Quantity(str(one.expert_group + 1)),
                Quantity(f"{rounded(one.imbalance)} x"),
                name(one.hot_index),
            )
        )
        for one in most[:_LISTED]
    )
    title = f"Expert work, {counted(len(found.groups), 'group')} of ranks that exchange tokens"
    note = words("GEMMs of experts, of a median step; layers as the rank counts them. The most uneven first.")
    yield Table(title, columns, rows, None, max(0, len(most) - _LISTED), note)
    yield Items((_pattern(found), _worst(found, name), *notes), "What it points to")


def _pattern(found: ExpertGroups) -> Words:
    if isinstance(found.pattern, Missing):
        return words(
            f"Whether routing or placement makes it uneven is unknown: {ended(found.pattern.reason)}"
        )
    if found.pattern is None:
        return words("Whether routing or placement makes it uneven is unknown.")
    text = _PATTERNS[found.pattern]
    return words(text[0].upper() + text[1:])


def _worst(found: ExpertGroups, name: Callable[[int], Words]) -> Words:
    worst = found.worst
    return words(
        f"Worst: layer {worst.layer} in step {worst.step}, ",
        *name(worst.hot_index),
        f": {rounded(worst.imbalance)} times the mean, {duration(worst.above_ns)} more.",
    )


"""Pairs of ranks that a table has; the document has more."""


def traffic(run: Run, name: Callable[[int], Words]) -> Iterator[Block]:
    """Speeds by kind and the largest pairs; why they are unknown where no sizes are recorded."""
    if isinstance(run.traffic, Missing):
        cure = f"To learn it: {run.traffic.cure.rstrip('.')}."
        yield Sentence(words(f"unknown: {run.traffic.reason.rstrip('.')}. {cure}"), "Bytes")
        return
    if run.traffic is None:
        return
    speeds = known(run.traffic.speeds)
    if speeds:
        heads = ("kind", "collectives", "size", "transfer, ms", "size / transfer")
        columns = tuple(Column(head, number=place > 0) for place, head in enumerate(heads))
        note = "Algorithm bandwidth, as in nccl-tests; of collectives that all their ranks recorded."
        yield Table("Bytes and transfer by kind", columns, tuple(map(_speed, speeds)), note=words(note))
    elif isinstance(run.traffic.speeds, Missing):
        yield Sentence(words(f"Speed is unknown: {run.traffic.speeds.reason}."), "Bytes")
    if run.traffic.largest_pairs:
        yield _pairs(run.traffic, name)


def _speed(one: CollectiveSpeed) -> Row:
    rate = known(one.bytes_per_s)
    return Row(
        (
            words(Term(one.kind)),
            Quantity(f"{one.collectives:,}"),
            Quantity(gigabytes(one.size_bytes)),
            Quantity(milliseconds(one.transfer_ns)),
            Quantity("unknown" if rate is None else f"{gigabytes(rate)}/s"),
        )
    )


def _pairs(found: Traffic, name: Callable[[int], Words]) -> Table:
    columns = (Column("from"), Column("to"), Column("kind"), Column("MB a step", number=True))
    rows = tuple(
        Row(
            (
                name(one.sender),
                name(one.receiver),
                words(Term(one.kind)),
                Quantity(megabytes(one.size_bytes)),
            )
        )
        for one in found.largest_pairs[:_LISTED]
    )
    left = max(0, len(found.largest_pairs) - _LISTED)
    return Table("Who sends most to whom", columns, rows, None, left)
