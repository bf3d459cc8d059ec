"""What each CUDA call of the host waits for, so that a replay waits for it again wherever it then
ends.

A call's row does not say which work it waits for. A recorded synchronisation names its stream or
event; else it is the work that ended last within the call; a call that waited for nothing to be
seen would have waited for the last work its thread had launched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from traces.account.calls import NONE, CallKind, HostCalls, is_kind
from traces.account.clocks import SKEW
from traces.account.inferred import synchronised_streams
from traces.account.waits import QUEUE, RETURNS, token_count_reads
from traces.arrays import (
    NOWHERE,
    PLACE,
    BoolArray,
    IntArray,
    Rows,
    columns_of,
    distinct,
    ints,
    last_at,
    none_of,
    order_of,
)
from traces.columns import NULL
from traces.frozen import frozen
from traces.groups import in_order, mask_of, places_of_each
from traces.host_clock import SOON
from traces.limits import MOST
from traces.timeline import RankTimeline


class Wait(NamedTuple):
    """A call waits for an activity: it returns, or begins, no sooner than so long after that one's
    end.

    `after_ns` is negative where the clocks of host and GPU differ.
    """

    call: int
    work: int
    after_ns: int


@frozen
class CallWaits(Rows):
    """Waits, arrays of shape (w,), in order of `call`."""

    call: IntArray
    work: IntArray
    after_ns: IntArray

    @classmethod
    def of(cls, waits: Iterable[Wait]) -> CallWaits:
        call, work, after_ns = columns_of(waits, 3)
        return cls.ordered(call, work, after_ns)

    @classmethod
    def ordered(cls, call: IntArray, work: IntArray, after_ns: IntArray) -> CallWaits:
        order = order_of(call)
        return cls(call[order].astype(PLACE), work[order].astype(PLACE), after_ns[order])

    def without(self, calls: BoolArray) -> CallWaits:
        return self.take(~calls[self.call])

    def sooner(self, which: BoolArray, most_ns: IntArray | int) -> CallWaits:
        """These waits; in those of a mask, shape (w,), `after_ns` is `most_ns` at most."""
        return replace(
            self, after_ns=np.where(which, np.minimum(self.after_ns, most_ns), self.after_ns)
        )

    def holding(self, works: BoolArray, calls: int) -> BoolArray:
        """Which of so many calls wait for one of some activities, a mask of shape (n,)."""
        return mask_of(self.call[works[self.work]], calls)

    def first_of(self, calls: int) -> IntArray:
        """Where the waits of each of so many calls begin, shape (m + 1,)."""
        first = np.zeros(calls + 1, dtype=PLACE)
        # of several waits of a call the last stays
        first[self.call + 1] = np.arange(1, len(self.call) + 1)
        return np.maximum.accumulate(first, out=first)


@frozen
class HostWaits:
    """The waits of m calls for their returns; `own_ns`, shape (m,), is the time of each without
    them.

    `feeds_host`, shape (n,) over the activities, marks small copies to the host that a call waits
    for last.
    """

    waits: CallWaits
    own_ns: IntArray
    feeds_host: BoolArray


class Finder:
    """What the calls of a rank wait for. `launched_by`, shape (n,): the call behind each
    activity.
    """

    def __init__(self, rank: RankTimeline, calls: HostCalls, launched_by: IntArray) -> None:
        self._rank, self._rows, self._calls = rank, rank.activities, calls
        rows = self._rows
        self._launched = rows.launched_ns
        self._by_launch = order_of(self._launched).astype(PLACE)
        self._launches = self._launched[self._by_launch]
        self._by_end = order_of(rows.end_ns).astype(PLACE)
        self._ends = rows.end_ns[self._by_end]
        self._launched_by = launched_by
        by_stream = places_of_each(rows.stream_id[self._by_launch])
        self._streams = {stream: self._by_launch[places] for stream, places in by_stream}
        self._small_copy = token_count_reads(rank)
        self._of_call: dict[int, list[Wait]] = {}
        self._own = calls.length_ns
        self._feeds = none_of(len(rows))

    def find(self) -> HostWaits:
        self._synchronising()
        for call in np.flatnonzero(self._calls.kind == CallKind.FREE).tolist():
            self._let_wait(call, self._latest_of(self._streams.values(), call))
        self._blocking_copies()
        return HostWaits(self._with_queue(), self._own, self._feeds)

    def _synchronising(self) -> None:
        columns, named = self._rank.columns, synchronised_streams(self._rank)
        for call in np.flatnonzero(self._calls.kind == CallKind.SYNC).tolist():
            row = int(self._calls.row[call])
            name = columns.call_names[columns.calls.name[row]]
            if "Device" in name or "Ctx" in name:
                works = self._latest_of(self._streams.values(), call)
            elif row in named:
                works = self._latest_of([self._streams.get(named[row], NOWHERE)], call)
            else:
                works = self._ended_within(call) or self._last_of_thread(call)
            self._let_wait(call, works)
            last = max(works, key=lambda work: int(self._rows.end_ns[work]), default=None)
            if last is not None and self._small_copy[last]:
                self._feeds[last] = True

    def _let_wait(self, call: int, works: list[int]) -> None:
        """Let a call wait for works; those that cannot have held it up in the recording are left
        out.
        """
        begin, back = int(self._calls.start_ns[call]), int(self._calls.end_ns[call])
        held = ints(works)
        held = held[self._rows.end_ns[held] <= back + SKEW.value]
        last = int(self._rows.end_ns[held].max(initial=begin))
        if last > begin:
            self._own[call] = max(0, back - last)
        after = back - last if last > begin else int(self._own[call])
        self._of_call[call] = [Wait(call, work, after) for work in held.tolist()]

    def _latest_of(self, streams: Iterable[IntArray], call: int) -> list[int]:
        """Of each stream, its activities in order of launch, the last that was launched before a
        call.
        """
        begin_ns = self._calls.start_ns[call]
        return [
            int(places[count - 1])
            for places in streams
            if (count := int(np.searchsorted(self._launched[places], begin_ns)))
        ]

    def _ended_within(self, call: int) -> list[int]:
        """The work launched before the call that ended last within it; a small copy just before
        says more.
        """
        begin, back = int(self._calls.start_ns[call]), int(self._calls.end_ns[call])
        low, high = np.searchsorted(self._ends, (begin, back + SKEW.value), "right")
        ended = self._by_end[low:high]
        ended = ended[self._launched[ended] < begin]
        within = ended[self._rows.end_ns[ended] <= back]
        if not len(within):
            return ended[:1].tolist()
        copies = within[(self._rows.end_ns[within] >= back - SOON.value) & self._small_copy[within]]
        return (copies if len(copies) else within)[-1:].tolist()

    def _last_of_thread(self, call: int) -> list[int]:
        before = int(np.searchsorted(self._launches, self._calls.start_ns[call]))
        recent = self._by_launch[max(0, before - 64) : before]
        return recent[self._rows.take(recent).launch_thread == self._calls.thread[call]][
            -1:
        ].tolist()

    def _blocking_copies(self) -> None:
        """Long copy calls wait for their own copy, but not where that began only after they had
        returned.
        """
        rows, calls = self._rows, self._calls
        length = calls.length_ns
        begun = (
            rows.start_ns <= calls.end_ns[self._launched_by] + SKEW.value if len(calls) else False
        )
        for work in np.flatnonzero(rows.is_transfer & (self._launched_by != NONE) & begun).tolist():
            call = int(self._launched_by[work])
            if calls.kind[call] == CallKind.COPY and length[call] > RETURNS.value:
                back = int(calls.end_ns[call])
                self._own[call] = min(int(length[call]), RETURNS.whole)
                self._of_call[call] = [Wait(call, work, back - int(rows.end_ns[work]))]

    def _with_queue(self) -> CallWaits:
        """What was found, and every launch waits for the one so many before it: the launch queue is
        bounded.

        Where a recording began with a queue that was not empty, work whose launch it lacks comes
        first.
        """
        calls, rows = self._calls, self._rows
        by_call = np.flatnonzero(self._launched_by != NONE).astype(PLACE)
        queued = np.flatnonzero(rows.launch_ns[: by_call.min(initial=len(rows))] == NULL)
        by_call = in_order(by_call, self._launched_by, rows.end_ns)
        launching = distinct(self._launched_by[by_call])  # in order of start
        last = by_call[last_at(self._launched_by[by_call], launching)]
        last = np.concatenate((queued.astype(PLACE), last))
        released = self._released(launching, last)
        places = np.arange(len(queued), len(last), dtype=PLACE)
        seen = released != NONE
        depth = int((places - released)[seen].max(initial=0)) or QUEUE.whole
        at = np.where(seen, released, places - depth)
        waits = (at >= 0) & is_kind(calls, CallKind.LAUNCH, CallKind.COPY)[launching]
        call, work, seen = launching[waits], last[at[waits]], seen[waits]
        after_ns = calls.end_ns[call] - rows.end_ns[work]
        late = after_ns >= 0
        call, work, seen, after_ns = call[late], work[late], seen[late], after_ns[late]
        # launch calls that waited for nothing but room take as long as others
        only = ints([launch for launch in call[seen].tolist() if not self._of_call.get(launch)])
        if len(only):
            usual_ns = int(np.median(calls.length_ns[launching]))
            self._own[only] = np.minimum(calls.length_ns[only], usual_ns)
        of_calls = CallWaits.of(chain.from_iterable(self._of_call.values()))
        return CallWaits.ordered(
            np.concatenate((of_calls.call, call)),
            np.concatenate((of_calls.work, work)),
            np.concatenate((of_calls.after_ns, np.where(seen, after_ns, 0))),
        )

    def _released(self, launching: IntArray, last: IntArray) -> IntArray:
        """Of each launch call the place in `last` of the launch that made room for it; -1 where it
        had some.

        `last` is the work of each launch, those from before the recording first, then those of
        `launching`.

        Such a call lasts as long as one that waits and returns as the end of some earlier work
        makes room, with a full queue before it. Event records and waits take room too, so the depth
        is not the same for all, but most of it are launches.
        """
        calls, rows = self._calls, self._rows
        length, back = calls.length_ns[launching], calls.end_ns[launching]
        by_end = order_of(rows.end_ns[last]).astype(PLACE)
        latest = last_at(rows.end_ns[last][by_end], back)
        earlier = by_end[np.maximum(latest, 0)]
        ended = rows.end_ns[last][earlier]
        places = np.arange(len(last) - len(launching), len(last), dtype=PLACE)
        made_room = (
            (latest >= 0) & (back - ended <= RETURNS.value) & (ended > calls.start_ns[launching])
        )
        full = (length > RETURNS.value) & (places - earlier >= MOST.value * QUEUE.value) & made_room
        return np.where(full, earlier, NONE)
