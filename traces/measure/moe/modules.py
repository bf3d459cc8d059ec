"""Which module of a MoE layer each activity belongs to, by its part and where in a layer pass it stands."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import CODE, BoolArray, IntArray
from traces.measure.moe.dense import dense_of
from traces.measure.moe.lanes import Lanes, Part
from traces.measure.moe.passes import Evidence, Kind, Passes
from traces.measure.moe.reach import previous_at
from traces.measure.moe.zones import Zone, Zones, zones_of
from traces.resolve.resolution import PHASES, UNTOLD

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

_CODE: Final = {name: code for code, name in enumerate(MODULES)}
_EARLY: Final = (Zone.BEFORE, Zone.LEAVE, Zone.ENTRY)
_LATE: Final = (Zone.EXIT, Zone.RETURN, Zone.AFTER)


@dataclass(frozen=True, slots=True)
class Membership:
    """Of each activity, shape (n,), in the order of `Activities`; `UNTOLD` where it belongs to none.

    `module` indexes `MODULES`, `kind` is a `Kind`, `of` numbers the layer pass (`UNTOLD` too where its name
    alone tells the module).
    """

    module: IntArray
    kind: IntArray
    of: IntArray


def members_of(lanes: Lanes, passes: Passes, told: Evidence) -> Membership:
    """Give each activity that belongs to a MoE layer its module; each has one or none.

    What stands in a pass of untold kind has none.
    """
    zones = zones_of(lanes, passes, told)
    outside = zones.of == UNTOLD
    by_itself = told.autograd | (told.phase == PHASES.index("bwd"))
    kind = np.append(passes.kind, CODE(UNTOLD))[zones.of]
    kind[outside] = np.where(by_itself[lanes.order[outside]], Kind.BACKWARD, Kind.FORWARD)
    whole = np.append(passes.whole, False)[zones.of]  # else the name alone tells what a reorder does
    module = _by_part(lanes, zones.zone, kind == Kind.BACKWARD, whole)
    module[_counts_gathered(lanes, zones)] = _CODE["preprocess_and_token_sync"]
    if len(passes):
        dense = dense_of(lanes, passes, zones)
        module[dense.shared & (module == UNTOLD)] = _CODE["shared_expert"]
        module[dense.gate] = _CODE["router"]
    again = told.recomputed[lanes.order] & (kind != UNTOLD)
    forward = told.phase[lanes.order] == PHASES.index("fwd")
    again |= (kind == Kind.BACKWARD) & (lanes.part == Part.ACTIVATION) & forward
    kind[again] = Kind.RECOMPUTE
    mine = (module != UNTOLD) & (kind != UNTOLD)
    return Membership(*(_in_order(lanes, mine, one) for one in (module, kind, zones.of)))


def _in_order(lanes: Lanes, which: BoolArray, values: IntArray) -> IntArray:
    """Some values of a lane order in the order of the activities, `UNTOLD` elsewhere."""
    result = np.full_like(values, UNTOLD)
    result[lanes.order[which]] = values[which]
    return result


def _by_part(lanes: Lanes, zone: IntArray, backward: BoolArray, whole: BoolArray) -> IntArray:
    """Module of each place by its part and zone; in backward what moves tokens undoes the other module."""
    part = lanes.part
    early, late = np.isin(zone, _EARLY), np.isin(zone, _LATE)
    undoes = np.where(whole, late, lanes.undoes)
    experts = zone == Zone.EXPERTS
    moves = _either(late != backward, "combine", "dispatch")
    orders = _either(undoes != backward, "unpermute", "permute")
    orders[experts] = _CODE["expert_gemm"]
    activation = _either(experts, "expert_activation")
    rest = _either(experts, "expert_gemm")
    rules: dict[Part, int | IntArray] = {
        Part.ROUTER: _CODE["router"],
        Part.MAP: _CODE["preprocess_and_token_sync"],
        Part.CONTROL: _CODE["preprocess_and_token_sync"],
        Part.COUNTS: _either(early, "preprocess_and_token_sync"),
        Part.PAYLOAD: moves,
        Part.REORDER: orders,
        Part.GROUPED: _CODE["expert_gemm"],
        Part.ACTIVATION: activation,
        Part.GEMM: rest,
        Part.CAST: rest,
        Part.OTHER: rest,
    }
    module = np.full(len(part), UNTOLD, dtype=CODE)
    for which, said in rules.items():
        mine = part == which
        module[mine] = np.broadcast_to(said, module.shape)[mine]
    return module


def _either(which: BoolArray, module: str, other: str | None = None) -> IntArray:
    """One module where a mask holds, another or none elsewhere."""
    return np.where(which, CODE(_CODE[module]), CODE(UNTOLD if other is None else _CODE[other]))


def _counts_gathered(lanes: Lanes, zones: Zones) -> BoolArray:
    """Gathers between the router of a pass and its tokens' leaving: they carry token counts."""
    routed = previous_at(np.isin(lanes.part, (Part.ROUTER, Part.MAP)))[:-1]
    begin = np.append(zones.begin, len(lanes.part))[zones.of]
    result: BoolArray = (lanes.part == Part.GATHER) & (zones.zone == Zone.BEFORE) & (routed >= begin)
    return result
