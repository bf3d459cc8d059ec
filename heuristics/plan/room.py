"""Whether a change fits: what it adds to the heaviest rank's memory beside what the GPU has free."""

from collections.abc import Mapping
from typing import Final

from heuristics.fixes.fix import Fix
from heuristics.guides.memory_use import estimated, has_room, used_frac
from heuristics.guides.memory_use import fits as does_fit
from heuristics.plan.planned import Plan, Refused
from heuristics.result.judged import Room
from heuristics.run.run import Run
from traces.limits import Limit
from traces.missing import Missing
from traces.settings.settings import Value
from traces.sizes.memory import ERROR, delta
from traces.spelling import gigabytes, percent

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
    outside = gigabytes((_capacity(run) or 0) * OUTSIDE_FRAC.value)
    beside = f"beside {outside} for what PyTorch does not count"
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
