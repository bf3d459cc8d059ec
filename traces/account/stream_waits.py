"""How many events the stream of each piece of GPU work waits for: inferred producers need them.

Which stream a wait is for stands in the recorded event rows only. Without them a wait belongs, most likely,
to the next launch of its thread; where none precedes a launch at once, the waits since the launch before it
on its stream may be its own, but for one of each launch that was preceded by some.
"""

import numpy as np

from traces.columns import NULL, PLACE, PROCESS_BITS, BoolArray, Columns, IntArray, distinct
from traces.launches import join_launches
from traces.timeline import RankTimeline


def stream_waits(rank: RankTimeline) -> IntArray | None:
    """At most how many events each activity waited for, shape (n,); None where no such call was recorded."""
    rows, columns = rank.activities, rank.columns
    calls = _wait_calls(rank)
    if not len(calls):
        return None
    calls = calls[np.argsort(columns.calls.start_ns[calls], kind="stable")]
    wait_ns, thread = columns.calls.start_ns[calls], columns.calls.thread_gid[calls]
    stream_ns = _launched_before(rows.stream_id, rows.launch_ns)
    since_ns = np.maximum(_launched_before(rows.launch_thread, rows.launch_ns), stream_ns)
    of_own = np.zeros(len(rows), dtype=PLACE)
    for one in distinct(thread).tolist():
        mine = rows.launch_thread == one
        of_own[mine] = _between(wait_ns[thread == one], since_ns[mine], rows.launch_ns[mine])
    claims_ns = distinct(rows.launch_ns[of_own > 0])
    left = _between(wait_ns, stream_ns, rows.launch_ns) - _between(claims_ns, stream_ns + 1, rows.launch_ns)
    return np.where(of_own > 0, of_own, np.maximum(left, 0))


def wait_calls_ns(rank: RankTimeline) -> IntArray:
    """When the process of a rank called waits of streams, in order."""
    return np.sort(rank.columns.calls.start_ns[_wait_calls(rank)])


def synchronised_streams(rank: RankTimeline) -> dict[int, int]:
    """Row of `Calls` -> stream, of synchronising calls whose recorded row names the stream they wait for."""
    columns = rank.columns
    syncs = columns.syncs
    mine = np.flatnonzero((syncs.process_gid == rank.process_gid) & (syncs.stream_id != NULL))
    joined = join_launches(columns.calls, syncs.process_gid[mine], syncs.correlation_id[mine]).call
    return dict(zip(joined.tolist(), syncs.stream_id[mine].tolist(), strict=True))


def wait_call_count(rank: RankTimeline) -> int:
    """How many waits of streams the process of a rank called; a driver call within a runtime call is one."""
    return int(np.bincount(rank.columns.calls.name[_wait_calls(rank)]).max(initial=0))


def _wait_calls(rank: RankTimeline) -> IntArray:
    """Rows of the process's calls that let a stream wait."""
    calls = rank.columns.calls
    mine = is_wait_call(rank.columns)[calls.name]
    if rank.process_gid != NULL:
        mine &= calls.thread_gid & PROCESS_BITS == rank.process_gid
    return np.flatnonzero(mine)


def is_wait_call(columns: Columns) -> BoolArray:
    """Of each call name whether it lets a stream wait; one more at the end for a call without name (-1)."""
    return np.array([*("StreamWaitEvent" in name for name in columns.call_names), False], dtype=np.bool_)


def _between(times_ns: IntArray, since_ns: IntArray, until_ns: IntArray) -> IntArray:
    """How many of some sorted times lie between, shape (n,)."""
    count: IntArray = np.searchsorted(times_ns, until_ns)
    count -= np.searchsorted(times_ns, since_ns)
    return count.astype(PLACE)


def _launched_before(of: IntArray, launch_ns: IntArray) -> IntArray:
    """The latest earlier launch with the same `of`, shape (n,), NULL where none; one call is one launch."""
    order = np.lexsort((launch_ns, of))
    of_run, launch_run = of[order], launch_ns[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (of_run[1:] != of_run[:-1]) | (launch_run[1:] != launch_run[:-1])
    first = np.flatnonzero(begins)
    before = np.full(len(first), NULL, dtype=np.int64)
    same = of_run[first[1:]] == of_run[first[:-1]]
    before[1:][same] = launch_run[first[:-1]][same]
    result = np.empty(len(order), dtype=np.int64)
    result[order] = before[np.cumsum(begins) - 1]
    return result
