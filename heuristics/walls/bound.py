"""Where the time goes, and which walls may be worth a try although no gain of theirs is proven.

Bound: compute, communication, host overhead or memory, whichever takes most of the time. What it
is: of every instant without compute the reason the account gives, of every instant with compute
that it is first work or done again. How we tell: by wall time, so hidden communication counts as
compute and nothing counts twice. Without an account only compute and exposed communication are
told, and only where one of them fills over half of the windows: then nothing else can be larger.
What it is not: a wall. A compute-bound step may have nothing to remove.

Unproven: a step that is bound by compute, where nothing removable costs much, has levers that make
the work itself shorter. Figures that were given may leave a wall undecided and still point at it:
much idle time of no known cause, memory near its end, communication of which only a sum is known. A
trace that leaves a wall undecided points at nothing: what keeps it from being replayed puts its
other figures in doubt as well.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final, get_args

from heuristics.figures.figures import Figures, Ranks, added, frac_of
from heuristics.result.judged import Bucket, Wall
from heuristics.words import say
from traces.cures import cure
from traces.frozen import frozen
from traces.limits import MOST, NEARLY_ALL, WALL
from traces.missing import Missing, known
from traces.sections.tables import WallId
from traces.spelling import percent


@frozen
class Bound:
    """Where most of the time goes, or None; `because` in words."""

    bucket: WallId | None
    because: str
    cure: str = ""


def find_bound(ranks: Ranks) -> Bound:
    """Bound of a run. Ranks with whole graph replays only count as time that could not be told."""
    window_ns, by_wall, is_split = 0, Counter[WallId](), True
    for rank in ranks:
        window_ns += rank.judged_ns
        parts = _time_by_wall(rank)
        is_split &= parts is not None
        by_wall.update(parts)
    if is_split:
        return _largest(by_wall, window_ns)
    return _over_half(ranks, window_ns)


def _largest(by_wall: Counter[WallId], window_ns: int) -> Bound:
    listed = by_wall.most_common()
    words = ", ".join(f"{wall.replace('_', ' ')} {percent(ns / window_ns)}" for wall, ns in listed)
    rest_ns, (largest, most_ns) = window_ns - by_wall.total(), listed[0]
    if rest_ns > most_ns:
        reason = say("walls.bound-by-none", rest_frac=rest_ns / window_ns, parts=words)
        return Bound(None, reason, say("walls.read-reasons"))
    return Bound(largest, say("walls.bound-by-time", parts=words))


def _time_by_wall(rank: Figures) -> dict[WallId, int] | None:
    """Time of one rank's windows by the wall it belongs to; latencies and stalls belong to none.

    None where a part of it is unknown.
    """
    host, memory, compute_ns = rank.host_by_cause_ns, rank.memory, rank.budget_ns.get("compute")
    waits_ns = rank.exposed_comm_ns if rank.blocked_ns is None else rank.blocked_ns
    if host is None or compute_ns is None or waits_ns is None or rank.recomputed_ns is None:
        return None
    copies_ns = (memory.offload_exposed_ns or 0) + (memory.host_resident_exposed_ns or 0)
    return {
        "memory": rank.recomputed_ns + copies_ns + added([rank.starved_ns])["allocator"],
        "communication": waits_ns,
        "host_overhead": sum(host.values()),
        "compute": max(0, compute_ns - rank.recomputed_ns),
    }


def _over_half(ranks: Ranks, window_ns: int) -> Bound:
    """The bound where only compute and exposed communication are told, by some ranks by neither."""
    blind: Figures | None = None
    compute_ns, exposed_ns, is_given = 0, 0, False
    for rank in ranks:
        if not rank.comm_known:
            blind = blind or rank
            continue
        compute, exposed = rank.budget_ns.get("compute"), rank.exposed_comm_ns
        is_given |= compute is not None or exposed is not None
        compute_ns += compute or 0
        exposed_ns += exposed or 0
    if not is_given and blind is None:
        return Bound(None, say("walls.bound-not-given"), "give budget_frac")
    compute_frac, exposed_frac = compute_ns / window_ns, exposed_ns / window_ns
    if compute_frac > MOST.value:
        return Bound("compute", say("walls.bound-by-compute", part_frac=compute_frac))
    if exposed_frac > MOST.value:
        return Bound("communication", say("walls.bound-by-exposed", part_frac=exposed_frac))
    if blind is not None:
        return Bound(None, say("walls.bound-unseen"), cure("names", blind.observed.recorder))
    reason = say("walls.bound-not-split", compute_frac=compute_frac, exposed_frac=exposed_frac)
    return Bound(None, reason, say("walls.read-budget"))


def largest_bucket(ranks: Ranks) -> tuple[Bucket, float] | None:
    """Largest bucket of a run and its share of the windows; of equals the first."""
    total_ns = added(map(attrgetter("budget_ns"), ranks))
    if not total_ns:
        return None
    name: Bucket = max(get_args(Bucket), key=total_ns.__getitem__)
    return name, total_ns[name] / sum(map(attrgetter("window_ns"), ranks))


NO_WALL: Final = say("walls.lever")
MEASURE_IT: Final = say("walls.measure-lever")


def unproven(walls: Sequence[Wall], bound: Bound) -> Mapping[WallId, Missing]:
    """Compute, where the step is bound by it and every other wall has a price."""
    priced = all(known(wall.cost_ns) is not None for wall in walls if wall.id != "compute")
    if bound.bucket != "compute" or not priced:
        return {}
    compute = next((wall for wall in walls if wall.id == "compute"), None)
    if compute is None or not compute.missing:
        return {"compute": Missing("verdict.bound", NO_WALL, MEASURE_IT)}
    reason = say("walls.bound-unpriced", reason="; ".join(compute.missing))
    return {"compute": Missing("verdict.bound", reason, compute.cure)}


def unproven_by_figures(
    ranks: Ranks, walls: Sequence[Wall], bound: Bound
) -> Mapping[WallId, Missing]:
    """Walls that figures leave undecided and point at, the largest sign first; else compute."""
    signs, why = dict[WallId, float](), dict[WallId, Missing]()
    for wall in walls:
        sign = _sign(wall.id, ranks) if wall.outcome == "unmeasurable" else None
        if sign is not None:
            signs[wall.id], reason = sign
            why[wall.id] = Missing("symptoms", reason, wall.cure)
    if not why:
        return unproven(walls, bound)
    return dict(sorted(why.items(), key=lambda item: -signs[item[0]]))


def _sign(wall: WallId, ranks: Ranks) -> tuple[float, str] | None:
    """How much points at a wall, and what it is."""
    idle_frac, neither_frac = (frac_of(ranks, key) or 0.0 for key in ("idle_ns", "neither_ns"))
    if wall == "host_overhead" and idle_frac >= WALL.value:
        return idle_frac, say("walls.sign-idle", part_frac=idle_frac)
    if wall == "communication" and neither_frac >= WALL.value:
        return neither_frac, say("walls.sign-neither", part_frac=neither_frac)
    if wall != "memory":
        return None
    paid_ns, window_ns, used = 0, 0, 0.0
    for rank in ranks:
        memory = rank.memory
        paid_ns += (memory.offload_exposed_ns or 0) + (memory.recompute_ns or 0)
        window_ns += rank.window_ns
        used = max(used, memory.peak_frac or 0.0)
    if paid := paid_ns / window_ns:
        return paid, say("walls.sign-paid", part_frac=paid)
    if used >= NEARLY_ALL.value:
        return 0.0, say("walls.sign-full", used_frac=used)
    return None
