"""What stands next once the verdict's wall is gone: costs are replayed again in what is left of the
run.
"""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from heuristics.result.judged import Verdict, Wall
from heuristics.walls.costs import RankCosts, RunCosts
from heuristics.words import say
from traces.limits import LITTLE, WALL
from traces.missing import Missing, known
from traces.replay.changes.costs import Without
from traces.sections.tables import WallId
from traces.spelling import spoken


def with_next(
    verdict: Verdict, wall: WallId | Missing | None, frac: float | None, because: str
) -> Verdict:
    """The verdict with what comes after it, and its ceiling as part of what is left.

    Without a wall a gap says why something larger may hide, and None that nothing does; `because`:
    in words.
    """
    part = wall if isinstance(wall, Missing) else frac
    return structs.replace(verdict, next_wall=wall, next_wall_frac=part, next_because=because)


def find_next(verdict: Verdict, first: WallId, costs: RunCosts, walls: Sequence[Wall]) -> Verdict:
    """With the largest cost of the other walls in the run without the first, from a tenth of that
    run up.
    """
    name, remaining = spoken(first), list[tuple[RankCosts, Without]]()
    for rank in costs.telling(first):
        without = _left(rank, first)
        if without is None:
            unknown = Missing("", say("walls.next-not-replayed", first=name), say("walls.no-cure"))
            return with_next(verdict, unknown, None, say("walls.next-unknown", first=name))
        remaining.append((rank, without))
    blind, today, fracs = list[Wall](), dict[WallId, float](), dict[WallId, float]()
    for other in walls:
        if other.id == first:
            continue
        frac = known(other.cost_frac)
        if frac is None:
            blind.append(other)
        else:
            today[other.id], fracs[other.id] = frac, _frac(remaining, other.id)
    unjudged = ", ".join(spoken(blind_wall.id) for blind_wall in blind)
    wall = max(fracs, key=fracs.__getitem__, default=None)
    if wall is None or fracs[wall] < WALL.value:
        sentence = say(
            "walls.none-next", first=name if first == "host_overhead" else f"{first} overhead"
        )
        if blind:
            sentence += say("walls.but-unjudged", walls=unjudged)
        if wall is not None and fracs[wall] >= LITTLE.value:
            sentence += say("walls.largest-then", wall=spoken(wall), left_frac=fracs[wall])
        gap = next((Missing("", "; ".join(unseen.missing), unseen.cure) for unseen in blind), None)
        return with_next(verdict, gap, None, sentence)
    sentence = say("walls.next", wall=spoken(wall), left_frac=fracs[wall], first=name)
    if today[wall] < WALL.value:
        sentence += say("walls.next-today", part_frac=today[wall])
    if blind:
        sentence += say("walls.and-unjudged", walls=unjudged)
    return with_next(verdict, wall, fracs[wall], sentence)


def _left(rank: RankCosts, first: WallId) -> Without | None:
    """The run of a rank without the first wall; where that costs little there, the run as it is.

    Less the start-up that is left out, of which a run without host overhead holds the profiler's
    part alone. None where it costs much, and what is left was not replayed.
    """
    start, judged_ns = rank.start, rank.start.judged_ns
    if rank.replays and (without := rank.replays.without.get(first)) is not None:
        gone_ns = start.loading_ns if first == "host_overhead" else 0
        return replace(without, window_ns=without.window_ns - start.ns + gone_ns)
    if rank.by_wall[first].ns >= WALL.value * judged_ns:
        return None
    return Without(judged_ns, dict(rank.by_wall.items()))


def _frac(remaining: Sequence[tuple[RankCosts, Without]], wall: WallId) -> float:
    """What a wall costs of what is left, on the ranks that tell it."""
    cost_ns = window_ns = 0
    for rank, without in remaining:
        cost = without.costs.get(wall)
        if cost is None or wall not in rank.by_wall:
            continue
        if wall == "host_overhead":
            cost = rank.start.without(cost)
        cost_ns, window_ns = cost_ns + cost.ns, window_ns + without.window_ns
    if window_ns:
        return min(1.0, cost_ns / window_ns)
    return 0.0
