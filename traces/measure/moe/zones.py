"""Where in a layer pass each launch stands.

A pass on its lane: before | tokens leave | entry | experts | exit | tokens come back | after. Entry is what
brings tokens into the order of experts, exit what takes them out of it. Before and after reach to the next
norm, attention or head, or to the pass beside it.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from traces.columns import CODE, PLACE, BoolArray, IntArray
from traces.measure.moe.lanes import Lanes, Part
from traces.measure.moe.passes import Evidence, Passes
from traces.measure.moe.reach import next_at, previous_at
from traces.resolve.resolution import PHASES, UNTOLD


class Zone(IntEnum):
    """Stretches of a pass, in their order."""

    BEFORE = 0
    LEAVE = 1
    ENTRY = 2
    EXPERTS = 3
    EXIT = 4
    RETURN = 5
    AFTER = 6
    OUTSIDE = 7


@dataclass(frozen=True, slots=True)
class Zones:
    """Zone and pass (`UNTOLD` outside) of each place in a lane order, shape (n,).

    `begin` and `end`, shape (p,), are where the zone before each pass begins and the one after it ends,
    `entered` where its experts begin.
    """

    zone: IntArray
    of: IntArray
    begin: IntArray
    entered: IntArray
    end: IntArray


def zones_of(lanes: Lanes, passes: Passes, told: Evidence) -> Zones:
    """Cut the lanes at the passes."""
    count = len(lanes.order)
    if not len(passes):
        nothing = np.empty(0, dtype=np.int64)
        outside = np.full(count, Zone.OUTSIDE, dtype=CODE)
        return Zones(outside, np.full(count, UNTOLD, dtype=PLACE), nothing, nothing, nothing)
    begin, end = _reach(lanes, passes, told)
    entered, left = _experts(lanes, passes)
    back = passes.from_last + 1
    starts = (begin, passes.to_first, passes.to_last + 1, entered, left, passes.from_first, back, end)
    borders = np.stack(starts, axis=1).ravel()
    at = (np.searchsorted(borders, np.arange(count, dtype=PLACE), side="right") - 1).astype(PLACE)
    zone = (at % len(Zone)).astype(CODE)
    zone[at < 0] = Zone.OUTSIDE
    of = at // len(Zone)
    of[zone == Zone.OUTSIDE] = UNTOLD
    return Zones(zone, of, begin, entered, end)


def _reach(lanes: Lanes, passes: Passes, told: Evidence) -> tuple[IntArray, IntArray]:
    """Where the zone before each pass begins, and where the one after it ends."""
    count, border = len(lanes.order), lanes.part == Part.BORDER
    first, after = passes.to_first, passes.from_last + 1
    turn = np.concatenate(([True], lanes.lane[1:] != lanes.lane[:-1]))
    left, right = np.append(0, after[:-1]), np.append(first[1:], count)
    begin = np.maximum.reduce((previous_at(turn)[first + 1], left, previous_at(border)[first] + 1))
    end = np.minimum.reduce((next_at(turn)[after], right, next_at(border)[after]))
    meet = (end[:-1] == right[:-1]) & (begin[1:] == left[1:])
    split = _split(lanes, told, left[1:], right[:-1])
    begin[1:] = np.where(meet, split, begin[1:])
    end[:-1] = np.where(meet, split, end[:-1])
    return begin, end


def _split(lanes: Lanes, told: Evidence, left: IntArray, right: IntArray) -> IntArray:
    """Where, in stretches between two passes that nothing parts, the first ends.

    Where recompute begins or ends, else where backward by name begins.
    """
    again = told.recomputed[lanes.order]
    flips: BoolArray = np.concatenate(([False], again[1:] != again[:-1]))
    backward = told.phase[lanes.order] == PHASES.index("bwd")
    flip = next_at(flips)[left]
    return np.minimum(np.where(flip < right, flip, next_at(backward)[left]), right)


def _experts(lanes: Lanes, passes: Passes) -> tuple[IntArray, IntArray]:
    """Where in each pass the experts begin and end: between the reorders on both sides of their GEMMs.

    Without a reorder on one side, they reach to the payload; without any, dense GEMMs before the first
    grouped one are not theirs.
    """
    low, high = passes.to_last + 1, passes.from_first
    reorder, grouped = lanes.part == Part.REORDER, lanes.part == Part.GROUPED
    dense = np.isin(lanes.part, (Part.GEMM, Part.ACTIVATION))
    gemm = grouped | (lanes.part == Part.GEMM)
    next_gemm, previous_gemm, next_reorder, previous_reorder = (
        next_at(gemm),
        previous_at(gemm),
        next_at(reorder),
        previous_at(reorder),
    )
    first, last = next_reorder[low], previous_reorder[high]
    some = first < high
    two = some & (next_gemm[first] < last)
    only_exit = some & ~two & (next_gemm[low] < first) & (next_gemm[np.maximum(last, 0)] >= high)
    begins = np.where(some, previous_reorder[next_gemm[first]], previous_at(dense)[next_at(grouped)[low]])
    begins = np.where(some & ~two, last, begins)
    begins = np.where(only_exit | (~some & (next_at(grouped)[low] >= high)), -1, begins)
    ends = np.where(two, next_reorder[previous_gemm[np.maximum(last, 0)]], np.where(only_exit, first, high))
    begins = np.clip(begins + 1, low, high)
    return begins, np.clip(ends, begins, high)
