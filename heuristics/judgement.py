"""What was observed of a run and what was said of it -> judgement: four walls, one verdict, what to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from heuristics.bound import Bound, LargestBucket
from heuristics.choosers.choices import Choice, choose_all
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.gains import gains_of
from heuristics.observed import Observed, observe
from heuristics.plan import Plan, make_plan
from heuristics.run import Given, Guidance, Run
from heuristics.verdict import Verdict
from heuristics.walls.wall import WallJudgement
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing
from traces.settings.settings import Settings
from traces.training_log.log import TrainingLog


@dataclass(frozen=True, slots=True)
class Configured:
    """What files say of a run: its configuration, and the log of its training."""

    settings: Settings = field(default_factory=Settings)
    log: TrainingLog | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What we make of a run.

    `choices`: what the guides' tables choose, none for a dense model. `run` is what the opinions rest on;
    `guidance` names the guide that decided.
    """

    bound: Bound
    largest: LargestBucket
    walls: tuple[WallJudgement, ...]
    verdict: Verdict
    plan: Plan
    choices: tuple[Choice, ...]
    run: Run
    guidance: Guidance
    missing: tuple[Missing, ...]


def judge(
    measurements: Sequence[RankMeasurements],
    given: Given | None = None,
    configured: Configured | None = None,
) -> Judgement:
    """Judge a run by the measurements of all its ranks (at least one) and what was said of it."""
    return judge_observed(observe(measurements), given, configured)


def judge_observed(
    observed: Observed, given: Given | None = None, configured: Configured | None = None
) -> Judgement:
    """Judge a run by what was observed of it, in a trace or without one."""
    run = run_of(observed, given or Given(), configured or Configured())
    walls, verdict, bound = observed.walls, observed.verdict, observed.bound
    found = [wall for wall in walls if wall.outcome == "finding"]
    found.sort(key=lambda wall: (wall.id != verdict.wall, -(wall.cost_ns or 0)))
    full = bound.bucket == "compute" and all(wall.cost_ns is not None for wall in walls)
    trains = run.shown.training is not False  # the fixes are Megatron's, and act on training
    stand = [wall.id for wall in found] if trains else []
    plan = make_plan(run, stand, CATALOGUE, levers=full and trains, gains=gains_of(observed.replayed))
    gaps = []
    if bound.bucket is None:
        gaps.append(Missing("verdict.bound", bound.because, bound.cure))
    return Judgement(
        bound=bound,
        largest=observed.largest,
        walls=walls,
        verdict=verdict,
        plan=plan,
        choices=choose_all(run) if run.shown.moe or run.shown.moe is None else (),
        run=run,
        guidance=run.given.guidance,
        missing=tuple(gaps),
    )


def run_of(observed: Observed, given: Given, configured: Configured) -> Run:
    """Everything opinions may rest on, in one place."""
    walls = observed.walls
    return Run(
        shown=observed.shown,
        given=given,
        cost_by_kind_ns={wall.id: dict(wall.cost_by_kind_ns) for wall in walls if wall.cost_ns is not None},
        window_ns=observed.window_ns,
        total_ns={wall.id: wall.cost_ns for wall in walls if wall.cost_ns is not None},
        does_not_fit=any(wall.comes_first for wall in walls),
        total_frac={wall.id: wall.cost_frac for wall in walls if wall.cost_frac is not None},
        settings=configured.settings,
        log=configured.log,
    )
