"""How sure a verdict is, and what keeps it from being surer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from heuristics.run import WallId
from heuristics.startup import find_startup
from heuristics.walls.wall import WallJudgement
from heuristics.words import wall_words
from traces.account.account import Account
from traces.limits import Limit
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing

FEW_STEPS: Final = Limit(3, "steps", "ours: of two steps one may be the odd one")
UNDECIDED: Final = Limit(
    0.10, "fraction of the windows", "ours: above it a wall could lie in what no edge decides"
)
OFF: Final = Limit(
    0.02, "fraction of the window", "a replay without unexplained waits is to come back within it"
)
PROFILER_CALL: Final = Limit(
    1_000, "ns per recorded call or range", "ours, not measured: what recording one costs its thread"
)
PROFILER_SHARE: Final = Limit(0.25, "fraction of the host's cost", "ours: more may be the profiler's making")

Level = Literal["high", "medium", "low"]
_LEVELS: Final[tuple[Level, ...]] = ("high", "medium", "low")


@dataclass(frozen=True, slots=True)
class Confidence:
    """Each reason lowers the level by one."""

    level: Level
    because: tuple[str, ...]


def confidence_in(
    wall: WallId, measurements: Sequence[RankMeasurements], walls: Sequence[WallJudgement]
) -> Confidence:
    """How sure the verdict `wall` is, over all ranks measured."""
    reasons = (
        *_about_startup(measurements),
        *_about_steps(measurements),
        *_about_first_step(wall, walls),
        *_about_ranks(wall, measurements),
        *_about_coverage(measurements),
        *_about_waits(measurements),
        *_about_profiler(wall, measurements),
        *_about_others(wall, walls),
    )
    return Confidence(_LEVELS[min(len(reasons), 2)], reasons)


def _about_startup(measurements: Sequence[RankMeasurements]) -> Iterator[str]:
    if (startup := find_startup(measurements)) is not None:
        yield f"profiler and start-up take {startup.frac:.0%} of the window: not a steady state"


def _about_steps(measurements: Sequence[RankMeasurements]) -> Iterator[str]:
    fewest = min(len(rank.steps.used) for rank in measurements)
    if not fewest and all(rank.steps.source == "user" for rank in measurements):
        return  # the user's own window
    if fewest < FEW_STEPS.value:
        yield (
            f"only {fewest} step{'' if fewest == 1 else 's'}"
            if fewest
            else "no steps were found, so one window"
        )


def _about_first_step(wall: WallId, walls: Sequence[WallJudgement]) -> Iterator[str]:
    if any(one.id == wall and one.only_in_first_step for one in walls):
        yield "nearly all of its cost lies in the first of the used steps, so it may be warm-up"


def _about_ranks(wall: WallId, measurements: Sequence[RankMeasurements]) -> Iterator[str]:
    told = [rank.budget for rank in measurements if rank.communication_told]
    speaks = any(budget.exposed_comm_ns or budget.hidden_comm_ns for budget in told)
    if wall == "communication" and speaks and len(measurements) == 1:
        yield "one rank of many: waiting for a late peer and moving data look the same from here"


def _about_coverage(measurements: Sequence[RankMeasurements]) -> Iterator[str]:
    blind = sum(isinstance(rank.costs, Missing) or rank.costs.refused is not None for rank in measurements)
    if blind:
        yield f"{blind} of {len(measurements)} ranks could not be replayed"


def _about_waits(measurements: Sequence[RankMeasurements]) -> Iterator[str]:
    """Waits that nothing explains, in the account or in the replay of the worst rank."""
    undecided = [
        rank.account.decided_ns["none"] / rank.budget.window_ns
        for rank in measurements
        if isinstance(rank.account, Account)
    ]
    off = [
        rank.costs.proofs.residual_free_error_frac
        for rank in measurements
        if not isinstance(rank.costs, Missing)
    ]
    if max(undecided, default=0.0) > UNDECIDED.value:
        yield f"{max(undecided):.0%} of the window is time without compute that no edge explains"
    elif max(off, default=0.0) > OFF.value:
        yield f"a replay without unexplained waits misses the window by {max(off):.0%}"


def _about_profiler(wall: WallId, measurements: Sequence[RankMeasurements]) -> Iterator[str]:
    if wall != "host_overhead":
        return
    told = [
        (rank, rank.costs)
        for rank in measurements
        if not isinstance(rank.costs, Missing) and rank.costs.refused is None
    ]
    rows = sum(rank.recorded_host_rows for rank, _ in told)
    cost_ns = sum(costs.host_overhead.ns for _, costs in told)
    if rows * PROFILER_CALL.value > PROFILER_SHARE.value * cost_ns:
        share = min(1.0, rows * PROFILER_CALL.value / max(cost_ns, 1))
        yield f"recording {rows:,} calls and ranges may itself make up to {share:.0%} of it"


def _about_others(wall: WallId, walls: Sequence[WallJudgement]) -> Iterator[str]:
    blind = [
        wall_words(one.id)
        for one in walls
        if one.id != wall and one.outcome == "unmeasurable" and one.cost_ns is None
    ]
    if blind:
        yield f"not measurable here: {', '.join(blind)}"
