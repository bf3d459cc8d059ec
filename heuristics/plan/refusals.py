"""Why a fix is not in a plan: one list of reasons, asked in order of a fix at its place; room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from heuristics.fixes.fix import Fix
from heuristics.guides.memory_use import estimated, has_room, used_frac
from heuristics.guides.memory_use import fits as does_fit
from heuristics.plan.allowed import Allowed, Permits
from heuristics.plan.gains import (
    ceiling_frac,
    is_direct,
    made,
    share_of,
    unmet,
    wins_of,
    with_perhaps,
)
from heuristics.plan.planned import Plan, Planned, Refused, Rejection
from heuristics.result.judged import Room
from heuristics.run.run import Run
from heuristics.words import say
from traces.limits import Limit
from traces.missing import Missing
from traces.replay.changes.costs import WORTH
from traces.settings.settings import Value
from traces.sizes.memory import ERROR, delta
from traces.spelling import gigabytes

TOUCHED: Final = Limit(
    0.05,
    "fraction of the wall's cost",
    "ours: a fix of less is not worth one experiment while the wall stands",
)


@dataclass
class Considered:
    """A fix that is considered for the place behind `earlier`, whose change is made when it is asked for.

    `met_by`: ids of fixes that meet what it waits for. `dominated`: one kind dominates the wall's cost.
    `rejection`: what the framework itself says of it.
    """

    run: Run
    planned: Planned
    earlier: tuple[Planned, ...]
    met_by: set[str]
    dominated: bool
    rejection: Rejection | None
    permits: Permits

    @property
    def fix(self) -> Fix:
        return self.planned.fix

    @cached_property
    def made(self) -> Planned:
        return made(self.run, self.planned)

    @cached_property
    def values(self) -> Mapping[str, Value]:
        return self.made.change.in_run(self.run)

    @cached_property
    def allowed(self) -> Allowed:
        before = {one.fix.id: one.change.in_run(self.run) for one in self.earlier}
        return self.permits.judge(self.values, before)


def refusals(one: Considered) -> Iterator[Refused]:
    """Why a fix is not in the plan, the first reason first; from its rejection on its change is made."""
    refused = partial(Refused, one.fix)
    for need in unmet(one.planned):
        if not need.cure or need.cure not in one.met_by:
            yield refused("needs", say("plan.needs", need=need.text), need.cure, need.source)
    for other in (earlier.fix for earlier in one.earlier):
        if other.id in one.fix.excludes or one.fix.id in other.excludes:
            leave = say("plan.leave-out", fix=other.id)
            yield refused("excluded", say("plan.excluded", fix=other.id), leave)
    if little := _little(one):
        yield refused("little", little)
    if one.planned.ceiling_frac == 0.0 and (wins := wins_of(one.fix)):
        yield refused("nothing", say("plan.saves-nothing", kinds=", ".join(wins)))
    if why := one.rejection:
        yield refused("rejected", say("plan.rejected", text=why.text), source=why.source)
    if _is_set(one):
        yield refused("needs", say("plan.is-set"))
    if one.fix.wall == "memory" and not one.fix.with_room and has_room(one.run):
        used = used_frac(one.run)
        room = say("plan.memory-used", used_frac=used) if used else say("plan.there-is-room")
        yield refused("needs", say("plan.memory-not-short", room=room))
    room_left = room_for(one.run, one.values) if one.values else None
    if room_left and room_left.fits is False:
        yield refused("needs", say("plan.memory-first", because=room_left.because), say("plan.frees-memory"))
    if one.allowed.broken:
        rule, first = one.allowed.broken[0], one.allowed.beside
        if first:
            excluded = say("plan.excluded-by-rule", fix=first, rule=rule.text)
            yield refused("excluded", excluded, say("plan.leave-out", fix=first), rule.source)
        yield refused("forbidden", say("plan.forbidden", rule=rule.text), rule.met_by, rule.source)


def _little(one: Considered) -> str:
    """What says that it acts on little of its wall.

    Where one kind dominates the wall, a fix of others must act on a part of the windows worth asking about.
    """
    run, fix = one.run, one.fix
    share = share_of(run, fix.wall, fix.kinds)
    if share is None or share >= 1 or is_direct(run, fix) or fix.id in run.repairs:
        return ""
    if share < TOUCHED.value:
        return say("plan.little-of-wall", kinds=", ".join(fix.kinds), share_frac=share)
    part = ceiling_frac(run, fix.wall, with_perhaps(run, fix.kinds)) if one.dominated else None
    if part is None or part >= WORTH.value:
        return ""
    return say("plan.little-of-windows", kinds=", ".join(fix.kinds), part_frac=part)


def _is_set(one: Considered) -> bool:
    """The configuration says all that it would change: if that does not run, findings tell."""
    framework, knobs = one.run.settings.framework, one.made.knobs
    if framework is None or not one.values:
        return False
    own = knobs.megatron_bridge if framework == "megatron_bridge" else knobs.megatron_lm
    return not (own or knobs.environment or knobs.pytorch)


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
        return Room(None, free, None, say("plan.room-unknown", reason=added.reason))
    if added < 0 and does_fit(run) is False:
        return Room(added, free, None, say("plan.room-freed-perhaps", freed=gigabytes(-added)))
    if added <= 0:
        freed = say("plan.room-freed", freed=gigabytes(-added)) if added else say("plan.no-more-memory")
        return Room(added, free, True, freed)
    if free is None:
        return Room(added, None, None, say("plan.free-unknown", added=gigabytes(added)))
    most = round(added * (1 + ERROR.value))
    said = say(
        "plan.fits" if most <= free else "plan.does-not-fit",
        added=gigabytes(added),
        most=gigabytes(most),
        left=gigabytes(free) if free > 0 else "none",
        outside=gigabytes((_capacity(run) or 0) * OUTSIDE_FRAC.value),
    )
    return Room(added, free, most <= free, said)


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
    reserved = [rank.peak_reserved_bytes for rank in ranks if rank.peak_reserved_bytes]
    return max(allocated or reserved, default=run.active.peak_bytes)


def rooms_of(run: Run, plan: Plan) -> dict[str, Room]:
    return {
        one.fix.id: room
        for one in (*plan.fixes, *plan.levers)
        if (room := room_for(run, one.change.in_run(run))).delta_bytes
    }
