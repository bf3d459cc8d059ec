"""Whether a scenario truly is what it is built for, by the simulator alone."""

from __future__ import annotations

from collections.abc import Mapping

from bench.score.scenario import Scenario
from bench.score.truth import WALL_FRAC, Told, costs_of, next_costs, retries_in_steady_steps, right_words


def is_as_built(scenario: Scenario, told: Told) -> bool:
    """Whether the true costs of the recorded steps say what the scenario does."""
    costs = costs_of(told.costs, told.recorded)
    if not _shows(scenario, costs, retries=retries_in_steady_steps(told.run, told.recorded)):
        return False
    if scenario.masked is None or scenario.wall is None:
        return True
    later = next_costs(told, scenario.wall, told.recorded)
    return costs[scenario.masked] < WALL_FRAC <= later[scenario.masked]


def _shows(scenario: Scenario, costs: Mapping[str, float], *, retries: bool) -> bool:
    if scenario.wall is None:
        return max(costs.values()) < WALL_FRAC
    if scenario.damage or scenario.second is None:
        return right_words(costs, retries=retries) == {scenario.wall}
    both = {scenario.wall, scenario.second}
    walls = {wall for wall, frac in costs.items() if frac >= WALL_FRAC}
    return walls == both
