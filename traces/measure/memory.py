"""What saving memory costs a rank: recompute, offload, allocator calls; and how much memory there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.account.calls import CallKind, call_kinds
from traces.columns import COPY_KINDS, NULL, BoolArray, Gpu, IntArray, distinct
from traces.intervals import Spans, intersect, spans, subtract, union
from traces.limits import Limit
from traces.measure.peak_memory import peak_memory
from traces.measure.recompute import Recompute
from traces.missing import Missing
from traces.steps.found import Step, Steps
from traces.timeline import Activities, Bucket, RankTimeline

OFFLOAD_BYTES: Final = Limit(1 << 20, "bytes", "token counts and losses are far smaller, activations larger")
OFFLOAD_PAIRS: Final = Limit(
    2, "pairs of one size in a step", "ours: a layer's activations recur with every layer"
)
_STEPS: Final = "push one range per step, or name it with --nvtx"


@dataclass(frozen=True, slots=True)
class Memory:
    """The price of memory in the windows, and the capacity. What is None is in `missing`, under "memory.".

    `offload_exposed_ns`: wall time of offload copies while neither compute nor communication runs. A copy
    counts by size, direction and return; whether its host memory is pinned is not looked at.
    `offload_copies` counts them. `allocator_ns`: wall time of allocating and freeing calls of the launching
    threads, a call inside another counted once; it is host time, and part of it may cost the GPU nothing.
    `allocator_scope` says in words which stretch of the host's time that is. `allocator_retry_frac`: part of
    the used steps after the first in which memory was freed and then allocated; None without such steps.
    `peak_bytes`: the most the rank's process held on its GPU in the windows, see `peak_memory`.
    """

    recompute_ns: int | None
    recompute_modules: Mapping[str, int] | None
    offload_exposed_ns: int | None
    offload_copies: int | None
    allocator_ns: int | None
    allocator_calls: int | None
    allocator_scope: str
    allocator_retry_frac: float | None
    peak_bytes: int | None
    capacity_bytes: int | None
    missing: tuple[Missing, ...]


def measure_memory(rank: RankTimeline, steps: Steps, gpu: Gpu | None, recompute: Recompute) -> Memory:
    """Measure one rank. `gpu` is the one it ran on, `recompute` what was found of its windows."""
    gaps = [] if recompute.missing is None else [recompute.missing]
    peak = peak_memory(rank, steps.windows)
    if isinstance(peak, Missing):
        gaps.append(peak)
    capacity_bytes = gpu.memory_bytes if gpu else None
    if capacity_bytes is None:
        why = "the trace does not say how much memory the GPU has"
        gaps.append(Missing("memory.capacity_bytes", why, "export again with the GPU table"))
    offload = offload_places(rank, steps)
    if isinstance(offload, Missing):
        gaps.append(offload)
    host, scope = _host_time(rank.activities, steps)
    calls = _allocator_calls(rank, host)
    if isinstance(calls, Missing):
        gaps.append(calls)
    retry_frac = _retry_frac(rank, steps)
    if retry_frac is None:
        why = "no launch was recorded in a step after the first used one"
        gaps.append(
            Missing("memory.allocator_retry_frac", why, "record at least two steps, with --trace=cuda")
        )
    known = None if isinstance(offload, Missing) else offload
    allocator_ns, count = (None, None) if isinstance(calls, Missing) else calls
    return Memory(
        recompute_ns=recompute.recompute_ns,
        recompute_modules=recompute.recompute_modules,
        offload_exposed_ns=None if known is None else _exposed_ns(rank.activities, known, steps.windows),
        offload_copies=None if known is None else len(known),
        allocator_ns=allocator_ns,
        allocator_calls=count,
        allocator_scope=scope,
        allocator_retry_frac=retry_frac,
        peak_bytes=None if isinstance(peak, Missing) else peak,
        capacity_bytes=capacity_bytes,
        missing=tuple(gaps),
    )


def offload_places(rank: RankTimeline, steps: Steps) -> IntArray | Missing:
    """Places in the activities of the copies that leave the GPU and come back within their step."""
    if not rank.has_kernels:
        why, cure = (
            "graph replays were recorded whole, with the copies in them",
            "record with --cuda-graph-trace=node",
        )
        return Missing("memory.offload_exposed_ns", why, cure)
    if not steps.used:
        why = "without steps nothing tells what comes back within one"
        return Missing("memory.offload_exposed_ns", why, _STEPS)
    rows = rank.activities
    at = np.flatnonzero(rows.bucket == Bucket.COPY)
    copies = rows.take(at)
    size = rank.columns.copies.size_bytes[copies.row]
    places: IntArray = at[np.concatenate([_pairs_of(copies, size, step) for step in steps.used])]
    return places


def _exposed_ns(rows: Activities, places: IntArray, windows: Spans) -> int:
    """Wall time of some copies while neither compute nor communication runs."""
    mine, busy = rows.take(places), rows.take(rows.bucket != Bucket.COPY)
    exposed = subtract(union(mine.start_ns, mine.end_ns), union(busy.start_ns, busy.end_ns))
    return intersect(exposed, windows).total_ns


def _pairs_of(copies: Activities, size: IntArray, step: Step) -> IntArray:
    """Places of one step's offload copies: to the host, with an equal one back later, and that one."""
    first, last = np.searchsorted(copies.start_ns, (step.start_ns, step.end_ns))
    inside = np.arange(first, last)
    inside = inside[size[inside] >= OFFLOAD_BYTES.value]
    out, back = (copies.key == COPY_KINDS.index(kind) for kind in ("memcpy_d2h", "memcpy_h2d"))
    found: list[int] = []
    for one in distinct(size[inside[out[inside]]]).tolist():
        pairs: list[int] = []
        waiting: list[int] = []
        for place in inside[(size[inside] == one) & (out | back)[inside]].tolist():
            if out[place]:
                waiting.append(place)
            elif done := [one for one in waiting if copies.end_ns[one] <= copies.start_ns[place]]:
                waiting.remove(done[-1])
                pairs += [done[-1], place]
        if len(pairs) >= 2 * OFFLOAD_PAIRS.value:
            found += pairs
    return np.array(found, dtype=np.int64)


