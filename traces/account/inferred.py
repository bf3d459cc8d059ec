"""Producers across streams where no event was recorded: inferred from repetition, tight starts and
SM room.

A stream that waits for events needs a producer for each. Repetition shows which; one occurrence
gives work away that starts as other work, on another stream, ends, or as it leaves room on the SMs;
a collective follows what its thread launched last on its current stream.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from traces.account.calls import NONE
from traces.arrays import (
    NOWHERE,
    PLACE,
    BoolArray,
    IntArray,
    distinct,
    none_of,
    nowhere,
    order_of,
    row_by_row,
    summed,
    zeros,
)
from traces.columns import NULL, PROCESS_BITS, Columns
from traces.frozen import frozen
from traces.groups import begins, count_before, group_of, in_order, passing
from traces.launchers import helper_work
from traces.launches import launching_rows
from traces.limits import ENOUGH, LATENCY, Limit
from traces.loops import loop
from traces.names.gpus import largest_sm_count
from traces.patterns import compiled
from traces.timeline import Activities, RankTimeline

_WAIT: Final = compiled("StreamWaitEvent")
_HIP: Final = compiled("hip")


Edges = tuple[IntArray, IntArray]
"""Consumers and their producers, shape (k,) each."""


def stream_waits(rank: RankTimeline) -> IntArray | None:
    """At most how many events each activity waited for, shape (n,); None where no such call was
    recorded.
    """
    rows, columns = rank.activities, rank.columns
    calls = wait_calls(rank)
    if not len(calls):
        return None
    calls = in_order(calls, columns.calls.start_ns)
    wait_ns, thread = columns.calls.start_ns[calls], columns.calls.thread_gid[calls]
    stream_ns = _launched_before(rows.stream_id, rows.launch_ns)
    since_ns = np.maximum(_launched_before(rows.launch_thread, rows.launch_ns), stream_ns)
    of_own = np.zeros(len(since_ns), dtype=PLACE)
    for gid in distinct(thread).tolist():
        mine = rows.launch_thread == gid
        of_own[mine] = _between(wait_ns[thread == gid], since_ns[mine], rows.launch_ns[mine])
    claims_ns = distinct(rows.launch_ns[of_own > 0])
    left = _between(wait_ns, stream_ns, rows.launch_ns) - _between(
        claims_ns, stream_ns + 1, rows.launch_ns
    )
    return np.where(of_own > 0, of_own, np.maximum(left, 0))


def synchronised_streams(rank: RankTimeline) -> dict[int, int]:
    """Row of `Calls` -> stream, of synchronising calls whose recorded row names the stream they
    wait for.
    """
    columns = rank.columns
    syncs = columns.syncs
    mine = np.flatnonzero((syncs.process_gid == rank.process_gid) & (syncs.stream_id != NULL))
    joined = launching_rows(columns.calls, syncs.process_gid[mine], syncs.correlation_id[mine])
    return dict(row_by_row(joined, syncs.stream_id[mine]))


def wait_calls(rank: RankTimeline) -> IntArray:
    """Rows of `Calls` by which the process of a rank lets streams wait, runtime and driver
    calls.
    """
    calls = rank.calls
    mine = is_wait_call(rank.columns)[calls.name]
    if rank.process_gid != NULL:
        mine &= calls.thread_gid & PROCESS_BITS == rank.process_gid
    return np.flatnonzero(mine)


def is_wait_call(columns: Columns) -> BoolArray:
    """Of each call name whether it lets a stream wait; one more at the end for a call without name
    (-1).
    """
    return passing(_WAIT.search, columns.call_names)


def _between(times_ns: IntArray, since_ns: IntArray, until_ns: IntArray) -> IntArray:
    count: IntArray = np.searchsorted(times_ns, until_ns)
    count -= np.searchsorted(times_ns, since_ns)
    return count.astype(PLACE)


def _launched_before(of: IntArray, launch_ns: IntArray) -> IntArray:
    """The latest earlier launch with the same `of`, shape (n,), NULL where none; one call is one
    launch.
    """
    order = np.lexsort((launch_ns, of))
    of_run, launch_run = of[order], launch_ns[order]
    new = begins(of_run, launch_run)
    first = np.flatnonzero(new)
    before = np.full(len(first), NULL)
    same = of_run[first[1:]] == of_run[first[:-1]]
    before[1:][same] = launch_run[first[:-1]][same]
    result = zeros(len(order))
    result[order] = before[np.cumsum(new) - 1]
    return result


UNEXPLAINED: Final = Limit(
    2_000, "ns", "measurement.md: longer than a gap between dependent kernels usually is"
)
HIP_TIGHT: Final = Limit(
    30_000,
    "ns",
    "measured on an MI300X: 10 to 26 us from the end of a collective to what a stream's wait held",
)


def tight_ns(columns: Columns) -> int:
    """Within what time dependent work of another stream begins: on AMD's GPUs a signal takes
    longer.
    """
    hip = any(map(_HIP.match, columns.call_names))
    return int((HIP_TIGHT if hip else LATENCY).value)


def tight_producers(
    rows: Activities, ended_ns: IntArray, awaited: IntArray | None, tight: int
) -> Edges:
    """Edges; `ended_ns`, shape (n,): when all known producers of each had ended.

    `awaited`, shape (n,): for how many events each waited, None where no such call was recorded.
    `tight`: see `tight_ns`.
    """
    waits = ~none_of(len(rows)) if awaited is None else awaited > 0
    return last_to_end(
        rows, ended_ns, waits, rows.launch_ns, np.ones(len(rows), dtype=PLACE), 1, tight
    )


def last_to_end(
    rows: Activities,
    ended_ns: IntArray,
    which: BoolArray,
    turn_ns: IntArray,
    taken: IntArray,
    room: int,
    tight: int,
) -> Edges:
    """Edges: the work of another stream that fits and ended last as each one began.

    Of the consumers, a mask of shape (n,), only those count whose launch was recorded and that
    waited, unexplained, for over 2 us; `ended_ns`, shape (n,): when all known producers of each had
    ended. A producer fits whose turn, `turn_ns` of shape (n,), comes first, and that leaves too
    little room: both take `taken`, shape (n,), of it, which is below 0 where it cannot be one.
    """
    # a copy may be waited for within its own call, which then returns after it
    within = rows.is_transfer & (rows.launch_end_ns >= rows.start_ns)
    since_ns = np.minimum(rows.launch_end_ns, rows.start_ns)
    since_ns[within] = rows.launch_ns[within]
    np.maximum(since_ns, ended_ns, out=since_ns)
    which = which & rows.is_launched & (rows.start_ns - since_ns > UNEXPLAINED.value)
    consumer = np.flatnonzero(which).astype(PLACE)
    starts = rows.start_ns[consumer]
    moments = np.maximum(since_ns[consumer], starts - tight - 1), starts
    by_end = order_of(rows.end_ns).astype(PLACE)
    low, high = np.searchsorted(rows.end_ns[by_end], moments, "right")
    producer = nowhere(len(consumer))
    find_last.over(max(len(by_end), summed(high - low)))(
        producer, consumer, low, high, by_end, rows.stream_id, turn_ns, taken, room
    )
    has_producer = producer != NONE
    return consumer[has_producer], producer[has_producer]


@loop("producer")
def find_last(
    producer: IntArray,
    consumer: IntArray,
    low: IntArray,
    high: IntArray,
    by_end: IntArray,
    stream: IntArray,
    turn_ns: IntArray,
    taken: IntArray,
    room: int,
) -> None:
    """Of `by_end[low:high]` of each consumer the last that fits, as `last_to_end` says, else -1."""
    for index in range(len(consumer)):
        place = consumer[index]
        for at in range(high[index] - 1, low[index] - 1, -1):
            candidate = by_end[at]
            fits = taken[candidate] >= 0 and taken[candidate] + taken[place] > room
            if fits and stream[candidate] != stream[place] and turn_ns[candidate] < turn_ns[place]:
                producer[index] = candidate
                break


def sm_room_producers(rank: RankTimeline, ended_ns: IntArray) -> Edges:
    """Edges; `ended_ns`, shape (n,): when all known producers of each had ended.

    Where a trace does not record how many SMs there are, only what fills the largest GPU leaves no
    room.
    """
    rows, gpu = rank.activities, rank.gpu
    sm_count = gpu.sm_count if gpu and gpu.sm_count else largest_sm_count()
    compute = rows.is_compute & ~helper_work(rows)
    taken = np.where(compute, np.clip(rank.blocks, 0, sm_count), NONE).astype(PLACE)
    return last_to_end(
        rows, ended_ns, compute, rows.start_ns, taken, sm_count, tight_ns(rank.columns)
    )


def current_stream_producers(rows: Activities, awaited: IntArray, has_other: BoolArray) -> Edges:
    """Edges. `awaited`, shape (n,): events waited for; `has_other`: which know one."""
    comm = np.flatnonzero(rows.is_comm & rows.is_launched & (awaited > 0))
    compute = np.flatnonzero(rows.is_compute & rows.is_launched)
    own = _latest_before(rows, compute, rows.launch_thread[compute], comm, rows.launch_thread[comm])
    comm, own = comm[own != NONE], own[own != NONE]
    latest = _latest_before(rows, compute, rows.stream_id[compute], comm, rows.stream_id[own])
    kind = group_of(rows.name[comm], rows.stream_id[comm])
    early = rows.end_ns[latest] > rows.start_ns[comm]
    never = np.bincount(kind, weights=early)[kind] == 0
    kept = never & ~has_other[comm] & (rows.stream_id[latest] != rows.stream_id[comm])
    return comm[kept], latest[kept]


def _latest_before(
    rows: Activities, candidates: IntArray, have: IntArray, consumers: IntArray, want: IntArray
) -> IntArray:
    """Of each consumer the latest candidate that was launched before it and has what it wants; -1:
    none.
    """
    launch_ns = rows.launch_ns[candidates]
    order = np.lexsort((launch_ns, have))
    last = count_before(have, launch_ns, want, rows.launch_ns[consumers]) - 1
    matches = np.append(have[order], NULL)[last] == want
    return np.where(matches, np.append(candidates[order], NONE)[last], NONE)


DEPTH: Final = 3
"""Candidates tried per stream, the latest first: the work of interest need not be the last
launched."""
STREAMS: Final = 32
"""Streams considered, busiest first: each costs a pass, and real training steps use about ten."""


def infer_producers(rows: Activities, before: IntArray) -> Edges:
    """Edges; `before` is the previous activity on each stream."""
    launched = np.flatnonzero(rows.is_launched)
    by_launch = in_order(launched, rows.launch_ns).astype(PLACE)
    if len(by_launch) < ENOUGH.value:
        return NOWHERE, NOWHERE
    order = _LaunchOrder.of(rows, by_launch, before)
    pairs = map(partial(_from_stream, order), _busiest(order.stream))
    consumers, producers = zip(*pairs, strict=True)
    return by_launch[np.concatenate(consumers)], by_launch[np.concatenate(producers)]


@frozen
class _LaunchOrder:
    """Activities in order of launch, shape (m,). Places here are numbers of launches."""

    start_ns: IntArray
    end_ns: IntArray
    stream: IntArray
    what: IntArray
    context: IntArray
    """What it is, what ran before it on its stream, and how many launches ago."""
    feeds_host: BoolArray
    is_copy: BoolArray

    @classmethod
    def of(cls, rows: Activities, by_launch: IntArray, before: IntArray) -> _LaunchOrder:
        number = np.zeros(len(rows), dtype=PLACE)
        number[by_launch] = np.arange(len(by_launch))
        kind, previous = signature(rows), before[by_launch]
        ago = np.arange(len(by_launch), dtype=PLACE) - number[previous]
        mine = kind[by_launch]
        ago = np.where(previous != NONE, ago, len(by_launch))
        context = group_of(mine, kind[previous], ago)
        is_copy = rows.is_copy[by_launch]
        feeds_host = rows.copies("memcpy_d2h")[by_launch]  # the host, never a kernel
        times = rows.start_ns[by_launch], rows.end_ns[by_launch]
        return cls(*times, rows.stream_id[by_launch], mine, context, feeds_host, is_copy)


def _from_stream(order: _LaunchOrder, stream: int) -> Edges:
    """For each activity of other streams the nearest candidate on this stream that is never
    violated.
    """
    mine = order.stream == stream
    is_candidate = mine & ~order.feeds_host
    candidates = np.flatnonzero(is_candidate).astype(PLACE)
    consumer = np.flatnonzero(~mine & ~order.is_copy).astype(PLACE)
    latest = np.cumsum(is_candidate, dtype=PLACE)[consumer] - 1
    chosen = nowhere(len(consumer))
    for depth in range(DEPTH):
        place = latest - depth
        open_ = np.flatnonzero((chosen == NONE) & (place >= 0))
        candidate = candidates[place[open_]]
        holds = _never_violated(order, consumer[open_], candidate)
        chosen[open_[holds]] = candidate[holds]
    has_candidate = chosen != NONE
    return consumer[has_candidate], chosen[has_candidate]


def _never_violated(order: _LaunchOrder, x: IntArray, candidate: IntArray) -> BoolArray:
    """Which pairs belong to a large enough group in which no candidate ended after its X began."""
    group = group_of(order.context[x], order.what[candidate], x - candidate)
    size = np.bincount(group)
    violated = np.bincount(group[order.end_ns[candidate] > order.start_ns[x]], minlength=len(size))
    holds: BoolArray = (size >= ENOUGH.value) & (violated == 0)
    return holds[group]


def signature(rows: Activities) -> IntArray:
    """A number for what each activity is, shape (n,): its kernel name, or its kind where it has
    none.
    """
    return np.where(rows.name >= 0, rows.name, ~group_of(rows.bucket, rows.key))


def _busiest(stream_id: IntArray) -> list[int]:
    streams, count = np.unique(stream_id, return_counts=True)
    return streams[order_of(-count)][:STREAMS].tolist()
