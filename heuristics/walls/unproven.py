"""Walls whose fixes may help although no gain of them is proven, why, and what would confirm one.

A step that is bound by compute, where nothing removable costs much, has levers that make the work itself
shorter. Figures that were given may leave a wall undecided and still point at it: much idle time of no known
cause, memory near its end, communication of which only a sum is known. A trace that leaves a wall undecided
points at nothing: what keeps it from being replayed puts its other figures in doubt as well.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from heuristics.figures.figures import Figures, frac_of
from heuristics.walls.bound import Bound
from heuristics.walls.price import WALL
from heuristics.walls.wall import WallJudgement
from traces.limits import Limit
from traces.missing import Missing, known
from traces.sections.tables import WallId
from traces.spelling import percent

NO_WALL: Final = "unknown: it makes the work itself shorter or fit, so no wall's cost bounds it"
MEASURE_IT: Final = "compare with a recording that has the change"
TIGHT: Final = Limit(
    0.9,
    "fraction of the capacity",
    "ours: another tenth of what a rank holds, as of sequence length or of a graph's buffers, and it is full",
)


def unproven(walls: Sequence[WallJudgement], bound: Bound) -> Mapping[WallId, Missing]:
    """Compute, where the step is bound by it and every other wall has a price."""
    priced = all(wall.cost_ns is not None for wall in walls if wall.id != "compute")
    if bound.bucket != "compute" or not priced:
        return {}
    compute = next((wall for wall in walls if wall.id == "compute"), None)
    if compute is None or compute.outcome != "unmeasurable" or not compute.missing:
        return {"compute": Missing("verdict.bound", NO_WALL, MEASURE_IT)}
    reason = f"compute takes most of the time, and what it costs is unknown: {compute.missing[0]}"
    return {"compute": Missing("verdict.bound", reason, compute.cure)}


def unproven_by_figures(
    ranks: Sequence[Figures], walls: Sequence[WallJudgement], bound: Bound
) -> Mapping[WallId, Missing]:
    """Walls that figures leave undecided and point at, the largest sign first; else compute."""
    found = {}
    for wall in walls:
        sign = _SIGNS[wall.id](ranks) if wall.id in _SIGNS and wall.outcome == "unmeasurable" else None
        if sign is not None:
            found[wall.id] = (sign[0], Missing("symptoms", sign[1], wall.cure))
    largest = sorted(found, key=lambda id_: -found[id_][0])
    return {id_: found[id_][1] for id_ in largest} or unproven(walls, bound)


def _idle(ranks: Sequence[Figures]) -> tuple[float, str] | None:
    idle = frac_of(ranks, lambda rank: rank.budget_ns.get("idle"))
    if idle is None or idle < WALL.value:
        return None
    return (
        idle,
        f"the GPU is idle for {percent(idle)} of the windows, and whether the host causes it is unknown",
    )


def _lump(ranks: Sequence[Figures]) -> tuple[float, str] | None:
    """Time that is neither compute nor idle, where nothing splits it."""
    rest = frac_of(ranks, _neither)
    if rest is None or rest < WALL.value:
        return None
    return rest, f"{percent(rest)} of the windows is neither compute nor idle, and its kinds are unknown"


def _neither(rank: Figures) -> int | None:
    parts = [rank.budget_ns.get(name) for name in ("compute", "idle")]
    return None if None in parts else rank.window_ns - sum(ns for ns in parts if ns is not None)


def _memory(ranks: Sequence[Figures]) -> tuple[float, str] | None:
    paid = frac_of(
        ranks,
        lambda rank: (known(rank.memory.offload_exposed_ns) or 0) + (known(rank.memory.recompute_ns) or 0),
    )
    if paid:
        return paid, f"recompute and offload take {percent(paid)} of the windows, and the rest is unknown"
    used = [frac for rank in ranks if (frac := rank.memory.peak_frac)]
    if not used or max(used) < TIGHT.value:
        return None
    return 0.0, f"the peak is {percent(max(used))} of the memory, and what it costs to fit is unknown"


_SIGNS: Final[Mapping[WallId, Callable[[Sequence[Figures]], tuple[float, str] | None]]] = {
    "host_overhead": _idle,
    "communication": _lump,
    "memory": _memory,
}
