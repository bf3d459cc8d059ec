"""What fixes give: of their wall's cost at most, by a replay alone or together, less what ranks
wait for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from heuristics.fixes.change import NO_LINES, lines
from heuristics.fixes.fix import Fix
from heuristics.fixes.needs import needed
from heuristics.fixes.precondition import Precondition
from heuristics.guides.situation import SENDRECV
from heuristics.plan.planned import Planned, ids_of
from heuristics.run.repairs import comes_first
from heuristics.run.run import Run
from heuristics.walls.bound import NO_WALL
from heuristics.walls.verdict import FAMILIES, by_family
from heuristics.words import say, sentences
from traces.frozen import frozen
from traces.limits import MOST, WALL
from traces.replay.changes.change import Change
from traces.replay.changes.costs import Costs
from traces.sections.tables import WallId
from traces.texts import Texts

Kinds = Texts


@frozen
class Replayed:
    """One rank: its costs, the changes found in it, the length of its windows in ns, its place in
    the run.
    """

    costs: Costs
    changes: Sequence[Change]
    window_ns: int
    place: int = 0

    @property
    def by_kind(self) -> dict[str, Change]:
        return {change.kind: change for change in self.changes}


@frozen
class Gain:
    """What one kind of change gives, as parts of all windows, from a pessimistic replay to a
    ceiling.

    `low_frac` is negative where it may cost more than it gives, and None where no lower end can be
    defended, as `because` says. `across`: it acts on several walls, so that what one of them costs
    is no bound.
    """

    low_frac: float | None
    high_frac: float
    because: str | None
    across: bool = False


Gains = Mapping[str, Gain]
"""By kind of change."""


def gains_of(ranks: Sequence[Replayed]) -> Gains:
    """Kind of change -> its gain. A rank where it was not found gives nothing, or at most what it
    acts on.
    """
    whole_ns, kinds = 0, set[str]()
    for rank in ranks:
        whole_ns += rank.window_ns
        kinds.update(rank.by_kind)
    return {kind: _gain(kind, ranks, whole_ns) for kind in sorted(kinds)}


def _gain(kind: str, ranks: Sequence[Replayed], whole_ns: int) -> Gain:
    changes = [rank.by_kind.get(kind) for rank in ranks]
    largest_known = next(filter(None, changes))
    low_ns, high_ns, across, open_ = 0, 0, False, []
    for rank, change in zip(ranks, changes, strict=True):
        # where it was not found it may still give what it acts on costs there
        high_ns += most_ns(rank.costs, largest_known) if change is None else change.high_ns
        if change:
            across |= len(change.acts_on) > 1
            low_ns += change.low_ns or 0
            if change.low_ns is None:
                open_.append(change.because)
    if open_:
        return Gain(None, high_ns / whole_ns, open_[0], across)
    return Gain(low_ns / whole_ns, high_ns / whole_ns, None, across)


def most_ns(costs: Costs, change: Change) -> int:
    """What the kinds that a change acts on cost a rank; all of the wall where its cost is not
    split.
    """
    most = 0
    for wall, kinds in change.acts_on.items():
        if cost := costs.of(wall):
            most += cost.of_kinds_ns(kinds)
    return most


PERHAPS: Final = {
    "ep_a2a": (SENDRECV, "sendrecv_of_experts"),
    "pp_p2p": (SENDRECV, "sendrecv_of_stages"),
    "dp_all_gather": ("other_comm", "gathers_of_data"),
}
"""What communication of no known purpose may be, by kind of cost: its own kind, and the need for
it."""


def planned_of(run: Run, fix: Fix, gains: Gains) -> Planned:
    """A fix with what it needs, its change left out: what is refused makes none.

    One that does not act by the wall's own overhead has no ceiling from it.
    """
    perhaps = _perhaps(run, fix.kinds)
    conditions = fix.preconditions(run)
    if perhaps and run.cost_ns(fix.wall, perhaps[:1]):  # part of its costs is of no known purpose
        conditions = (*needed(perhaps[1], run), *conditions)
    ceiling = fix.acts_on(run)
    if ceiling is None and fix.direct != ():
        ceiling = ceiling_frac(run, fix.wall, with_perhaps(run, wins_of(fix)))
    why = NO_WALL if ceiling is None else say("plan.not-replayed")
    planned = Planned(fix, NO_LINES, conditions, ceiling, low_because=why, replayed=fix.takes_away)
    if run.late and fix.id in run.repairs:  # whatever its wall costs one rank
        if run.late.saved_frac is None:
            return planned
        why = say("plan.replayed-without-cause")
        return replace(planned, ceiling_frac=run.late.saved_frac, low_because=why, replayed=True)
    if ceiling is not None:
        planned = _replayed(planned, ceiling, fix.changes(run), gains)
    return _less_waiting(run, planned, ceiling)


def _replayed(
    planned: Planned, ceiling_frac: float, changes: Sequence[str], gains: Gains
) -> Planned:
    """With the range that the replay of its changes gives.

    Made together, several give at least what the best of them gives alone, and at most the sum.
    """
    known = [gains[change] for change in changes if change in gains]
    if not changes:
        return planned
    if not known:
        return replace(planned, low_because=say("plan.not-found"))
    planned, high, across, lows = replace(planned, replayed=True), 0.0, False, []
    for gain in known:
        high += gain.high_frac
        across |= gain.across
        if gain.low_frac is not None:
            lows.append(gain.low_frac)
    if not across:
        high = min(ceiling_frac, high)
    if not lows:
        return replace(
            planned, ceiling_frac=high, low_because=known[0].because or say("plan.not-found")
        )
    return replace(planned, ceiling_frac=high, low_frac=min(high, max(lows)), low_because="")


def made(run: Run, planned: Planned) -> Planned:
    """With its change, which is made only of a fix that nothing refused before."""
    change = planned.fix.change(run)
    return replace(planned, change=change, knobs=lines(change, run))


def wins_of(fix: Fix) -> Kinds:
    """The kinds of its wall's cost that a fix can win; empty means all."""
    if fix.wins is None:
        return fix.kinds
    return fix.wins


