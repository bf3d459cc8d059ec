"""What is true of a simulated run, by the definitions and from the simulator alone: verdict and costs.

Nothing in here comes from what is judged, but for which steps it used: costs are those of the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, takewhile
from statistics import median, quantiles
from typing import Final

from bench.score.corpus import Case
from bench.simulate.handicaps import Handicap, without_data_pauses
from bench.simulate.happened import CallMade
from bench.simulate.host_program import Allocate, Engine, Initialise
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, recorded_steps
from bench.simulate.run import Run, run, run_halved, run_program
from bench.simulate.step import program_of
from bench.simulate.truth import TrueCosts

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


def right_words(
    cost_frac: Mapping[str, float], *, retries: bool = False, hidden: Sequence[str] = ()
) -> frozenset[str | None]:
    """Every word that is right for these costs, None for no wall; more than one where it is close.

    Close: the next cost is under 3 points from the largest, or the largest so near to a wall's limit.
    """
    seen = {wall: frac for wall, frac in cost_frac.items() if wall not in hidden}
    if retries and "memory" in seen:
        return frozenset({"memory"})
    most = max(seen.values())
    least = max(most - NEAR_FRAC, WALL_FRAC - NEAR_FRAC)
    words: set[str | None] = {wall for wall, frac in seen.items() if frac > least}
    return frozenset(words if most >= WALL_FRAC + NEAR_FRAC else words | {None})


_MANY: Final = 8
_MADS: Final = 3 * 1.4826
_SLOWER: Final = 1.05
_ALIKE: Final = 0.05
_OFF, _OFTEN = 0.20, 0.25
"""What is a slow step, which steps are alike and which alternate, by the definition."""


Borders = Callable[[Run], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Told:
    """A run and what each of its steps would lose without each handicap.

    `recorded`: steps of which the view shows every launch. `borders_of` cuts any run of these knobs alike.
    """

    run: Run
    borders_ns: tuple[int, ...]
    costs: TrueCosts
    recorded: range
    borders_of: Borders


def truths(knobs: Knobs, view: View) -> tuple[Told, Told]:
    """The truth by the borders of the definition, and where a step ends with its optimizer.

    The second is how steps are cut where no range names them: a step ends with its optimizer and the
    collectives launched directly after it.
    """
    whole, without = run(knobs), {one.value: run(knobs, without=one) for one in Handicap}
    ways = (partial(shown_borders_ns, view, of) for of in (step_borders_ns, optimizer_borders_ns))
    by_step, by_optimizer = (_told(whole, without, recorded_steps(whole, view), way) for way in ways)
    return by_step, by_optimizer


def _told(whole: Run, without: Mapping[str, Run], recorded: range, borders_of: Borders) -> Told:
    borders = borders_of(whole)
    lengths = _lengths(borders)
    saved = {
        wall: tuple(
            before - after for before, after in zip(lengths, _lengths(borders_of(other)), strict=True)
        )
        for wall, other in without.items()
    }
    return Told(whole, borders, TrueCosts(lengths, saved), recorded, borders_of)


def next_costs(told: Told, first: str, steps: Sequence[int]) -> dict[str, float]:
    """What each other wall costs once the first one's handicap is gone: a fraction of what is left."""
    knobs, gone = told.run.knobs, Handicap(first)
    left = _lengths(told.borders_of(run(knobs, without=gone)))
    saved = {}
    for other in Handicap:
        if other is not gone:
            after = _lengths(told.borders_of(run(knobs, without=gone, and_without=other)))
            saved[other.value] = tuple(a - b for a, b in zip(left, after, strict=True))
    return costs_of(TrueCosts(left, saved), steps)


def elastic_frac(told: Told, steps: Sequence[int]) -> float:
    """How much these steps truly shrink when all GPU work takes half its time."""
    after_ns = _lengths(told.borders_of(run_halved(told.run.knobs)))
    before_ns = told.costs.step_ns
    return 1 - sum(after_ns[step] for step in steps) / sum(before_ns[step] for step in steps)


def _lengths(borders_ns: Sequence[int]) -> tuple[int, ...]:
    return tuple(after - before for before, after in pairwise(borders_ns))


def step_borders_ns(simulated: Run) -> tuple[int, ...]:
    """The borders of the definition, by where a step begins on the host."""
    return simulated.borders_ns


def optimizer_borders_ns(simulated: Run) -> tuple[int, ...]:
    """The first border, and those behind each step's optimizer and collectives launched directly after it.

    Where no optimizer runs on the GPU, the borders by where a step begins on the host.
    """
    borders, works = list(simulated.borders_ns), simulated.own
    lasts = {one.work.place.step: at for at, one in enumerate(works) if one.work.kernel == "adam"}
    for step, last in lasts.items():
        behind = takewhile(lambda one: one.work.engine is Engine.COMMUNICATION, works[last + 1 :])
        until = last + 1 + sum(1 for _ in behind)
        done_ns = max(one.end_ns for one in works[:until])
        later = [one.start_ns for one in works[until:] if one.work.engine is Engine.SMS]
        borders[step + 1] = min([done_ns, *later])
    return tuple(borders)


def shown_borders_ns(view: View, borders_of: Borders, simulated: Run) -> tuple[int, ...]:
    """Borders as a view shows them: with nothing recorded before it, a step begins with its first work."""
    borders = list(borders_of(simulated))
    if view.begin_frac == 1:
        borders[1] = min(one.start_ns for one in simulated.own if one.work.place.step == 1)
    return tuple(borders)


