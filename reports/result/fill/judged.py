"""`verdict` and `walls`: what is made of a run."""

from typing import Final

from msgspec import UNSET, UnsetType

from heuristics.guides.memory_use import is_tight
from heuristics.judging.judgement import Judgement
from heuristics.result import judged as typed
from heuristics.walls.wall import WallJudgement
from reports.result.fill.parts import because, copied, each
from traces.missing import Missing, gap

_NOT_GIVEN: Final = gap("no symptoms were given", "give symptoms (--symptoms), or analyze a trace")
_NO_BUDGET: Final = gap("the budget of a step is missing", _NOT_GIVEN.cure)
_ROOM: Final[dict[bool | None, typed.MemoryRoom]] = {True: "tight", False: "enough", None: "unknown"}
_COSTS: Final = ("cost_ns", "cost_frac", "cost_by_kind_ns", "at_most_frac")


def verdict(judgement: Judgement, judged: bool = True) -> typed.Verdict:
    """The verdict. Without a wall it has no kind, and none comes after it.

    No wall is an answer where all were judged, else a gap. `judged`: anything was known to judge them by.
    """
    found, startup, largest = judgement.verdict, judgement.startup, judgement.largest
    confidence, following = found.confidence, found.following
    filled = copied(
        found,
        typed.Verdict,
        bound=judgement.bound.bucket,
        confidence=confidence.level if confidence else None,
        confidence_because=confidence.because if confidence else (),
        because=(*found.because, judgement.bound.because),
        next_wall=following.wall if following else None,
        next_wall_frac=following.frac if following else None,
        next_because=following.because if following else "",
        startup_ns=startup.ns if startup else 0,
        largest_bucket=largest.bucket if largest else None,
        largest_bucket_frac=largest.frac if largest else None,
        confidence_reasons=confidence.reasons if confidence else (),
        does_not_fit=judgement.run.does_not_fit,
    )
    filled = because(filled, each(("largest_bucket", "largest_bucket_frac"), _NO_BUDGET))
    if not judged:
        return because(filled, each(typed.Verdict.__struct_fields__, _NOT_GIVEN))
    cure = next((wall.cure for wall in judgement.walls if wall.cure), None)
    others = "no other wall costs anything that could be measured"
    hidden = following.missing if following and following.wall is None else None
    return because(
        filled,
        {
            "kind": gap("not split", cure) if found.wall and cure else None,
            "bound": gap(judgement.bound.because, judgement.bound.cure),
            "runner_up": gap(others, cure) if cure else None,
            **each(("wall", "confidence"), gap(found.because[0], cure) if cure else None),
            **each(("next_wall", "next_wall_frac"), hidden),
        },
    )


def walls(judgement: Judgement, judged: bool = True) -> tuple[typed.Wall, ...]:
    """All walls, with what each costs at most."""
    room = _ROOM[is_tight(judgement.run)]
    return tuple(_wall(wall, judged, room if wall.id == "memory" else UNSET) for wall in judgement.walls)


def _wall(wall: WallJudgement, judged: bool, room: typed.MemoryRoom | UnsetType) -> typed.Wall:
    told = wall.outcome != "unmeasurable"
    filled = copied(
        wall,
        typed.Wall,
        cost_ns=wall.cost_ns if told else None,
        cost_frac=wall.cost_frac if told else None,
        cost_by_kind_ns=wall.cost_by_kind_ns if told else None,
        at_most_frac=wall.cost_frac if wall.at_most_frac is None else wall.at_most_frac,
        evidence=tuple(copied(one, typed.Evidence) for one in wall.evidence),
        at_least_frac=UNSET if wall.at_least_frac is None else wall.at_least_frac,
        room=room,
    )
    why = Missing("", "; ".join(wall.missing), wall.cure) if judged else _NOT_GIVEN
    return because(filled, each(_COSTS, why))
