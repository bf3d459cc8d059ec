"""Are host and GPU times of one clock? Real recordings were seen apart by -156, +325 and +823
ms.
"""

from typing import Final

import numpy as np

from traces.account.calls import CallKind, call_kinds
from traces.account.pieces import NO_KERNEL, compute_gaps
from traces.arrays import distinct, order_of, summed
from traces.host_clock import LAUNCHES, SOON
from traces.intervals import spans
from traces.limits import Limit
from traces.timeline import Activities, RankTimeline

SKEW: Final = Limit(
    50_000,
    "ns",
    "measured: calls of one real recording return 5 us before the work they waited for ends",
)
EARLY: Final = Limit(
    0.01, "fraction of the launches", "ours: a few rows may bear the number of another call"
)
MATTERS: Final = Limit(
    0.01,
    "fraction of the recording",
    "ours, a tenth of a wall: a host so far ahead that its clock is no matter",
)


def clock_offset_ns(rank: RankTimeline) -> int | None:
    """0 where host and GPU clocks agree, else about how far the GPU's is ahead; None without a
    launch.

    They are apart where over a hundredth of the launches have work that starts before, by a skew.
    Else they agree where some work starts within 50 us of its launch call's start, or of its return
    (a first launch that loads its module takes milliseconds and its kernel still follows at once),
    or some synchronising call returns within 50 us of the end of what it waited for. Copies count
    too. Else the GPU was busy at every launch: fewer than 32 of them say nothing, nor do more where
    the host stays ahead of the GPU whatever the offset is.
    """
    rows = rank.activities.take(rank.activities.is_launched)
    # of one launch what begins first
    rows = rows.take(np.sort(np.unique(rows.call, return_index=True)[1]))
    if rows.is_transfer.all():
        return None
    delay_ns = rows.start_ns - rows.launch_ns
    if (delay_ns < -SKEW.value).mean() > EARLY.value:
        return int(delay_ns.min())
    either_ns = np.append(delay_ns, rows.start_ns - rows.launch_end_ns)
    if ((either_ns >= -SKEW.value) & (either_ns <= SOON.value)).any():
        return 0
    if _some_call_returns_with_its_work(rank, rows):
        return 0
    least_ns = int(delay_ns.min())
    if least_ns >= 0 and (len(rows) < LAUNCHES.value or _host_stays_ahead(rows, least_ns)):
        return 0
    return least_ns


def _some_call_returns_with_its_work(rank: RankTimeline, rows: Activities) -> bool:
    """Whether a synchronising call returns just after the last work launched before it on a stream
    ended.
    """
    calls, kinds = rank.calls, call_kinds(rank.columns.call_names)
    threads = distinct(rows.launch_thread)
    syncs = (kinds[calls.name] == CallKind.SYNC) & np.isin(calls.thread_gid, threads)
    for stream in distinct(rows.stream_id).tolist():
        mine = rows.take(rows.stream_id == stream)
        mine = mine.take(order_of(mine.launch_ns))
        last = np.searchsorted(mine.launch_ns, calls.start_ns[syncs]) - 1
        since_ns = calls.end_ns[syncs] - mine.end_ns[last]
        waited = (last >= 0) & (mine.end_ns[last] >= calls.start_ns[syncs])
        if (waited & (since_ns >= 0) & (since_ns <= SOON.value)).any():
            return True
    return False


def _host_stays_ahead(rows: Activities, offset_ns: int) -> bool:
    """Whether hardly any compute would come late if all launches were later by the most they can
    be.
    """
    begin_ns, end_ns = int(rows.start_ns.min()), int(rows.end_ns.max())
    gaps = compute_gaps(rows, spans((begin_ns, end_ns)))
    ended = gaps.kernel != NO_KERNEL
    launch_ns = rows.launch_ns[gaps.kernel[ended]] + offset_ns
    late_ns = np.maximum(launch_ns - gaps.start_ns[ended], 0)
    return summed(late_ns) <= MATTERS.value * (end_ns - begin_ns)
