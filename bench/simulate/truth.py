"""What each handicap truly costs: the same run again, without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.simulate.handicaps import Handicap
from bench.simulate.knobs import Knobs
from bench.simulate.run import run


@dataclass(frozen=True, slots=True)
class TrueCosts:
    """Per wall what every step would lose without its handicap (ns; may be negative), beside the steps."""

    step_ns: tuple[int, ...]
    saved_ns: Mapping[str, tuple[int, ...]]

    def total_ns(self, wall: str) -> int:
        """What all steps together would lose."""
        return sum(self.saved_ns[wall])

    def cost_frac(self, wall: str, steps: slice = slice(None)) -> float:
        """The same over some steps, as a fraction of their time."""
        return sum(self.saved_ns[wall][steps]) / sum(self.step_ns[steps])

    def ranked(self, steps: slice = slice(None)) -> list[tuple[str, float]]:
        """Walls and their fractions, the largest first."""
        costs = [(wall, self.cost_frac(wall, steps)) for wall in self.saved_ns]
        return sorted(costs, key=lambda cost: -cost[1])


def true_costs(knobs: Knobs) -> TrueCosts:
    """Run once as it is and once without each handicap."""
    step_ns = run(knobs).step_ns
    saved_ns = {
        handicap.value: tuple(
            before - after
            for before, after in zip(step_ns, run(knobs, without=handicap).step_ns, strict=True)
        )
        for handicap in Handicap
    }
    return TrueCosts(step_ns, saved_ns)
