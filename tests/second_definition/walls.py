"""Walls, as far as the page says them exactly: outcome by cost, bounds by the partition, which is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.second_definition.rows import Rank

if TYPE_CHECKING:
    from tests.second_definition.compare import Compared

LIMIT = 0.1


def hold(found: Compared, said: Mapping[str, Any], by_place: Mapping[tuple[int, int], Rank]) -> None:
    """Outcomes, bounds and verdict against the costs that the document itself gives."""
    if any(one["memory"]["allocator_retry_frac"] for one in said["ranks"]):
        found.doubts.append("walls where memory is freed and taken again")  # first whatever it costs
        return
    if any(one["absent_ns"] is None for one in said["ranks"]):
        found.doubts.append("walls where one rank has no account")
        return
    costs = {}
    for wall in said["walls"]:
        name, cost, share, most = (wall[key] for key in ("id", "cost_ns", "cost_frac", "at_most_frac"))
        if cost is None:
            continue
        if wall["outcome"] == "finding":
            costs[name] = cost
            found.hold(f"{name} is a finding over the limit", True, share >= LIMIT)
        elif wall["outcome"] == "clear":
            found.hold(f"{name} is clear under the limit", True, share <= LIMIT)
        if most is not None:
            found.hold(f"{name} is clear by its bound", most < LIMIT, wall["outcome"] == "clear")
            found.hold(f"{name} costs no more than its bound", True, share <= most + 1e-9)
        bound = sum(_most(name, one, by_place[one["process"], one["device"]]) for one in said["ranks"])
        found.hold(f"{name} costs no more than the partition holds", True, cost <= bound)
    largest = max(costs, key=lambda name: costs[name], default=None)
    found.hold("verdict.wall", largest, said["verdict"]["wall"])


def _most(wall: str, said: Mapping[str, Any], rank: Rank) -> float:
    """What the partition of one rank lets a wall cost."""
    budget, absent = said["budget_ns"], said["absent_ns"]
    if wall == "communication":  # and what it stretches compute by
        return float(budget["window"] - budget["compute"] + said["hidden_comm_ns"])
    if wall == "host_overhead":  # a small copy to the host goes with the call that it feeds
        late = sum(absent["launch_starved"].values()) + sum(absent["launch_latency"].values())
        return float(late + said["masked_ns"] + absent["blocking"].get("memcpy_d2h", 0))
    if wall == "compute":
        within = [(work, start, end) for work in rank.of("compute") for start, end in said["windows_ns"]]
        small = [one for one in within if rank.sms and one[0].is_kernel and one[0].blocks < rank.sms]
        parts = [
            max(0, min(work.end, end) - max(work.start, start)) * (1 - work.blocks / (rank.sms or 1)) + 1
            for work, start, end in small
        ]
        return float(sum(parts))
    return float(budget["window"])
