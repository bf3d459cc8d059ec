"""Plans of a changed run: after an upgrade, where a release alone stands before the first fix, and
of levers.

Levers are fixes whose gain nothing proves, planned as those of a wall are, and called what they
are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from heuristics.config.versions import PACKAGE_NAMES, bridge_of_core, numbers
from heuristics.fixes.change import NO_LINES, Change
from heuristics.fixes.fix import Catalogue, Fix
from heuristics.fixes.precondition import Precondition, Release
from heuristics.plan.planned import Plan, Planned, ids_of
from heuristics.rules.check import broken
from heuristics.run.run import Run
from heuristics.words import say
from traces.missing import Missing
from traces.sections.tables import WallId


def levers_of(
    run: Run,
    why: Mapping[WallId, Missing],
    catalogue: Catalogue,
    plan: Callable[[Run, Sequence[WallId], Catalogue], Plan],
) -> Plan:
    """A plan as for the walls `why`, but by no cost: none bounds what a lever gives.

    `why`: for each wall why no gain is proven, and what would confirm one.
    """
    other_costs, levers = dict[str, Any](), list[Planned]()
    for name in ("cost_by_kind_ns", "total_ns", "total_frac"):
        other_costs[name] = {
            wall: cost for wall, cost in getattr(run, name).items() if wall not in why
        }
    fixes = {number: fix for number, fix in catalogue.items() if _may_help(run, fix)}
    planned = plan(replace(run, late=None, **other_costs), tuple(why), fixes)
    for lever in planned.fixes:
        gap = why[lever.fix.wall]
        levers.append(replace(lever, low_because=gap.reason, low_cure=gap.cure))
    return Plan((), planned.refused, tuple(levers))


def _may_help(run: Run, fix: Fix) -> bool:
    """Of compute what a row says; of another wall, which is not decided, every fix."""
    if fix.wall != "compute":
        return True
    needs = fix.preconditions(run) if fix.lever == "known_off" else ()
    return fix.lever != "" and all(need.state != "unknown" for need in needs)


IDS: Final = {"torch": "ENV-1", "core": "ENV-2", "te": "ENV-3"}
"""Package -> id of its upgrade, as the rules of releases name it."""


def unlocked(
    run: Run, wall: WallId, wanted: Sequence[Planned], plan: Plan, make: Callable[[Run], Plan]
) -> Plan:
    """The plan after an upgrade, where releases alone refuse the wall's first fix; else the plan as
    it is.

    `wanted`: the wall's fixes in their order. What follows the upgrade is judged on the upgraded
    run; what both runs allow in the same words comes before it.
    """
    planned = ids_of(plan.fixes)
    refused = [refusal.fix.id for refusal in plan.refused if refusal.kind == "needs"]
    for planned_fix in wanted:
        if planned_fix.fix.id in planned:
            return plan
        needed = _releases(planned_fix.preconditions) if planned_fix.fix.id in refused else ()
        upgrade = upgraded(run, needed)
        # an upgrade under which the configuration breaks a further rule is none
        later = make(upgrade) if needed and broken(upgrade) <= broken(run) else plan
        if planned_fix.fix.id in ids_of(later.fixes):
            steps = tuple(_step(run, release, wall) for release in needed)
            return _joined(plan, steps, later, needed, planned_fix.fix.id)
    return plan


def _joined(
    now: Plan, upgrades: tuple[Planned, ...], later: Plan, releases: tuple[Release, ...], fix: str
) -> Plan:
    """A plan with its upgrades, of which a fix stands on all; before them what the run allows as it
    is.
    """
    kept = {step.fix.id: step for step in later.fixes}
    before = dict[str, Planned]()
    for one in now.fixes:
        if one.fix.id in kept and kept[one.fix.id].knobs == one.knobs and {*one.after} <= {*before}:
            before[one.fix.id] = replace(one, shares_with=kept[one.fix.id].shares_with)
    after = []
    for one in later.fixes:
        if one.fix.id == fix:
            one = replace(one, after=(*ids_of(upgrades), *one.after))
        if one.fix.id not in before:
            after.append(one)
    return replace(later, fixes=(*before.values(), *upgrades, *after), releases=releases)


def _releases(needs: Iterable[Precondition]) -> tuple[Release, ...]:
    """The releases that would meet what stops a fix; none where anything else stops it as well."""
    newest = dict[str, Release]()
    for need in needs:
        if not need.stops:
            continue
        release = need.release
        # something else stops it as well, or no upgrade in the plan gives this release
        if not release or release.package not in IDS:
            return ()
        before = newest.setdefault(release.package, release)
        newest[release.package] = max(before, release, key=lambda known: numbers(known.version))
    return tuple(newest.values())


def upgraded(run: Run, releases: Iterable[Release]) -> Run:
    """The run as it would be with them; a Megatron-Bridge goes with its Megatron-Core."""
    given = run.given
    for release in releases:
        given = replace(given, **{f"{release.package}_version": release.version})  # type: ignore[arg-type]
        if release.package == "core" and run.config.version_text("bridge") is not None:
            given = replace(
                given, bridge_version=bridge_of_core(release.version) or given.bridge_version
            )
    return replace(run, given=given)


def _step(run: Run, release: Release, wall: WallId) -> Planned:
    what = say(
        "rules.later-release", package=PACKAGE_NAMES[release.package], release=release.version
    )
    bridge = bridge_of_core(release.version) if release.package == "core" else None
    with_it = bridge and run.config.version_text("bridge") is not None
    fix = Fix(
        id=IDS[release.package],
        wall=wall,
        title=say("plan.upgrade-with-bridge", to=what, bridge=bridge)
        if with_it
        else say("plan.upgrade", to=what),
        change=lambda run: Change(),
        versions=what,
        verify=say("plan.upgrade-verified"),
        sources=(say("plan.upgrade-source"),),
        side_effects=(say("plan.upgrade-side-effect"),),
        direct=(),
    )
    return Planned(fix, NO_LINES, (), None, low_because=say("plan.upgrade-alone"))
