"""What stands next once the verdict's wall is gone: costs are replayed again in what is left of the run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from heuristics.figures.startup import initialising_ns, judged_ns, startup_ns, without_startup
from heuristics.result.judged import Verdict, Wall
from heuristics.run.run import WALL_IDS
from heuristics.walls.price import WALL, cost_of
from traces.limits import Limit
from traces.measurements import RankMeasurements
from traces.missing import Missing, known
from traces.replay.changes.costs import FIRST, Without
from traces.replay.proofs import Cost
from traces.sections.tables import WallId
from traces.spelling import percent, spoken

WORTH_SAYING: Final = Limit(0.01, "fraction of what is left", "ours: under a point nobody asks what is next")


def with_next(verdict: Verdict, wall: WallId | Missing | None, frac: float | None, because: str) -> Verdict:
    """The verdict with what comes after it, and its ceiling as part of what is left.

    Without a wall a gap says why something larger may hide, and None that nothing does; `because`: in words.
    """
    part = wall if isinstance(wall, Missing) else frac
    return structs.replace(verdict, next_wall=wall, next_wall_frac=part, next_because=because)


def find_next(
    verdict: Verdict, first: WallId, measurements: Sequence[RankMeasurements], walls: Sequence[Wall]
) -> Verdict:
    """With the largest cost of the other walls in the run without the first, from a tenth of that run up."""
    others = [wall for wall in walls if wall.id != first]
    blind = [wall for wall in others if known(wall.cost_frac) is None]
    missing = Missing("", blind[0].missing[0], blind[0].cure) if blind else None
    name = spoken(first)
    told = [rank for rank in measurements if cost_of(rank, first) is not None]
    left = [(rank, _left(rank, first)) for rank in told]
    replayed = [(rank, without) for rank, without in left if without is not None]
    if len(replayed) < len(left):
        reason = f"{name} costs less than in its replay, so what is left without it was not replayed"
        gap = Missing("", reason, "none is needed")
        return with_next(verdict, gap, None, f"what comes after {name} is not known")
    seen = {wall.id: frac for wall in others if (frac := known(wall.cost_frac)) is not None}
    fracs = {one: frac for one in seen if (frac := _frac(replayed, one)) is not None}
    wall = max(fracs, key=lambda one: fracs[one], default=None)
    if wall is None or fracs[wall] < WALL.value:
        what = spoken(first) if first == "host_overhead" else f"{first} overhead"
        said = f"no other bottleneck of at least 10 % would remain if the {what} were removed"
        if blind:
            said += f", but {', '.join(spoken(one.id) for one in blind)} could not be judged"
        if wall is not None and fracs[wall] >= WORTH_SAYING.value:
            said += f"; the largest cost is then {spoken(wall)}, {percent(fracs[wall])} of what is left"
        return with_next(verdict, missing, None, said)
    said = f"the next wall is {spoken(wall)}: at most {percent(fracs[wall])} of what is left without {name}"
    if (today := seen[wall]) < WALL.value:
        said += f", though {percent(today)} of the run as it is"
    if blind:
        said += f"; {', '.join(spoken(one.id) for one in blind)} could not be judged"
    return with_next(verdict, wall, fracs[wall], said)


def _left(rank: RankMeasurements, first: WallId) -> Without | None:
    """The run of a rank without the first wall; where that costs little there, the run as it is.

    Less the start-up that is left out, of which a run without host overhead holds the profiler's part alone.
    None where it costs much, and what is left was not replayed.
    """
    costs, cost = rank.costs, cost_of(rank, first)
    if isinstance(costs, Missing) or cost is None:
        return None
    if (without := costs.without.get(first)) is not None:
        gone_ns = initialising_ns(rank) if first == "host_overhead" else 0
        return replace(without, window_ns=without.window_ns - startup_ns(rank) + gone_ns)
    if cost.ns >= FIRST.value * judged_ns(rank):
        return None
    others: dict[str, Cost] = {
        one: other for one in WALL_IDS if one != first and (other := cost_of(rank, one)) is not None
    }
    return Without(judged_ns(rank), others)


def _frac(left: Sequence[tuple[RankMeasurements, Without]], wall: WallId) -> float | None:
    """The cost of a wall as part of what is left."""
    told = [
        (without, without_startup(rank, cost) if wall == "host_overhead" else cost)
        for rank, without in left
        if (cost := without.costs.get(wall)) is not None and cost_of(rank, wall) is not None
    ]
    if not told:
        return None
    window_ns = sum(without.window_ns for _, without in left if wall in without.costs)
    return min(1.0, sum(cost.ns for _, cost in told) / window_ns) if window_ns else 0.0