def costs_of(costs: TrueCosts, steps: Sequence[int]) -> dict[str, float]:
    """Cost of each wall as a fraction of these steps; a handicap that helps costs nothing."""
    total = sum(costs.step_ns[step] for step in steps)
    return {
        wall: max(0.0, sum(saved[step] for step in steps) / total) for wall, saved in costs.saved_ns.items()
    }


def warms_up(told: Told) -> bool:
    """Whether the first recorded step is over 5 % longer than each other, which do not share why.

    They must be alike, or what it spends more in calls of initialisation be over half of its excess.
    """
    recorded = told.recorded
    if len(recorded) < 2 or _in_a_rhythm(told):
        return False
    first_ns, *others = (told.costs.step_ns[step] for step in recorded)
    if _alternate(others) or first_ns <= _SLOWER * max(others):
        return False
    if len(others) > 1:
        low_ns, _, high_ns = quantiles(others, n=4, method="inclusive")
        if high_ns - low_ns < _ALIKE * median(others):
            return True
    loading_ns, *usual_ns = (_initialising_ns(told.run, step) for step in recorded)
    return 2 * (loading_ns - median(usual_ns)) > first_ns - median(others)


def _initialising_ns(simulated: Run, step: int) -> int:
    """How long threads load, or take and give back memory, in a step on the host."""
    start_ns, end_ns = _host_range(simulated, step)
    return sum(
        call.end_ns - call.start_ns
        for call in simulated.executed.calls
        if start_ns <= call.start_ns < end_ns and isinstance(call.operation, Initialise | Allocate)
    )


def typical_steps(told: Told) -> list[int]:
    """Recorded steps that are neither warm-up nor hiccup: typical figures are their means."""
    steps = list(told.recorded)[warms_up(told) :]
    lengths = [told.costs.step_ns[step] for step in steps]
    if len(steps) < _MANY or _in_a_rhythm(told) or _alternate(lengths):
        return steps
    usual_ns = median(lengths)
    off_ns = median(abs(ns - usual_ns) for ns in lengths)
    limit_ns = max(usual_ns + _MADS * off_ns, _SLOWER * usual_ns)
    return [step for step, ns in zip(steps, lengths, strict=True) if ns <= limit_ns]


def _in_a_rhythm(told: Told) -> bool:
    """Whether each step of several waits for its batch, however few those are: then the mean holds."""
    return told.run.knobs.data_stall_ms > 0 and told.run.knobs.loader_workers > 1


def _alternate(lengths: Sequence[int]) -> bool:
    """Whether steps are so uneven that none of them is warm-up or hiccup."""
    usual_ns = median(lengths)
    off = sum(abs(ns - usual_ns) > _OFF * usual_ns for ns in lengths)
    return off >= _OFTEN * len(lengths)


def waits_for_data_frac(told: Told, steps: Sequence[int]) -> float:
    """What these steps would lose if none of them waited for its batch."""
    knobs = told.run.knobs
    if not knobs.data_stall_ms:
        return 0.0
    after_ns = _lengths(told.borders_of(run_program(knobs, without_data_pauses(program_of(knobs)))))
    before_ns = told.costs.step_ns
    return 1 - sum(after_ns[step] for step in steps) / sum(before_ns[step] for step in steps)


def _host_range(simulated: Run, step: int) -> tuple[int, int]:
    ranges = sorted((s.start_ns, s.end_ns) for s in simulated.executed.spans if s.kind == "step")
    return ranges[step]


def _takes_memory(call: CallMade) -> bool:
    return isinstance(call.operation, Allocate) and not call.operation.frees


def retries_in_steady_steps(simulated: Run, steps: Sequence[int]) -> bool:
    """Whether at least half of some steps, but the first of them, free memory and take it again."""
    later = [_host_range(simulated, step) for step in steps[1:]]
    calls = [call for call in simulated.executed.calls if isinstance(call.operation, Allocate)]
    retried = 0
    for start_ns, end_ns in later:
        inside = [not _takes_memory(call) for call in calls if start_ns <= call.start_ns < end_ns]
        retried += True in inside and False in inside
    return bool(later) and retried >= _RETRIED * len(later)


def hidden_walls(case: Case, simulated: Run) -> tuple[str, ...]:
    """Walls of which this recording can show nothing: each must be unmeasurable."""
    has_graphs = any(activity.work.graph_node is not None for activity in simulated.activities)
    whole = has_graphs and case.view.graphs == "graph"
    if not case.view.calls:
        return WALLS
    if whole and case.view.schema in _NO_GRAPH_ROWS:
        return WALLS
    if whole and case.knobs.whole_graph:
        return tuple(wall for wall in WALLS if wall != Handicap.HOST_OVERHEAD.value)
    return ("compute",) if not case.view.gpu_table else ()


def veiled_walls(case: Case, simulated: Run) -> tuple[str, ...]:
    """Walls of which it hides a part: unmeasurable is as good an answer as the right one.

    Clocks that are apart hide no more than the calls cannot bracket.
    """
    if case.damage.startswith("clocks"):
        return WALLS
    if case.knobs.whole_graph:
        return ()
    if case.view.graphs != "graph" or all(
        activity.work.graph_node is None for activity in simulated.activities
    ):
        return ()
    return WALLS
