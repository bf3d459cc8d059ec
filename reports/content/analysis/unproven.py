"""What a run may lose its time to where no wall is proven: the largest part, of compute what it can cost."""

from dataclasses import dataclass
from typing import Final

from heuristics.result.judged import Bucket, Wall
from heuristics.result.result import Result
from heuristics.walls.price import WALL
from reports.content.names import name_of
from traces.missing import Missing, known
from traces.sections.tables import WallId
from traces.spelling import percent

_UNUSED: Final[dict[Bucket, tuple[WallId, ...]]] = {
    "exposed_comm": ("communication",),
    "exposed_copy": ("memory", "host_overhead"),
    "idle": ("host_overhead",),
}
"""Time that is not compute -> the walls that it may be, the likelier first."""
_TAKES: Final[dict[Bucket, str]] = {
    "exposed_comm": "Communication that no compute hides takes",
    "exposed_copy": "Copies that no compute hides take",
    "idle": "The GPU is idle for",
    "compute": "Compute takes",
}


_WIDE: Final = "wide_matrix_frac"
"""The measure that tells of matrix work in FP32 or TF32."""


@dataclass(frozen=True, slots=True)
class Unused:
    """The largest part of time that is not compute; `wall`: the wall that it may be and nothing decides.

    Compute where matrix work is in FP32 or TF32, and what that costs, undecided, can be more than this part.
    """

    bucket: Bucket
    frac: float
    wall: Wall | None


def unused(result: Result) -> Unused | None:
    """That part, where it is a tenth or more and no wall is proven."""
    window_ns = sum(rank.budget_ns.window for rank in result.ranks)
    if known(result.verdict.wall) is not None or not window_ns:
        return None
    parts: dict[Bucket, int] = {
        bucket: sum(known(getattr(rank.budget_ns, bucket)) or 0 for rank in result.ranks)
        for bucket in _UNUSED
    }
    largest = max(parts, key=lambda bucket: parts[bucket])
    open_ = {wall.id: wall for wall in open_walls(result)}
    compute = open_.get("compute")
    wide = compute is not None and any(one.measure == _WIDE for one in compute.evidence)
    most = known(compute.at_most_frac) if compute and wide else None
    if most is not None and most * window_ns > parts[largest]:
        compute_ns = sum(rank.budget_ns.compute for rank in result.ranks)
        return Unused("compute", compute_ns / window_ns, compute)
    if parts[largest] < WALL.value * window_ns:
        return None
    wall = next((open_[id_] for id_ in _UNUSED[largest] if id_ in open_), None)
    return Unused(largest, parts[largest] / window_ns, wall)


def open_walls(result: Result) -> list[Wall]:
    """Walls that could cost a tenth for all that this recording tells, the most they can cost first."""
    told = [(known(wall.at_most_frac), wall) for wall in result.walls if wall.outcome == "unmeasurable"]
    found = [
        (1.0 if most is None else most, wall) for most, wall in told if most is None or most >= WALL.value
    ]
    return [wall for _, wall in sorted(found, key=lambda one: -one[0])]


def at_most(wall: Wall) -> str:
    """The most that a wall without a cost can be, where anything bounds it."""
    most = known(wall.at_most_frac)
    return f" (at most {percent(most)})" if most is not None and most < 1 else ""


def part_of_time(result: Result, part: Unused) -> str:
    """How much of the time it takes, as a sentence."""
    unseen = part.bucket == "idle" and bucket_name(result, "idle") != name_of("idle")
    takes = "Nothing was recorded for" if unseen else _TAKES[part.bucket]
    return f"{takes} {percent(part.frac)} of the time."


def bucket_name(result: Result, bucket: Bucket) -> str:
    """A bucket's name; what may be work that was not seen is not called idle, nor unnamed work compute."""
    if bucket == "idle" and any(isinstance(rank.absent_ns, Missing) for rank in result.ranks):
        return "nothing recorded"
    if bucket == "compute" and all(known(rank.budget_ns.exposed_comm) is None for rank in result.ranks):
        return "busy"
    return name_of(bucket)
