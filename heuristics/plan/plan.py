"""Which fixes, in which order: the workflow's order for the wall, less what cannot help or is not allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from heuristics.fixes.added import added_fixes
from heuristics.fixes.change import Knobs, lines
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.plan.clues import before_tuning, first_by_clue
from heuristics.plan.gains import Gain
from heuristics.plan.levers import levers_of
from heuristics.plan.order import in_paying_order
from heuristics.plan.planned import Plan, Planned, Refused, Rejection
from heuristics.plan.repair import as_repair, before_others, is_repair, less_waiting, repairs
from heuristics.plan.room import without_room
from heuristics.plan.upgrade import unlocked
from heuristics.run.run import Run
from heuristics.walls.unproven import NO_WALL
from traces.limits import Limit
from traces.replay.costs import WORTH
from traces.sections.tables import WallId
from traces.spelling import percent

if TYPE_CHECKING:
    from heuristics.plan.allowed import Allowed, Permits
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
        *("COM-2", "COM-1", "COM-4", "COM-5", "COM-6", "COM-3", "COM-10", "COM-11"),
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

NOT_REPLAYED: Final = "only a ceiling is known: what the change does to a step cannot be replayed"
NOT_FOUND: Final = (
    "only a ceiling is known: nothing that the change would act on was found, or it costs little"
)
SENDRECV: Final = "sendrecv_unresolved"
PERHAPS: Final = {
    "ep_a2a": (SENDRECV, "the unresolved SendRecv is expert all-to-all"),
    "pp_p2p": (SENDRECV, "the unresolved SendRecv is the pipeline's exchange"),
    "dp_all_gather": ("other_comm", "the unresolved gathers and scatters are data parallelism's"),
}
"""What communication of no known purpose may be, by kind of cost: its own kind, and what must hold for it."""
_CURES: Final = {
    SENDRECV: "NVTX ranges of layers, or NCCL's own, identify it",
    "other_comm": "--config FILE with the parallel sizes, or NVTX ranges of layers, identify them",
}
DIRECT: Final = Limit(
    0.5,
    "fraction of the wall's cost",
    "ours: what acts on more than all else together is tried before what the general order names first",
)
TOUCHED: Final = Limit(
    0.05,
    "fraction of the wall's cost",
    "ours: a fix of less is not worth one experiment while the wall stands",
)


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
        dominated = any(_is_direct(run, fix) for fix in _ordered(run, wall, catalogue))
        for planned in _wanted(run, wall, catalogue, gains, seen):
            fix = planned.fix
            first = _before(run, planned, catalogue, {one.fix.id for one in chosen}, gains)
            earlier = [*chosen, *first]
            if why := _refusal(run, planned, earlier, dominated) or _rejected(fix, rejected.get(fix.id)):
                refused.append(why)
                continue
            planned = _made(run, planned)
            if _is_set(run, planned):
                refused.append(Refused(fix, "needs", "needs: what it sets is not configured already", ""))
                continue
            if why := without_room(run, planned.fix, planned.change.in_run(run)):
                refused.append(why)
                continue
            before = {one.fix.id: one.change.in_run(run) for one in earlier}
            allowed = permits.judge(planned.change.in_run(run), before) if permits else None
            if allowed is not None and (why := _forbidden(fix, allowed)):
                refused.append(why)
                continue
            chosen = [*earlier, replace(planned, after=allowed.after if allowed else ())]
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
    wanted = [_planned(run, fix, gains) for fix in _ordered(run, wall, catalogue) if fix.id not in seen]
    if run.does_not_fit and wall == "memory":  # room comes first there, not time
        return wanted
    return in_paying_order(wanted, before_others(run))


def _permits(run: Run) -> Permits | None:
    """The rules of all releases, which are loaded only where there are settings to hold against them."""
    if not run.settings.by_knob:
        return None
    from heuristics.plan.allowed import Permits

    return Permits(run)


def _made(run: Run, planned: Planned) -> Planned:
    """With its change, which is made only of a fix that nothing refused before."""
    change = planned.fix.change(run)
    return replace(planned, change=change, knobs=lines(change, run))


def _is_set(run: Run, planned: Planned) -> bool:
    """Whether the configuration says all that the fix would change: if that does not run, findings tell."""
    framework, knobs = run.settings.framework, planned.knobs
    if framework is None or not planned.change.in_run(run):
        return False
    own = knobs.megatron_bridge if framework == "megatron_bridge" else knobs.megatron_lm
    return not (own or knobs.environment or knobs.pytorch)


def _before(
    run: Run, planned: Planned, catalogue: Mapping[str, Fix], chosen: set[str], gains: Mapping[str, Gain]
) -> list[Planned]:
    """What a fix waits for and may stand beside it, where that is all that it waits for."""
    waits = _unmet(planned)
    aside = [one.cure for one in waits if one.cure in ASIDE and one.cure in catalogue]
    if not aside or len(aside) < len(waits) or {*aside} <= chosen:
        return []
    first = [_made(run, _planned(run, catalogue[number], gains)) for number in dict.fromkeys(aside)]
    return [] if any(_unmet(one) for one in first) else first


def _rejected(fix: Fix, rejection: Rejection | None) -> Refused | None:
    if rejection is None:
        return None
    return Refused(fix, "rejected", f"the framework rejects it here: {rejection.text}", "", rejection.source)


def _forbidden(fix: Fix, allowed: Allowed) -> Refused | None:
    """Why the rules of the run's versions forbid it, as the configuration is or after an earlier fix."""
    if not allowed.broken:
        return None
    rule, first = allowed.broken[0].rule, allowed.beside
    if first:
        why = f"not in one plan with {first}, which comes first: {rule.text}"
        return Refused(fix, "excluded", why, f"leaving out {first}", rule.source)
    why = f"the configuration forbids it: {rule.text}"
    return Refused(fix, "forbidden", why, rule.met_by, rule.source)


