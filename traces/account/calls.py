"""What a CUDA call does to its thread, by its name; calls that initialise once; the host side of a
replay.

A run pays for its context, libraries and modules at its start alone. A replay has the calls of the
launching threads in their order, and what they wait for.
"""

from enum import IntEnum
from typing import Final

import numpy as np

from traces.arrays import (
    CODE,
    FOREVER,
    PLACE,
    BoolArray,
    IntArray,
    Lasting,
    Rows,
    distinct,
    ints,
    last_at,
    none_of,
    nowhere,
    order_of,
    row_by_row,
    zeros,
)
from traces.columns import NULL, PROCESS_BITS
from traces.frozen import frozen
from traces.groups import before_of, begins, first_of, group_of, in_order, mask_of
from traces.intervals import Spans, union
from traces.launchers import helper_threads
from traces.limits import Limit
from traces.patterns import compiled_rows, first_found
from traces.texts import Texts
from traces.timeline import Activities, RankTimeline


class CallKind(IntEnum):
    """What a host thread is busy with while inside a call."""

    OTHER = 0
    LAUNCH = 1
    SYNC = 2
    COPY = 3
    FREE = 4  # waits for all work of the device, then frees
    ALLOCATE = 5
    INIT = 6  # module load, JIT, graph capture and instantiation


POLL: Final = "poll of host memory"
"""Stands for a call where the host waits for the GPU without one."""

_KINDS: Final = compiled_rows(
    (CallKind.SYNC, rf"Synchronize|^{POLL}$"),
    (CallKind.LAUNCH, r"ModuleLaunch"),
    (
        CallKind.INIT,
        r"Module|Library|cuLink|Capture|GraphInstantiate|GraphCreate|cuInit|FuncGetAttributes|FuncSetAttr",
    ),
    (CallKind.ALLOCATE, r"(?:cudaFree|cuMemFree|hipFree).*Async"),
    (CallKind.FREE, r"cudaFree|cuMemFree|hipFree"),
    (
        CallKind.ALLOCATE,
        r"Malloc|MemAlloc|Free|HostAlloc|HostRegister|cuMem(?:Create|Map|Unmap|SetAccess|Release|Address)",
    ),
    (CallKind.LAUNCH, r"Launch"),
    (CallKind.COPY, r"[mM]emcpy"),
)
"""The first match counts. Names of the CUDA runtime and driver APIs, and of HIP."""


def call_kinds(names: Texts) -> IntArray:
    """Kind of each distinct call name; one more at the end for calls without a name (code -1)."""
    return np.array([*map(_kind, names), CallKind.OTHER], dtype=CODE)


def _kind(name: str) -> CallKind:
    return first_found(_KINDS, name) or CallKind.OTHER


LONG: Final = Limit(
    1_000_000,
    "ns",
    "measured on recordings of others: first launches of kernels take more, the first cudaFree 1.6 "
    "ms; a launch that the system interrupts takes less",
)
APART: Final = Limit(
    10,
    "times the next of its kind",
    "measurement.md: the longest call of its kind, over ten times the next",
)
_WAITS: Final = (CallKind.SYNC, CallKind.COPY)
"""Their length is that of the work they wait for."""


def kinds_of_calls(rank: RankTimeline) -> tuple[IntArray, Spans]:
    """The `CallKind` of every call of a rank's columns, and when the program sets up; a call that
    initialises once is `INIT`, and so is each meanwhile that waits for no work.
    """
    calls = rank.calls
    kinds = call_kinds(rank.columns.call_names)[calls.name]
    kinds[_one_time(rank, kinds)] = CallKind.INIT
    sets_up = _setting_up(rank, kinds)
    kinds[sets_up.hold(calls.start_ns) & ~np.isin(kinds, _WAITS)] = CallKind.INIT
    return kinds, sets_up


PAUSE: Final = Limit(
    2_000_000,
    "ns outside CUDA calls",
    "measurement.md: no Python between two operators of one step takes as long",
)


