"""Calls that wait for GPU work, and the work they wait for.

A synchronising call, a blocking copy, a free, or a launch into a full queue returns when work that
was launched before has ended. What it waits for is not written in its row; it is work launched
before the call began that ended before it returned, the latest of it deciding when. Who
synchronises with a stream waits for that one alone, and communication runs on streams of its own:
it counts where it was launched on that stream, or where some stream was made to wait between its
launch and the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from traces.account.calls import NONE, POLL, CallKind, HostCalls, host_calls
from traces.account.host import CAUSE, Host, HostPieces
from traces.account.inferred import synchronised_streams, wait_calls
from traces.account.pieces import (
    INFERRED,
    REASON,
    Judged,
    cut,
    last_to_end,
    tile,
    waited_for,
)
from traces.arrays import (
    FOREVER,
    PLACE,
    BoolArray,
    IntArray,
    columns_of,
    distinct,
    none_of,
    order_of,
    row_by_row,
    summed,
)
from traces.columns import NULL, Calls
from traces.groups import in_order, passing, places_of_each
from traces.limits import FEWEST, MOST, NEARLY_ALL, Limit
from traces.names.kernels import is_polled_kernel
from traces.timeline import Activities, Bucket, RankTimeline

SPIN: Final = Limit(
    200_000,
    "ns",
    "ours: a host that polls goes on within microseconds; Python between takes tens of them",
)


class Poll(NamedTuple):
    """A call that came when the host had polled for a kernel; places in the activities and in the
    calls.

    `after_ns`: how long after the kernel's end, `soonest_ns`: the least of all polls for such
    kernels.
    """

    work: int
    call: int
    after_ns: int
    soonest_ns: int

    @property
    def is_late(self) -> bool:
        """Whether the host was busy with something else when the kernel ended."""
        return self.after_ns >= SPIN.value


def find_polls(rank: RankTimeline, calls: HostCalls) -> list[Poll]:
    """Every poll in some calls of a rank; of several control kernels in a row the host waits for
    each.
    """
    rows = rank.activities
    control = np.flatnonzero(rows.of(Bucket.COMM, "ep_control") & rows.is_launched)
    # what ended where no calls are known could not be followed by one
    ended, last_ns = rows.end_ns[control], calls.end_ns.max(initial=NULL)
    control = control[(ended > calls.start_ns.min(initial=FOREVER)) & (ended <= last_ns)]
    polls: list[Poll] = []
    for name in distinct(rows.name[control]).tolist():
        works = control[rows.name[control] == name]
        followed, by = _next_calls(rows, calls, works)
        if len(by) < FEWEST.value:
            continue
        after_ns = calls.start_ns[by] - rows.end_ns[followed]
        name_says = is_polled_kernel(rank.columns.kernel_names[name])
        known = name_says and not _some_call_within(rows, calls, works)
        if known or _looks_polled(after_ns, calls.pause_ns[by], len(works)):
            soonest_ns = int(after_ns.min())
            for work, call, ns in row_by_row(followed, by, after_ns):
                polls.append(Poll(work, call, ns, soonest_ns))
    return polls


def with_poll_calls(rank: RankTimeline) -> RankTimeline:
    """The rank with each poll as a call that synchronises, from the call before it to the kernel's
    end.
    """
    rows, columns = rank.activities, rank.columns
    if not rows.of(Bucket.COMM, "ep_control").any():
        return rank
    host = host_calls(rank, (NULL, int(rows.end_ns.max())))
    last = {
        poll.call: poll.work
        for poll in sorted(find_polls(rank, host), key=lambda poll: -poll.after_ns)
    }
    call, work = columns_of(last.items(), 2)
    calls, nothing = columns.calls, np.full(len(call), NULL)
    more = (
        host.end_ns[host.before[call]],
        rows.end_ns[work],
        host.thread[call],
        nothing,
        np.full(len(call), len(columns.call_names), dtype=np.int64),
    )
    polled = Calls.joined(calls, Calls(*more))
    names = (*columns.call_names, POLL)
    return replace(rank, columns=replace(columns, calls=polled, call_names=names))


def _looks_polled(after_ns: IntArray, pause_ns: IntArray, count: int) -> bool:
    """Whether the next call comes soon after nearly all of `count` kernels, and steadier than its
    pause.

    After a host that is late both vary alike, for between them lies only what the kernel did.
    """
    steadier = _scatter(after_ns) <= MOST.value * _scatter(pause_ns)
    return steadier and summed(after_ns < SPIN.value) >= NEARLY_ALL.value * count


def _some_call_within(rows: Activities, calls: HostCalls, works: IntArray) -> bool:
    next_call = np.searchsorted(calls.start_ns, rows.take(works).launch_end_ns)
    begins_ns = np.append(calls.start_ns, FOREVER)[next_call]
    return bool((begins_ns < rows.end_ns[works]).any())


def _scatter(values_ns: IntArray) -> float:
    return float(np.abs(values_ns - np.median(values_ns)).mean())


def _next_calls(rows: Activities, calls: HostCalls, works: IntArray) -> tuple[IntArray, IntArray]:
    """The first call after the end of each of some works, and of which: where one came, and none
    was made while the work ended.
    """
    first = np.searchsorted(calls.start_ns, rows.end_ns[works])
    works, first = works[first < len(calls)], first[first < len(calls)]
    before = calls.before[first]
    idle = (before != NONE) & (calls.end_ns[before] < rows.end_ns[works])
    return works[idle], first[idle]


RETURNS: Final = Limit(
    20_000,
    "ns",
    "measured on real recordings: waiting calls return 2 to 18 us after the work they wait for; a "
    "copy call that takes longer waits for its own copy",
)
QUEUE: Final = Limit(
    1_022,
    "launches in flight",
    "measured on A100 (nsys 2024.6), RTX 3070 and 3060: long launch calls return when the 1021st "
    "to 1022nd launch before them has ended",
)
TOKEN_COUNT: Final = Limit(
    64 * 1024,
    "bytes",
    "measurement.md: token counts per expert of one layer; larger copies carry data",
)


def token_count_reads(rank: RankTimeline) -> BoolArray:
    """Copies to the host small enough to be a read of token counts, shape (n,); of unknown size
    none is.
    """
    small = rank.activities.copies("memcpy_d2h")
    size_bytes = rank.copy_bytes(small)
    small[small] = (size_bytes >= 0) & (size_bytes <= TOKEN_COUNT.value)
    return small


class WaitingCalls:
    """The waiting calls of one rank."""

    def __init__(self, rank: RankTimeline, host: Host) -> None:
        self._rows, self._calls, self._host = rank.activities, rank.calls, host
        rows = self._rows
        self._launched = rows.launched_ns
        self._launches = np.sort(self._launched)
        self._by_end = order_of(rows.end_ns).astype(PLACE)
        self._ends = rows.end_ns[self._by_end]
        own = np.flatnonzero(rows.is_transfer & rows.is_launched)
        self._own = in_order(own, rows.call)
        self._own_call = rows.call[self._own]
        self._is_count = token_count_reads(rank) & routes_tokens(rows)
        names = rank.columns.call_names
        self._of_stream = passing(lambda name: "StreamSynchronize" in name, names)[self._calls.name]
        self._is_poll = passing(POLL.__eq__, names)
        self._named = synchronised_streams(rank)
        self._waits_ns = np.sort(self._calls.start_ns[wait_calls(rank)])
        self._mixed = distinct(rows.stream_id[~rows.is_comm])

    def is_waiting(self, call: IntArray) -> BoolArray:
        """Which calls (rows of `Calls`, -1: none) wait for GPU work."""
        begin_ns = self._calls.start_ns[call]
        end_ns = self._calls.end_ns[call]
        kind = self._host.kind[call]
        long_copy = (kind == CallKind.COPY) & (end_ns - begin_ns > RETURNS.value)
        in_flight = np.searchsorted(self._launches, begin_ns)
        in_flight -= np.searchsorted(self._ends, begin_ns, "right")
        # a few launches leave no activity
        full = (kind == CallKind.LAUNCH) & (in_flight >= NEARLY_ALL.value * QUEUE.value)
        return (call != NONE) & (np.isin(kind, (CallKind.SYNC, CallKind.FREE)) | long_copy | full)

    def for_unrecorded(self, stalled: Judged) -> Judged:
        """Stalled pieces of the first work of a stream, cut by launching threads' calls that wait.

        Both wait in such a call for what was launched before the recording began.
        """
        if not len(stalled):
            return stalled
        of_launchers = np.flatnonzero(np.isin(self._calls.thread_gid, self._rows.launching_threads))
        waiting = self._calls.take(of_launchers[self.is_waiting(of_launchers)])
        unrecorded = np.full(len(waiting), REASON["blocking.unrecorded"])
        parts, reason = cut(stalled, tile(waiting.start_ns, waiting.end_ns, unrecorded, NONE))
        waits = reason != NONE
        return replace(
            parts,
            reason=np.where(waits, reason, parts.reason),
            decided=np.where(waits, INFERRED, parts.decided),
        )

    def split(self, host: HostPieces) -> tuple[HostPieces, Judged]:
        """Pieces before a launch: those left to the host, and those in which awaited work still
        ran.
        """
        host = self._name_cold_starts(host)
        waiting = self.is_waiting(host.call)
        cut_parts = list(self._parts(host, np.flatnonzero(waiting).tolist()))
        index, start_ns, end_ns, work, cause, under = columns_of(cut_parts, 6)
        parts, ran = host.take(index), work != NONE
        parts = replace(
            parts,
            start_ns=start_ns,
            end_ns=end_ns,
            cause=cause,
            after=-np.ones_like(work),
            under=under,
        )
        left = HostPieces.joined(host.take(~waiting), parts.take(~ran))
        return left, waited_for(self._rows, parts.take(ran), work[ran])

    def _parts(self, host: HostPieces, waiting: list[int]) -> Iterator[tuple[int, ...]]:
        """Some pieces cut by the work that their calls wait for: which piece, from, until, that
        work, and cause and `under`.
        """
        rows = self._rows
        for index in waiting:
            call, start_ns, end_ns = host.call[index], host.start_ns[index], host.end_ns[index]
            work = self._awaited(call)
            held = self._held(call, work)
            others = work[~held]
            under = int(others[np.argmax(rows.end_ns[others])]) if len(others) else NONE
            cause = self._cause(call, int(host.cause[index]))
            for part in last_to_end(rows, work[held], int(start_ns), int(end_ns)):
                yield index, *part, cause, under

    def _awaited(self, call: int) -> IntArray:
        """Work without compute that was launched before the call and ended within it, or is its own
        copy.
        """
        rows, ended = self._rows, self._ended_within(call)
        ended = ended[rows.bucket[ended] != Bucket.COMPUTE]
        low, high = np.searchsorted(self._own_call, (call, call + 1))
        own = self._own[low:high]
        if len(own):  # what ended after its own copy did not keep it
            ended = ended[rows.end_ns[ended] <= rows.end_ns[own].max()]
        # of equals its own comes first
        return np.concatenate((own, ended))

    def _ended_within(self, call: int) -> IntArray:
        """Work launched before a call that ended within it, in order of its end."""
        begin, back = self._calls.start_ns[call], self._calls.end_ns[call]
        low, high = np.searchsorted(self._ends, (begin, back), "right")
        ended = self._by_end[low:high]
        return ended[self._launched[ended] < begin]

    def _held(self, call: int, work: IntArray) -> BoolArray:
        """Which of some work can have held a call: where it is for one stream, nothing that runs
        apart.
        """
        if not self._of_stream[call]:
            return ~none_of(len(work))
        rows, begin, named = self._rows, self._calls.start_ns[call], self._named.get(call)
        streams = self._mixed if named is None else np.array([named])
        waits = np.searchsorted(self._waits_ns, begin) - np.searchsorted(
            self._waits_ns, self._launched[work]
        )
        apart = (rows.bucket[work] == Bucket.COMM) & ~np.isin(rows.stream_id[work], streams)
        return ~apart | (waits > 0)

    def _cause(self, call: int, cause: int) -> int:
        """`token_count_sync` where a small copy to the host was the last that a call waited for on
        a stream.

        A poll is such a read as well. Of each stream the last: a kernel of another one that ends
        while the call returns was not waited for.
        """
        if cause != CAUSE["sync"]:
            return cause
        if self._is_poll[self._calls.name[call]]:
            return CAUSE["token_count_sync"]
        ended = self._ended_within(call)
        counts = ended[self._is_count[ended]]
        for stream in distinct(self._rows.stream_id[counts]).tolist():
            beside = ended[self._rows.stream_id[ended] == stream]
            latest_ns = self._rows.end_ns[beside[-1]]  # of equals, the copy says more
            if self._is_count[beside[self._rows.end_ns[beside] == latest_ns]].any():
                return CAUSE["token_count_sync"]
        return cause

    def _name_cold_starts(self, host: HostPieces) -> HostPieces:
        cause = host.cause.copy()
        cold = np.flatnonzero((host.after != NONE) & (cause == CAUSE["sync"]))
        for call, places in places_of_each(host.after[cold]):
            cause[cold[places]] = self._cause(call, CAUSE["sync"])
        return replace(host, cause=cause)


def routes_tokens(rows: Activities) -> bool:
    """Whether tokens are routed to experts at all: without that, a small copy holds no token
    counts.
    """
    return bool(rows.of(Bucket.COMPUTE, "router", "permute").any())
