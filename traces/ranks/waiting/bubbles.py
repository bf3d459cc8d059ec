"""What stages of a pipeline wait for each other: by stage, and by phase of the schedule."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from traces.arrays import FOREVER, BoolArray, IntArray, Rows, count_from_0, listed, summed, zeros
from traces.frozen import frozen
from traces.groups import mask_of, sums_of
from traces.missing import Missing, gap, known, or_gap
from traces.names.kernels import COMM_KINDS
from traces.ranks.matching.match import Matched
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import UNKNOWN, Summaries, messages_beside
from traces.ranks.waiting.pipelines import (
    PHASES,
    SHAPE,
    UNRESOLVED,
    Pipelines,
    Schedule,
    Sent,
    bubble_frac,
    messages_of,
    phases_of,
    pipelines_of,
    schedule_of,
)
from traces.ranks.waiting.side_by_side import NO_STEPS, Grid, means, own_step_of, rounded, step_of
from traces.ranks.waiting.waits import Waits
from traces.sections.run import Pipeline, PipelineStage, VirtualStages

_NO_WHOLE: Final = gap("of no step are all messages within it", "record more steps")
_MORE_CHUNKS: Final = (2, 4)
"""Times as many virtual stages, of which the formula says what they leave."""


def pipeline_of(
    summaries: Summaries, matched: Matched, waits: Waits, grid: Grid
) -> Pipeline | Missing | None:
    """The bubbles of a run; None where no stages exchange messages, `Missing` where they may.

    A bubble is the time without compute in which a stage waits for messages, and after its last one
    for other stages in other collectives; times are of a mean rank and step. `bubble_frac`: of the
    steps of all stages; `formula_frac`: what is expected of equal stages. `stage_imbalance`: the
    largest own work of a stage over the mean.
    """
    messages = messages_of(matched)
    if not messages.any():
        if (matched.kind == COMM_KINDS.index("sendrecv_unresolved")).any():
            return UNRESOLVED
        return None
    pipelines = pipelines_of(summaries, matched, messages)
    if isinstance(pipelines, Missing):
        return pipelines
    step = parts.spread(step_of(matched, grid), matched.first)
    order = np.flatnonzero(messages[matched.instance] & (step != UNKNOWN))
    if not len(order):
        return gap("no message lies in a step of the run", "record whole steps")
    order = order[np.lexsort((matched.start_ns[order], step[order], matched.place[order]))]
    sent = _sent(summaries, matched, pipelines, step, order)
    schedule = schedule_of(sent, pipelines)
    phase = schedule if isinstance(schedule, Missing) else phases_of(sent, schedule, pipelines)
    waited_ns, drained_ns = _waited(matched, waits, pipelines, step, order)
    inside, head = own_step_of(matched, grid)[order] == step[order], sent.first[:-1]
    whole = parts.least(inside, sent.first)
    cells = _StepCells(matched.place[order][head], sent.step[head], sent.stage[head], whole)
    stages = tuple(
        _stage(stage, sent, cells, waited_ns, drained_ns, phase, grid, pipelines)
        for stage in range(pipelines.count)
    )
    return _pipeline(stages, schedule)


@frozen
class _StepCells(Rows):
    """Each rank in each step, shape (c,). `whole`: all of its messages began in that step, as it
    recorded it.

    Of the first step a rank of a later stage may have been waiting before.
    """

    place: IntArray
    step: IntArray
    stage: IntArray
    whole: BoolArray


def _pipeline(stages: tuple[PipelineStage, ...], schedule: Schedule | Missing) -> Pipeline:
    works = [known(stage.own_work_ns) for stage in stages]
    whole_ns, work_ns = _total([known(stage.step_ns) for stage in stages]), _total(works)
    bubble_ns = _total([known(stage.bubble_ns) for stage in stages])
    plan, untold = known(schedule), schedule if isinstance(schedule, Missing) else None
    expected = _expected(len(stages), plan) if plan else []
    return Pipeline(
        stages=stages,
        bubble_frac=min(1.0, bubble_ns / whole_ns)
        if whole_ns and bubble_ns is not None
        else NO_STEPS,
        formula_frac=expected[0].formula_frac if plan else untold,
        stage_imbalance=max(work or 0 for work in works) * len(works) / work_ns
        if work_ns
        else NO_STEPS,
        microbatches=plan.microbatches if plan else untold,
        chunks=plan.chunks if plan else untold,
        with_more_chunks=tuple(expected[1:]),
    )


def _expected(stages: int, schedule: Schedule) -> list[VirtualStages]:
    """What the formula says of as many virtual stages, and of more."""
    expected = []
    for times in (1, *_MORE_CHUNKS):
        chunks = schedule.chunks * times
        expected.append(VirtualStages(chunks, bubble_frac(stages, schedule.microbatches, chunks)))
    return expected


def _total(several: Sequence[int | None]) -> int | None:
    total = 0
    for part_ns in several:
        if part_ns is None:
            return None
        total += part_ns
    return total


def _sent(
    summaries: Summaries,
    matched: Matched,
    pipelines: Pipelines,
    step: IntArray,
    order: IntArray,
) -> Sent:
    stage = pipelines.stage[matched.place]
    first = matched.first
    # of two, the one that is not this one
    other = parts.spread(parts.total(stage, first), first) - stage
    peer = np.where(parts.spread(np.diff(first) == 2, first), other, UNKNOWN)
    at = matched.at[order]
    calls = messages_beside(summaries).take(at)
    size = np.maximum(matched.recorded.rows.size_bytes[at], calls.received_bytes)
    is_shape = (size != UNKNOWN) & (size <= SHAPE.value)
    key = matched.place[order] * (count_from_0(step)) + step[order]
    return Sent(
        stage[order],
        peer[order],
        step[order],
        calls.sends,
        calls.receives,
        parts.begins_of(key),
        is_shape,
    )


def _waited(
    matched: Matched, waits: Waits, pipelines: Pipelines, step: IntArray, order: IntArray
) -> tuple[IntArray, IntArray]:
    """Time without compute in which each message waits, shape (k,), and that after the last one of
    each rank and step, shape (places, steps).

    Where messages wait beside each other an instant counts once.
    """
    stage = pipelines.stage[matched.place]
    first = matched.first
    spans = parts.spread(parts.varies(stage, first), first)
    is_message = mask_of(order, len(stage))
    last_ns = np.full((len(pipelines.stage), count_from_0(step)), FOREVER)
    # in order of start: the last one stays
    last_ns[matched.place[order], step[order]] = matched.end_ns[order]
    drains = spans & ~is_message & (step != UNKNOWN) & (stage != UNKNOWN)
    drains &= matched.start_ns >= last_ns[matched.place, step]
    rows = np.flatnonzero(is_message | drains)
    rows = rows[np.lexsort((matched.start_ns[rows], matched.place[rows]))]
    alone_ns = zeros(len(stage))
    alone_ns[rows] = _alone_ns(matched, waits, rows)
    drained_ns = zeros(last_ns.shape)
    at = np.flatnonzero(drains)
    np.add.at(drained_ns, (matched.place[at], step[at]), alone_ns[at])
    return alone_ns[order], drained_ns


def _alone_ns(matched: Matched, waits: Waits, rows: IntArray) -> IntArray:
    """Of rows by place and start, the waiting that lies behind that of all before, without
    compute.
    """
    start_ns = matched.start_ns[rows]
    end_ns = start_ns + waits.wait_ns[rows]
    result = zeros(len(rows))
    first = parts.begins_of(matched.place[rows])
    for begin, end in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
        until = np.maximum.accumulate(end_ns[begin:end])
        before = np.concatenate((start_ns[begin : begin + 1], until[:-1]))
        result[begin:end] = np.maximum(
            end_ns[begin:end] - np.maximum(start_ns[begin:end], before), 0
        )
    return np.minimum(result, matched.exposed_ns[rows])


def _stage(
    stage: int,
    sent: Sent,
    cells: _StepCells,
    waited_ns: IntArray,
    drained_ns: IntArray,
    phase: IntArray | Missing,
    grid: Grid,
    pipelines: Pipelines,
) -> PipelineStage:
    """Sums over ranks and whole steps, divided by how many these are; the bubble is the sum of its
    phases.
    """
    used = cells.whole & (cells.stage == stage)
    at = cells.place[used], cells.step[used]
    step_ns, work_ns = rounded(means(np.stack((grid.length_ns[at], grid.compute_ns[at]))))
    ranks = listed(np.flatnonzero(pipelines.stage == stage))
    made = partial(PipelineStage, ranks, or_gap(step_ns, NO_STEPS), or_gap(work_ns, NO_STEPS))
    count = len(at[0])
    if not count:
        return made(_NO_WHOLE, *(_NO_WHOLE,) * len(PHASES))
    mine = parts.spread(used, sent.first)
    drained = summed(drained_ns[at])
    if isinstance(phase, Missing):
        return made((summed(waited_ns[mine]) + drained) // count, *(phase,) * len(PHASES))
    sums = sums_of(waited_ns[mine], phase[mine], len(PHASES))
    sums[PHASES.index("cool_down")] += drained
    mean = (sums // count).tolist()
    return made(sum(mean), *mean)
