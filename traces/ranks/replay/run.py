"""A run of many ranks, from their summaries alone: matched, on one clock, side by side, as
chains.
"""

from dataclasses import replace as changed

import numpy as np

from traces.arrays import FloatArray, IntArray, ints, zeros
from traces.frozen import frozen
from traces.ranks.matching.match import Matched
from traces.ranks.one_run.align import Aligned, agreed, align, consistent
from traces.ranks.one_run.together import OneRun, put_together
from traces.ranks.replay.chains import Chains, chains_of, roles_of
from traces.ranks.rows import parts
from traces.ranks.summaries.first_steps import without_warm_ups
from traces.ranks.summaries.summary import Summaries
from traces.ranks.waiting.routing import Routing, routing_of
from traces.ranks.waiting.side_by_side import (
    Alike,
    Excess,
    Grid,
    device_factors,
    excess_of,
    grid_of,
    groups_alike,
    slowness_before,
    step_of,
)
from traces.ranks.waiting.turns import counted_from_one_step
from traces.ranks.waiting.waits import Waits, measure_waits


@frozen
class MeasuredRun:
    """What ranks show together. `step`: of the run, of each instance, shape (n,); `role`: of each
    participation, shape (p,), as `roles_of`; `nodes`: a number of each rank's.
    """

    together: OneRun
    aligned: Aligned
    waits: Waits
    grid: Grid
    step: IntArray
    alike: tuple[Alike, ...]
    factor: FloatArray
    excess: Excess
    routing: Routing
    role: IntArray
    chains: Chains
    nodes: IntArray

    @property
    def matched(self) -> Matched:
        return self.together.matched

    @property
    def step_ns(self) -> float:
        """How long a step takes, of the median rank and step."""
        known_ns = self.grid.length_ns[~np.isnan(self.grid.length_ns)]
        if len(known_ns):
            return float(np.median(known_ns))
        return float("nan")


def measure_run(summaries: Summaries) -> MeasuredRun:
    """Match, align, measure and compare; the order of the summaries does not matter."""
    together = put_together(without_warm_ups(summaries))
    used, matched = together.used, together.matched
    aligned = align(used, matched)
    if aligned.clocks.aligned and not (possible := consistent(matched, aligned)).all():
        aligned = agreed(used, matched, aligned, possible)
        rows, matched = parts.spread(possible, matched.first), matched.take(possible)
        aligned = changed(aligned, start_ns=aligned.start_ns[rows], end_ns=aligned.end_ns[rows])
        together = changed(together, matched=matched)
    waits = measure_waits(matched, aligned)
    grid = grid_of(used, matched)
    step = step_of(matched, grid)
    matched = counted_from_one_step(matched, grid, step)
    together = changed(together, matched=matched)
    alike = groups_alike(used)
    factor = device_factors(used, alike)
    excess = excess_of(grid, alike)
    routing = routing_of(matched, slowness_before(matched, grid, excess, factor), alike)
    role = roles_of(matched, alike, step)
    return MeasuredRun(
        together,
        aligned,
        waits,
        grid,
        step,
        alike,
        factor,
        excess,
        routing,
        role,
        chains_of(matched, aligned, role),
        nodes_of(used),
    )


def nodes_of(used: Summaries) -> IntArray:
    """The first rank of each one's node, by its device; all on one where ranks have no numbers."""
    nodes = []
    for summary in used:
        if summary.identity.rank is None:
            return zeros(len(used))
        nodes.append(summary.identity.rank - summary.identity.device)
    return ints(nodes)
