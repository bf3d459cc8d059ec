"""One file a wall: what it is, how we tell, what it is not, references; limits with `because`; judge()."""

from __future__ import annotations

from collections.abc import Sequence

from heuristics.walls import communication, compute, host_overhead, memory
from heuristics.walls.wall import WallJudgement
from traces.measure.measurements import RankMeasurements

JUDGES = (memory, communication, host_overhead, compute)
"""In the order of the workflow."""


def judge_walls(measurements: Sequence[RankMeasurements]) -> tuple[WallJudgement, ...]:
    """Every wall of a run, in the order of the workflow."""
    return tuple(wall.judge(measurements) for wall in JUDGES)
