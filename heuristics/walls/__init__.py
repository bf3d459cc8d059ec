"""One file a wall: what it is, how we tell, what it is not, references; limits with `because`;
judge().
"""

from collections.abc import Callable, Mapping
from typing import Final

from heuristics.figures.figures import Ranks
from heuristics.result.judged import Wall
from heuristics.run.run import WALL_IDS
from heuristics.walls import communication, compute, host_overhead, memory
from heuristics.walls.costs import RunCosts
from heuristics.walls.price import Price, Priced, price
from traces.sections.tables import WallId

JUDGES: Final = (memory, communication, host_overhead, compute)
"""In the order of the workflow."""
_DOUBTED: Final[Mapping[WallId, Callable[[RunCosts, Price], Price]]] = {
    "memory": memory.doubted,
    "communication": communication.doubted,
    "compute": compute.doubted,
}
"""Prices that may be more than the replay says, by what else is known of the wall."""


def judge_walls(ranks: Ranks, prices: Mapping[WallId, Priced]) -> tuple[Wall, ...]:
    return tuple(
        judge.judge(ranks, prices[wall]) for wall, judge in zip(WALL_IDS, JUDGES, strict=True)
    )


def replayed_price(costs: RunCosts, wall: WallId) -> Priced:
    priced, doubted = price(costs, wall), _DOUBTED.get(wall)
    if doubted and isinstance(priced, Price):
        return doubted(costs, priced)
    return priced
