"""The one sentence of a run, what it rests on, and the line about the recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import UNSET

from heuristics.result.judged import Bucket, Verdict, Wall
from heuristics.result.known import known
from heuristics.result.result import Result
from heuristics.walls.price import WALL
from heuristics.walls.verdict import FAMILIES
from reports.content.analysis.scale import gpus_of, scale_of, telling_rank
from reports.content.blocks import Code, Headline, Tone, Words, words
from reports.content.names import gpu_of, name_of, who
from reports.content.quantities import counted, milliseconds, percent
from reports.content.wording import sentence
from reports.measures import measures
from traces.missing import Missing

MOST: Final = 0.8
HALF: Final = 0.5
"""Parts of a wall's cost that its largest kind alone must win to stand for the wall, or beside it."""
_NAMED: Final = 2
_OPAQUE: Final = 3
"""Walls that a window of graphs recorded whole leaves unjudged: all but the host's."""
_UNUSED: Final[tuple[Bucket, ...]] = ("exposed_comm", "exposed_copy", "idle")
_FORCED: Final = (
    "Routing is forced to balance; real routing is slower. Published for one run: 32 % MFU balanced, "
    "15 % with its learned router (marin#7668)."
)


def headline(result: Result) -> Headline:
    """What slows the run, or that nothing does, or why that cannot be said."""
    found = findings(result)
    under = tuple(_under(result))
    if differ := [one.text for one in result.config_findings if one.state == "counted_otherwise"]:
        rest = (words(f"The recording itself is slowed by {_named(found)}."),) if found else ()
        return Headline(
            "RECORDING AND CONFIGURATION DIFFER", words(sentence(differ[0])), Tone.NOTICE, (*rest, *under)
        )
    if result.verdict.startup_ns:
        rest = (words(f"The rest is slowed by {_named(found)}."),) if found else ()
        return Headline("NOT A STEADY-STATE RECORDING", words(_startup(result)), Tone.NOTICE, (*rest, *under))
    if found:
        return Headline("SLOWED BY", (_named(found),), Tone.BAD, under)
    if all(wall.outcome == "unmeasurable" for wall in result.walls):
        return Headline("NOT JUDGED", (_unjudged(result),), Tone.NOTICE, under)
    opaque = [wall for wall in result.walls if wall.outcome == "unmeasurable"]
    if len(opaque) == _OPAQUE and not unused_frac(result):
        return Headline("NOT JUDGED", (f"{_unjudged(result)} {_closest(result)}",), Tone.NOTICE, under)
    if unused := unused_frac(result):
        said = f"{_bucket(result, unused[0])}: {percent(unused[1])} of the time. {_closest(result)}"
        return Headline("NOT PROVEN", (f"{said[0].upper()}{said[1:]}{_open(result)}",), Tone.NOTICE, under)
    if open_walls(result):
        said = f"{_closest(result)}{_open(result)}"
        return Headline("NO BOTTLENECK FOUND SO FAR", (said,), Tone.NOTICE, under)
    return Headline("NO BOTTLENECK OF 10 % OR MORE", (_closest(result),), Tone.GOOD, under)


def _open(result: Result) -> str:
    named = ", ".join(name_of(wall.id) + _most(wall) for wall in open_walls(result))
    return f" Not judged: {named}." if named else ""


def unused_frac(result: Result) -> tuple[Bucket, float] | None:
    """The largest part of time that is not compute, of at least a tenth, where no wall is proven."""
    if known(result.verdict.wall) is not None:
        return None
    window_ns = sum(rank.budget_ns.window for rank in result.ranks)
    parts: dict[Bucket, int] = {
        bucket: sum(known(getattr(rank.budget_ns, bucket)) or 0 for rank in result.ranks)
        for bucket in _UNUSED
    }
    largest = max(parts, key=lambda bucket: parts[bucket])
    may_matter = largest == "idle" or bool(open_walls(result))
    if not window_ns or not may_matter or parts[largest] < WALL.value * window_ns:
        return None
    return largest, parts[largest] / window_ns


