"""How far a process's host clock is from its GPU's, and its host rows put on the GPU's clock.

No kernel starts before its launch call begins, and no synchronising call returns before the work it
waited for has ended. So launches bound on one side how far the host's clock is ahead, returns on
the other.
"""

from dataclasses import replace
from typing import Final, TypeVar

import numpy as np

from traces.arrays import BoolArray, IntArray, distinct, none_of, order_of
from traces.columns import (
    COPY_KINDS,
    NULL,
    PROCESS_BITS,
    Calls,
    Columns,
    GpuRows,
    HostSpans,
    NcclCalls,
    Ranges,
    Syncs,
)
from traces.frozen import frozen
from traces.groups import passing, places_of_each
from traces.launches import launching_rows
from traces.limits import Limit
from traces.patterns import compiled

LAUNCHES: Final = Limit(32, "launches", "ours: of fewer, all may have found the GPU busy")
JITTER: Final = Limit(
    10_000,
    "ns",
    "measured: calls of one real recording return 7 us before the work they waited for ends",
)
SOON: Final = Limit(
    50_000,
    "ns",
    "measured: work arrives on an empty GPU after 4-13 us, a synchronising call returns as soon",
)
_Timed = TypeVar("_Timed", Calls, Ranges, HostSpans, NcclCalls, Syncs)
_OF_ALL: Final = compiled("DeviceSynchronize|CtxSynchronize")
_OF_STREAM: Final = compiled("StreamSynchronize")
_TO_HOST: Final = COPY_KINDS.index("memcpy_d2h")


@frozen
class ClockFix:
    """Host times of a process were `ahead_ns` ahead of its GPU's, within `within_ns`, and were put
    right.
    """

    ahead_ns: int
    within_ns: int


def clock_fixes(columns: Columns, rows: GpuRows, call: IntArray) -> dict[int, ClockFix]:
    """By packed process, of those whose clocks are apart, where some launch and some return
    followed soon.

    `rows`: all GPU work of the columns, kernels first, then copies; `call`: the row of each one's
    launching call, -1 where it has none.
    """
    result = {}
    for gid in distinct(rows.process_gid[call >= 0]).tolist():
        mine = np.flatnonzero((rows.process_gid == gid) & (call >= 0) & (rows.start_ns != NULL))
        if len(mine) < LAUNCHES.value:
            continue
        least_ns = int((columns.calls.start_ns[call[mine]] - rows.start_ns[mine]).max())
        back_ns = _returns_after(columns, rows, call, mine)
        most_ns = int(back_ns.min()) if len(back_ns) else least_ns + SOON.whole
        apart, width_ns = least_ns > JITTER.value or most_ns < -JITTER.value, most_ns - least_ns
        if apart and -JITTER.value <= width_ns < SOON.value:
            result[gid] = ClockFix((least_ns + most_ns) // 2, (abs(width_ns) + 1) // 2)
    return result


def on_gpu_clock(columns: Columns, fixes: dict[int, ClockFix]) -> Columns:
    """The columns with what the hosts of some processes did on the clocks of their GPUs."""
    if not fixes:
        return columns

    def moved(time_ns: IntArray, gid: IntArray) -> IntArray:
        time_ns = time_ns.copy()
        for process, fix in fixes.items():
            time_ns[((gid & PROCESS_BITS) == process) & (gid != NULL) & (time_ns != NULL)] -= (
                fix.ahead_ns
            )
        return time_ns

    def both(table: _Timed) -> _Timed:
        gid = table.process_gid if isinstance(table, Syncs) else table.thread_gid
        return replace(table, start_ns=moved(table.start_ns, gid), end_ns=moved(table.end_ns, gid))

    memory, nccl, frames = columns.memory, columns.nccl_calls, columns.frames
    return replace(
        columns,
        calls=both(columns.calls),
        ranges=both(columns.ranges),
        syncs=both(columns.syncs),
        os_calls=both(columns.os_calls),
        overheads=both(columns.overheads),
        nccl_calls=nccl and both(nccl),
        frames=frames and both(frames),
        memory=memory and replace(memory, time_ns=moved(memory.time_ns, memory.process_gid)),
    )


def _returns_after(columns: Columns, rows: GpuRows, call: IntArray, mine: IntArray) -> IntArray:
    """How long after the end of the work that it waited for each call of one process returned.

    Of calls of which that work is known: for all of the only GPU, for a stream that is recorded, or
    for a copy to the host which their thread launched last. A copy that blocks is such a call
    itself.
    """
    calls = columns.calls
    of_all = passing(_OF_ALL.search, columns.call_names)
    of_stream = passing(_OF_STREAM.search, columns.call_names)
    mine = mine[order_of(calls.start_ns[call[mine]])]
    launch_ns, gid = calls.start_ns[call[mine]], int(rows.process_gid[mine[0]])
    of_process = ((calls.thread_gid & PROCESS_BITS) == gid) & (calls.end_ns != NULL)
    one_gpu = len(distinct(rows.device_id[mine])) == 1
    is_copy = _copies_to_host(columns, len(call))[mine]
    delays_ns = [_blocking(columns, rows, call, mine[is_copy])]
    if one_gpu:
        whole, last = of_all[calls.name] & of_process, np.maximum.accumulate(rows.end_ns[mine])
        delays_ns.append(_since_last(calls.end_ns[whole], calls.start_ns[whole], launch_ns, last))
        syncs = columns.syncs
        named = np.flatnonzero((syncs.process_gid == gid) & (syncs.stream_id != NULL))
        row = launching_rows(calls, syncs.process_gid[named], syncs.correlation_id[named])
        waits = (row >= 0) & of_stream[calls.name[row]]
        row, stream = row[waits], syncs.stream_id[named[waits]]
        for stream_id, places in places_of_each(rows.stream_id[mine]):
            waited = row[stream == stream_id]
            last = np.maximum.accumulate(rows.end_ns[mine[places]])
            delays_ns.append(
                _since_last(calls.end_ns[waited], calls.start_ns[waited], launch_ns[places], last)
            )
    waiting = np.flatnonzero(of_stream[calls.name] & of_process)
    for thread_gid, places in places_of_each(calls.thread_gid[call[mine]]):
        waited = waiting[calls.thread_gid[waiting] == thread_gid]
        last = np.searchsorted(launch_ns[places], calls.start_ns[waited]) - 1
        copied = (last >= 0) & is_copy[places[last]]
        delays_ns.append(calls.end_ns[waited[copied]] - rows.end_ns[mine[places[last[copied]]]])
    return np.concatenate(delays_ns)


def _blocking(columns: Columns, rows: GpuRows, call: IntArray, copies: IntArray) -> IntArray:
    """How long after their copies to the host had ended the calls that block returned."""
    blocks = passing(lambda name: "emcpy" in name and "Async" not in name, columns.call_names)
    own = copies[blocks[columns.calls.name[call[copies]]]]
    return columns.calls.end_ns[call[own]] - rows.end_ns[own]


def _since_last(
    end_ns: IntArray, start_ns: IntArray, launch_ns: IntArray, last_end_ns: IntArray
) -> IntArray:
    """From the last end of work launched before each call to its return; nothing where there was
    none.
    """
    place = np.searchsorted(launch_ns, start_ns) - 1
    return end_ns[place >= 0] - last_end_ns[place[place >= 0]]


def _copies_to_host(columns: Columns, count: int) -> BoolArray:
    result = none_of(count)
    first = len(columns.kernels)
    result[first : first + len(columns.copies)] = columns.copies.kind == _TO_HOST
    return result
