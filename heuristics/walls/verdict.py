"""One verdict of four walls, or an honest none; what is tied with it, and how sure that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean, stdev
from typing import Final

from heuristics.walls.confidence import Confidence, confidence_in
from heuristics.walls.next_wall import NextWall, find_next
from heuristics.walls.price import LITTLE
from heuristics.walls.wall import WallJudgement
from traces.limits import Limit
from traces.measure.measurements import RankMeasurements
from traces.sections.run import Run
from traces.sections.tables import WallId
from traces.spelling import percent, spoken

NEAR: Final = Limit(0.03, "fraction of the windows", "ours: costs nearer than 3 points change places easily")
STEPS: Final = Limit(3, "steps", "ours: of two the interval is six times their difference and holds all")
STUDENT_95: Final = (
    *(6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812),
    *(1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725),
    *(1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697),
)
"""95 % points of Student's t for 1 to 30 degrees of freedom: two-sided intervals of 90 %."""
NORMAL_95: Final = 1.645
"""The same of the normal distribution, for more."""

FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "ep_a2a": ("ep_dispatch", "ep_combine", "ep_a2a", "ep_control"),
    "dp": ("dp_reduce_scatter", "dp_all_gather"),
}
"""Kinds of communication that one operation is made of, under the name the verdict gives them."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`wall` is None where no overhead costs enough, or none could be looked at; `because` says which.

    `tied_with`: findings whose costs cannot be told from the verdict's. `runner_up`: the next in cost.
    """

    wall: WallId | None
    kind: str | None
    tied_with: tuple[WallId, ...]
    runner_up: WallId | None
    confidence: Confidence | None
    because: tuple[str, ...]
    following: NextWall | None = None
    """What stands next without the wall; None where there is no wall."""


def find_verdict(
    measurements: Sequence[RankMeasurements],
    walls: Sequence[WallJudgement],
    together: Run | None = None,
) -> Verdict:
    """The verdict of walls that were measured, with how sure it is and what comes after it."""
    verdict = verdict_of(walls)
    if verdict.wall is None:
        return verdict
    confidence = confidence_in(verdict.wall, measurements, walls, together)
    return replace(verdict, confidence=confidence, following=find_next(verdict.wall, measurements, walls))


def verdict_of(walls: Sequence[WallJudgement]) -> Verdict:
    """The finding with the largest cost; memory before it where the run does not fit.

    How sure that is, and what comes after it, is left open: both rest on what was recorded.
    """
    costed = sorted((wall for wall in walls if wall.cost_frac is not None), key=lambda w: -_frac(w))
    told = [wall for wall in costed if wall.outcome != "unmeasurable"]
    found = [wall for wall in walls if wall.outcome == "finding"]
    found.sort(key=lambda wall: (not wall.comes_first, -_frac(wall)))
    if not found:
        return _none(walls, told)
    first = found[0]
    tied = tuple(wall.id for wall in found[1:] if not first.comes_first and _near(first, wall))
    others = [wall.id for wall in told if wall.id != first.id and wall.cost_ns]
    return Verdict(first.id, _kind(first), tied, others[0] if others else None, None, _why(first, walls))


def _frac(wall: WallJudgement) -> float:
    return wall.cost_frac or 0.0


def _none(walls: Sequence[WallJudgement], told: Sequence[WallJudgement]) -> Verdict:
    blind = _blind(walls)
    if not told:
        return Verdict(None, None, (), None, None, ("no wall could be measured", *blind))
    said, nearest = "no measured overhead accounts for 10 % or more of the step time", told[0]
    if _frac(nearest) >= LITTLE.value:
        said += f"; the closest is {spoken(nearest.id)}, {_cost(nearest)}"
    unjudged = [f"{spoken(wall.id)}{_most(wall)}" for wall in walls if wall.cost_frac is None]
    if unjudged:
        said += f"; not judged: {', '.join(unjudged)}"
    return Verdict(None, None, (), nearest.id if nearest.cost_ns else None, None, (said, *blind))


def _why(first: WallJudgement, walls: Sequence[WallJudgement]) -> tuple[str, ...]:
    said = []
    if first.comes_first:
        said.append("memory is freed and allocated again in most steps: what does not fit cannot be tuned")
    if first.cost_ns:
        said.append(f"without {spoken(first.id)} the windows would be at most {_cost(first)} shorter")
    said += [
        f"{spoken(wall.id)} at most {_cost(wall)}"
        for wall in sorted(walls, key=lambda one: -_frac(one))
        if wall.id != first.id and wall.outcome == "finding" and wall.cost_ns
    ]
    return (*said, *_blind(walls))


def _blind(walls: Sequence[WallJudgement]) -> tuple[str, ...]:
    return tuple(
        f"{spoken(wall.id)} could not be judged{_most(wall)}: {wall.missing[0]}"
        for wall in walls
        if wall.outcome == "unmeasurable" and wall.missing
    )


def _most(wall: WallJudgement) -> str:
    """The most that a wall without a cost can be, where anything bounds it."""
    most = wall.at_most_frac
    return "" if most is None or most >= 1.0 else f" (at most {percent(most)})"


def _cost(wall: WallJudgement) -> str:
    return percent(_frac(wall))


def _kind(wall: WallJudgement) -> str | None:
    """The kind, or family of kinds, whose absence alone wins most; of equals expert traffic, then data."""
    together = {
        family: sum(wall.cost_by_kind_ns.get(kind, 0) for kind in kinds) for family, kinds in FAMILIES.items()
    }
    members = {kind for kinds in FAMILIES.values() for kind in kinds}
    together |= {kind: ns for kind, ns in wall.cost_by_kind_ns.items() if kind not in members}
    largest = max(together, key=lambda kind: together[kind])
    return largest if together[largest] else None


def _near(one: WallJudgement, other: WallJudgement) -> bool:
    """Whether two costs cannot be told apart.

    Under 3 points, or the 90 % interval of their difference, step by step, holds zero. The difference, for
    steps that are long for one are long for the other; from three steps on.
    """
    if abs(_frac(one) - _frac(other)) < NEAR.value:
        return True
    if len(one.step_cost_frac) != len(other.step_cost_frac) or len(one.step_cost_frac) < STEPS.value:
        return False
    differences = [a - b for a, b in zip(one.step_cost_frac, other.step_cost_frac, strict=True)]
    low, high = interval(differences)
    return low <= 0 <= high


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 90 % interval of the mean of at least two values, by Student's t."""
    freedom = len(values) - 1
    factor = STUDENT_95[freedom - 1] if freedom <= len(STUDENT_95) else NORMAL_95
    half = factor * stdev(values) / sqrt(len(values))
    return fmean(values) - half, fmean(values) + half
