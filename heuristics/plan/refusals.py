"""Why a fix is not in a plan: one list of reasons, asked in order of a fix at its place; room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from heuristics.fixes.fix import Fix
from heuristics.guides.memory_use import estimated, has_room, used_frac
from heuristics.guides.memory_use import fits as does_fit
from heuristics.plan.gains import (
    ceiling_frac,
    is_direct,
    is_repair,
    made,
    share_of,
    unmet,
    wins_of,
    with_perhaps,
)
from heuristics.plan.planned import Plan, Planned, Refused, Rejection
from heuristics.result.judged import Refusal, Room
from heuristics.run.run import Run
from traces.limits import Limit
from traces.missing import Missing
from traces.replay.changes.costs import WORTH
from traces.settings.settings import Value
from traces.sizes.memory import ERROR, delta
from traces.spelling import gigabytes, percent

if TYPE_CHECKING:
    from heuristics.plan.allowed import Allowed, Permits

TOUCHED: Final = Limit(
    0.05,
    "fraction of the wall's cost",
    "ours: a fix of less is not worth one experiment while the wall stands",
)


class Considered:
    """A fix that is considered for the place behind `earlier`, whose change is made when it is asked for.

    `met_by`: ids of fixes that meet what it waits for. `dominated`: one kind dominates the wall's cost.
    `rejection`: what the framework itself says of it.
    """

    def __init__(
        self,
        run: Run,
        planned: Planned,
        earlier: tuple[Planned, ...],
        met_by: set[str],
        dominated: bool,
        rejection: Rejection | None,
        permits: Permits | None,
    ) -> None:
        self.run, self.planned, self.fix, self.earlier = run, planned, planned.fix, earlier
        self.met_by, self.dominated, self.rejection = met_by, dominated, rejection
        self._permits = permits

    @cached_property
    def made(self) -> Planned:
        """With its change."""
        return made(self.run, self.planned)

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """What it sets in the run's framework."""
        return self.made.change.in_run(self.run)

    @cached_property
    def allowed(self) -> Allowed | None:
        """What the rules of the run's versions say of it; None without settings to hold it against."""
        before = {one.fix.id: one.change.in_run(self.run) for one in self.earlier}
        return self._permits.judge(self.values, before) if self._permits else None

    def refused(self, kind: Refusal, because: str, unlocked_by: str = "", source: str = "") -> Refused:
        """It is not in the plan."""
        return Refused(self.fix, kind, because, unlocked_by, source)


def _lacks(one: Considered) -> Refused | None:
    for need in unmet(one.planned):
        if not need.cure or need.cure not in one.met_by:
            return one.refused("needs", f"needs: {need.text}", need.cure, need.source)
    return None


def _excluded(one: Considered) -> Refused | None:
    for other in (earlier.fix for earlier in one.earlier):
        if other.id in one.fix.excludes or one.fix.id in other.excludes:
            why = f"not in one plan with {other.id}, which comes first"
            return one.refused("excluded", why, f"leaving out {other.id}")
    return None


def _little(one: Considered) -> Refused | None:
    """It acts on little of its wall.

    Where one kind dominates the wall, a fix of others must act on a part of the windows worth asking about.
    """
    run, fix = one.run, one.fix
    share = share_of(run, fix.wall, fix.kinds)
    if share is None or share >= 1 or is_direct(run, fix) or is_repair(run, fix):
        return None
    part = ceiling_frac(run, fix.wall, with_perhaps(run, fix.kinds)) if one.dominated else None
    if share < TOUCHED.value:
        little = f"{percent(share)} of this wall's cost"
    elif part is not None and part < WORTH.value:
        little = f"{percent(part)} of the windows"
    else:
        return None
    return one.refused("little", f"what it acts on ({', '.join(fix.kinds)}) is {little}")


def _saves_nothing(one: Considered) -> Refused | None:
    wins = wins_of(one.fix)
    if one.planned.ceiling_frac != 0.0 or not wins:
        return None
    return one.refused("nothing", f"what it could save ({', '.join(wins)}) costs nothing here")


def _rejected(one: Considered) -> Refused | None:
    if (why := one.rejection) is None:
        return None
    return one.refused("rejected", f"the framework rejects it here: {why.text}", source=why.source)


def _is_set(one: Considered) -> Refused | None:
    """The configuration says all that it would change: if that does not run, findings tell."""
    framework, knobs = one.run.settings.framework, one.made.knobs
    if framework is None or not one.values:
        return None
    own = knobs.megatron_bridge if framework == "megatron_bridge" else knobs.megatron_lm
    if own or knobs.environment or knobs.pytorch:
        return None
    return one.refused("needs", "needs: what it sets is not configured already")


