"""Measurements -> judgement: where the time goes, four walls, one verdict, and what to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heuristics.bound import Bound, LargestBucket, find_bound, largest_bucket
from heuristics.choosers.choices import Choice, choose_all
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.gains import Replayed, gains_of
from heuristics.plan import Plan, make_plan
from heuristics.run import Given, Guidance, Run
from heuristics.shown import shown_by
from heuristics.verdict import Verdict, find_verdict
from heuristics.walls import judge_walls
from heuristics.walls.wall import WallJudgement
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing


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


def judge(measurements: Sequence[RankMeasurements], given: Given | None = None) -> Judgement:
    """Judge a run by the measurements of all its ranks (at least one) and what was given about it."""
    given = given or Given()
    bound, walls = find_bound(measurements), judge_walls(measurements)
    verdict = find_verdict(measurements, walls)
    run = Run(
        shown=shown_by(measurements),
        given=given,
        cost_by_kind_ns={wall.id: dict(wall.cost_by_kind_ns) for wall in walls if wall.cost_ns is not None},
        window_ns=sum(rank.budget.window_ns for rank in measurements if _has_costs(rank)),
        total_ns={wall.id: wall.cost_ns for wall in walls if wall.cost_ns is not None},
        does_not_fit=any(wall.comes_first for wall in walls),
        total_frac={wall.id: wall.cost_frac for wall in walls if wall.cost_frac is not None},
    )
    found = [wall for wall in walls if wall.outcome == "finding"]
    found.sort(key=lambda wall: (wall.id != verdict.wall, -(wall.cost_ns or 0)))
    full = bound.bucket == "compute" and all(wall.cost_ns is not None for wall in walls)
    told = [
        Replayed(rank.costs, rank.costs.changes, rank.budget.window_ns)
        for rank in measurements
        if not isinstance(rank.costs, Missing) and rank.costs.refused is None
    ]
    trains = run.shown.training is not False  # the fixes are Megatron's, and act on training
    stand = [wall.id for wall in found] if trains else []
    plan = make_plan(run, stand, CATALOGUE, levers=full and trains, gains=gains_of(told))
    gaps = []
    if bound.bucket is None:
        gaps.append(Missing("verdict.bound", bound.because, bound.cure))
    return Judgement(
        bound=bound,
        largest=largest_bucket(measurements),
        walls=walls,
        verdict=verdict,
        plan=plan,
        choices=choose_all(run) if run.shown.moe or run.shown.moe is None else (),
        run=run,
        guidance=given.guidance,
        missing=tuple(gaps),
    )


def _has_costs(rank: RankMeasurements) -> bool:
    return not isinstance(rank.costs, Missing) and rank.costs.refused is None
