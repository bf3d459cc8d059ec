"""Steps that find a cause: of a wall that no change is known for, of time that no wall explains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final

from heuristics.plan.plan import DIRECT
from heuristics.result.judged import Bucket
from heuristics.result.known import known
from heuristics.result.result import Result
from heuristics.run.run import WallId
from heuristics.walls.price import WALL
from reports.content.analysis.unproven import open_walls, unused
from reports.content.blocks import Step, words
from reports.content.names import is_cure, name_of
from reports.content.quantities import percent
from reports.content.wording import listed, sentence
from traces.cures import cure

_LOOKS: Final[Mapping[WallId, tuple[str, str]]] = {
    "memory": ("Find the code that allocates, copies or computes again", "stacks"),
    "communication": ("Find which rank the others wait for", "all_ranks"),
    "host_overhead": ("Find what the host does while the GPU waits", "stacks"),
    "compute": ("Find which kernels are slow, and why", "slow_kernels"),
}
"""Wall -> how its cause is found where no change is known to fit, and the cure that says what to record."""
_PAUSES: Final = ("long_python_pauses", "os_wait")
"""Kinds of the host's cost that name no cause."""
_PARTS: Final[Mapping[Bucket, tuple[str, str]]] = {
    "idle": _LOOKS["host_overhead"],
    "exposed_comm": _LOOKS["communication"],
    "exposed_copy": ("Find what is copied, and whether it can stay on the GPU or come ahead", "stacks"),
}
"""The same of time that is not compute, where no wall is proven."""


def find_out(result: Result) -> Iterator[Step]:
    """How to find the cause of a wall that has no step; what to record for walls that were not judged."""
    kind = result.traces[0].kind if result.traces else None
    wall: WallId | None = known(result.verdict.wall)
    part = unused(result)
    if wall is not None:
        yield _look(_LOOKS[wall], kind)
    elif part is not None:
        yield _look(_PARTS[part.bucket], kind, f"acts on {percent(part.frac)}")
    open_ = [one for one in open_walls(result) if is_cure(one.cure)]
    if open_:
        named = listed([name_of(one.id) for one in open_])
        cures = dict.fromkeys(one.cure for one in open_)
        yield Step(
            "", words(f"Record again, to judge {named}"), "", (), tuple(words(sentence(one)) for one in cures)
        )


def with_pauses(result: Result, steps: list[Step], most: int) -> list[Step]:
    """Beside changes, how to find what no change is for: a part of time that no wall explains, long pauses.

    Before what acts on less.
    """
    if (unexplained := unused(result)) is not None and steps:
        return _placed(result, steps, most, _PARTS[unexplained.bucket], unexplained.frac)
    wall = next((one for one in result.walls if one.id == "host_overhead"), None)
    if wall is None or wall.outcome != "finding" or not steps:
        return steps
    kinds, cost_ns, cost = known(wall.cost_by_kind_ns), known(wall.cost_ns), known(wall.cost_frac)
    if not kinds or not cost_ns or cost is None:
        return steps
    part = min(1.0, sum(kinds.get(kind, 0) for kind in _PAUSES) / cost_ns)
    if part <= DIRECT.value and cost * part < WALL.value:
        return steps
    how = ("Find what the host does in its long pauses", "stacks")
    return _placed(result, steps, most, how, cost * part)


def _placed(result: Result, steps: list[Step], most: int, how: tuple[str, str], frac: float) -> list[Step]:
    kind = result.traces[0].kind if result.traces else None
    before = takewhile(lambda step: (step.high or 0.0) >= frac, steps)
    place = min(most - 1, len([*before]))
    return [*steps[:place], _look(how, kind, f"acts on {percent(frac)}"), *steps[place:]]


def _look(how: tuple[str, str], kind: str | None, acts: str = "") -> Step:
    look, missing = how
    return Step("", words(look), acts, (), (words(sentence(cure(missing, kind))),))
