"""Which module of a MoE layer each activity belongs to, by its part and where in a layer pass it
stands.

A pass on its lane: before | entry | experts | exit | after. In entry tokens leave and come into the
order of experts, in exit they come back. Before and after reach to the next norm, attention or
head, or to the pass beside it.

Dense GEMMs around the exchanges are the expert that every token visits, and the router's gate.
Their names say nothing. The shared expert is told by its activation outside of the experts: it may
run beside an exchange, before the router, or after the combine; or its first linear layer runs
beside dispatch and its second beside combine (Megatron-Core's moe_shared_expert_overlap), in
backward the other way round.
"""

from enum import IntEnum
from typing import Final

import numpy as np

from traces.arrays import (
    CODE,
    NOWHERE,
    PLACE,
    BoolArray,
    IntArray,
    codes_of,
    last_at,
    none_of,
    nowhere,
    shifted,
)
from traces.frozen import frozen
from traces.groups import begins, mask_within, next_at, places_in, previous_at
from traces.measure.moe.passes import Evidence, Kind, Lanes, Part, Passes, nth_next, nth_previous
from traces.resolve.resolution import PHASES, UNTOLD


class Zone(IntEnum):
    """Stretches of a pass, in their order."""

    BEFORE = 0
    ENTRY = 1
    EXPERTS = 2
    EXIT = 3
    AFTER = 4
    OUTSIDE = 5


@frozen
class Zones:
    """Zone and pass (`UNTOLD` outside) of each place in a lane order, shape (n,).

    `begin` and `end`, shape (p,), are where the zone before each pass begins and the one after it
    ends, `entered` where its experts begin.
    """

    zone: IntArray
    of: IntArray
    begin: IntArray
    entered: IntArray
    end: IntArray


def zones_of(lanes: Lanes, passes: Passes, evidence: Evidence) -> Zones:
    """Cut the lanes at the passes."""
    count = len(lanes.order)
    if not len(passes):
        nothing = NOWHERE
        outside = np.full(count, Zone.OUTSIDE, dtype=CODE)
        return Zones(outside, nowhere(count), nothing, nothing, nothing)
    begin, end = _reach(lanes, passes, evidence)
    entered, left = _experts(lanes, passes)
    borders = np.stack(
        (begin, passes.to_first, entered, left, passes.from_last + 1, end), axis=1
    ).ravel()
    at = last_at(borders, np.arange(count, dtype=PLACE)).astype(PLACE)
    zone = (at % len(Zone)).astype(CODE)  # before the first it is outside as well
    of = at // len(Zone)
    of[zone == Zone.OUTSIDE] = UNTOLD
    return Zones(zone, of, begin, entered, end)


def _reach(lanes: Lanes, passes: Passes, evidence: Evidence) -> tuple[IntArray, IntArray]:
    count, border = len(lanes.order), lanes.part == Part.BORDER
    first, after = passes.to_first, passes.from_last + 1
    turn = begins(lanes.lane)
    left, right = np.append(0, after[:-1]), np.append(first[1:], count)
    begin = np.maximum.reduce((previous_at(turn)[first + 1], left, previous_at(border)[first] + 1))
    end = np.minimum.reduce((next_at(turn)[after], right, next_at(border)[after]))
    meet = (end[:-1] == right[:-1]) & (begin[1:] == left[1:])
    split = _split(lanes, evidence, left[1:], right[:-1])
    begin[1:] = np.where(meet, split, begin[1:])
    end[:-1] = np.where(meet, split, end[:-1])
    return begin, end


def _split(lanes: Lanes, evidence: Evidence, left: IntArray, right: IntArray) -> IntArray:
    """Where, in stretches between two passes that nothing parts, the first ends."""
    again = evidence.recomputed[lanes.order]
    backward = evidence.phase[lanes.order] == PHASES.index("bwd")
    flip = next_at(again != shifted(again))[left]
    return np.minimum(np.where(flip < right, flip, next_at(backward)[left]), right)


