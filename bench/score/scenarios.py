"""The corpus: what a training run can be held back by, in many shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bench.score import mixed_walls, single_walls
from bench.score.scenario import Scenario

SCENARIOS: Final[Mapping[str, tuple[Scenario, ...]]] = {
    "communication": single_walls.COMMUNICATION_WALLS,
    "host": single_walls.HOST_WALLS,
    "memory": single_walls.MEMORY_WALLS,
    "compute": single_walls.COMPUTE_WALLS,
    "two walls": mixed_walls.TWO_WALLS,
    "masked": mixed_walls.MASKED,
    "healthy": mixed_walls.HEALTHY_RUNS,
    "dense": mixed_walls.DENSE_RUNS,
    "two steps": mixed_walls.TWO_STEPS,
    "broken": mixed_walls.BROKEN_RUNS,
}
"""By family."""