def _sharing(planned: Planned, chosen: Sequence[Planned]) -> tuple[str, ...]:
    """Other fixes of the plan that win by the same kinds of the same wall."""
    return tuple(
        other.fix.id
        for other in chosen
        if other is not planned and other.fix.wall == planned.fix.wall and _overlap(planned.fix, other.fix)
    )


def _overlap(one: Fix, other: Fix) -> bool:
    mine, its = _wins(one), _wins(other)
    return not (one.direct == () or other.direct == ()) and (not mine or not its or bool({*mine} & {*its}))


def _wins(fix: Fix) -> tuple[str, ...]:
    """The kinds of its wall's cost that a fix can win; empty means all."""
    return fix.kinds if fix.wins is None else fix.wins


def _ordered(run: Run, wall: WallId, catalogue: Mapping[str, Fix]) -> list[Fix]:
    """The wall's fixes in its order, plug-ins' last; but what a clue names first, then the direct ones."""
    known = [catalogue[number] for number in WALL_ORDER[wall] if number in catalogue]
    known += [catalogue[fix.id] for fix in added_fixes().values() if fix.wall == wall and fix.id in catalogue]
    known += [fix for fix in repairs(run, wall, catalogue) if fix not in known]
    fixes = [fix.of_run(fix, run) for fix in known]
    named = first_by_clue(run, wall)
    return sorted(fixes, key=lambda fix: (fix.id != named, not _is_direct(run, fix)))


def _is_direct(run: Run, fix: Fix) -> bool:
    """Whether what the fix is made for dominates its wall."""
    kinds = fix.kinds if fix.direct is None else fix.direct
    if run.does_not_fit and fix.wall == "memory":
        return "allocator" in kinds
    share = _share(run, fix.wall, kinds)
    return bool(kinds) and share is not None and share > DIRECT.value


def _share(run: Run, wall: WallId, kinds: tuple[str, ...]) -> float | None:
    """How much of a wall's cost some kinds make up."""
    whole, part = run.cost_ns(wall, ()), run.cost_ns(wall, _with_perhaps(run, kinds))
    return None if not whole or part is None else part / whole


def _perhaps(run: Run, kinds: tuple[str, ...]) -> tuple[str, str] | None:
    """The kind of cost that may belong to some kinds, and what would have to hold; None where none may."""
    found = next((PERHAPS[kind] for kind in kinds if kind in PERHAPS), None)
    told = found is not None and found[0] != SENDRECV and not run.active.gathers_unresolved
    return None if told else found


