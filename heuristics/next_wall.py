"""What stands next once the verdict's wall is gone: costs are replayed again in what is left of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heuristics.run import WALL_IDS, WallId
from heuristics.walls.price import ENOUGH_STEPS, STEADY, WALL, cost_of
from heuristics.walls.wall import WallJudgement
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing
from traces.replay.costs import Cost, Costs, Without


@dataclass(frozen=True, slots=True)
class NextWall:
    """The wall that appears next, None where none does; `because` says it in words.

    `frac` is its ceiling as part of what is left. `missing`: why something larger may hide, if it may.
    """

    wall: WallId | None
    frac: float | None
    because: str
    missing: Missing | None


def find_next(
    first: WallId, measurements: Sequence[RankMeasurements], walls: Sequence[WallJudgement]
) -> NextWall:
    """The largest cost of the other walls in the run without the first, from a tenth of that run up."""
    others = [wall for wall in walls if wall.id != first]
    blind = [wall for wall in others if wall.cost_frac is None]
    missing = Missing("verdict.next_wall", blind[0].missing[0], blind[0].cure) if blind else None
    left = [
        (rank, _left(rank, rank.costs, first))
        for rank in measurements
        if not isinstance(rank.costs, Missing) and cost_of(rank, first) is not None
    ]
    seen = [wall.id for wall in others if wall.cost_frac is not None]
    fracs = {one: frac for one in seen if (frac := _frac(left, one)) is not None}
    name = first.replace("_", " ")
    wall = max(fracs, key=lambda one: fracs[one], default=None)
    if wall is None or fracs[wall] < WALL.value:
        return NextWall(None, None, f"without {name} nothing else removable costs a tenth", missing)
    said = f"without {name} the next is {wall.replace('_', ' ')}: at most {fracs[wall]:.1%} of what is left"
    return NextWall(wall, fracs[wall], said.replace("%", " %"), None)


def _left(rank: RankMeasurements, costs: Costs, first: WallId) -> Without:
    """The run of a rank without the first wall; where that costs little there, the run as it is."""
    if (without := costs.without.get(first)) is not None:
        return without
    others: dict[str, Cost] = {
        one: cost for one in WALL_IDS if one != first and (cost := cost_of(rank, one)) is not None
    }
    return Without(rank.budget.window_ns, tuple(rank.steps.lengths_ns()), others)


def _frac(left: Sequence[tuple[RankMeasurements, Without]], wall: WallId) -> float | None:
    """The cost of a wall as part of what is left; 0 where only the first step pays it."""
    told = [
        (without, without.costs[wall])
        for rank, without in left
        if wall in without.costs and cost_of(rank, wall) is not None
    ]
    if not told:
        return None
    if _is_warm_up(told):
        return 0.0
    window_ns = sum(without.window_ns for without, _ in told)
    return sum(cost.ns for _, cost in told) / window_ns if window_ns else 0.0


def _is_warm_up(told: Sequence[tuple[Without, Cost]]) -> bool:
    if any(len(cost.step_ns) < ENOUGH_STEPS.value for _, cost in told):
        return False
    later_ns = sum(sum(cost.step_ns[1:]) for _, cost in told)
    return later_ns < STEADY.value * sum(sum(without.step_ns[1:]) for without, _ in told)