def findings(result: Result) -> list[Wall]:
    """Walls of 10 % or more: the verdict's first, then by cost."""
    found = [wall for wall in result.walls if wall.outcome == "finding"]
    return sorted(found, key=lambda wall: (wall.id != result.verdict.wall, -(known(wall.cost_frac) or 0)))


def _named(found: list[Wall]) -> str:
    named = [f"{cause(wall)}{_share(wall)}" for wall in found[:_NAMED]]
    more = f", and {counted(len(found) - _NAMED, 'more')}" if len(found) > _NAMED else ""
    return " and ".join(named) + more


def _share(wall: Wall) -> str:
    share = known(wall.cost_frac)
    return "" if share is None else f" ({percent(share)})"


def by_family(kinds: Mapping[str, int]) -> dict[str, int]:
    """Costs by kind, largest first, those of one operation together."""
    family = {kind: name for name, members in FAMILIES.items() for kind in members}
    together: dict[str, int] = {}
    for kind, time_ns in kinds.items():
        name = family.get(kind, kind)
        together[name] = together.get(name, 0) + time_ns
    return dict(sorted(together.items(), key=lambda one: -one[1]))


def main_kind(wall: Wall, least: float = MOST) -> str | None:
    """The kind that alone wins at least such a part of what the wall costs; None where no kind does."""
    kinds, cost_ns = by_family(known(wall.cost_by_kind_ns) or {}), known(wall.cost_ns)
    largest = next(iter(kinds), None)
    return largest if largest and cost_ns and kinds[largest] >= least * cost_ns else None


def cause(wall: Wall) -> str:
    """A wall by its largest kind where that is nearly all of it, by both where it is half, else by itself."""
    if (kind := main_kind(wall)) is not None:
        return _kind(wall, kind)
    if (kind := main_kind(wall, HALF)) is not None:
        return f"{name_of(wall.id)}, mostly {_kind(wall, kind)}"
    return name_of(wall.id)


def _kind(wall: Wall, kind: str) -> str:
    if wall.id == "compute" and measures()[kind].group == "class":
        return f"{name_of(kind)} too small for the GPU"
    return name_of(kind)


def _startup(result: Result) -> str:
    window_ns, lost_ns = sum(rank.budget_ns.window for rank in result.ranks), result.verdict.startup_ns
    of = f"{milliseconds(lost_ns)} ms ({percent(lost_ns / window_ns)}) of {milliseconds(window_ns)} ms"
    return f"Profiler and start-up take {of}; walls are judged on the rest."


def open_walls(result: Result) -> list[Wall]:
    """Walls that could cost a tenth for all that this recording tells, the most they can cost first."""
    told = [(known(wall.at_most_frac), wall) for wall in result.walls if wall.outcome == "unmeasurable"]
    found = [
        (1.0 if most is None else most, wall) for most, wall in told if most is None or most >= WALL.value
    ]
    return [wall for _, wall in sorted(found, key=lambda one: -one[0])]


def _most(wall: Wall) -> str:
    """The most that a wall without a cost can be, where anything bounds it."""
    most = known(wall.at_most_frac)
    return f" (at most {percent(most)})" if most is not None and most < 1 else ""


def _closest(result: Result) -> str:
    clear = [(known(wall.cost_frac) or 0.0, wall) for wall in result.walls if wall.outcome == "clear"]
    share, nearest = max(clear, key=lambda one: one[0])
    said = (
        f"Closest: {cause(nearest)}, at most {percent(share)}."
        if share
        else "None that was judged costs time."
    )
    bucket: Bucket | None = known(result.verdict.largest_bucket)
    part = known(result.verdict.largest_bucket_frac)
    if bucket is None or part is None:
        return said
    return f"{said} Largest part: {_bucket(result, bucket)}, {percent(part)}."


