"""Whether a change fits: what it adds to the heaviest rank's memory beside what the GPU has free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heuristics.guides.memory_use import estimated
from heuristics.guides.memory_use import fits as does_fit
from heuristics.plan.planned import Plan
from heuristics.result.judged import Room
from heuristics.run.run import Run
from traces.limits import Limit
from traces.missing import Missing
from traces.settings.settings import Value
from traces.sizes.memory import ERROR, delta

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
        return Room(added, free, None, f"frees up to {_gb(-added)}; whether that suffices is unknown")
    if added <= 0:
        return Room(added, free, True, _freed(added))
    if free is None:
        why = "how much is free is unknown (no peak or no capacity given)"
        return Room(added, None, None, f"+{_gb(added)}: {why}")
    fits = added * (1 + ERROR.value) <= free
    left = f"{_gb(free)} free" if free > 0 else "none free"
    return Room(added, free, fits, f"+{_gb(added)} of {left}: {'fits' if fits else 'does not fit'}")


def _freed(added: int) -> str:
    return "needs no more memory" if added == 0 else f"frees up to {_gb(-added)}: fits"


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


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"


def rooms_of(run: Run, plan: Plan) -> dict[str, Room]:
    """By fix id, whether its change fits, for the fixes and levers of a plan whose change moves memory."""
    found = {}
    for one in (*plan.fixes, *plan.levers):
        room = room_for(run, one.change.in_run(run))
        if room.delta_bytes:
            found[one.fix.id] = room
    return found
