"""The pipeline of a run: what its stages wait for each other, and what the schedule makes them wait."""

from collections.abc import Iterator

from reports.content.blocks import Block, Column, Quantity, Row, Sentence, Table, Words, words
from reports.content.wording import ended
from traces.missing import Missing, OrMissing, known
from traces.sections.run import Pipeline, PipelineStage, Run
from traces.spelling import counted, milliseconds, numbers, percent, rounded


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
    """Observed and expected, and what more virtual stages leave."""
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
