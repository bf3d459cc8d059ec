"""Why a fix is not in a plan: one list of reasons, asked in order of a fix at its place; room."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

from heuristics.fixes.fix import Fix
from heuristics.guides.memory_use import Use, estimated, memory_use
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
from heuristics.result.judged import Refusal, Room
from heuristics.run.run import Run
from heuristics.words import say
from traces.limits import HALF_A_WALL, Limit
from traces.missing import Missing
from traces.settings.settings import Values
from traces.sizes.memory import ERROR, MemoryEstimate, delta
from traces.spelling import gigabytes


@dataclass
class Considered:
    """A fix that is considered for the place behind `earlier`, whose change is made when it is
    asked for.

    `dominated`: one kind dominates the wall's cost. `rejection`: what the framework itself says of
    it.
    """

    run: Run
    planned: Planned
    earlier: tuple[Planned, ...]
    dominated: bool
    rejection: Rejection | None
    permits: Permits

    @property
    def fix(self) -> Fix:
        return self.planned.fix

    @cached_property
    def met_by(self) -> set[str]:
        """Ids of fixes that meet what it waits for."""
        ids = set[str]()
        for step in self.earlier:
            ids.add(step.fix.same_as)
            if step.fix.wall == self.fix.wall or step.fix.aside:
                ids.add(step.fix.id)
        return ids

    @cached_property
    def made(self) -> Planned:
        return made(self.run, self.planned)

    @cached_property
    def values(self) -> Values:
        return self.made.change.in_run(self.run)

    @cached_property
    def allowed(self) -> Allowed:
        before = {step.fix.id: step.change.in_run(self.run) for step in self.earlier}
        return self.permits.judge(self.values, before)


def refusals(case: Considered) -> Iterator[Refused]:
    """Why a fix is not in the plan, the first reason first; from its rejection on its change is
    made.
    """
    refused = partial(Refused, case.fix)
    for need in unmet(case.planned):
        if not need.cure or need.cure not in case.met_by:
            text = say("plan.needs", need=need.text)
            is_set = need.is_active and need.state == "unmet"
            kind: Refusal = "absent" if need.absent else "needs"
            yield refused(kind, text, need.cure, need.source, is_turn=need.order, is_set=is_set)
    for earlier in case.earlier:
        other = earlier.fix
        if other.id in case.fix.excludes or case.fix.id in other.excludes:
            leave = say("plan.leave-out", fix=other.id)
            yield refused("excluded", say("plan.excluded", fix=other.id), leave)
    if little := _little(case):
        yield refused("little", little)
    if case.planned.ceiling_frac == 0.0 and (wins := wins_of(case.fix)):
        yield refused("nothing", say("plan.saves-nothing", kinds=", ".join(wins)))
    if why := case.rejection:
        yield refused("rejected", say("plan.rejected", text=why.text), source=why.source)
    if _is_set(case):
        yield refused("needs", say("plan.is-set"), is_set=True)
    if case.fix.wall == "memory" and not case.fix.with_room and case.run.tells("memory_has_room"):
        yield refused("needs", say("plan.memory-not-short", room=case.run.tells("room_said")))
    room_left = room_for(case.run, case.values) if case.values else None
    if room_left and room_left.fits is False:
        yield refused(
            "needs", say("plan.memory-first", because=room_left.because), say("plan.frees-memory")
        )
    if case.allowed.broken:
        rule, first = case.allowed.broken[0], case.allowed.beside
        if first:
            excluded = say("plan.excluded-by-rule", fix=first, rule=rule.text)
            yield refused("excluded", excluded, say("plan.leave-out", fix=first), rule.source)
        yield refused("forbidden", say("plan.forbidden", rule=rule.text), rule.met_by, rule.source)


def _little(case: Considered) -> str:
    """What says that it acts on little of its wall.

    Where one kind dominates the wall, a fix of others must act on a part of the windows worth
    asking about.
    """
    run, fix = case.run, case.fix
    share = share_of(run, fix.wall, fix.kinds)
    if share is None or share >= 1 or is_direct(run, fix) or fix.id in run.repairs:
        return ""
    if share < HALF_A_WALL.value:
        return say("plan.little-of-wall", kinds=", ".join(fix.kinds), share_frac=share)
    part = ceiling_frac(run, fix.wall, with_perhaps(run, fix.kinds)) if case.dominated else None
    if part is None or part >= HALF_A_WALL.value:
        return ""
    return say("plan.little-of-windows", kinds=", ".join(fix.kinds), part_frac=part)


def _is_set(case: Considered) -> bool:
    """The configuration says all that it would change: if that does not run, findings tell."""
    framework, knobs = case.run.settings.framework, case.made.knobs
    if framework is None or not case.values or case.made.change.is_open:
        return False
    own = knobs.megatron_bridge if framework == "megatron_bridge" else knobs.megatron_lm
    return not (own or knobs.environment or knobs.pytorch)


OUTSIDE_FRAC: Final = Limit(
    0.1,
    "part of the GPU's memory",
    "ours: the CUDA context, NCCL, graphs and fragmentation lie outside what PyTorch reports as "
    "allocated; GPT-OSS-120B ran out on a GPU of 79 GB with 69 to 70 GB allocated "
    "(Megatron-Bridge, CUDA graph card)",
)


def room_for(run: Run, changes: Values) -> Room:
    """Whether changed knobs fit into the memory of a run's fullest rank.

    By the peak of log or trace where there is one, which leaves the change alone to the estimate
    and its error; else by the estimate of the whole: what it counts is too much, or fits with its
    error.
    """
    after = estimated(run.changed(changes))
    added, use = delta(estimated(run), after), memory_use(run)
    free = None if use is None else use.capacity_bytes - use.peak_bytes - _outside(use)
    if isinstance(added, Missing) or isinstance(after, Missing):
        reason = added.reason if isinstance(added, Missing) else ""
        return Room(None, free, None, say("plan.room-unknown", reason=reason))
    if added < 0 and run.tells("fits") is False:
        return _freed(run, added, after, use, free)
    if added <= 0:
        freed = say("plan.room-freed", freed_bytes=-added) if added else say("plan.no-more-memory")
        return Room(added, free, True, freed)
    if not use or free is None:
        return Room(added, None, None, say("plan.free-unknown", added_bytes=added))
    if use.is_estimated:
        return _by_estimate(use, added, free)
    most = round(added * (1 + ERROR.value))
    because = say(
        "plan.fits" if most <= free else "plan.does-not-fit",
        added_bytes=added,
        most_bytes=most,
        left=gigabytes(free) if free > 0 else "none",
        outside_bytes=_outside(use),
    )
    return Room(added, free, most <= free, because)


def _outside(use: Use) -> int:
    return round(use.capacity_bytes * OUTSIDE_FRAC.value)


def _freed(run: Run, added: int, after: MemoryEstimate, use: Use | None, free: int | None) -> Room:
    """What a change frees where the run does not fit: enough, by the estimate of what is left."""
    use_after = (
        None
        if use is None or run.tells("ran_out")
        else Use(after.total_bytes, use.capacity_bytes, True)
    )
    if use_after and use_after.most_frac <= 1:
        return Room(added, free, True, say("plan.room-freed", freed_bytes=-added))
    return Room(added, free, None, say("plan.room-freed-perhaps", freed_bytes=-added))


def _by_estimate(use: Use, added: int, free: int) -> Room:
    after = replace(use, peak_bytes=use.peak_bytes + added)
    usable = 1 - OUTSIDE_FRAC.value
    fits, code = None, "near"
    if after.used_frac > usable:
        fits, code = False, "too-much"
    elif after.most_frac <= usable:
        fits, code = True, "fits"
    because = say(
        f"plan.estimate-{code}",
        added_bytes=added,
        now_bytes=use.peak_bytes,
        capacity_bytes=use.capacity_bytes,
        outside_bytes=_outside(use),
    )
    return Room(added, free, fits, because)


def rooms_of(run: Run, plan: Plan) -> dict[str, Room]:
    return {
        step.fix.id: room
        for step in (*plan.fixes, *plan.levers)
        if (room := room_for(run, step.change.in_run(run))).delta_bytes
    }
