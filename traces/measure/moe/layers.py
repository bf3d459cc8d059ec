"""Which layer each pass belongs to: as its range says, else by its turn in the step, checked
everywhere.
"""

from itertools import starmap

import numpy as np

from traces.arrays import IntArray, Lasting, distinct, last_at, order_of
from traces.groups import begins, next_at
from traces.measure.ledger import borders_of
from traces.measure.moe.passes import Kind, Lanes, PassCount, Passes
from traces.missing import Missing
from traces.resolve.communication import communication_of
from traces.resolve.neighbours import launch_order
from traces.resolve.ranges import enclosing_ranges
from traces.resolve.resolution import UNTOLD
from traces.steps.found import Steps
from traces.timeline import RankTimeline


def heads_of(lanes: Lanes, passes: Passes) -> IntArray:
    """The first payload kernel of each pass, shape (p,): its place among the rank's activities."""
    return lanes.order[passes.to_first]


def steps_at(borders: Lasting, time_ns: IntArray) -> IntArray:
    """Used step in which each time lies, `UNTOLD` outside of all."""
    step = last_at(borders.start_ns, time_ns)
    # -1 before the first, which is that
    return np.where(time_ns < borders.end_ns[step], step, UNTOLD)


def layers_of(
    rank: RankTimeline, borders: Lasting, lanes: Lanes, passes: Passes
) -> IntArray | Missing:
    """Layer of each pass, shape (p,), `UNTOLD` outside of the used steps; `Missing` where it cannot
    be told.

    Forward passes go through the layers upwards, backward ones downwards, the same ones in every
    microbatch and step. Where ranges name some passes, the others are counted from them; where
    ranges name all, nothing is counted. A schedule that runs all microbatches forward before any
    backward looks like more layers.
    """
    head = heads_of(lanes, passes)
    step = steps_at(borders, rank.activities.start_ns[head])
    named = _named(rank, head, passes.kind)
    mine = step != UNTOLD
    layers = _counted(named, step, passes.kind, _numbers(rank, named, step, passes.kind, head))
    if layers is None and mine.any() and (named[mine] != UNTOLD).all():
        layers = np.where(mine, named, UNTOLD)
    if layers is None:
        reason = (
            "the passes through MoE layers are not the same in every microbatch and step, or "
            "take turns"
        )
        return rank.lacks(reason, "layer_ranges")
    return _with_recomputed(layers, passes.kind, passes.lane)


def _named(rank: RankTimeline, head: IntArray, kind: IntArray) -> IntArray:
    """Layer that the range around each pass's first launch names; its backward's where one range
    has both.
    """
    comm = communication_of(rank)
    ranges = enclosing_ranges(comm)
    layer, backward = np.full((2, len(rank.activities)), UNTOLD)
    layer[comm.index], backward[comm.index] = ranges.layer, ranges.layer_backward
    return np.where(kind == Kind.FORWARD, layer[head], backward[head])


def _numbers(
    rank: RankTimeline, named: IntArray, step: IntArray, kind: IntArray, head: IntArray
) -> IntArray:
    """Numbers of the layers, ascending: those named, else 0 to as many as one microbatch runs
    through.
    """
    layers = distinct(named[(kind == Kind.FORWARD) & (step != UNTOLD) & (named != UNTOLD)])
    if len(layers):
        return layers
    mine = np.flatnonzero((step != UNTOLD) & np.isin(kind, (Kind.FORWARD, Kind.BACKWARD)))
    place = order_of(launch_order(rank.activities))[head[mine]]
    mine = mine[np.lexsort((place, step[mine]))]
    first = np.flatnonzero(begins(step[mine], kind[mine]))
    count = int(np.gcd.reduce(np.diff(first, append=len(mine))))
    takes_turns = count == 1 and len(first) > 2 * len(distinct(step[mine]))
    return np.arange(0 if takes_turns else count)


def _counted(named: IntArray, step: IntArray, kind: IntArray, numbers: IntArray) -> IntArray | None:
    """The layers by counting, None where what is told of them, or how many passes there are, does
    not fit.
    """
    if not len(numbers):
        return None
    result = np.full(len(named), UNTOLD)
    lengths = set()
    for which, order in ((Kind.FORWARD, numbers), (Kind.BACKWARD, numbers[::-1])):
        for number in distinct(step[step != UNTOLD]):
            mine = np.flatnonzero((step == number) & (kind == which))
            result[mine] = np.resize(order, len(mine))
            lengths.add(len(mine))
    checked = (result != UNTOLD) & (named != UNTOLD)
    if (
        len(lengths) != 1
        or lengths.pop() % len(numbers)
        or (result[checked] != named[checked]).any()
    ):
        return None
    return result


def _with_recomputed(layer: IntArray, kind: IntArray, lane: IntArray) -> IntArray:
    """A recomputed pass is of the layer whose backward comes next on its lane."""
    following = next_at(kind == Kind.BACKWARD)[: len(kind)]
    after = np.minimum(following, len(kind) - 1)
    fits = (
        (following < len(kind))
        & (lane[after] == lane)
        & (kind == Kind.RECOMPUTE)
        & (layer == UNTOLD)
    )
    return np.where(fits, layer[after], layer)


def counted(
    rank: RankTimeline, steps: Steps, lanes: Lanes, passes: Passes
) -> tuple[PassCount, ...] | None:
    """Passes of each used step; None without steps or passes, and where one in them does not
    close.
    """
    if not steps.used or not len(passes):
        return None
    step = steps_at(borders_of(steps), rank.activities.start_ns[heads_of(lanes, passes)])
    inside = step != UNTOLD
    if (inside & (~passes.whole | (passes.kind == UNTOLD))).any():
        return None
    cell, cells = step[inside] * len(Kind) + passes.kind[inside], len(steps.used) * len(Kind)
    counts = np.bincount(cell, minlength=cells).reshape(len(steps.used), len(Kind)).tolist()
    return tuple(starmap(PassCount, counts))
