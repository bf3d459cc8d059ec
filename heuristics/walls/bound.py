"""Where the time goes: compute, communication, host overhead or memory, whichever takes most of it.

What it is: of every instant without compute the reason the account gives, of every instant with compute that
it is first work or done again. How we tell: by wall time, so hidden communication counts as compute and
nothing counts twice. Without an account only compute and exposed communication are told, and only where one
of them fills over half of the windows: then nothing else can be larger.
What it is not: a wall. A compute-bound step may have nothing to remove.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from heuristics.evidence.startup import CAUSES, judged_ns, startup_ns
from heuristics.result.judged import Bucket
from heuristics.run.run import WALL_IDS, WallId
from heuristics.walls.words import percent
from traces.account.account import Account
from traces.cures import cure
from traces.limits import Limit
from traces.measure.measurements import RankMeasurements
from traces.names.kinds import COMM_KINDS, compute_classes

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


def find_bound(measurements: Sequence[RankMeasurements]) -> Bound:
    """Bound of a run. Ranks with whole graph replays only count as time that could not be told."""
    window_ns = sum(judged_ns(rank) for rank in measurements)
    told = [rank for rank in measurements if rank.communication_told]
    if len(told) == len(measurements) and all(isinstance(rank.account, Account) for rank in told):
        total: dict[WallId, int] = dict.fromkeys(WALL_IDS, 0)
        for rank in told:
            for wall, ns in _time_by_wall(rank).items():
                total[wall] += ns
        return bound_of_shares({wall: ns / window_ns for wall, ns in total.items()})
    hidden = next((rank.kind for rank in measurements if not rank.communication_told), None)
    return _over_half(told, hidden, window_ns)


def bound_of_shares(shares: Mapping[WallId, float]) -> Bound:
    """Bound of a run whose windows are split by the wall they belong to, each as a part of them."""
    largest = max(shares, key=lambda wall: shares[wall])
    listed = sorted(shares.items(), key=lambda part: -part[1])
    words = ", ".join(f"{wall.replace('_', ' ')} {percent(share)}" for wall, share in listed)
    rest = 1 - sum(shares.values())
    if rest > shares[largest]:
        cure = "read why no compute ran: the largest reason is named there"
        return Bound(None, f"{percent(rest)} of the windows belongs to no wall; {words}", cure)
    return Bound(largest, f"time of the windows: {words}")


def _time_by_wall(rank: RankMeasurements) -> dict[WallId, int]:
    """Time of one rank's windows by the wall it belongs to; latencies and stalls belong to none."""
    account, memory = rank.account, rank.memory
    assert isinstance(account, Account)
    starved = account.launch_starved_ns
    left_out = {"allocator", "profiler", *(CAUSES if startup_ns(rank) else ())}
    again = memory.recompute_modules or {}
    recomputed_ns = sum(ns for key, ns in again.items() if key in compute_classes())
    return {
        "compute": max(0, rank.budget.compute_ns - recomputed_ns),
        "communication": sum(ns for kind, ns in account.blocking_ns.items() if kind in COMM_KINDS),
        "host_overhead": sum(ns for cause, ns in starved.items() if cause not in left_out)
        + account.arrival_ns,
        "memory": recomputed_ns
        + (memory.offload_exposed_ns or 0)
        + (memory.host_resident_exposed_ns or 0)
        + starved.get("allocator", 0),
    }


def _over_half(told: Sequence[RankMeasurements], untold_kind: str | None, window_ns: int) -> Bound:
    """`untold_kind`: the kind of trace in which communication cannot be told, None where it always can."""
    shares: dict[WallId, float] = {
        "compute": sum(rank.budget.compute_ns for rank in told) / window_ns,
        "communication": sum(rank.budget.exposed_comm_ns for rank in told) / window_ns,
    }
    bound = bound_of_most(shares)
    if bound.bucket is None and untold_kind is not None:
        return Bound(
            None,
            "graph replays were recorded whole, or kernels without names: compute and communication "
            "cannot be separated",
            cure("names", untold_kind),
        )
    return bound


def bound_of_most(shares: Mapping[WallId, float]) -> Bound:
    """Bound of a run of which only compute and exposed communication are told, by what fills over half."""
    for wall, share in shares.items():
        if share > HALF.value:
            what = "exposed communication" if wall == "communication" else "compute"
            return Bound(wall, f"{what} fills {percent(share)} of the windows, over half")
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


def largest_bucket(measurements: Sequence[RankMeasurements]) -> LargestBucket:
    """Largest bucket of a run; of equals the first in the order of the budget."""
    budgets = [rank.budget for rank in measurements]
    total_ns: dict[Bucket, int] = {
        "compute": sum(budget.compute_ns for budget in budgets),
        "exposed_comm": sum(budget.exposed_comm_ns for budget in budgets),
        "exposed_copy": sum(budget.exposed_copy_ns for budget in budgets),
        "idle": sum(budget.idle_ns for budget in budgets),
    }
    name = max(total_ns, key=lambda bucket: total_ns[bucket])
    return LargestBucket(name, total_ns[name] / sum(budget.window_ns for budget in budgets))
