"""Where the time goes, and which walls may be worth a try although no gain of theirs is proven.

Bound: compute, communication, host overhead or memory, whichever takes most of the time. What it is: of every
instant without compute the reason the account gives, of every instant with compute that it is first work or
done again. How we tell: by wall time, so hidden communication counts as compute and nothing counts twice.
Without an account only compute and exposed communication are told, and only where one of them fills over half
of the windows: then nothing else can be larger. What it is not: a wall. A compute-bound step may have nothing
to remove.

Unproven: a step that is bound by compute, where nothing removable costs much, has levers that make the work
itself shorter. Figures that were given may leave a wall undecided and still point at it: much idle time of no
known cause, memory near its end, communication of which only a sum is known. A trace that leaves a wall
undecided points at nothing: what keeps it from being replayed puts its other figures in doubt as well.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from heuristics.figures.figures import Figures, frac_of
from heuristics.result.judged import Bucket, Wall
from heuristics.run.run import WALL_IDS
from heuristics.walls.price import WALL
from traces.cures import cure
from traces.limits import Limit
from traces.missing import Missing, known
from traces.sections.tables import WallId
from traces.spelling import percent

HALF: Final = Limit(
    0.5,
    "fraction of the summed windows",
    "ours: more than everything else together, so no other bucket is larger",
)


@dataclass(frozen=True, slots=True)
class Bound:
    """Where most of the time goes, or None; `because` in words."""

    bucket: WallId | None
    because: str
    cure: str = ""


def find_bound(ranks: Sequence[Figures]) -> Bound:
    """Bound of a run. Ranks with whole graph replays only count as time that could not be told."""
    window_ns = sum(rank.judged_ns for rank in ranks)
    told = [rank for rank in ranks if rank.comm_known]
    split = [_time_by_wall(rank) for rank in told]
    known = [one for one in split if one is not None]
    if len(known) == len(ranks):
        return _of_shares({wall: sum(one[wall] for one in known) / window_ns for wall in WALL_IDS})
    blind = next((rank for rank in ranks if not rank.comm_known), None)
    return _over_half(told, window_ns, blind)


def _of_shares(shares: Mapping[WallId, float]) -> Bound:
    """Bound of a run whose windows are split by the wall they belong to, each as a part of them."""
    largest = max(shares, key=lambda wall: shares[wall])
    listed = sorted(shares.items(), key=lambda part: -part[1])
    words = ", ".join(f"{wall.replace('_', ' ')} {percent(share)}" for wall, share in listed)
    rest = 1 - sum(shares.values())
    if rest > shares[largest]:
        cure = "read why no compute ran: the largest reason is named there"
        return Bound(None, f"{percent(rest)} of the windows belongs to no wall; {words}", cure)
    return Bound(largest, f"time of the windows: {words}")


def _time_by_wall(rank: Figures) -> dict[WallId, int] | None:
    """Time of one rank's windows by the wall it belongs to; latencies and stalls belong to none.

    None where a part of it is unknown.
    """
    host, memory, compute_ns = rank.host_by_cause_ns, rank.memory, rank.budget_ns.get("compute")
    waits_ns = rank.exposed_comm_ns if rank.blocked_ns is None else rank.blocked_ns
    if host is None or compute_ns is None or waits_ns is None or rank.recomputed_ns is None:
        return None
    return {
        "memory": rank.recomputed_ns
        + (known(memory.offload_exposed_ns) or 0)
        + (known(memory.host_resident_exposed_ns) or 0)
        + (rank.starved_ns or {}).get("allocator", 0),
        "communication": waits_ns,
        "host_overhead": sum(host.values()),
        "compute": max(0, compute_ns - rank.recomputed_ns),
    }


def _over_half(told: Sequence[Figures], window_ns: int, blind: Figures | None) -> Bound:
    """The bound where only compute and exposed communication are told. `blind`: a rank that tells neither."""
    compute = [rank.budget_ns.get("compute") for rank in told]
    exposed = [rank.exposed_comm_ns for rank in told]
    if told and all(one is None for one in (*compute, *exposed)):
        return Bound(None, "where the time of the window goes is unknown", "give budget_frac")
    shares: dict[WallId, float] = {
        "compute": sum(ns or 0 for ns in compute) / window_ns,
        "communication": sum(ns or 0 for ns in exposed) / window_ns,
    }
    for wall, share in shares.items():
        if share > HALF.value:
            what = "exposed communication" if wall == "communication" else "compute"
            return Bound(wall, f"{what} fills {percent(share)} of the windows, over half")
    if blind is not None:
        return Bound(
            None,
            "graph replays were recorded whole, or kernels without names: compute and communication "
            "cannot be separated",
            cure("names", blind.observed.recorder),
        )
    return Bound(
        None,
        f"neither compute ({percent(shares['compute'])}) nor exposed communication "
        f"({percent(shares['communication'])}) fills over half of the windows; the rest was not separated",
        "read the budget: the largest bucket is named there",
    )


@dataclass(frozen=True, slots=True)
class LargestBucket:
    """The largest bucket of the budget over all ranks, and its share of the summed windows."""

    bucket: Bucket
    frac: float


def largest_bucket(ranks: Sequence[Figures]) -> LargestBucket | None:
    """Largest bucket of a run; of equals the first in the order of the budget. None where none is known."""
    total_ns = {name: sum(rank.budget_ns.get(name, 0) for rank in ranks) for name in get_args(Bucket)}
    name: Bucket = max(total_ns, key=lambda bucket: total_ns[bucket])
    known = any(rank.budget_ns for rank in ranks)
    return LargestBucket(name, total_ns[name] / sum(rank.window_ns for rank in ranks)) if known else None


NO_WALL: Final = "unknown: it makes the work itself shorter or fit, so no wall's cost bounds it"
MEASURE_IT: Final = "compare with a recording that has the change"
TIGHT: Final = Limit(
    0.9,
    "fraction of the capacity",
    "ours: another tenth of what a rank holds, as of sequence length or of a graph's buffers, and it is full",
)


def unproven(walls: Sequence[Wall], bound: Bound) -> Mapping[WallId, Missing]:
    """Compute, where the step is bound by it and every other wall has a price."""
    priced = all(known(wall.cost_ns) is not None for wall in walls if wall.id != "compute")
    if bound.bucket != "compute" or not priced:
        return {}
    compute = next((wall for wall in walls if wall.id == "compute"), None)
    if compute is None or compute.outcome != "unmeasurable" or not compute.missing:
        return {"compute": Missing("verdict.bound", NO_WALL, MEASURE_IT)}
    reason = f"compute takes most of the time, and what it costs is unknown: {compute.missing[0]}"
    return {"compute": Missing("verdict.bound", reason, compute.cure)}


def unproven_by_figures(
    ranks: Sequence[Figures], walls: Sequence[Wall], bound: Bound
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
