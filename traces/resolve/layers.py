"""Phase and MoE layer of expert communication: dispatch or combine, and of which layer.

The phase is told by its name, the range around it, its notify kernel, or its neighbours; the layer
by its range, else by its place in the step.
"""

from __future__ import annotations

import numpy as np

from traces.arrays import BoolArray, IntArray, distinct, ints, none_of, order_of
from traces.frozen import frozen
from traces.groups import begins, next_at, place_in_run
from traces.resolve.communication import Communication, communication_of
from traces.resolve.neighbours import Neighbours, launch_order
from traces.resolve.ranges import Enclosing, enclosing_ranges
from traces.resolve.resolution import OPERATIONS, PAYLOAD_KINDS, PHASES, UNTOLD, Resolution
from traces.steps.found import Steps
from traces.timeline import RankTimeline
from traces.training import autograd_threads


def phases_of(
    comm: Communication, operation: IntArray, ranges: Enclosing, near: Neighbours
) -> IntArray:
    """Phase of each all-to-all and of what comes with it, shape (m,); `UNTOLD` elsewhere.

    A dispatch belongs to what comes next, a combine to what came before. Recomputed forward is
    forward.
    """
    expert = np.isin(
        operation,
        [
            *map(
                OPERATIONS.index,
                ("dispatch", "combine", "a2a", "notify", "sync", "layout", "fused"),
            )
        ],
    )
    phase = _first_told(comm.phase_by_name(), ranges.phase)
    phase = _first_told(phase, _of_notify(comm, phase, operation == _DISPATCH))
    launched = np.isin(comm.rows.launch_thread, ints(autograd_threads(comm.rank)))
    for which, told in (
        (operation == _DISPATCH, near.next_phase),
        (operation == _COMBINE, near.previous_phase),
        (near.previous_phase == near.next_phase, near.next_phase),
        (launched, np.full(len(comm), _BACKWARD)),
    ):
        phase = _first_told(phase, np.where(which, told, UNTOLD))
    return np.where(expert, phase, UNTOLD)


def _first_told(first: IntArray, second: IntArray) -> IntArray:
    return np.where(first != UNTOLD, first, second)


def _of_notify(comm: Communication, phase: IntArray, dispatch: BoolArray) -> IntArray:
    """Phase of the notify kernel right before a dispatch on its stream: DeepEP sends the counts
    first.
    """
    notify = comm.of_subclass("ep_notify")
    place = order_of(launch_order(comm.rank.activities))[comm.index]
    result = np.full(len(comm), UNTOLD)
    for stream in distinct(comm.rows.stream_id[notify]):
        mine = np.flatnonzero((comm.rows.stream_id == stream) & (notify | dispatch))
        mine = mine[order_of(place[mine])]
        after_notify = dispatch[mine[1:]] & notify[mine[:-1]]
        result[mine[1:][after_notify]] = phase[mine[:-1][after_notify]]
    return result


_FORWARD, _BACKWARD = PHASES.index("fwd"), PHASES.index("bwd")
_DISPATCH, _COMBINE = OPERATIONS.index("dispatch"), OPERATIONS.index("combine")


@frozen
class Places:
    """Of each communication activity, shape (m,), where in the step it stands; `UNTOLD` where
    untold.

    `step` is a step's index, `layer` a MoE layer counted from the input, `part` the place among the
    kernels of one dispatch or combine (tokens, then probabilities).
    """

    step: IntArray
    layer: IntArray
    part: IntArray


def places_of(rank: RankTimeline, resolution: Resolution, steps: Steps) -> Places:
    """Place the expert traffic of the used steps. Without steps only ranges tell layers."""
    rows = rank.activities.take(resolution.index)
    index = ints([*(step.index for step in steps.used), UNTOLD])
    step = index[steps.used_at(rows.start_ns)]
    order = order_of(launch_order(rank.activities))[resolution.index]
    directed = np.isin(resolution.operation, (_DISPATCH, _COMBINE)) & resolution.of_kind(
        *PAYLOAD_KINDS
    )
    mine = np.flatnonzero(directed & (resolution.phase != UNTOLD))
    mine = mine[np.lexsort((order[mine], resolution.phase[mine], step[mine]))]
    layer, part = np.full((2, len(resolution)), UNTOLD)
    number, part[mine] = _passes(step[mine], resolution.phase[mine], resolution.operation[mine])
    thread = rows.launch_thread[mine]
    layer[mine] = _by_sequence(number, step[mine], resolution.phase[mine], order[mine], thread)
    ranges = enclosing_ranges(communication_of(rank))
    by_range = np.where(resolution.phase == _BACKWARD, ranges.layer_backward, ranges.layer)
    return Places(step, np.where(directed & (by_range != UNTOLD), by_range, layer), part)


def _passes(step: IntArray, phase: IntArray, operation: IntArray) -> tuple[IntArray, IntArray]:
    """Layer passes: a dispatch and the combine after it, in one step and phase.

    The number of each row's pass, counted over all, and its place among the kernels of one dispatch
    or combine. Rows of shape (k,), in order of step, phase, launch. A combine without its dispatch
    has no pass.
    """
    if not len(step):
        return step.copy(), step.copy()
    part = place_in_run(step, phase, operation)
    opens = (part == 0) & (operation == _DISPATCH)
    number = np.cumsum(opens) - 1
    first = np.arange(len(step)) - place_in_run(step, phase)
    orphan = (number - number[first] + opens[first]) == 0
    return np.where(orphan, UNTOLD, number), part


def _by_sequence(
    number: IntArray, step: IntArray, phase: IntArray, order: IntArray, thread: IntArray
) -> IntArray:
    """Layer of each row by the order of passes; rows of shape (k,), in order of step, phase,
    launch.

    Forward goes through the layers upwards and backward downwards, in runs of one microbatch or
    several: the number of layers divides the length of every run. Where forward and backward passes
    take turns one by one, the order does not tell the layer.
    """
    result = np.full(len(step), UNTOLD)
    first = np.flatnonzero((number >= 0) & begins(number) & (step != UNTOLD))
    if not len(first):
        return result
    in_time = first[np.lexsort((order[first], step[first]))]
    recomputed = _recomputed(phase[in_time], thread[in_time])
    first_time = in_time[~recomputed]
    run_start = np.flatnonzero(begins(step[first_time], phase[first_time]))
    lengths = np.diff(np.concatenate((run_start, [len(first_time)])))
    layer_count = int(np.gcd.reduce(lengths))
    runs_per_step = len(run_start) / len(distinct(step[first_time]))
    if layer_count == 1 and runs_per_step > 2:
        return result
    place = (np.arange(len(first_time)) - np.repeat(run_start, lengths)) % layer_count
    downwards = phase[first_time] == _BACKWARD
    of_pass = np.append(result, UNTOLD)
    of_pass[number[first_time]] = np.where(downwards, layer_count - 1 - place, place)
    # a recomputed pass is of the layer whose backward comes next
    passes, again = np.append(number[in_time], UNTOLD), np.flatnonzero(recomputed)
    of_pass[passes[again]] = of_pass[passes[next_at(phase[in_time] == _BACKWARD)[again]]]
    return of_pass[number]


def _recomputed(phase: IntArray, thread: IntArray) -> BoolArray:
    """Forward passes launched where backward is, if others are not: recomputed by autograd's
    thread.
    """
    where_backward = np.isin(thread, thread[phase == _BACKWARD])
    forward = phase == _FORWARD
    if not (forward & ~where_backward).any():
        return none_of(len(phase))
    return forward & where_backward
