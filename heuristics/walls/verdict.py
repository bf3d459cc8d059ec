"""One verdict of four walls, or an honest none; what is tied with it, and how sure that is."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec import structs

from heuristics.result.judged import Verdict, Wall, Walls
from heuristics.walls.confidence import reasons_against, with_confidence
from heuristics.walls.costs import RunCosts
from heuristics.walls.memory import does_not_fit
from heuristics.walls.next_wall import find_next
from heuristics.words import say
from traces.limits import LITTLE, Limit
from traces.missing import known
from traces.sections.run import Run
from traces.sections.tables import WallId
from traces.spelling import spoken
from traces.texts import Texts

NEAR: Final = Limit(
    0.03, "fraction of the windows", "ours: costs nearer than 3 points change places easily"
)
FAMILIES: Final[Mapping[str, Texts]] = {
    "ep_a2a": ("ep_dispatch", "ep_combine", "ep_a2a", "ep_control"),
    "dp": ("dp_reduce_scatter", "dp_all_gather"),
}
"""Kinds of communication that one operation is made of, under the name the verdict gives them."""
_OPEN: Final = Verdict(
    wall=None,
    kind=None,
    bound=None,
    tied_with=(),
    runner_up=None,
    confidence=None,
    confidence_because=(),
    because=(),
    next_wall=None,
    next_wall_frac=None,
    next_because="",
    startup_ns=0,
    largest_bucket=None,
    largest_bucket_frac=None,
)


def find_verdict(costs: RunCosts, walls: Walls, together: Run | None = None) -> Verdict:
    verdict = verdict_of(walls, error_frac=costs.error_frac)
    wall: WallId | None = known(verdict.wall)
    if wall is None:
        return verdict
    sure = with_confidence(verdict, (*reasons_against(wall, costs, walls, together),))
    return find_next(sure, wall, costs, walls)


def verdict_of(walls: Walls, out_of_memory: bool = False, error_frac: float = 0.0) -> Verdict:
    """The finding with the largest cost; memory before it where the run does not fit.

    `out_of_memory`: something else than the walls says that it does not fit; `error_frac`: how far
    the prices may be off, as part of the windows. How sure that is, what comes after it and where
    the time goes is left open: all rest on what was recorded.
    """
    first_of_all = "memory" if out_of_memory or does_not_fit(walls) else None
    judged = [wall for wall in walls if wall.outcome != "unmeasurable"]
    judged.sort(key=lambda wall: -_frac(wall))
    findings = [wall for wall in walls if wall.outcome == "finding"]
    findings.sort(key=lambda wall: (wall.id != first_of_all, -_frac(wall)))
    if not findings:
        return _none(walls, judged)
    first = findings[0]
    short = first.id == first_of_all
    near = [wall.id for wall in findings[1:] if not short and _near(first, wall, error_frac)]
    return structs.replace(
        _OPEN,
        wall=first.id,
        because=_why(first, walls, short),
        runner_up=next((wall.id for wall in judged if wall.id != first.id and wall.cost_ns), None),
        kind=_kind(first),
        tied_with=tuple(near),
        does_not_fit=short,
    )


def _frac(wall: Wall) -> float:
    return wall.cost_frac or 0.0


def _none(walls: Walls, judged: Walls) -> Verdict:
    if not judged:
        return structs.replace(_OPEN, because=(say("walls.none-measured"), *_blind(walls)))
    nearest, sentence = judged[0], say("walls.no-wall")
    if (frac := _frac(nearest)) >= LITTLE.value:
        sentence += say("walls.nearest", wall=spoken(nearest.id), part_frac=frac)
    unjudged = [
        f"{spoken(wall.id)}{_most(wall)}" for wall in walls if known(wall.cost_frac) is None
    ]
    if unjudged:
        sentence += say("walls.unjudged", walls=", ".join(unjudged))
    runner_up = nearest.id if nearest.cost_ns else None
    return structs.replace(_OPEN, because=(sentence, *_blind(walls)), runner_up=runner_up)


def _why(first: Wall, walls: Walls, short: bool) -> Texts:
    reasons = [say("walls.does-not-fit")] if short else []
    if first.cost_ns:
        reasons.append(say("walls.without", wall=spoken(first.id), part_frac=_frac(first)))
    reasons += [
        say("walls.other", wall=spoken(wall.id), part_frac=_frac(wall))
        for wall in sorted(walls, key=lambda other: -_frac(other))
        if wall.id != first.id and wall.outcome == "finding" and wall.cost_ns
    ]
    return (*reasons, *_blind(walls))


def _blind(walls: Walls) -> Texts:
    return tuple(
        say("walls.not-judged", wall=spoken(wall.id), most=_most(wall), reason=wall.missing[0])
        for wall in walls
        if wall.outcome == "unmeasurable" and wall.missing
    )


def _most(wall: Wall) -> str:
    most = known(wall.at_most_frac)
    if most is None or most >= 1.0:
        return ""
    return say("walls.most", part_frac=most)


def _kind(wall: Wall) -> str | None:
    """The kind, or family of kinds, whose absence alone wins most; of equals expert traffic, then
    data.
    """
    return next(iter(by_family(wall.cost_by_kind_ns or {})), None)


def by_family(by_kind_ns: Mapping[str, int]) -> dict[str, int]:
    """Costs by kind, largest first, those of one operation together under its name; none that is
    zero.
    """
    family_of = {kind: family for family, kinds in FAMILIES.items() for kind in kinds}
    together = Counter[str](dict.fromkeys(FAMILIES, 0))
    for kind, ns in by_kind_ns.items():
        together[family_of.get(kind, kind)] += ns
    return dict((+together).most_common())


def _near(wall: Wall, other_wall: Wall, error_frac: float) -> bool:
    """Whether two costs cannot be told apart: under 3 points, or than the error of their prices.

    How much they differ from step to step is no such error: what both cost on average is known.
    """
    return abs(_frac(wall) - _frac(other_wall)) < max(NEAR.value, error_frac)