def _experts(lanes: Lanes, passes: Passes) -> tuple[IntArray, IntArray]:
    """Where in each pass the experts begin and end: between the reorders on both sides of their
    GEMMs.

    Without a reorder on one side, they reach to the payload; without any, dense GEMMs before the
    first grouped one are not theirs.
    """
    low, high = passes.to_last + 1, passes.from_first
    reorder, grouped = lanes.part == Part.REORDER, lanes.part == Part.GROUPED
    dense = np.isin(lanes.part, (Part.GEMM, Part.ACTIVATION))
    gemm = grouped | (lanes.part == Part.GEMM)
    next_gemm, next_reorder = next_at(gemm), next_at(reorder)
    previous_gemm, previous_reorder = previous_at(gemm), previous_at(reorder)
    first, last = next_reorder[low], previous_reorder[high]
    entry, before = previous_reorder[next_gemm[first]], previous_gemm[first]
    moved = last >= low
    only_exit = moved & (before >= low) & (before == previous_gemm[high])
    no_grouped = ~moved & (previous_at(grouped)[low] == previous_at(grouped)[high])
    begins = np.where(moved, np.minimum(entry, last), previous_at(dense)[next_at(grouped)[low]]) + 1
    begins = np.clip(np.where(only_exit | no_grouped, low, begins), low, high)
    ends = np.where(moved & (entry < last), next_reorder[previous_gemm[last]], high)
    return begins, np.clip(np.where(only_exit, first, ends), begins, high)


class _Around:
    """The zones around the experts of all passes; arrays of shape (p,) unless said otherwise."""

    def __init__(self, lanes: Lanes, passes: Passes, zones: Zones) -> None:
        self._part, self._passes, self._zones = lanes.part, passes, zones
        self._gemm, self._activation = lanes.part == Part.GEMM, lanes.part == Part.ACTIVATION
        self._next_gemm, self._previous_gemm = next_at(self._gemm), previous_at(self._gemm)
        self._back = passes.kind == Kind.BACKWARD
        self._gemms = np.where(self._back, 2, 1)  # of one linear layer: both gradients, in backward
        self._returned = passes.from_last + 1

    def shared(self) -> BoolArray:
        """Kernels of the shared expert, shape (n,)."""
        zones, passes = self._zones, self._passes
        beside = np.isin(zones.zone, (Zone.ENTRY, Zone.EXIT))
        worked = none_of(len(passes))
        worked[zones.of[beside & self._gemm]] = True
        mask = beside & worked[zones.of]
        mask |= self._whole(zones.begin, passes.to_first) | self._whole(self._returned, zones.end)
        mask |= self._second_half() | self._first_half_backward()
        return mask & np.isin(self._part, (Part.GEMM, Part.ACTIVATION, Part.CAST))

    def _whole(self, low: IntArray, high: IntArray) -> BoolArray:
        """In the stretches [low, high), from the linear layer before an activation to the one after
        it.
        """
        first, last = next_at(self._activation)[low], previous_at(self._activation)[high]
        begin = np.maximum(nth_previous(self._previous_gemm, first, self._gemms), low)
        begin = np.maximum(previous_at(self._part != Part.CAST)[begin] + 1, low)
        end = np.minimum(nth_next(self._next_gemm, last, self._gemms) + 1, high)
        return self._cover((first < high) & (self._previous_gemm[first] >= low), begin, end)

    def _second_half(self) -> BoolArray:
        """Forward: the linear layer beside combine, where only the first one ran beside
        dispatch.
        """
        high, activation = self._zones.entered, previous_at(self._activation)
        last = activation[high]
        begun = (
            ~self._back
            & (last != activation[self._passes.to_first])
            & (self._next_gemm[last] >= high)
        )
        end = np.minimum(self._next_gemm[self._returned] + 1, self._zones.end)
        return self._cover(begun, self._returned, end)

    def _first_half_backward(self) -> BoolArray:
        """Backward: the same expert, its second linear layer beside combine, the rest beside
        dispatch.
        """
        low, routed = self._returned, next_at(self._part == Part.ROUTER)[self._returned]
        high = np.minimum(self._zones.end, routed)
        first = next_at(self._activation)[low]
        split = self._back & (first < high) & (self._previous_gemm[first] < low)
        end = np.minimum(nth_next(self._next_gemm, first, self._gemms) + 1, high)
        before = nth_previous(self._previous_gemm, self._passes.to_first, self._gemms)
        before = np.maximum(before, self._zones.begin)
        return self._cover(split, low, end) | self._cover(split, before, self._passes.to_first)

    def _cover(self, which: BoolArray, begin: IntArray, end: IntArray) -> BoolArray:
        """Mask of the stretches [begin, end) of some passes, shape (n,)."""
        return mask_within(begin[which], end[which], len(self._part))

    def gate(self, shared: BoolArray) -> BoolArray:
        """The router's own GEMMs, (n,): forward the last before its kernels, backward those after
        them.
        """
        zones, router, free = self._zones, next_at(self._part == Part.ROUTER), self._gemm & ~shared
        first, later = router[zones.begin], router[self._returned]
        at = previous_at(free)[first]
        routed = ~self._back & (first != later) & (at >= zones.begin)
        return free & (self._cover(routed, at, first) | self._cover(self._back, later, zones.end))


