"""Where no wall is proven: what the time may go to, and the steps that find its cause.

Steps are also for a wall that no change is known for. Of compute the part is what it can cost.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from msgspec import UNSET

from heuristics.result.judged import Bucket, Wall
from heuristics.result.result import Result
from heuristics.walls.price import UNNAMED
from reports.content.blocks import Code, Step, Words, words
from reports.content.names import is_cure, kernel_name, listed, name_of, sentence
from traces.cures import cure
from traces.limits import MOST, WALL
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
    "exposed_comm": "Exposed communication takes",
    "exposed_copy": "Exposed copies take",
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
        return Unused("compute", sum(rank.budget_ns.compute for rank in result.ranks) / window_ns, compute)
    if parts[largest] < WALL.value * window_ns:
        return None
    wall = next((open_[id_] for id_ in _UNUSED[largest] if id_ in open_), None)
    return Unused(largest, parts[largest] / window_ns, wall)


def open_walls(result: Result) -> list[Wall]:
    """Walls that could cost a tenth for all that this recording tells, the most they can cost first."""
    unmeasurable = [wall for wall in result.walls if wall.outcome == "unmeasurable"]
    most = {wall.id: 1.0 if (one := known(wall.at_most_frac)) is None else one for wall in unmeasurable}
    found = [wall for wall in unmeasurable if most[wall.id] >= WALL.value]
    return sorted(found, key=lambda wall: -most[wall.id])


def at_most(wall: Wall) -> str:
    most = known(wall.at_most_frac)
    return f" (at most {percent(most)})" if most is not None and most < 1 else ""


_PROBABLY: Final = {
    False: "is probably communication: it runs on a stream of its own, and compute waits for it.",
    True: "are probably communication: they run on streams of their own, and compute waits for them.",
}


def likely_communication(result: Result) -> tuple[Words, float] | None:
    """What is said of kernels of unknown class that are probably communication, and their share of a rank."""
    by_rank = [[one for one in rank.unknown_kernels if one.probably_communication] for rank in result.ranks]
    found = max(by_rank, key=lambda several: sum(one.frac for one in several), default=[])
    if not found:
        return None
    first, names = found[0], {one.name for several in by_rank for one in several}
    several = len(names) > 1
    more = f" and {len(names) - 1} more" if several else ""
    share, probably = sum(one.frac for one in found), _PROBABLY[several]
    return words(Code(kernel_name(first.name)), f"{more} ({percent(share)} of the time) {probably}"), share


def part_of_time(result: Result, part: Unused) -> str:
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


_LOOKS: Final[Mapping[WallId, tuple[str, str]]] = {
    "memory": ("Find the code that allocates, copies or computes again", "stacks"),
    "communication": ("Find which rank the others wait for", "all_ranks"),
    "host_overhead": ("Find what the host does while the GPU waits", "stacks"),
    "compute": ("Find which kernels are slow, and why", "slow_kernels"),
}
"""Wall -> how its cause is found where no change is known to fit, and the cure that says what to record."""
_PAUSES: Final = ("long_python_pauses", "os_wait")
"""Kinds of the host's cost that name no cause."""
_LONG_PAUSES: Final = ("Find what the host does in its long pauses", "stacks")
_PARTS: Final[Mapping[Bucket, tuple[str, str]]] = {
    "idle": _LOOKS["host_overhead"],
    "exposed_comm": _LOOKS["communication"],
    "exposed_copy": ("Find what is copied, and whether it can stay on the GPU or come ahead", "stacks"),
}
"""The same of time that is not compute, where no wall is proven."""


def find_out(result: Result) -> Iterator[Step]:
    """How to find the cause of a wall that has no step; what to record for walls that were not judged."""
    wall: WallId | None = known(result.verdict.wall)
    part, judged = unused(result), any(one.outcome != "unmeasurable" for one in result.walls)
    if wall is not None:
        yield _look(_LOOKS[wall], result)
    elif part is not None and judged and part.bucket in _PARTS:
        yield _look(_PARTS[part.bucket], result, f"targets {percent(part.frac)}")
    open_ = [one for one in open_walls(result) if is_cure(one.cure)]
    look_up = cure(UNNAMED, result.traces[0].kind if result.traces else None)
    for how, cured in (
        ("Learn what the unknown kernels do", [one for one in open_ if one.cure == look_up]),
        ("Record again", [one for one in open_ if one.cure != look_up]),
    ):
        if cured:
            named = listed([name_of(one.id) for one in cured]) if judged else "any of the walls"
            cures = tuple(words(sentence(one)) for one in dict.fromkeys(one.cure for one in cured))
            yield Step("", words(f"{how}, to judge {named}"), "", (), cures)


def with_finds(result: Result, steps: list[Step], most: int) -> list[Step]:
    """Beside changes, how to find what no change is for, before what acts on less.

    A part of time that no wall explains; a wall that no change is planned for; long pauses of a host.
    """
    if not steps:
        return steps
    if (part := unused(result)) is not None and part.bucket in _PARTS:
        steps = _placed(result, steps, most, _PARTS[part.bucket], part.frac)
    planned = {fix.wall for fix in result.fixes}
    for wall in result.walls:
        cost = known(wall.cost_frac)
        if wall.outcome != "finding" or cost is None or not planned:
            continue
        if wall.id not in planned:
            steps = _placed(result, steps, most, _LOOKS[wall.id], cost)
        elif wall.id == "host_overhead" and (share := _pauses_frac(wall, cost)):
            steps = _placed(result, steps, most, _LONG_PAUSES, share)
    return steps


def _pauses_frac(wall: Wall, cost: float) -> float:
    """How much long pauses of unknown cause cost, where that is a wall of its own or most of the host's."""
    kinds, cost_ns = known(wall.cost_by_kind_ns) or {}, known(wall.cost_ns)
    if not cost_ns:
        return 0.0
    part = min(1.0, sum(kinds.get(kind, 0) for kind in _PAUSES) / cost_ns)
    return cost * part if part > MOST.value or cost * part >= WALL.value else 0.0


def _placed(result: Result, steps: list[Step], most: int, how: tuple[str, str], frac: float) -> list[Step]:
    before = takewhile(lambda step: (step.high or 0.0) >= frac, steps)
    place = min(most - 1, len([*before]))
    return [*steps[:place], _look(how, result, f"targets {percent(frac)}"), *steps[place:]]


def _look(how: tuple[str, str], result: Result, acts: str = "") -> Step:
    look, missing = how
    last = None if result.run is UNSET else result.run.arrives_last
    if how == _LOOKS["communication"] and last is not None and not isinstance(last, Missing):
        look = "Find why the rank that arrives last is late"
    kind = result.traces[0].kind if result.traces else None
    if missing == "all_ranks" and len(result.ranks) > 1:
        missing = "two_steps"  # the ranks are here, and one step does not show who is always late
    if missing == "stacks" and result.traces and all(one.capture.stacks is True for one in result.traces):
        missing = "recorded_stacks"
    return Step("", words(look), acts, (), (words(sentence(cure(missing, kind))),))
