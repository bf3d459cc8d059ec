"""What saving memory costs a rank: recompute, offload, allocator calls; and how much memory there
is.

The peak is the most memory that a rank's process held on its GPU while the windows lasted.
"""

from typing import Final

import numpy as np

from traces.account.calls import CallKind, outermost
from traces.account.clocks import clock_offset_ns
from traces.arrays import FOREVER, BoolArray, IntArray, last_at, listed, row_by_row, summed
from traces.columns import NO_GPU, NULL, PROCESS_BITS, MemoryUse
from traces.groups import passing
from traces.intervals import Spans, instants_in, spans
from traces.limits import Limit
from traces.measure.allocator import frees_to_allocate, launching_calls
from traces.measure.host_copies import copy_use, offload_places, resident_places
from traces.measure.recompute import Recompute
from traces.missing import Missing, gap, or_gap
from traces.sections.rank import Memory
from traces.sections.tables import MemoryCurve
from traces.steps.found import Steps
from traces.timeline import Activities, RankTimeline

POINTS: Final = Limit(
    200, "points", "ours: as fine as a page shows; there are thousands of changes"
)
_NO_VMM: Final = (
    "for a recording of memory, turn off PyTorch's expandable segments and set NCCL_CUMEM_ENABLE=0"
)


def peak_memory(rank: RankTimeline, windows: Spans) -> int | Missing:
    """The largest number of bytes in use at any instant of the windows; what was in use at a start
    counts.

    By nsys that is what the process took of the GPU's memory, without the driver's own; by the
    PyTorch profiler what the caching allocator had reserved. Totals that the source says itself
    count back to before their first event: reserved memory is rarely given back. A sum is none
    where it can be too small.
    """
    in_use = _in_use(rank, windows)
    if isinstance(in_use, Missing):
        return in_use
    return _peak(*in_use, windows)


def memory_curve(rank: RankTimeline, windows: Spans) -> MemoryCurve | Missing:
    """Memory in use over the windows, the most of each stretch; what was in use at their start
    counts.
    """
    in_use = _in_use(rank, windows)
    if isinstance(in_use, Missing):
        return in_use
    start_ns, end_ns = int(windows.start_ns[0]), int(windows.end_ns[-1])
    edges = np.unique(np.linspace(start_ns, end_ns, POINTS.whole + 1, dtype=np.int64))
    most = tuple(_peak(*in_use, spans(pair)) for pair in row_by_row(edges[:-1], edges[1:]))
    return MemoryCurve(start_ns, listed(edges[:-1] - start_ns), most)


def _in_use(rank: RankTimeline, windows: Spans) -> tuple[IntArray, IntArray] | Missing:
    """Times of changes, in order, and what was in use from each on."""
    memory, how = rank.columns.memory, rank.cure("memory_use")
    if memory is None:
        return gap("memory use was not recorded", how)
    mine = (memory.process_gid == rank.process_gid) & (memory.device_id == rank.device)
    if not mine.any():
        return gap("no memory use of this process on this GPU was recorded", how)
    if clock_offset_ns(rank):
        return gap(
            "host and GPU clocks are apart, so what was in use in the windows is unknown",
            "record again; nothing in this trace can align them",
        )
    time_ns, used_bytes = memory.time_ns[mine], memory.used_bytes[mine]
    if memory.is_sum:
        if time_ns[0] >= rank.activities.start_ns.min() or memory.is_unmatched[mine].any():
            return gap("the recording began after memory had been allocated", how)
        if _takes_unseen(rank, memory):
            return gap(
                "memory was taken with cuMemCreate, and the recording does not have its size",
                _NO_VMM,
            )
    elif time_ns[0] >= windows.end_ns[0]:
        return gap(
            "memory use was recorded only after the first window", "choose later steps with --steps"
        )
    return time_ns, used_bytes


def _takes_unseen(rank: RankTimeline, memory: MemoryUse) -> bool:
    """Whether the process took memory, by expandable segments or by NCCL, that left no memory
    event.
    """
    calls = rank.calls
    takes = passing(lambda name: name.startswith("cuMemCreate"), rank.columns.call_names)
    mine = takes[calls.name] & (calls.thread_gid & PROCESS_BITS == rank.process_gid)
    seen = memory.correlation_id[memory.process_gid == rank.process_gid]
    return not np.isin(calls.correlation_id[mine], seen).all()


def _peak(time_ns: IntArray, used_bytes: IntArray, windows: Spans) -> int:
    """Times in order. From the last change up to a window's start to the last one before its
    end.
    """
    first = np.maximum(last_at(time_ns, windows.start_ns), 0)
    last = np.searchsorted(time_ns, windows.end_ns)
    peak = 0
    for begin, end in row_by_row(first, last):
        peak = max(peak, int(used_bytes[begin:end].max(initial=0)))
    return peak