def _bucket(result: Result, bucket: Bucket) -> str:
    """A bucket's name; what may be work that was not seen is not called idle, nor unnamed work compute."""
    if bucket == "idle" and any(isinstance(rank.absent_ns, Missing) for rank in result.ranks):
        return "nothing recorded"
    if bucket == "compute" and all(known(rank.budget_ns.exposed_comm) is None for rank in result.ranks):
        return "busy"
    return name_of(bucket)


def _unjudged(result: Result) -> str:
    reasons = [wall.missing[0] for wall in result.walls if wall.missing]
    return sentence(reasons[0]) if reasons else "This recording does not show what the time is lost to."


def _under(result: Result) -> Iterator[Words]:
    """The confidence with its decisive reason, and what changes the meaning of the headline."""
    verdict = result.verdict
    if (level := known(verdict.confidence)) is not None:
        yield words(f"Confidence {level}{_because(verdict)}.")
    if (waits := _waits_for_late(result)) is not None:
        yield words(f"{percent(waits)} of the exposed communication is waiting for a late rank.")
    if verdict.tied_with:
        yield words("The two are too close to decide which of them costs more.")
    if forced_balance(result):
        yield words(_FORCED)
    untrained = [rank for rank in result.ranks if rank.detected.training_step is False]
    if untrained:
        yield words(
            f"Not a training step ({untrained[0].detected.training_evidence}), so no fixes for training."
        )


def _waits_for_late(result: Result) -> float | None:
    """How much of the exposed communication is waiting for a late rank, where it is half or more."""
    late = None if result.run is UNSET else known(result.run.late)
    slowed = any(wall.id == "communication" for wall in findings(result))
    share = late.exposed_frac if late is not None and slowed else None
    return share if share is not None and share >= HALF else None


def _because(verdict: Verdict) -> str:
    """The first reason for doubt that the headline does not say itself, and how many more there are."""
    reasons = verdict.confidence_reasons
    new = [one.text for one in reasons if not (one.id == "startup" and verdict.startup_ns)]
    said = ["start-up", *new[:1]] if len(new) < len(reasons) else new[:1]
    more = f" (and {counted(len(new) - 1, 'more reason')})" if len(new) > 1 else ""
    return f": {', and '.join(said)}{more}" if said else ""


def forced_balance(result: Result) -> bool:
    """Whether options or the configuration force even routing."""
    if result.given.get("routing") == "force_balance":
        return True
    configuration = known(result.configuration)
    settings = configuration.settings if configuration else ()
    return any(one.knob == "moe_router_force_load_balancing" and one.value is True for one in settings)


def title(result: Result) -> Words:
    """The recordings' names."""
    names = [trace.name for trace in result.traces]
    return words(Code(names[0]), f" and {len(names) - 1} more" if len(names) > 1 else "")


def facts(result: Result) -> Words:
    """GPU, steps and the step's length with its spread."""
    rank = telling_rank(result)
    scale, steps = scale_of(rank), rank.steps
    many = len(result.ranks) > 1
    gpu = gpus_of(rank, len(result.ranks)) if many else f"{gpu_of(rank)}, GPU {rank.device}"
    whose = f"{who(rank)}: " if many else ""
    if not steps.used:
        return words(gpu, f"; {whose}no steps found, window of {scale.length}")
    low, high = known(steps.min_ns), known(steps.max_ns)
    spread = _spread(low, high) if low is not None and high is not None and low < high else ""
    dropped = f", {len(steps.dropped)} left out" if steps.dropped else ""
    return words(gpu, f"; {whose}{counted(len(steps.used), 'step')} of {scale.length}{spread}{dropped}")


def _spread(low_ns: int, high_ns: int) -> str:
    """The shortest and the longest step, or their distance where both read alike."""
    low, high = milliseconds(low_ns), milliseconds(high_ns)
    return f" ({low} to {high})" if low != high else f" (equal within {percent((high_ns - low_ns) / low_ns)})"
