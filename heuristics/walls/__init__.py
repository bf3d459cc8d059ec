"""One file a wall: what it is, how we tell, what it is not, references; limits with `because`; judge()."""

from collections.abc import Mapping, Sequence

from heuristics.figures.figures import Figures
from heuristics.result.judged import Wall
from heuristics.run.run import WALL_IDS
from heuristics.walls import communication, compute, host_overhead, memory
from heuristics.walls.price import Price, RunCosts, Unpriced
from traces.sections.tables import WallId

JUDGES = (memory, communication, host_overhead, compute)
"""In the order of the workflow."""


def judge_walls(ranks: Sequence[Figures], prices: Mapping[WallId, Price | Unpriced]) -> tuple[Wall, ...]:
    return tuple(one.judge(ranks, prices[wall]) for wall, one in zip(WALL_IDS, JUDGES, strict=True))


def replayed_prices(costs: RunCosts) -> dict[WallId, Price | Unpriced]:
    return {wall: one.measured(costs) for wall, one in zip(WALL_IDS, JUDGES, strict=True)}
