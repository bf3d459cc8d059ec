"""Levers: fixes whose gain nothing proves, planned as those of a wall are, and called what they are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from heuristics.fixes.fix import Fix
from heuristics.plan.planned import Plan
from heuristics.run.run import Run, WallId
from traces.missing import Missing


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
    """Of compute what a row says; of another wall, which is not decided, every fix."""
    if fix.wall != "compute":
        return True
    needs = fix.preconditions(run) if fix.lever == "known_off" else ()
    return fix.lever != "" and all(need.state != "unknown" for need in needs)
