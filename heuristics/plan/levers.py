"""Levers: fixes whose gain nothing proves, planned as those of a wall are, and called what they are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from heuristics.fixes.fix import Fix
from heuristics.plan.planned import Plan
from heuristics.run.run import Run
from traces.missing import Missing
from traces.sections.tables import WallId

LEVERS: Final = ("CMP-1", "CMP-2", "CMP-3", "CMP-4", "CMP-10", "CMP-9")
"""What still helps a step bound by compute that nothing removable holds back: grouped and fused kernels,
lower precision, larger shapes. Of another wall, which is not decided, every fix may."""
KNOWN_OFF: Final = ("CMP-1", "CMP-2", "CMP-10", "CMP-9")
"""Of these only what a run is known to do without."""


def levers_of(
    run: Run,
    why: Mapping[WallId, Missing],
    catalogue: Mapping[str, Fix],
    plan: Callable[[Run, Sequence[WallId], Mapping[str, Fix]], Plan],
) -> Plan:
    """A plan as for the walls `why`, but by no cost: none bounds what a lever gives.

    `why`: for each wall why no gain is proven, and what would confirm one.
    """
    unpriced = replace(
        run,
        cost_by_kind_ns={wall: costs for wall, costs in run.cost_by_kind_ns.items() if wall not in why},
        total_ns={wall: ns for wall, ns in run.total_ns.items() if wall not in why},
        total_frac={wall: frac for wall, frac in run.total_frac.items() if wall not in why},
        late=None,
    )
    fixes = {number: fix for number, fix in catalogue.items() if _may_help(run, fix)}
    found = plan(unpriced, tuple(why), fixes)
    gaps = ((one, why[one.fix.wall]) for one in found.fixes)
    levers = (replace(one, low_because=gap.reason, low_cure=gap.cure) for one, gap in gaps)
    return Plan((), found.refused, tuple(levers))


def _may_help(run: Run, fix: Fix) -> bool:
    if fix.wall != "compute":
        return True
    needs = fix.preconditions(run) if fix.id in KNOWN_OFF else ()
    return fix.id in LEVERS and all(need.state != "unknown" for need in needs)
