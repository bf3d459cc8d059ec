"""What is true of a simulated run, by the definitions and from the simulator alone: verdict and costs.

Nothing in here comes from what is judged, but for which steps it used: costs are those of the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tests.score.corpus import Case
from traces.simulate.handicaps import Handicap
from traces.simulate.happened import CallMade
from traces.simulate.host_program import Allocate
from traces.simulate.knobs import Knobs
from traces.simulate.run import Run, run
from traces.simulate.truth import TrueCosts

WALLS: Final = tuple(handicap.value for handicap in Handicap)
WALL_FRAC: Final = 0.10
NEAR_FRAC: Final = 0.03
"""The limits of the definition: what is a wall, and what is too near to tell apart."""
_RETRIED: Final = 0.5
"""Of the steps after the first, those in which memory was freed and taken again: steady from here on."""
_NO_GRAPH_ROWS: Final = ("2.9.1",)
"""Schemas that drop whole graph replays."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The true verdict over the walls that a recording can show. `margin_frac`: between the two largest."""

    wall: str | None
    margin_frac: float
    near: tuple[str, ...]
    """Walls whose cost is within 3 points of the largest, where that is a wall; never of memory put first."""


def verdict(cost_frac: Mapping[str, float], *, retries: bool, hidden: Sequence[str] = ()) -> Verdict:
    """The verdict by the definition, over walls that are not hidden (at least one)."""
    seen = sorted(
        ((wall, frac) for wall, frac in cost_frac.items() if wall not in hidden), key=lambda c: -c[1]
    )
    (first, most), rest = seen[0], seen[1:]
    margin = most - rest[0][1] if rest else most
    if retries and "memory" not in hidden:
        return Verdict("memory", margin, ())
    if most < WALL_FRAC:
        return Verdict(None, margin, ())
    near = tuple(wall for wall, frac in rest if frac >= WALL_FRAC and most - frac < NEAR_FRAC)
    return Verdict(first, margin, near)


@dataclass(frozen=True, slots=True)
class Told:
    """A run and what each of its steps would lose without each handicap; borders as in `Run.borders_ns`."""

    run: Run
    borders_ns: tuple[int, ...]
    costs: TrueCosts


def truths(knobs: Knobs) -> tuple[Told, Told]:
    """The truth by the borders of the definition, and where a step ends with its optimizer.

    The second is how steps are cut where no range names them: what follows the optimizer is the next step's.
    """
    whole, without = run(knobs), {one.value: run(knobs, without=one) for one in Handicap}
    return _told(whole, without, lambda one: one.borders_ns), _told(whole, without, optimizer_borders_ns)


def _told(whole: Run, without: Mapping[str, Run], borders_of: Callable[[Run], tuple[int, ...]]) -> Told:
    borders = borders_of(whole)
    lengths = _lengths(borders)
    saved = {
        wall: tuple(
            before - after for before, after in zip(lengths, _lengths(borders_of(other)), strict=True)
        )
        for wall, other in without.items()
    }
    return Told(whole, borders, TrueCosts(lengths, saved))


def _lengths(borders_ns: Sequence[int]) -> tuple[int, ...]:
    return tuple(after - before for before, after in pairwise(borders_ns))


def optimizer_borders_ns(simulated: Run) -> tuple[int, ...]:
    """The first border, and where the optimizer of each step ends."""
    ends = [0] * (len(simulated.borders_ns) - 1)
    for activity in simulated.activities:
        if activity.work.kernel == "adam":
            step = activity.work.place.step
            ends[step] = max(ends[step], activity.end_ns)
    return (simulated.borders_ns[0], *ends)


def costs_of(costs: TrueCosts, steps: Sequence[int]) -> dict[str, float]:
    """Cost of each wall as a fraction of these steps; a handicap that helps costs nothing."""
    total = sum(costs.step_ns[step] for step in steps)
    return {
        wall: max(0.0, sum(saved[step] for step in steps) / total) for wall, saved in costs.saved_ns.items()
    }


def retries_in_steady_steps(simulated: Run) -> bool:
    """Whether at least half of the steps after the first free memory and take it again."""
    ranges = [span for span in simulated.executed.spans if span.kind == "step"]
    later = sorted(ranges, key=lambda span: span.start_ns)[1:]
    calls = [call for call in simulated.executed.calls if isinstance(call.operation, Allocate)]
    retried = 0
    for span in later:
        inside = [_frees(call) for call in calls if span.start_ns <= call.start_ns < span.end_ns]
        retried += True in inside and False in inside
    return bool(later) and retried >= _RETRIED * len(later)


def _frees(call: CallMade) -> bool:
    return isinstance(call.operation, Allocate) and call.operation.frees


def hidden_walls(case: Case, simulated: Run) -> tuple[str, ...]:
    """Walls of which this recording can show nothing: each must be unmeasurable."""
    has_graphs = any(activity.work.graph_node is not None for activity in simulated.activities)
    whole = has_graphs and case.view.graphs == "graph"
    if not case.view.calls or case.damage.startswith("clocks"):
        return WALLS
    if whole and case.view.schema in _NO_GRAPH_ROWS:
        return WALLS
    return ("compute",) if not case.view.gpu_table else ()


def veiled_walls(case: Case, simulated: Run) -> tuple[str, ...]:
    """Walls of which it hides a part: unmeasurable is as good an answer as the right one."""
    if case.view.graphs != "graph" or all(
        activity.work.graph_node is None for activity in simulated.activities
    ):
        return ()
    return WALLS