def is_direct(run: Run, fix: Fix) -> bool:
    kinds = fix.kinds if fix.direct is None else fix.direct
    if run.does_not_fit and fix.wall == "memory":
        return "allocator" in kinds
    share = share_of(run, fix.wall, kinds)
    return bool(kinds) and share is not None and share > MOST.value


def share_of(run: Run, wall: WallId, kinds: Kinds) -> float | None:
    whole, part = run.cost_ns(wall, ()), run.cost_ns(wall, with_perhaps(run, kinds))
    if not whole or part is None:
        return None
    return part / whole


def _perhaps(run: Run, kinds: Kinds) -> tuple[str, str] | None:
    """The kind of cost that may belong to some kinds, and what would have to hold; None where none
    may.
    """
    is_other = {
        "ep_a2a": run.active.sendrecv_of_experts is False,
        "dp_all_gather": not run.active.gathers_unresolved,
    }
    for kind in kinds:
        if kind in PERHAPS:
            return None if is_other.get(kind) else PERHAPS[kind]
    return None


def with_perhaps(run: Run, kinds: Kinds) -> Kinds:
    """With some kinds goes the communication of no known purpose that may be theirs."""
    perhaps = _perhaps(run, kinds)
    if perhaps:
        return (*kinds, perhaps[0])
    return kinds


def ceiling_frac(run: Run, wall: WallId, kinds: Kinds) -> float | None:
    ns, total_ns, frac = run.cost_ns(wall, kinds), run.cost_ns(wall, ()), run.total_frac.get(wall)
    if ns is None or total_ns is None:
        return None
    if frac is None:
        if run.window_ns:
            return min(1.0, ns / run.window_ns)
        return None
    if total_ns:
        return min(1.0, frac * ns / total_ns)
    return 0.0


def unmet(planned: Planned) -> list[Precondition]:
    """What keeps it out, releases last: an upgrade does not help where more is missing."""
    return sorted(
        (one for one in planned.preconditions if one.stops), key=lambda one: one.release is not None
    )


def before_others(run: Run) -> Kinds:
    if run.late and comes_first(run.late.saved_frac):
        return run.repairs
    return ()


def of_first_wall(run: Run, first: Sequence[WallId], chosen: Sequence[Planned]) -> Kinds:
    """The id of the step that a headline asks for: the first that acts on the largest kind of its
    wall.

    `first`: that wall, if there is a headline of one; what costs nothing that is known has none.
    """
    wall = first[0] if first else None
    if wall is None or not run.cost_ns(wall, ()):
        return ()
    mine = [
        step for step in chosen if step.fix.wall == wall and not (step.is_late or step.gains_little)
    ]
    kinds = _largest_kinds(run, wall)
    for planned in mine if kinds else ():
        if not planned.fix.kinds or kinds & {*with_perhaps(run, planned.fix.kinds)}:
            return (planned.fix.id,)
    return ids_of(mine[:1])


def _largest_kinds(run: Run, wall: WallId) -> frozenset[str]:
    """The kinds of the family that a headline names: it costs more than all others; empty without
    one.
    """
    family, ns = next(iter(by_family(run.cost_by_kind_ns.get(wall) or {}).items()), ("", 0))
    is_named = ns > MOST.value * (run.cost_ns(wall, ()) or 0)
    return frozenset(FAMILIES.get(family, (family,)) if is_named else ())


def acts_on(planned: Planned, run: Run) -> dict[str, float]:
    """The kinds of its wall's cost that a fix can win, as parts of the windows; none that costs
    nothing.
    """
    fix, by_kind = planned.fix, run.cost_by_kind_ns.get(planned.fix.wall) or {}
    if planned.ceiling_frac is None or not run.window_ns or fix.acts_on(run) is not None:
        return {}
    kinds = with_perhaps(run, wins_of(fix)) if wins_of(fix) else (*by_kind,)
    return {kind: by_kind[kind] / run.window_ns for kind in kinds if by_kind.get(kind)}


def wide_because(planned: Planned, run: Run) -> str:
    """What makes a range wide that decides nothing, and which measurement narrows it."""
    low, high = planned.low_frac, planned.ceiling_frac
    if low is None or high is None or low > MOST.value * high or high - low < WALL.value:
        return ""
    kinds = planned.fix.changes(run)
    with_reason = (kind for kind in kinds if f"wide-{kind}" in sentences("plan"))
    return say(f"plan.wide-{next(with_reason, 'any')}")


def _less_waiting(run: Run, planned: Planned, ceiling_frac: float | None) -> Planned:
    """Another fix of communication: the replay of single ranks counts waiting for a late one as
    saved.

    `ceiling_frac`: what its kinds cost beside that waiting.
    """
    late, fix = run.late, planned.fix
    if not late or not late.waits_ns or fix.wall != "communication" or ceiling_frac is None:
        return planned
    high = planned.ceiling_frac
    if high is not None:
        high = min(high, ceiling_frac)
    if planned.low_frac is None or not run.window_ns:
        return replace(planned, ceiling_frac=high)
    waits_ns = sum(ns for kind, ns in late.waits_ns.items() if not fix.kinds or kind in fix.kinds)
    low = planned.low_frac - waits_ns / run.window_ns
    if low <= 0 or high is None:
        return replace(
            planned, ceiling_frac=high, low_frac=None, low_because=say("plan.mostly-waiting")
        )
    return replace(planned, ceiling_frac=high, low_frac=min(low, high))
