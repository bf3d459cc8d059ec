"""The repair of what makes ranks wait comes first, and nothing else is promised what waiting costs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from heuristics.fixes.fix import Fix
from heuristics.plan.planned import Planned
from heuristics.run.repairs import REPAIRS, comes_first
from heuristics.run.run import Run
from traces.sections.tables import WallId

_REPLAYED: Final = "replayed over all ranks without the cause; the change may remove only part of it"
_WAITING: Final = (
    "on the replayed rank, most of it is waiting for a late rank, which this change does not shorten"
)


def repairs(run: Run, wall: WallId, catalogue: Mapping[str, Fix]) -> tuple[Fix, ...]:
    """Fixes of the catalogue that remove what makes ranks wait; the waiting is a cost of communication."""
    if run.late is None or wall != "communication":
        return ()
    return tuple(catalogue[number] for number in REPAIRS[run.late.cause].fixes if number in catalogue)


def is_repair(run: Run, fix: Fix) -> bool:
    """Whether a fix removes what makes ranks wait."""
    return run.late is not None and fix.id in REPAIRS[run.late.cause].fixes


def before_others(run: Run) -> tuple[str, ...]:
    """Ids of the repairs that lead the plan."""
    late = run.late
    return REPAIRS[late.cause].fixes if late is not None and comes_first(late.saved_frac) else ()


def as_repair(run: Run, planned: Planned) -> Planned:
    """A repair saves at most what the run without its cause does, whatever its wall costs one rank."""
    if not is_repair(run, planned.fix) or run.late is None or run.late.saved_frac is None:
        return planned
    saved = run.late.saved_frac
    return replace(planned, ceiling_frac=saved, low_frac=None, low_because=_REPLAYED, replayed=True)


def less_waiting(run: Run, planned: Planned, ceiling_frac: float | None) -> Planned:
    """Another fix of communication: the replay of single ranks counts waiting for a late one as saved.

    `ceiling_frac`: what its kinds cost beside that waiting.
    """
    late, fix = run.late, planned.fix
    if late is None or not late.waits_ns or fix.wall != "communication" or ceiling_frac is None:
        return planned
    high = planned.ceiling_frac if planned.ceiling_frac is None else min(planned.ceiling_frac, ceiling_frac)
    if planned.low_frac is None or not run.window_ns:
        return replace(planned, ceiling_frac=high)
    waits_ns = sum(ns for kind, ns in late.waits_ns.items() if not fix.kinds or kind in fix.kinds)
    low = planned.low_frac - waits_ns / run.window_ns
    if low <= 0 or high is None:
        return replace(planned, ceiling_frac=high, low_frac=None, low_because=_WAITING)
    return replace(planned, ceiling_frac=high, low_frac=min(low, high))
