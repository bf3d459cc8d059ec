"""What a piece of GPU work had to wait for on the GPU: its producers, recorded or inferred.

Recorded: the work before it on its stream, and the work before the event its stream waits for.
Inferred: see `inferred`, `tight`, `sm_room` and `current_stream`. A producer is a place in the
activities.
"""

from bisect import bisect_right
from typing import Final

import numpy as np

from traces.account.calls import NONE
from traces.account.inferred import (
    Edges,
    current_stream_producers,
    infer_producers,
    is_wait_call,
    signature,
    sm_room_producers,
    stream_waits,
    tight_ns,
    tight_producers,
    wait_calls,
)
from traces.arrays import (
    NOWHERE,
    PLACE,
    BoolArray,
    IntArray,
    columns_of,
    distinct,
    nowhere,
    order_of,
    row_by_row,
)
from traces.columns import NULL, Columns
from traces.frozen import frozen
from traces.groups import before_of, count_before, group_of, in_order, mask_of, place_in_run
from traces.launches import launching_rows, of_call
from traces.limits import NEARLY_ALL
from traces.timeline import Activities, RankTimeline

MOST: Final = 8
"""Producers kept per activity, latest end first; one that ran may be lost behind eight that end
later."""


@frozen
class Producers:
    """Producers of each activity, shape (n, k), latest end first, -1 where there are fewer; k <=
    `MOST`.

    `room`, shape (n,): the one among them that held the SMs though it was launched later, -1 where
    none did.
    """

    place: IntArray
    inferred: BoolArray
    room: IntArray


def find_producers(rank: RankTimeline) -> Producers:
    """Recorded and inferred producers of every activity of a rank."""
    rows, awaited, tight = rank.activities, stream_waits(rank), tight_ns(rank.columns)
    before = before_of(rows.stream_id)  # stream order is order of start
    follows = np.flatnonzero(before != NONE).astype(PLACE)
    consumer, producer, every_wait = event_edges(rank)
    recorded = _joined((follows, before[follows]), (consumer, producer))
    edges = _joined(
        recorded, _believable(rows, awaited, infer_producers(rows, before), every_wait, tight)
    )
    edges = _joined(edges, tight_producers(rows, _ended_ns(rows, edges), awaited, tight))
    waited, holder = sm_room_producers(rank, _ended_ns(rows, edges))
    edges = _joined(edges, (waited, holder))
    if awaited is not None and not every_wait:
        has_other = mask_of(
            edges[0][rows.stream_id[edges[0]] != rows.stream_id[edges[1]]], len(rows)
        )
        edges = _joined(edges, current_stream_producers(rows, awaited, has_other))
    room = nowhere(len(rows))
    room[waited] = np.where(rows.launch_ns[holder] < rows.launch_ns[waited], NONE, holder)
    consumers, producers = edges
    inferred = np.arange(len(consumers)) >= len(follows) + len(consumer)  # the recorded come first
    return Producers(*_latest(rows, consumers, producers, inferred), room)


def _ended_ns(rows: Activities, edges: Edges) -> IntArray:
    ended_ns = np.full(len(rows), NULL)
    np.maximum.at(ended_ns, edges[0], rows.end_ns[edges[1]])
    return ended_ns


def _joined(edges: Edges, more: Edges) -> Edges:
    return np.concatenate((edges[0], more[0])), np.concatenate((edges[1], more[1]))


def _believable(
    rows: Activities, awaited: IntArray | None, pairs: Edges, every_wait: bool, tight: int
) -> Edges:
    """Inferred pairs that can be true: the consumer's stream waits for as many events.

    Of more pairs than waits those stay that bound most often: the consumer began as the producer
    ended. Where `every_wait` was recorded nothing is left to infer, but within a graph, whose work
    waits untold.
    """
    consumer, producer = pairs
    if awaited is None:
        return pairs
    pair = _alike(rows, consumer, producer)
    since_ns = rows.start_ns[consumer] - rows.end_ns[producer]
    bound = np.bincount(pair[since_ns <= tight], minlength=len(pair))
    kept = rows.launch_ns[consumer] == rows.launch_ns[producer]
    if not every_wait:
        order = np.lexsort((-rows.launch_ns[producer], -bound[pair], consumer))
        kept[order] |= place_in_run(consumer[order]) < awaited[consumer[order]]
    return consumer[kept], producer[kept]


def _alike(rows: Activities, consumer: IntArray, producer: IntArray) -> IntArray:
    """A number for each pair, the same where what they are and the producer's stream are."""
    kind = signature(rows)
    return group_of(kind[consumer], group_of(kind, rows.stream_id)[producer])