def _without_room(one: Considered) -> Refused | None:
    return without_room(one.run, one.fix, one.values)


def _forbidden(one: Considered) -> Refused | None:
    """The rules of the run's versions forbid it, as the configuration is or after an earlier fix."""
    if one.allowed is None or not one.allowed.broken:
        return None
    rule, first = one.allowed.broken[0], one.allowed.beside
    if first:
        why = f"not in one plan with {first}, which comes first: {rule.text}"
        return one.refused("excluded", why, f"leaving out {first}", rule.source)
    return one.refused("forbidden", f"the configuration forbids it: {rule.text}", rule.met_by, rule.source)


REFUSALS: Final[tuple[Callable[[Considered], Refused | None], ...]] = (
    *(_lacks, _excluded, _little, _saves_nothing, _rejected),
    *(_is_set, _without_room, _forbidden),
)
"""Why a fix is not in the plan; the first that speaks. The last three ask for its change."""


OUTSIDE_FRAC: Final = Limit(
    0.1,
    "part of the GPU's memory",
    "ours: the CUDA context, NCCL, graphs and fragmentation lie outside what PyTorch reports as allocated; "
    "GPT-OSS-120B ran out on a GPU of 79 GB with 69 to 70 GB allocated (Megatron-Bridge, CUDA graph card)",
)


def room_for(run: Run, changes: Mapping[str, Value]) -> Room:
    """Whether changed knobs fit into the memory of a run's fullest rank.

    The peak is the log's largest peak allocation (reserved memory where it says no other), else the trace's.
    """
    added = delta(estimated(run), estimated(run.changed(changes)))
    free = _free_bytes(run)
    if isinstance(added, Missing):
        return Room(None, free, None, f"what it needs is unknown: {added.reason}")
    if added < 0 and does_fit(run) is False:
        return Room(added, free, None, f"frees up to {gigabytes(-added)}; whether that suffices is unknown")
    if added <= 0:
        return Room(added, free, True, _freed(added))
    if free is None:
        why = "how much is free is unknown (no peak or no capacity given)"
        return Room(added, None, None, f"+{gigabytes(added)}: {why}")
    most = round(added * (1 + ERROR.value))
    left = f"{gigabytes(free)} free" if free > 0 else "none free"
    beside = f"beside {gigabytes((_capacity(run) or 0) * OUTSIDE_FRAC.value)} for what PyTorch does not count"
    said = "fits" if most <= free else "does not fit"
    return Room(
        added,
        free,
        most <= free,
        f"+{gigabytes(added)}, at most {gigabytes(most)}, of {left} {beside}: {said}",
    )


def without_room(run: Run, fix: Fix, change: Mapping[str, Value]) -> Refused | None:
    """Why a change has to wait for memory: it is known not to fit, or frees what is not short."""
    if fix.wall == "memory" and not fix.with_room and has_room(run):
        share = (
            f"{percent(used_frac(run) or 0)} of the GPU's memory is used"
            if used_frac(run)
            else "there is room"
        )
        return Refused(fix, "needs", f"needs: memory that is short; {share}", "")
    room = room_for(run, change) if change else None
    if room is None or room.fits is not False:
        return None
    return Refused(fix, "needs", f"needs memory first: {room.because}", "what frees memory")


def _freed(added: int) -> str:
    return "needs no more memory" if added == 0 else f"frees up to {gigabytes(-added)}: fits"


def _free_bytes(run: Run) -> int | None:
    capacity, peak = _capacity(run), _peak(run)
    if capacity is None or peak is None:
        return None
    return capacity - peak - round(capacity * OUTSIDE_FRAC.value)


def _capacity(run: Run) -> int | None:
    said = [oom.capacity_bytes for oom in run.log.out_of_memory if oom.capacity_bytes] if run.log else []
    return min(said) if said else run.active.memory_bytes


def _peak(run: Run) -> int | None:
    ranks = run.log.memory if run.log else ()
    allocated = [rank.peak_allocated_bytes for rank in ranks if rank.peak_allocated_bytes]
    if allocated:
        return max(allocated)
    reserved = [rank.peak_reserved_bytes for rank in ranks if rank.peak_reserved_bytes]
    return max(reserved) if reserved else run.active.peak_bytes


def rooms_of(run: Run, plan: Plan) -> dict[str, Room]:
    """By fix id, whether its change fits, for the fixes and levers of a plan whose change moves memory."""
    found = {}
    for one in (*plan.fixes, *plan.levers):
        room = room_for(run, one.change.in_run(run))
        if room.delta_bytes:
            found[one.fix.id] = room
    return found
