"""Which fixes, in which order: the workflow's order for the wall, less what cannot help or is not allowed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from heuristics.fixes.added import added_fixes
from heuristics.fixes.fix import Fix
from heuristics.plan.clues import before_tuning, first_by_clue
from heuristics.plan.gains import Gain, before_others, is_direct, made, planned_of, repairs, unmet, wins_of
from heuristics.plan.planned import Plan, Planned, Refused, Rejection, in_paying_order
from heuristics.plan.refusals import REFUSALS, Considered
from heuristics.plan.variants import levers_of, unlocked
from heuristics.run.run import Run, WallId

if TYPE_CHECKING:
    from heuristics.plan.allowed import Permits
    from traces.missing import Missing

WALL_ORDER: Final[Mapping[WallId, tuple[str, ...]]] = {
    "memory": (
        *("MEM-2", "MEM-4", "MEM-6", "MEM-1", "MEM-8"),
        "MEM-17",  # moves layers, and costs no time where stages stay about even
        "MEM-16",  # for long sequences; where they are very long it comes first
        "MEM-5",
        "MEM-3",  # less of the optimizer's state, at no time
        "MEM-13",  # reserved memory only
        "MEM-12",  # gives some of the overlap back
        "MEM-7",  # takes time, on short steps much
        "MEM-11",  # experimental, and only for experts of a fixed budget
        "MEM-10",  # another way of training, and another checkpoint format
        "MEM-9",
        "MEM-14",  # where copies from the host dominate it comes first
        "MEM-15",  # takes memory: for a run that has room
    ),
    "communication": (
        *("COM-2", "COM-1", "COM-4", "COM-5", "COM-6"),
        *("COM-3", "COM-10", "COM-11"),
        "COM-7",  # as COM-6: on traffic of its own, which comes first where it dominates
        "COM-15",  # the overlap's stream, once there is one
        "COM-9",  # after the overlap was measured alone
        "COM-12",  # cluster's settings, where DeepEP crosses nodes
        "COM-8",  # hides less than the overlap that it excludes
        "COM-14",  # the same, with FSDP
        "COM-13",  # what the other fixes set themselves
    ),
    "host_overhead": tuple(f"HST-{number}" for number in (3, 2, 5, 1, 6, 4, 7, 8, 9, 10)),
    "compute": (
        *("CMP-1", "CMP-2", "CMP-3", "CMP-5"),
        "CMP-4",
        "CMP-10",  # where copies between layouts take a visible part
        "CMP-7",  # experimental, for one format on one architecture
        "CMP-8",  # of the machine, and needs its rights
        "CMP-6",  # looks inside what is left
        "CMP-9",  # where GEMMs without tensor cores dominate it comes first
    ),
}
"""Fix ids by wall. First those of the profile table of NVIDIA's MoE optimization workflow (Megatron-Bridge,
skill perf-moe-optimization-workflow), in its order; then the catalogue's others, in ours: what costs less to
try, and what excludes less, comes earlier."""

ASIDE: Final = ("HST-1",)
"""What changes nothing of the run itself, so that another wall's fix that waits for it may follow in the
same plan: on GB200 and GB300 the binding of CPUs comes before a dispatcher is swapped (Megatron-Bridge, skill
perf-moe-dispatcher-selection)."""


def make_plan(
    run: Run,
    walls: Sequence[WallId],
    catalogue: Mapping[str, Fix],
    levers: Mapping[WallId, Missing] | None = None,
    gains: Mapping[str, Gain] | None = None,
    rejected: Mapping[str, Rejection] | None = None,
) -> Plan:
    """Plan for the walls that were found; without any, the levers: fixes whose gain nothing proves.

    `levers`: the walls that may have some, with why no gain is proven and what would confirm one.

    `walls`, the verdict's first: of two fixes that exclude each other the earlier wall's is chosen. The order
    is then that of what they save for sure; but first what is set wrongly, and what a run needs to fit.

    `gains`: what the kinds of change that were replayed give. `rejected`: fixes, by id, that the framework
    itself was asked about and rejects.

    No fix in the plan has an unmet precondition, unless an earlier fix for the same wall meets it: what
    another wall's fix would allow is for the next recording. No two exclude each other, none breaks a rule
    once it is merged into the configuration, and each is planned or refused once.
    """
    gains, rejected = gains or {}, rejected or {}

    if not walls:
        return levers_of(
            run, levers or {}, catalogue, lambda one, why, fixes: _plan(one, why, fixes, {}, rejected)
        )

    def make(one: Run) -> Plan:
        return _plan(one, walls, catalogue, gains, rejected)

    return unlocked(run, walls[0], _wanted(run, walls[0], catalogue, gains), make(run), make)


def _plan(
    run: Run,
    walls: Sequence[WallId],
    catalogue: Mapping[str, Fix],
    gains: Mapping[str, Gain],
    rejected: Mapping[str, Rejection],
) -> Plan:
    """The plan for the run as it is."""
    permits = _permits(run)
    chosen: list[Planned] = []
    refused: list[Refused] = []
    for wall in walls:
        seen = {one.fix.id for one in chosen} | {one.fix.id for one in refused}
        dominated = any(is_direct(run, fix) for fix in _ordered(run, wall, catalogue))
        for planned in _wanted(run, wall, catalogue, gains, seen):
            first = _before(run, planned, catalogue, {one.fix.id for one in chosen}, gains)
            earlier, rejection = (*chosen, *first), rejected.get(planned.fix.id)
            met_by = {one.fix.id for one in earlier if one.fix.wall == wall or one.fix.id in ASIDE}
            met_by |= {one.fix.same_as for one in earlier}
            one = Considered(run, planned, earlier, met_by, dominated, rejection, permits)
            if why := next(filter(None, (refusal(one) for refusal in REFUSALS)), None):
                refused.append(why)
                continue
            after = one.allowed.after if one.allowed else ()
            chosen = [*one.earlier, replace(one.made, after=after)]
            refused = [one for one in refused if one.fix not in [aside.fix for aside in first]]
    room = [one.fix.id for one in chosen if run.does_not_fit and one.fix.wall == "memory"]
    chosen = in_paying_order(chosen, (*before_tuning(run), *before_others(run), *room))
    return Plan(tuple(replace(one, shares_with=_sharing(one, chosen)) for one in chosen), tuple(refused), ())


def _wanted(
    run: Run,
    wall: WallId,
    catalogue: Mapping[str, Fix],
    gains: Mapping[str, Gain],
    seen: Collection[str] = (),
) -> list[Planned]:
    """A wall's fixes that were not seen yet, in the order to consider them."""
    wanted = [planned_of(run, fix, gains) for fix in _ordered(run, wall, catalogue) if fix.id not in seen]
    if run.does_not_fit and wall == "memory":  # room comes first there, not time
        return wanted
    return in_paying_order(wanted, before_others(run))