def event_edges(rank: RankTimeline) -> tuple[IntArray, IntArray, bool]:
    """(consumer, producer) of every recorded wait of a stream for an event, and whether these are
    all.

    The consumer is the first work launched on the waiting stream after the wait was called, the
    producer the last work launched on the recording stream before the record was called. The record
    is found by `eventSyncId`, or, in schemas without it, as the last record of that process,
    context and event whose call precedes the wait's.
    """
    columns, rows = rank.columns, rank.activities
    waits, wait_ns = _stream_waits(columns, rank.process_gid)
    records, record_ns = _records(columns, rank.process_gid)
    if not len(waits):
        return NOWHERE, NOWHERE, False
    record = _record_of(columns, waits, wait_ns, records, record_ns)
    is_known = record != NONE
    waits, wait_ns, record = waits[is_known], wait_ns[is_known], record[is_known]
    stream = _LaunchOrder(rows)
    wait_stream = columns.syncs.stream_id[waits]
    consumer = stream.beside(wait_stream, wait_ns, 0)
    record_stream = columns.events.stream_id[records[record]]
    producer = stream.beside(record_stream, record_ns[record], -1)
    launched_ns = np.where(producer != NONE, rows.launch_ns[producer], NULL)
    own, behind = pending(wait_stream, wait_ns, record_stream, record_ns[record], launched_ns)
    consumer = np.concatenate((consumer, consumer[own]))
    producer = np.concatenate((producer, producer[behind]))
    recorded_ns = np.concatenate((record_ns[record], record_ns[record][behind]))
    late = np.flatnonzero(producer >= consumer)
    # the launch of what nobody waited for was not recorded
    producer[late] = stream.before(
        rows.stream_id[producer[late]], consumer[late], recorded_ns[late]
    )
    both = (consumer != NONE) & (producer != NONE)
    # in runtime and driver once
    called = np.bincount(columns.calls.name[wait_calls(rank)]).max()
    return consumer[both], producer[both], bool(is_known.sum() >= NEARLY_ALL.value * called)


def pending(
    wait_stream: IntArray,
    wait_ns: IntArray,
    record_stream: IntArray,
    record_ns: IntArray,
    launched_ns: IntArray,
) -> tuple[IntArray, IntArray]:
    """(wait, earlier wait): an event recorded behind waits with no work between happens after those
    as well.

    All of shape (n,), one row a wait: its stream and call, its record's stream and call, and when
    the last work before the record was launched. Through as many streams as it takes; of the
    earlier waits for one stream only the one for its latest work, as a stream's work ends in order.
    """
    behind: list[_Latest] = [{} for _ in range(len(wait_ns))]
    streams = {stream: _Waits() for stream in np.unique(wait_stream).tolist()}
    for row in order_of(wait_ns).tolist():
        recorded = int(record_stream[row])
        if recorded in streams:
            behind[row] = streams[recorded].since(int(launched_ns[row]), int(record_ns[row]))
        own = {recorded: (int(record_ns[row]), row)}
        streams[int(wait_stream[row])].add(int(wait_ns[row]), _merged(behind[row], own))
    pairs = [(row, earlier) for row, latest in enumerate(behind) for _, earlier in latest.values()]
    own_rows, earlier_rows = columns_of(pairs, 2)
    return own_rows, earlier_rows


_Latest = dict[int, tuple[int, int]]
"""By the stream that was recorded: when it was last, and the wait for that."""


def _merged(left: _Latest, right: _Latest) -> _Latest:
    return left | {stream: max(wait, left.get(stream, wait)) for stream, wait in right.items()}


class _Waits:
    """Waits of one stream in order of their calls; with each, all of its stretch so far.

    A stretch holds waits between which the stream was given no work.
    """

    def __init__(self) -> None:
        self._calls_ns: list[int] = []
        self._own: list[_Latest] = []
        self._so_far: dict[int, _Latest] = {}

    def add(self, call_ns: int, own: _Latest) -> None:
        self._calls_ns.append(call_ns)
        self._own.append(own)

    def since(self, work_ns: int, until_ns: int) -> _Latest:
        """What the waits ask for that were called after the stream's last work, and not after a
        time.
        """
        first = bisect_right(self._calls_ns, work_ns)
        last = bisect_right(self._calls_ns, until_ns) - 1
        known = last
        while known >= first and known not in self._so_far:
            known -= 1
        for place in range(known + 1, last + 1):
            before = self._so_far[place - 1] if place > first else {}
            self._so_far[place] = _merged(before, self._own[place])
        if first <= last:
            return self._so_far[last]
        return {}