MODULES: Final = (
    "router",
    "preprocess_and_token_sync",
    "permute",
    "dispatch",
    "expert_gemm",
    "expert_activation",
    "combine",
    "unpermute",
    "shared_expert",
)
"""Modules of a MoE layer. In backward each name means the backward of that module.

`expert_gemm` is all that the experts run but their activation: GEMMs, casts and what sets them up.
"""

_CODE: Final = codes_of(MODULES)
_EARLY: Final = (Zone.BEFORE, Zone.ENTRY)
_LATE: Final = (Zone.EXIT, Zone.AFTER)


@frozen
class Membership:
    """Of each activity, shape (n,), in the order of `Activities`; `UNTOLD` where it belongs to
    none.

    `module` indexes `MODULES`, `kind` is a `Kind`, `of` numbers the layer pass (`UNTOLD` too where
    its name alone tells the module).
    """

    module: IntArray
    kind: IntArray
    of: IntArray

    def are(self, *modules: str) -> BoolArray:
        """Which belong to one of these modules."""
        return np.isin(self.module, list(map(MODULES.index, modules)))


def members_of(lanes: Lanes, passes: Passes, evidence: Evidence) -> Membership:
    """Give each activity that belongs to a MoE layer its module; each has one or none.

    What stands in a pass of untold kind has none.
    """
    zones = zones_of(lanes, passes, evidence)
    outside = zones.of == UNTOLD
    by_itself = evidence.autograd | (evidence.phase == PHASES.index("bwd"))
    kind = np.append(passes.kind, CODE(UNTOLD))[zones.of]
    kind[outside] = np.where(by_itself[lanes.order[outside]], Kind.BACKWARD, Kind.FORWARD)
    # else the name alone tells what a reorder does
    whole = np.append(passes.whole, False)[zones.of]
    module = _by_part(lanes, zones.zone, kind == Kind.BACKWARD, whole)
    # gathers between the router of a pass and its tokens' leaving carry token counts
    gathers = np.flatnonzero((lanes.part == Part.GATHER) & (zones.zone == Zone.BEFORE))
    routed = previous_at(np.isin(lanes.part, (Part.ROUTER, Part.MAP)))[gathers]
    module[gathers[routed >= zones.begin[zones.of[gathers]]]] = _CODE["preprocess_and_token_sync"]
    if len(passes):
        around = _Around(lanes, passes, zones)
        shared = around.shared()
        module[shared] = _CODE["shared_expert"]
        module[around.gate(shared)] = _CODE["router"]
    again = evidence.recomputed[lanes.order] & (kind != UNTOLD)
    forward = evidence.phase[lanes.order] == PHASES.index("fwd")
    again |= (kind == Kind.BACKWARD) & (lanes.part == Part.ACTIVATION) & forward
    kind[again] = Kind.RECOMPUTE
    none = (module == UNTOLD) | (kind == UNTOLD)
    columns = []
    for column in (module, kind, zones.of):
        column[none] = UNTOLD
        columns.append(column[places_in(lanes.order)])
    return Membership(*columns)


def _by_part(lanes: Lanes, zone: IntArray, backward: BoolArray, whole: BoolArray) -> IntArray:
    """Module of each place by its part and zone; in backward what moves tokens undoes the other
    module.
    """
    part = lanes.part
    early, late = np.isin(zone, _EARLY), np.isin(zone, _LATE)
    undoes = np.where(whole, late, lanes.undoes)
    experts = zone == Zone.EXPERTS
    moves = _either(late != backward, "combine", "dispatch")
    orders = _either(undoes != backward, "unpermute", "permute")
    orders[experts] = _CODE["expert_gemm"]
    activation = _either(experts, "expert_activation")
    expert_work = _either(experts, "expert_gemm")
    rules: dict[Part, int | IntArray] = {
        Part.ROUTER: _CODE["router"],
        Part.MAP: _CODE["preprocess_and_token_sync"],
        Part.CONTROL: _CODE["preprocess_and_token_sync"],
        Part.COUNTS: _either(early, "preprocess_and_token_sync"),
        Part.PAYLOAD: moves,
        Part.REORDER: orders,
        Part.GROUPED: _CODE["expert_gemm"],
        Part.ACTIVATION: activation,
        Part.GEMM: expert_work,
        Part.CAST: expert_work,
        Part.OTHER: expert_work,
    }
    module = np.full(len(part), UNTOLD, dtype=CODE)
    for which, code in rules.items():
        mine = part == which
        module[mine] = np.broadcast_to(code, module.shape)[mine]
    return module


def _either(which: BoolArray, module: str, other: str | None = None) -> IntArray:
    return np.where(which, CODE(_CODE[module]), CODE(UNTOLD if other is None else _CODE[other]))