def _with_perhaps(run: Run, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """With some kinds goes the communication of no known purpose that may be theirs."""
    perhaps = _perhaps(run, kinds)
    return (*kinds, perhaps[0]) if perhaps else kinds


def _if_resolved(run: Run, fix: Fix) -> tuple[Precondition, ...]:
    """What a fix needs where part of what it acts on is communication that nothing resolved."""
    perhaps = _perhaps(run, fix.kinds)
    if perhaps is None or not run.cost_ns(fix.wall, perhaps[:1]):
        return ()
    return (Precondition(perhaps[1], "unknown", told_by=_CURES[perhaps[0]]),)


def _planned(run: Run, fix: Fix, gains: Mapping[str, Gain]) -> Planned:
    """A fix with what it needs, its change left out: what is refused makes none.

    One that does not act by the wall's own overhead has no ceiling from it.
    """
    conditions = (*_if_resolved(run, fix), *fix.preconditions(run))
    ceiling = fix.acts_on(run)
    if ceiling is None and fix.direct != ():
        ceiling = _ceiling_frac(run, fix.wall, _with_perhaps(run, _wins(fix)))
    why = NO_WALL if ceiling is None else NOT_REPLAYED
    planned = Planned(fix, Knobs(), conditions, ceiling, low_because=why, replayed=fix.takes_away)
    if is_repair(run, fix):
        return as_repair(run, planned)
    if ceiling is not None:
        planned = _replayed(planned, ceiling, fix.changes(run), gains)
    return less_waiting(run, planned, ceiling)


def _replayed(
    planned: Planned, ceiling_frac: float, changes: Sequence[str], gains: Mapping[str, Gain]
) -> Planned:
    """With the range that the replay of its changes gives.

    Made together, several give at least what the best of them gives alone, and at most the sum.
    """
    found = [gains[change] for change in changes if change in gains]
    if not changes:
        return planned
    if not found:
        return replace(planned, low_because=NOT_FOUND)
    planned = replace(planned, replayed=True)
    high = sum(gain.high_frac for gain in found)
    if not any(gain.across for gain in found):
        high = min(ceiling_frac, high)
    lows = [gain.low_frac for gain in found if gain.low_frac is not None]
    if not lows:
        return replace(planned, ceiling_frac=high, low_because=found[0].because or NOT_FOUND)
    return replace(planned, ceiling_frac=high, low_frac=min(high, max(lows)), low_because="")


def _ceiling_frac(run: Run, wall: WallId, kinds: tuple[str, ...]) -> float | None:
    """What some kinds of a wall cost, as part of the windows."""
    ns, total_ns, frac = run.cost_ns(wall, kinds), run.cost_ns(wall, ()), run.total_frac.get(wall)
    if ns is None or total_ns is None:
        return None
    if frac is None:
        return min(1.0, ns / run.window_ns) if run.window_ns else None
    return min(1.0, frac * ns / total_ns) if total_ns else 0.0


def _unmet(planned: Planned) -> list[Precondition]:
    """What keeps it out, releases last: an upgrade does not help where more is missing."""
    return sorted(
        (one for one in planned.preconditions if one.stops), key=lambda one: one.release is not None
    )


def _too_little(run: Run, fix: Fix, dominated: bool) -> str | None:
    """How little of its wall a fix acts on; None where that is worth an experiment.

    Where one kind dominates the wall, a fix of others must act on a part of the windows worth asking about.
    """
    share = _share(run, fix.wall, fix.kinds)
    if share is None or share >= 1 or _is_direct(run, fix) or is_repair(run, fix):
        return None
    if share < TOUCHED.value:
        return f"{percent(share)} of this wall's cost"
    part = _ceiling_frac(run, fix.wall, _with_perhaps(run, fix.kinds)) if dominated else None
    return None if part is None or part >= WORTH.value else f"{percent(part)} of the windows"


def _refusal(run: Run, planned: Planned, chosen: Iterable[Planned], dominated: bool) -> Refused | None:
    fix, before = planned.fix, [one.fix for one in chosen]
    met_by = {other.id for other in before if other.wall == fix.wall or other.id in ASIDE}
    met_by |= {other.same_as for other in before}
    for condition in _unmet(planned):
        if not condition.cure or condition.cure not in met_by:
            return Refused(fix, "needs", f"needs: {condition.text}", condition.cure, condition.source)
    for other in before:
        if other.id in fix.excludes or fix.id in other.excludes:
            why = f"not in one plan with {other.id}, which comes first"
            return Refused(fix, "excluded", why, f"leaving out {other.id}")
    if little := _too_little(run, fix, dominated):
        return Refused(fix, "little", f"what it acts on ({', '.join(fix.kinds)}) is {little}", "")
    if planned.ceiling_frac == 0.0 and _wins(fix):
        return Refused(fix, "nothing", f"what it could save ({', '.join(_wins(fix))}) costs nothing here", "")
    return None