def measure_memory(rank: RankTimeline, steps: Steps, recompute: Recompute) -> Memory:
    """The price of memory in the windows, and the capacity. `gpu` is the one the rank ran on.

    `offload_exposed_ns`: wall time of offload copies while neither compute nor communication runs.
    A copy counts by size, direction and return; whether its host memory is pinned is not looked at.
    `offload_copies` counts them, `offload_union_ns` is the wall time in which any runs.
    `host_resident_*`: the same of copies that bring what lives in host memory, see
    `resident_places`. `allocator_ns`: wall time of allocating and freeing calls of the launching
    threads, a call inside another counted once; it is host time, and part of it may cost the GPU
    nothing. `allocator_scope` says in words which stretch of the host's time that is.
    `allocator_retry_frac`: part of the used steps after the first in which memory was freed and
    then allocated. `foreign_frees_frac`: part of those freeing calls that are not the caching
    allocator's. `peak_bytes`: the most the rank's process held on its GPU in the windows, see
    `peak_memory`.
    """
    offloaded = offload_places(rank, steps)
    host, scope = _host_time(rank.activities, steps)
    no_launch = rank.lacks("no launch was recorded in a step after the first used one", "two_steps")
    allocator_ns, calls = _allocator_calls(rank, host) if len(host) else (no_launch, no_launch)
    freeing, own = frees_to_allocate(rank)
    freed = freeing & host.hold(rank.calls.start_ns)
    no_capacity = rank.lacks("the trace does not record how much memory the GPU has", "gpu")
    return Memory(
        recompute_ns=recompute.recompute_ns,
        recompute_modules=recompute.recompute_modules,
        **_copy_fields(rank, "offload", offloaded, steps),
        **_copy_fields(rank, "host_resident", resident_places(rank, steps, offloaded), steps),
        allocator_ns=allocator_ns,
        allocator_calls=calls,
        allocator_scope=scope,
        allocator_retry_frac=or_gap(_retry_frac(rank, steps, own), no_launch),
        peak_bytes=peak_memory(rank, steps.windows),
        use=memory_curve(rank, steps.windows),
        foreign_frees_frac=float((freed & ~own).sum() / max(1, freed.sum())),
        capacity_bytes=or_gap((rank.gpu or NO_GPU).memory_bytes, no_capacity),
    )


def _copy_fields(
    rank: RankTimeline, name: str, places: IntArray | Missing, steps: Steps
) -> dict[str, int | Missing]:
    """Fields of `Memory` about some copies, by their places in the activities."""
    keys = [f"{name}_{key}" for key in ("copies", "bytes", "union_ns", "exposed_ns")]
    if isinstance(places, Missing):
        return dict.fromkeys(keys, places)
    return dict(zip(keys, copy_use(rank, places, steps.windows), strict=True))


def _host_time(rows: Activities, steps: Steps) -> tuple[Spans, str]:
    """When the host worked on the steps after the first used one; without steps, on the window."""
    on_gpu = list(row_by_row(steps.windows.start_ns, steps.windows.end_ns))
    scope = "the whole window, for want of steps: its first allocations may be warm-up"
    if steps.used:
        on_gpu = [step.within_ns for step in steps.used[1:]]
        scope = f"{len(on_gpu)} used steps after the first"
    held: list[tuple[int, int]] = []
    last_end_ns: int | None = None
    back_ns = rows.launch_end_ns
    for start_ns, end_ns in on_gpu:
        mine = slice(*np.searchsorted(rows.start_ns, (start_ns, end_ns)).tolist())
        known = rows.launch_ns[mine] != NULL
        if known.any():
            begin_ns = int(rows.launch_ns[mine][known].min())
            if last_end_ns == start_ns:  # what the host did between two steps counts too
                held.append((held[-1][1], begin_ns))
            held.append((begin_ns, int(back_ns[mine][known].max())))
            last_end_ns = end_ns
    return spans(*held), scope


def _allocator_calls(rank: RankTimeline, host: Spans) -> tuple[int, int]:
    calls = rank.calls
    mine = np.isin(launching_calls(rank), (CallKind.FREE, CallKind.ALLOCATE))
    allocating = calls.take(mine & host.hold(calls.start_ns))
    count = summed(outermost(allocating.start_ns, allocating.end_ns, allocating.thread_gid))
    return instants_in(host, allocating).total_ns, count


def _retry_frac(rank: RankTimeline, steps: Steps, own: BoolArray) -> float | None:
    """Part of the used steps after the first in which the caching allocator freed and then
    allocated.

    `own`: its freeing calls, a mask over all calls.
    """
    rows, calls = rank.activities, rank.calls
    freed_ns = calls.start_ns[own]
    allocated_ns = calls.start_ns[launching_calls(rank) == CallKind.ALLOCATE]
    seen: list[bool] = []
    for step in steps.used[1:]:
        inside = slice(*np.searchsorted(rows.start_ns, step.within_ns).tolist())
        launched = rows.launch_ns[inside][rows.launch_ns[inside] != NULL]
        if len(launched):
            since_ns = freed_ns[freed_ns >= launched.min()].min(initial=FOREVER)
            later_ns = allocated_ns[allocated_ns <= launched.max()].max(initial=NULL)
            seen.append(bool(since_ns <= later_ns))
    if seen:
        return sum(seen) / len(seen)
    return None
