"""Which fixes, in which order: the workflow's order for the wall, less what cannot help or is not
allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from heuristics.fixes.added import added_fixes
from heuristics.fixes.catalogue import ROOM_ORDER, WALL_ORDER
from heuristics.fixes.fix import Catalogue, Fix
from heuristics.plan.allowed import Permits
from heuristics.plan.clues import before_tuning, first_by_clue
from heuristics.plan.gains import (
    Gains,
    before_others,
    is_direct,
    made,
    of_first_wall,
    planned_of,
    unmet,
    wins_of,
)
from heuristics.plan.planned import (
    Plan,
    Planned,
    Refused,
    Rejections,
    ids_of,
    in_paying_order,
)
from heuristics.plan.refusals import Considered, refusals
from heuristics.plan.variants import levers_of, unlocked
from heuristics.run.run import Run
from traces.missing import Missing
from traces.sections.tables import WallId
from traces.texts import Texts


def make_plan(
    run: Run,
    walls: Sequence[WallId],
    catalogue: Catalogue,
    levers: Mapping[WallId, Missing] | None = None,
    gains: Gains | None = None,
    rejected: Rejections | None = None,
) -> Plan:
    """Plan for the walls that were found; without any, the levers: fixes whose gain nothing proves.

    `levers`: the walls that may have some, with why no gain is proven and what would confirm one.

    `walls`, the verdict's first: of two fixes that exclude each other the earlier wall's is chosen.
    The order is then that of what they save for sure; but first what is set wrongly, what a run
    needs to fit, and one fix for the first wall, of its largest kind.

    `gains`: what the kinds of change that were replayed give. `rejected`: fixes, by id, that the
    framework itself was asked about and rejects.

    No fix in the plan has an unmet precondition, unless an earlier fix for the same wall meets it:
    what another wall's fix would allow is for the next recording. No two exclude each other, none
    breaks a rule once it is merged into the configuration, and each is planned or refused once.
    """
    gains, rejected = gains or {}, rejected or {}

    if not walls:
        return levers_of(
            run,
            levers or {},
            catalogue,
            partial(_plan, gains={}, rejected=rejected),
        )
    make = partial(_in_order, walls=walls, catalogue=catalogue, gains=gains, rejected=rejected)
    return unlocked(run, walls[0], _wanted(run, walls[0], catalogue, gains), make(run), make)


def _in_order(
    run: Run,
    walls: Sequence[WallId],
    catalogue: Catalogue,
    gains: Gains,
    rejected: Rejections,
) -> Plan:
    """A plan in which nothing waits for its turn behind a fix that is never made."""
    plan = _plan(run, walls, catalogue, gains, rejected)
    never, waiting, planned = {*ids_of(plan.refused)}, set[str](), ids_of(plan.fixes)
    for refusal in plan.refused:
        if refusal.unlocked_by in catalogue and refusal.unlocked_by not in planned:
            never.add(refusal.unlocked_by)
        if refusal.kind == "needs" and refusal.is_turn:
            waiting.add(refusal.unlocked_by)
    if never & waiting:
        return _plan(run, walls, catalogue, gains, rejected, never)
    return plan


def _plan(
    run: Run,
    walls: Sequence[WallId],
    catalogue: Catalogue,
    gains: Gains,
    rejected: Rejections,
    never: Collection[str] = (),
) -> Plan:
    """`never`: ids of fixes that are not made, for whose turn nothing waits."""
    permits = Permits(run)
    chosen = list[Planned]()
    refused = list[Refused]()
    for wall in walls:
        seen = ids_of((*chosen, *refused))
        dominated = any(is_direct(run, fix) for fix in _ordered(run, wall, catalogue))
        for wanted in _wanted(run, wall, catalogue, gains, seen):
            planned = _without_turns(wanted, never)
            first = _before(run, planned, catalogue, {*ids_of(chosen)}, gains)
            earlier, rejection = (*chosen, *first), rejected.get(planned.fix.id)
            considered = Considered(run, planned, earlier, dominated, rejection, permits)
            if why := next(refusals(considered), None):
                refused.append(why)
                continue
            chosen = [*considered.earlier, replace(considered.made, after=considered.allowed.after)]
            asides = ids_of(first)
            refused = [entry for entry in refused if entry.fix.id not in asides]
    room = [step.fix.id for step in chosen if run.does_not_fit and step.fix.wall == "memory"]
    headline = of_first_wall(run, walls[:1], in_paying_order(chosen))
    chosen = in_paying_order(chosen, (*before_tuning(run), *before_others(run), *room, *headline))
    fixes = tuple(replace(step, shares_with=_sharing(step, chosen)) for step in chosen)
    done = {entry.fix.id for entry in refused if entry.is_set}  # which lets no other fix in
    without = (
        replace(entry, unlocked_by="") if entry.unlocked_by in done else entry for entry in refused
    )
    return Plan(fixes, tuple(without), ())


def _without_turns(planned: Planned, never: Collection[str]) -> Planned:
    needs = tuple(
        need for need in planned.preconditions if not (need.order and need.met_by in never)
    )
    if needs == planned.preconditions:
        return planned
    return replace(planned, preconditions=needs)


def _wanted(
    run: Run,
    wall: WallId,
    catalogue: Catalogue,
    gains: Gains,
    seen: Collection[str] = (),
) -> list[Planned]:
    wanted = [
        planned_of(run, fix, gains) for fix in _ordered(run, wall, catalogue) if fix.id not in seen
    ]
    if run.does_not_fit and wall == "memory":  # room comes first there, not time
        return wanted
    return in_paying_order(wanted, before_others(run))


def _before(
    run: Run, planned: Planned, catalogue: Catalogue, chosen: set[str], gains: Gains
) -> list[Planned]:
    """What a fix waits for and may stand beside it, where that is all that it waits for."""
    waits = unmet(planned)
    aside = [need.cure for need in waits if need.cure in catalogue and catalogue[need.cure].aside]
    if not aside or len(aside) < len(waits) or {*aside} <= chosen:
        return []
    first = [
        made(run, planned_of(run, catalogue[number], gains)) for number in dict.fromkeys(aside)
    ]
    if any(map(unmet, first)):
        return []
    return first


def _sharing(planned: Planned, chosen: Sequence[Planned]) -> Texts:
    return tuple(
        other.fix.id
        for other in chosen
        if other is not planned
        and other.fix.wall == planned.fix.wall
        and _overlap(planned.fix, other.fix)
    )


def _overlap(fix: Fix, other_fix: Fix) -> bool:
    mine, its = wins_of(fix), wins_of(other_fix)
    return not (fix.direct == () or other_fix.direct == ()) and (
        not mine or not its or bool({*mine} & {*its})
    )


def _ordered(run: Run, wall: WallId, catalogue: Catalogue) -> list[Fix]:
    """The wall's fixes in its order, plug-ins' last; but what a clue names first, then the direct
    ones.
    """
    order = ROOM_ORDER if wall == "memory" and run.does_not_fit else WALL_ORDER[wall]
    added = (fix.id for fix in added_fixes().values() if fix.wall == wall)
    # what makes ranks wait is paid for in communication
    repairs = run.repairs if wall == "communication" else ()
    numbers = filter(catalogue.__contains__, dict.fromkeys((*order, *added, *repairs)))
    fixes = [catalogue[number].of_run(catalogue[number], run) for number in numbers]
    named = first_by_clue(run, wall)
    return sorted(fixes, key=lambda fix: (fix.id != named, not is_direct(run, fix)))
