"""The host side of a replay: CUDA calls of the launching threads in their order, and what they wait for."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.account.calls import CallKind
from traces.account.one_time import kinds_of_calls
from traces.columns import NULL, PLACE, BoolArray, IntArray, distinct
from traces.launchers import helper_threads
from traces.timeline import Activities, RankTimeline

NONE: Final = -1


@dataclass(frozen=True, slots=True)
class HostCalls:
    """Outermost calls of the launching threads, shape (m,), in order of start.

    `kind` is a `CallKind`, `row` the row in `Columns.calls`. `before` is the call whose return a call follows
    (of any of these threads: Python's threads hand over to each other, but a helper to nobody), `own_before`
    the previous call of its own thread; -1 where there is none. `pause_ns` is the time since `before`
    returned.
    """

    start_ns: IntArray
    end_ns: IntArray
    thread: IntArray
    kind: IntArray
    row: IntArray
    before: IntArray
    own_before: IntArray
    pause_ns: IntArray

    def __len__(self) -> int:
        return len(self.start_ns)

    def at(self, calls_thread: IntArray, calls_start_ns: IntArray) -> IntArray:
        """The call here that holds each given one: itself, or the one it is nested in; -1 where none does."""
        result = np.full(len(calls_start_ns), NONE, dtype=PLACE)
        for thread in distinct(self.thread).tolist():
            mine = np.flatnonzero(self.thread == thread)
            asked = np.flatnonzero(calls_thread == thread)
            if len(mine) and len(asked):
                place = np.searchsorted(self.start_ns[mine], calls_start_ns[asked], side="right") - 1
                held = place >= 0
                held &= self.end_ns[mine[np.maximum(place, 0)]] >= calls_start_ns[asked]
                result[asked[held]] = mine[place[held]]
        return result


def host_calls(rank: RankTimeline, *spans_ns: tuple[int, int]) -> HostCalls:
    """Calls of the launching threads of a rank that return in or run across spans of time in order.

    And the last one before each span, whose return the first of its calls follows.
    """
    calls, rows = rank.columns.calls, rank.activities
    threads = distinct(rows.launch_thread[rows.launch_thread != NULL])
    mine = np.isin(calls.thread_gid, threads) & (calls.start_ns != NULL) & (calls.end_ns >= calls.start_ns)
    row = np.flatnonzero(mine)
    within = np.zeros(len(row), dtype=np.bool_)
    for since_ns, until_ns in spans_ns:
        start_ns, end_ns = calls.start_ns[row], calls.end_ns[row]
        last_ns = int(end_ns[end_ns <= since_ns].max(initial=NULL))
        within |= ((end_ns > since_ns) | (end_ns == last_ns)) & (start_ns < until_ns)
    row = row[within]
    row = row[_outermost(calls.start_ns[row], calls.end_ns[row], calls.thread_gid[row])]
    row = row[np.lexsort((calls.end_ns[row], calls.start_ns[row]))].astype(PLACE)
    start, end, thread = calls.start_ns[row], calls.end_ns[row], calls.thread_gid[row]
    own = _own_before(thread)
    span = np.searchsorted([since_ns for since_ns, _ in spans_ns[1:]], end, side="left")
    own[span[own] != span] = NONE  # not its thread's call before, but one of an earlier span
    before = np.maximum(_last_returned(start, end), NONE)
    steps = np.flatnonzero(~np.isin(thread, helper_threads(rows)))
    last = _last_returned(start[steps], end[steps])
    before[steps] = np.where(last == NONE, NONE, steps[last])
    before = np.where((before == NONE) | ((own != NONE) & (end[own] >= end[before])), own, before)
    pause = np.where(before != NONE, np.maximum(start - end[before], 0), 0)
    kind = kinds_of_calls(rank)[row]
    return HostCalls(start, end, thread, kind, row, before, own, pause)


def _outermost(start_ns: IntArray, end_ns: IntArray, thread: IntArray) -> BoolArray:
    """Which calls lie in no other of their thread: a driver call within a runtime call is one with it."""
    result = np.zeros(len(start_ns), dtype=np.bool_)
    order = np.lexsort((-end_ns, start_ns, thread))
    for one in distinct(thread).tolist():
        mine = order[thread[order] == one]
        until = np.maximum.accumulate(end_ns[mine])
        result[mine[:1]] = True
        result[mine[1:]] = start_ns[mine[1:]] >= until[:-1]
    return result


def _own_before(thread: IntArray) -> IntArray:
    order = np.lexsort((np.arange(len(thread)), thread))
    own = np.full(len(thread), NONE, dtype=PLACE)
    same = thread[order[1:]] == thread[order[:-1]]
    own[order[1:][same]] = order[:-1][same]
    return own


def _last_returned(start_ns: IntArray, end_ns: IntArray) -> IntArray:
    """Of each call the one that returned last before it began; only earlier ones in the order count."""
    by_end, own = np.argsort(end_ns, kind="stable").astype(PLACE), np.arange(len(start_ns))
    place = np.searchsorted(end_ns[by_end], start_ns, side="right") - 1
    while True:
        found = np.where(place >= 0, by_end[np.maximum(place, 0)], NONE)
        itself = found >= own  # an empty call returns as it begins
        if not itself.any():
            return found
        place = np.where(itself, place - 1, place)


def is_kind(calls: HostCalls, *kinds: CallKind) -> BoolArray:
    """Mask of the calls of some kinds."""
    result: BoolArray = np.isin(calls.kind, kinds)
    return result


def launching_call(rows: Activities, calls: HostCalls) -> IntArray:
    """Of each activity the call here that launched it, -1 where it is not among them."""
    return np.where(rows.call >= 0, calls.at(rows.launch_thread, rows.launch_ns), NONE)