def _setting_up(rank: RankTimeline, kinds: IntArray) -> Spans:
    """When a program sets up: from its start while first uses take most of the time in which the
    GPU waits for a kernel, and whenever it waits for one that does not wait again.

    It waits for a first use where it does nothing for `PAUSE` before a kernel of a new name or
    shape and the host loads meanwhile; or before one of a new name and the host takes memory, or
    none that comes later waits a tenth as long. Those without a call that shows why are no first
    uses if one comes in the second half: a host that works between phases pauses too. Before a
    kernel of a known name the GPU waits for what recurs.
    """
    rows, calls = rank.activities, rank.calls
    ended_ns = np.append(rows.start_ns[:1], np.maximum.accumulate(rows.end_ns)[:-1])
    idle_ns = np.maximum(rows.start_ns - ended_ns, 0)
    mine = np.flatnonzero(rows.is_launched & (rows.name >= 0))
    waits_ns = np.diff(np.cumsum(idle_ns)[mine], prepend=0)
    shape, is_kernel = np.full(len(rows), NULL), rows.is_kernel
    shape[is_kernel] = rank.kernels.shape[rows.row[is_kernel]]
    name = group_of(rows.name[mine])
    is_name = mask_of(first_of(name), len(mine))
    is_kind = mask_of(first_of(group_of(name, shape[mine])), len(mine))
    since_ns, until_ns = np.append(NULL, rows.launch_ns[mine][:-1]), rows.launch_end_ns[mine]

    def begins_meanwhile(kind: CallKind) -> BoolArray:
        start_ns = np.sort(calls.start_ns[kinds == kind])
        return np.searchsorted(start_ns, until_ns) > np.searchsorted(start_ns, since_ns, "right")

    loads, takes = map(begins_meanwhile, (CallKind.INIT, CallKind.ALLOCATE))
    later_ns = zeros(len(mine))
    np.maximum.at(later_ns, name, np.where(is_name, 0, waits_ns))
    long = waits_ns >= PAUSE.value
    single = long & is_name & (waits_ns > APART.value * later_ns[name])
    single &= np.bincount(name)[name] > 1
    single &= loads | ~(single & ~loads)[len(mine) // 2 :].any()
    is_first = single | (long & ((loads & is_kind) | (takes & is_name)))
    surplus_ns = np.cumsum(np.where(is_first, waits_ns, np.where(is_name, 0, -waits_ns)))
    surplus_ns[np.cumsum(surplus_ns < -PAUSE.value) > 0] = 0  # what recurs had begun before
    end_ns = np.append(NULL, until_ns)[np.argmax(np.append(0, surplus_ns))]
    return union(np.append(NULL, since_ns[single]), np.append(end_ns, until_ns[single]))


def _one_time(rank: RankTimeline, kinds: IntArray) -> BoolArray:
    """Which calls are over ten times as long as later ones of their kind, a mask over the calls.

    A launch has the kind of its kernel, whose first launch loads it. Other calls have that of their
    name: those in the first half of the launches are held against those in the second, where none
    need be left. A long free between kernels that ran before gives back what they used: an
    allocator short of memory, which asks for it again.
    """
    calls = rank.calls
    length_ns = calls.length_ns
    once = (length_ns >= LONG.value) & ~np.isin(kinds, _WAITS)
    once &= (calls.thread_gid & PROCESS_BITS) == rank.process_gid
    if not once.any():
        return once
    launches = kinds == CallKind.LAUNCH
    once[launches] = False
    once[_loading_launches(rank.activities, length_ns)] = True
    settled = calls.start_ns > settled_ns(rank.activities)
    once &= launches | ~settled
    freed_ns = calls.start_ns[once & (kinds == CallKind.FREE)]
    if len(freed_ns):
        flushed_ns = freed_ns[_before_known(rank.activities, freed_ns)].min(initial=FOREVER)
        once &= ~np.isin(kinds, (CallKind.FREE, CallKind.ALLOCATE)) | (calls.start_ns < flushed_ns)
    for name in distinct(calls.name[once]).tolist():
        mine = (calls.name == name) & ~launches
        once[mine] &= length_ns[mine] > APART.value * length_ns[mine & settled].max(initial=0)
    return once


def _before_known(rows: Activities, times_ns: IntArray) -> BoolArray:
    """Whether what is launched next after each time ran before."""
    named = np.flatnonzero((rows.name >= 0) & rows.is_launched)
    named = in_order(named, rows.launch_ns)
    known = ~mask_of(first_of(group_of(rows.name[named])), len(named))
    return np.append(known, False)[np.searchsorted(rows.launch_ns[named], times_ns)]


def settled_ns(rows: Activities) -> int:
    """When half of the launches were made: a first call is over. Without any, it always is."""
    launch_ns = np.sort(rows.launch_ns[rows.is_launched])
    return int(np.append(launch_ns, NULL)[len(launch_ns) // 2])


def _loading_launches(rows: Activities, length_ns: IntArray) -> IntArray:
    """Rows of launch calls that are the first of their kernel, and far longer than its usual one;
    of a kernel that is launched once than those of others that are no first ones.
    """
    named = np.flatnonzero((rows.name >= 0) & rows.is_launched)
    named = in_order(named, rows.name, rows.launch_ns)
    call, loading = rows.call[named], []
    took_ns = length_ns[call]
    first = np.flatnonzero(begins(rows.name[named]))
    others_ns = np.delete(took_ns, first)
    for begin, count in row_by_row(first, np.diff(first, append=len(named))):
        again_ns = took_ns[begin + 1 : begin + count] if count > 1 else others_ns
        usual_ns = np.median(again_ns) if len(again_ns) else 0
        if took_ns[begin] >= LONG.value and took_ns[begin] > APART.value * usual_ns:
            loading.append(call[begin])
    return ints(loading)


NONE: Final = -1


@frozen
class HostCalls(Rows, Lasting):
    """Outermost calls of the launching threads, shape (m,), in order of start.

    `kind` is a `CallKind`, `row` the row in `Columns.calls`. `before` is the call whose return a
    call follows (of any of these threads: Python's threads hand over to each other, but a helper to
    nobody), `own_before` the previous call of its own thread; -1 where there is none. `pause_ns` is
    the time since `before` returned.
    """

    start_ns: IntArray
    end_ns: IntArray
    thread: IntArray
    kind: IntArray
    row: IntArray
    before: IntArray
    own_before: IntArray
    pause_ns: IntArray

    def at(self, calls_thread: IntArray, calls_start_ns: IntArray) -> IntArray:
        """The call here that holds each given one: itself, or the one it is nested in; -1 where
        none does.
        """
        result = nowhere(len(calls_start_ns))
        for thread in distinct(self.thread).tolist():
            mine = np.flatnonzero(self.thread == thread)
            given = np.flatnonzero(calls_thread == thread)
            place = last_at(self.start_ns[mine], calls_start_ns[given])
            held = place >= 0
            held &= self.end_ns[mine[place]] >= calls_start_ns[given]
            result[given[held]] = mine[place[held]]
        return result


def host_calls(rank: RankTimeline, *spans_ns: tuple[int, int]) -> HostCalls:
    """Calls of the launching threads of a rank that return in or run across spans of time in order.

    And the last one before each span, whose return the first of its calls follows.
    """
    calls, rows = rank.calls, rank.activities
    mine = np.isin(calls.thread_gid, rows.launching_threads) & (calls.end_ns >= calls.start_ns)
    row = np.flatnonzero(mine)
    within = none_of(len(row))
    for since_ns, until_ns in spans_ns:
        start_ns, end_ns = calls.start_ns[row], calls.end_ns[row]
        last_ns = int(end_ns[end_ns <= since_ns].max(initial=NULL))
        within |= ((end_ns > since_ns) | (end_ns == last_ns)) & (start_ns < until_ns)
    row = row[within]
    row = row[outermost(calls.start_ns[row], calls.end_ns[row], calls.thread_gid[row])]
    row = in_order(row, calls.start_ns, calls.end_ns).astype(PLACE)
    start, end, thread = calls.start_ns[row], calls.end_ns[row], calls.thread_gid[row]
    own = before_of(thread)
    span = np.searchsorted(ints(spans_ns)[1:, 0], end)
    own[span[own] != span] = NONE  # not its thread's call before, but one of an earlier span
    before = _last_returned(start, end)
    steps = np.flatnonzero(~np.isin(thread, helper_threads(rows)))
    last = _last_returned(start[steps], end[steps])
    before[steps] = np.where(last == NONE, NONE, steps[last])
    before = np.where((own != NONE) & (end[own] >= end[before]), own, before)
    pause = np.where(before != NONE, start - end[before], 0)
    return HostCalls(start, end, thread, kinds_of_calls(rank)[0][row], row, before, own, pause)


def outermost(start_ns: IntArray, end_ns: IntArray, thread: IntArray) -> BoolArray:
    """Which calls lie in no other of their thread: a driver call within a runtime call is one with
    it.
    """
    result = none_of(len(start_ns))
    order = np.lexsort((-end_ns, start_ns, thread))
    for gid in distinct(thread).tolist():
        mine = order[thread[order] == gid]
        until = np.maximum.accumulate(end_ns[mine])
        result[mine] = start_ns[mine] >= np.append(NULL, until[:-1])
    return result


def _last_returned(start_ns: IntArray, end_ns: IntArray) -> IntArray:
    """Of each call the one that returned last before it began; only earlier ones in the order
    count.
    """
    by_end, own = order_of(end_ns).astype(PLACE), np.arange(len(start_ns))
    place = last_at(end_ns[by_end], start_ns)
    while True:
        returned = np.where(place >= 0, by_end[place], NONE)
        itself = returned >= own  # an empty call returns as it begins
        if not itself.any():
            return returned
        place = np.where(itself, place - 1, place)


def is_kind(calls: HostCalls, *kinds: CallKind) -> BoolArray:
    """Mask of the calls of some kinds."""
    return np.isin(calls.kind, kinds)