def _with_those_before(rows: Activities) -> IntArray:
    """Launches, shape (n,): of work without a recorded one, that of the work before it on its
    stream.
    """
    launch_ns = rows.launch_ns.copy()
    for stream in distinct(rows.stream_id[launch_ns == NULL]).tolist():
        on = np.flatnonzero(rows.stream_id == stream)  # stream order is order of start
        so_far = np.maximum.accumulate(launch_ns[on])
        launch_ns[on] = np.where(launch_ns[on] == NULL, so_far, launch_ns[on])
    return launch_ns


class _LaunchOrder:
    """Activities by stream and launch; those without a recorded launch come after what began before
    them.

    Where nothing did, they come first on their stream.
    """

    def __init__(self, rows: Activities) -> None:
        launch_ns = self._launch_of = _with_those_before(rows)
        self._stream_of = rows.stream_id
        self._order = np.lexsort((launch_ns, rows.stream_id))
        self._stream = rows.stream_id[self._order]
        self._launch = launch_ns[self._order]

    def before(self, stream: IntArray, consumer: IntArray, host_ns: IntArray) -> IntArray:
        """The last work of a stream that began before some work, if launched before a time; -1:
        none.
        """
        last_work = np.full(len(stream), NONE)
        for number in distinct(stream).tolist():
            on, mine = np.flatnonzero(self._stream_of == number), np.flatnonzero(stream == number)
            last = np.searchsorted(on, consumer[mine]) - 1
            begun = on[last]
            last_work[mine] = np.where(
                (last >= 0) & (self._launch_of[begun] < host_ns[mine]), begun, NONE
            )
        return last_work

    def beside(self, stream: IntArray, host_ns: IntArray, step: int) -> IntArray:
        """The first work launched on a stream after a time (step 0), or the last before it (-1);
        -1: none.
        """
        place = count_before(self._stream, self._launch, stream, host_ns + 1) + step
        beside = np.append(self._stream, NULL)[place]  # beyond both ends there is none
        return np.where(beside == stream, np.append(self._order, NONE)[place], NONE)


def _stream_waits(columns: Columns, process_gid: int) -> tuple[IntArray, IntArray]:
    """Rows of `syncs` in which a stream waits for an event, and when the wait was called."""
    syncs = columns.syncs
    calls = columns.calls
    call = launching_rows(calls, syncs.process_gid, syncs.correlation_id)
    name = np.append(calls.name, NONE)[call]
    mine = (
        is_wait_call(columns)[name] & (syncs.process_gid == process_gid) & (syncs.stream_id != NULL)
    )
    return np.flatnonzero(mine), of_call(calls.start_ns, call[mine])


def _records(columns: Columns, process_gid: int) -> tuple[IntArray, IntArray]:
    events = columns.events
    call = launching_rows(columns.calls, events.process_gid, events.correlation_id)
    start_ns = of_call(columns.calls.start_ns, call)
    mine = np.flatnonzero((events.process_gid == process_gid) & (start_ns != NULL))
    mine = in_order(mine, start_ns)
    return mine, start_ns[mine]


def _record_of(
    columns: Columns, waits: IntArray, wait_ns: IntArray, records: IntArray, record_ns: IntArray
) -> IntArray:
    """For each wait the place in `records` of its record, -1 where none is found."""
    events, syncs = columns.events.take(records), columns.syncs.take(waits)
    by_sync: dict[int, int] = {}
    by_handle: dict[tuple[int, int], list[int]] = {}
    handles = row_by_row(events.context_id, events.event_id, events.event_sync_id)
    for place, (context, event, sync) in enumerate(handles):
        by_handle.setdefault((context, event), []).append(place)
        if sync not in (NULL, 0):
            by_sync[sync] = place
    result = np.full(len(waits), NONE)
    handles = row_by_row(syncs.context_id, syncs.event_id, syncs.event_sync_id)
    for index, (context, event, sync) in enumerate(handles):
        if sync in by_sync:
            result[index] = by_sync[sync]
            continue
        earlier = by_handle.get((context, event), [])
        last = np.searchsorted(record_ns[earlier], wait_ns[index]) - 1
        if last >= 0:
            result[index] = earlier[last]
    return result


def _latest(
    rows: Activities, consumer: IntArray, producer: IntArray, inferred: BoolArray
) -> tuple[IntArray, BoolArray]:
    """The `MOST` latest-ending producers of each consumer; a recorded edge before an inferred equal
    one.
    """
    order = np.lexsort((inferred, -rows.end_ns[producer], consumer))
    consumer, producer, inferred = consumer[order], producer[order], inferred[order]
    slot = place_in_run(consumer)
    kept = slot < MOST
    width = int(slot.max(initial=0, where=kept)) + 1
    place = np.full((len(rows), width), NONE, dtype=PLACE)
    guess = np.zeros((len(rows), width), dtype=np.bool_)
    place[consumer[kept], slot[kept]] = producer[kept]
    guess[consumer[kept], slot[kept]] = inferred[kept]
    return place, guess
