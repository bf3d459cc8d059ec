"""The memory wall: the step pays for fitting into the GPU's memory.

What is removed to measure it: what is computed a second time is gone whole, with its collectives,
copies and synchronisations; offload copies, copies of what lives in host memory and, after the
first step, allocator calls are gone. How we tell: by replay.

Cost and capacity are two things. The cost shows in any trace and decides alone; whether there is
room is a second answer beside it. A part that cannot be seen is bounded: the wall is a finding
where the least that it costs reaches the limit, clear where the most stays below it, else both ends
are said.

The allocator giving memory back and asking again in steady steps is hard evidence that the run does
not fit, and comes before any larger wall: what does not fit cannot be tuned. Where that costs
nothing and memory has room it is none: a cache was cleared by hand; whether it has room must be
recorded. What it is not: a high peak; PyTorch keeps nearly all memory by design. References:
Megatron-Bridge, skills perf-moe-optimization-workflow and memory-tuning.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final

import numpy as np
from msgspec import structs

from heuristics.figures.figures import Figures, Ranks
from heuristics.result.judged import Evidence, Wall
from heuristics.walls.costs import RunCosts
from heuristics.walls.price import (
    Price,
    Priced,
    Unpriced,
    held,
    judged,
    shown,
    shown_frac,
    unmeasurable,
    value_of,
)
from heuristics.words import say
from traces.cures import cure
from traces.limits import LITTLE, MOST, NEARLY_ALL, WALL
from traces.missing import Missing, known

_RETRIED: Final = "allocator_retry_frac"


def does_not_fit(walls: Sequence[Wall]) -> bool:
    """Whether the allocator gives memory back and asks again in most steps, which costs or finds no
    room.
    """
    return any(
        wall.outcome == "finding" and (value_of(wall, _RETRIED) or 0.0) > MOST.value
        for wall in walls
    )


def judge(ranks: Ranks, priced: Priced) -> Wall:
    result = judged("memory", priced, ranks, [*_context(ranks)])
    short = max(ranks, key=_retry_frac)
    worst = _retry_frac(short)
    if worst:
        unit = "fraction of the steps after the first"
        retried = held(_RETRIED, worst, MOST, short.place, unit=unit)
        result = structs.replace(result, evidence=(*result.evidence, retried))
    if worst > MOST.value:
        costs = known(result.cost_frac)
        if costs is None or costs >= LITTLE.value:
            return structs.replace(result, outcome="finding")
        if (tight := _without_room(result, _used_frac(ranks))) is not None:
            return tight
    if result.outcome == "finding" or (
        isinstance(priced, Unpriced) and result.outcome == "unmeasurable"
    ):
        return result
    return _bounded(result, priced, ranks)


def _retry_frac(rank: Figures) -> float:
    return rank.memory.allocator_retry_frac or 0.0


def _without_room(wall: Wall, used: float | Missing) -> Wall | None:
    """What retries that cost little are in a GPU so full; None where it has room."""
    if isinstance(used, Missing):
        why = Missing("", say("evidence.room-unknown"), used.cure)
        return unmeasurable("memory", why, wall.evidence, known(wall.at_most_frac))
    if used >= NEARLY_ALL.value:
        return without_price(wall)
    return None


def _used_frac(ranks: Ranks) -> float | Missing:
    """How much of its GPU's memory the fullest rank used, if all of them tell."""
    used = 0.0
    for rank in ranks:
        for part in (rank.memory.peak_bytes, rank.memory.capacity_bytes):
            if isinstance(part, Missing):
                return part
        used = max(used, rank.memory.peak_frac or 0.0)
    return used


_NO_ROOM: Final = Missing("", say("evidence.no-room"), say("evidence.compare-with-room"))


def without_price(wall: Wall) -> Wall:
    """A finding for want of room, whose price under a wall's is not what it costs to have none."""
    return structs.replace(
        wall,
        outcome="finding",
        cost_ns=_NO_ROOM,
        cost_frac=_NO_ROOM,
        cost_by_kind_ns={},
        at_most_frac=_NO_ROOM if known(wall.at_most_frac) is None else wall.at_most_frac,
        missing=(_NO_ROOM.reason,),
        cure=_NO_ROOM.cure,
    )


def _bounded(result: Wall, priced: Priced, ranks: Ranks) -> Wall:
    """A price below the limit, with the most that recompute can add where it could not be seen."""
    gap: Missing | None = None
    unseen_ns, judged_ns, is_bounded = 0, 0, True  # all that is unseen of recompute
    for rank in ranks:
        judged_ns += rank.judged_ns
        if isinstance(rank.memory.recompute_ns, Missing):
            gap = rank.memory.recompute_ns if gap is None else gap
            is_bounded &= rank.recompute_at_most_ns is not None
            unseen_ns += rank.recompute_at_most_ns or 0
    proven = priced if isinstance(priced, Price) and priced.at_least is None else None
    by_partition = proven is None and is_bounded  # what is unseen of recompute is in its bound
    if gap is None or (by_partition and result.outcome == "clear"):
        return result
    most = priced.at_most_frac if by_partition else None
    if proven is not None and is_bounded:
        most = proven.frac + unseen_ns / judged_ns
        if most < WALL.value:
            return structs.replace(result, at_most_frac=most)
    evidence = tuple(row for row in result.evidence if not row.measure.endswith("cost_frac"))
    why = Missing("memory", say("walls.recompute-unknown", reason=gap.reason), gap.cure)
    bounded = unmeasurable("memory", why, evidence, most)
    if isinstance(priced, Price):
        return structs.replace(bounded, at_least_frac=priced.frac)
    return bounded


def doubted(costs: RunCosts, priced: Price) -> Price:
    """It may be more: what is computed again in a graph recorded whole is not seen."""
    if priced.at_least is None:
        for rank in costs.ranks:
            if rank.rank.replay_count and rank.rank.recompute.places.size:
                why = Missing(
                    "memory", say("walls.graphs-hold-more"), cure("graphs", costs.recorder)
                )
                return replace(priced, at_least=why)
    return priced


_PARTS: Final = (
    "recompute_frac",
    "offload_exposed_frac",
    "host_resident_exposed_frac",
    "allocator_frac",
)


def _context(ranks: Ranks) -> Iterator[Evidence]:
    for measure in _PARTS:
        for evidence in shown_frac(measure, ranks):
            if evidence.value:
                yield evidence
    yield from _traffic(ranks)
    if used := max(rank.memory.peak_frac or 0.0 for rank in ranks):
        yield shown("peak_frac", used)


def _traffic(ranks: Ranks) -> Iterator[Evidence]:
    """How much the copies of each kind move a GPU, and how fast: means over the ranks that have
    any.
    """
    for kind in ("offload", "host_resident"):
        fields = attrgetter(f"{kind}_copies", f"{kind}_bytes", f"{kind}_union_ns")
        moving, total = 0, np.zeros(3, np.int64)
        for rank in ranks:
            use = fields(rank.memory)
            if all(use):
                moving, total = moving + 1, total + use
        if moving:
            copies, size_bytes, ns = total.tolist()
            yield shown(f"{kind}_copies", copies // moving)
            yield shown(f"{kind}_bytes", size_bytes // moving)
            yield shown(f"{kind}_gb_per_s", size_bytes / ns)