def _permits(run: Run) -> Permits | None:
    """The rules of all releases, which are loaded only where there are settings to hold against them."""
    if not run.settings.by_knob:
        return None
    from heuristics.plan.allowed import Permits

    return Permits(run)


def _before(
    run: Run, planned: Planned, catalogue: Mapping[str, Fix], chosen: set[str], gains: Mapping[str, Gain]
) -> list[Planned]:
    """What a fix waits for and may stand beside it, where that is all that it waits for."""
    waits = unmet(planned)
    aside = [one.cure for one in waits if one.cure in ASIDE and one.cure in catalogue]
    if not aside or len(aside) < len(waits) or {*aside} <= chosen:
        return []
    first = [made(run, planned_of(run, catalogue[number], gains)) for number in dict.fromkeys(aside)]
    return [] if any(unmet(one) for one in first) else first


def _sharing(planned: Planned, chosen: Sequence[Planned]) -> tuple[str, ...]:
    """Other fixes of the plan that win by the same kinds of the same wall."""
    return tuple(
        other.fix.id
        for other in chosen
        if other is not planned and other.fix.wall == planned.fix.wall and _overlap(planned.fix, other.fix)
    )


def _overlap(one: Fix, other: Fix) -> bool:
    mine, its = wins_of(one), wins_of(other)
    return not (one.direct == () or other.direct == ()) and (not mine or not its or bool({*mine} & {*its}))


def _ordered(run: Run, wall: WallId, catalogue: Mapping[str, Fix]) -> list[Fix]:
    """The wall's fixes in its order, plug-ins' last; but what a clue names first, then the direct ones."""
    known = [catalogue[number] for number in WALL_ORDER[wall] if number in catalogue]
    known += [catalogue[fix.id] for fix in added_fixes().values() if fix.wall == wall and fix.id in catalogue]
    known += [fix for fix in repairs(run, wall, catalogue) if fix not in known]
    fixes = [fix.of_run(fix, run) for fix in known]
    named = first_by_clue(run, wall)
    return sorted(fixes, key=lambda fix: (fix.id != named, not is_direct(run, fix)))