def _host_time(rows: Activities, steps: Steps) -> tuple[Spans, str]:
    """When the host worked on the steps after the first used one; without steps, on the window."""
    on_gpu = list(zip(steps.windows.start_ns.tolist(), steps.windows.end_ns.tolist(), strict=True))
    scope = "the whole window, for want of steps: its first allocations may be warm-up"
    if steps.used:
        on_gpu = [(step.start_ns, step.end_ns) for step in steps.used[1:]]
        scope = f"{len(on_gpu)} used steps after the first"
    held: list[tuple[int, int]] = []
    last_end_ns: int | None = None
    for start_ns, end_ns in on_gpu:
        mine = slice(*np.searchsorted(rows.start_ns, (start_ns, end_ns)).tolist())
        known = rows.launch_ns[mine] != NULL
        if known.any():
            begin_ns = int(rows.launch_ns[mine][known].min())
            if last_end_ns == start_ns:  # what the host did between two steps counts too
                held.append((held[-1][1], begin_ns))
            held.append((begin_ns, int(rows.launch_end_ns[mine][known].max())))
            last_end_ns = end_ns
    return spans(*held), scope


def _allocator_calls(rank: RankTimeline, host: Spans) -> tuple[int, int] | Missing:
    """Wall time and number of the launching threads' allocating and freeing calls in the host's time."""
    calls, rows = rank.columns.calls, rank.activities
    if not len(host):
        why = "no launch was recorded in a step after the first used one"
        return Missing("memory.allocator_ns", why, "record at least two steps, with --trace=cuda")
    kind = call_kinds(rank.columns.call_names)[calls.name]
    threads = distinct(rows.launch_thread[rows.launch_thread != NULL])
    mine = np.isin(kind, (CallKind.FREE, CallKind.ALLOCATE)) & np.isin(calls.thread_gid, threads)
    mine &= (calls.start_ns != NULL) & _starts_within(calls.start_ns, host)
    start, end, thread = (column[mine] for column in (calls.start_ns, calls.end_ns, calls.thread_gid))
    count = sum(len(_outermost(start[thread == one], end[thread == one])) for one in threads.tolist())
    return intersect(union(start, end), host).total_ns, count


def _starts_within(time_ns: IntArray, held: Spans) -> BoolArray:
    index = np.searchsorted(held.start_ns, time_ns, side="right") - 1
    result: BoolArray = (index >= 0) & (time_ns < held.end_ns[index])
    return result


def _outermost(start_ns: IntArray, end_ns: IntArray) -> IntArray:
    """Which calls of one thread begin in no other: a driver call within a runtime call is one with it."""
    order = np.lexsort((-end_ns, start_ns))
    covered_until = np.maximum.accumulate(end_ns[order])
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = start_ns[order][1:] >= covered_until[:-1]
    return order[first]


def _retry_frac(rank: RankTimeline, steps: Steps) -> float | None:
    """Part of the used steps after the first in which the launching threads freed and then allocated."""
    rows, calls = rank.activities, rank.columns.calls
    kind = call_kinds(rank.columns.call_names)[calls.name]
    mine = np.isin(calls.thread_gid, distinct(rows.launch_thread[rows.launch_thread != NULL]))
    freed = np.sort(calls.start_ns[mine & (kind == CallKind.FREE)])
    allocated = np.sort(calls.start_ns[mine & (kind == CallKind.ALLOCATE)])
    seen: list[bool] = []
    for step in steps.used[1:]:
        inside = slice(*np.searchsorted(rows.start_ns, (step.start_ns, step.end_ns)).tolist())
        launched = rows.launch_ns[inside][rows.launch_ns[inside] != NULL]
        if len(launched):
            first, last = int(launched.min()), int(launched.max())
            since = freed[np.searchsorted(freed, first) :][:1]
            later = allocated[np.searchsorted(allocated, since[0]) :][:1] if len(since) else since
            seen.append(bool(len(later)) and int(later[0]) <= last)
    return sum(seen) / len(seen) if seen else None
