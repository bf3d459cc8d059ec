"""Calls that wait for GPU work, and the work they wait for.

A synchronising call, a blocking copy, a free, or a launch into a full queue returns when work that was
launched before has ended. What it waits for is not written in its row; it is work launched before the call
began that ended before it returned, the latest of it deciding when. Who synchronises with a stream waits for
that one alone, and communication runs on streams of its own: it counts where it was launched on that stream,
or where some stream was made to wait between its launch and the call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from traces.account.calls import CallKind
from traces.account.host import CAUSE, Host, HostPieces, join
from traces.account.pieces import Pieces
from traces.account.running import last_to_end
from traces.account.stream_waits import synchronised_streams, wait_calls_ns
from traces.columns import COPY_KINDS, NULL, PLACE, BoolArray, IntArray, distinct
from traces.limits import Limit
from traces.timeline import KEYS, Activities, Bucket, RankTimeline, Source

BLOCKING_COPY: Final = Limit(
    20_000, "ns of a copy call", "measured on real recordings: a copy call over 20 us waits for its own copy"
)
FULL_QUEUE: Final = Limit(
    1_000,
    "launches in flight",
    "measured on A100 (nsys 2024.6), RTX 3070 and 3060: long launch calls return when the 1021st to 1022nd "
    "launch before them has ended; counted here without the few launches that leave no activity",
)
TOKEN_COUNT: Final = Limit(
    64 * 1024, "bytes", "token counts per expert of one layer; larger copies carry data"
)


def is_token_count(size_bytes: IntArray) -> BoolArray:
    """Which copies to the host are small enough to be a read of token counts; one of unknown size is none."""
    result: BoolArray = (size_bytes >= 0) & (size_bytes <= TOKEN_COUNT.value)
    return result


@dataclass(frozen=True, slots=True)
class Waited:
    """Pieces in which the host waited for work that still ran: `work` is its place in the activities."""

    pieces: Pieces
    work: IntArray


class Waits:
    """The waiting calls of one rank."""

    def __init__(self, rank: RankTimeline, host: Host) -> None:
        self._rows, self._calls, self._host = rank.activities, rank.columns.calls, host
        rows = self._rows
        self._launched = np.where(rows.launch_ns == NULL, rows.start_ns, rows.launch_ns)
        self._launches = np.sort(self._launched)
        self._all_by_end = np.argsort(rows.end_ns, kind="stable").astype(PLACE)
        self._ends = rows.end_ns[self._all_by_end]
        self._by_end = np.flatnonzero(rows.bucket != Bucket.COMPUTE)
        self._by_end = self._by_end[np.argsort(rows.end_ns[self._by_end], kind="stable")]
        self._ended = rows.end_ns[self._by_end]
        own = np.flatnonzero((rows.source == Source.COPY) & (rows.call >= 0))
        self._own = own[np.argsort(rows.call[own], kind="stable")]
        sizes = rank.columns.copies.size_bytes
        is_count = (rows.bucket == Bucket.COPY) & (rows.key == COPY_KINDS.index("memcpy_d2h"))
        is_count[is_count] = is_token_count(sizes[rows.row[is_count]])
        self._is_count = is_count & _routes(rows)
        of_stream = np.array([*("StreamSynchronize" in name for name in rank.columns.call_names), False])
        self._of_stream: BoolArray = of_stream[self._calls.name]
        self._named, self._waits_ns = synchronised_streams(rank), wait_calls_ns(rank)
        self._mixed = distinct(rows.stream_id[rows.bucket != Bucket.COMM])

    def is_waiting(self, call: IntArray) -> BoolArray:
        """Which calls (rows of `Calls`, -1: none) wait for GPU work."""
        calls, kind = self._calls, self._host.kind[call]
        long_copy = (kind == CallKind.COPY) & (
            calls.end_ns[call] - calls.start_ns[call] > BLOCKING_COPY.value
        )
        in_flight = np.searchsorted(self._launches, calls.start_ns[call]) - np.searchsorted(
            self._ends, calls.start_ns[call], side="right"
        )
        full = (kind == CallKind.LAUNCH) & (in_flight >= FULL_QUEUE.value)
        result: BoolArray = (call >= 0) & (
            (kind == CallKind.SYNC) | (kind == CallKind.FREE) | long_copy | full
        )
        return result

    def split(self, host: HostPieces) -> tuple[HostPieces, Waited]:
        """Pieces before a launch: those left to the host, and those in which awaited work still ran."""
        if not len(host.pieces):
            return host, Waited(host.pieces, host.call)
        host = self._name_cold_starts(host)
        waiting = self.is_waiting(host.call)
        left = _Collected(host, ~waiting)
        for index in np.flatnonzero(waiting).tolist():
            self._split_one(host, index, left)
        return left.host(), left.waited()

    def _split_one(self, host: HostPieces, index: int, left: _Collected) -> None:
        start, end = int(host.pieces.start_ns[index]), int(host.pieces.end_ns[index])
        call = int(host.call[index])
        work = self._awaited(call)
        held = self._held(call, work)
        others = work[~held]
        under = int(others[np.argmax(self._rows.end_ns[others])]) if len(others) else -1
        cause = self._cause(call, int(host.cause[index]))
        for at, until, last in last_to_end(self._rows, work[held], start, end):
            if last is None:
                left.add_host(host, index, at, until, cause, under)
            else:
                left.add_waited(host, index, at, until, last)

    def _awaited(self, call: int) -> IntArray:
        """Work without compute that was launched before the call and ended within it, or is its own copy."""
        rows, begin, back = self._rows, self._calls.start_ns[call], self._calls.end_ns[call]
        low, high = np.searchsorted(self._ended, (begin, back), side="right")
        some = self._by_end[low:high]
        some = some[self._launched[some] < begin]
        own = self._own[
            np.searchsorted(rows.call[self._own], call) : np.searchsorted(rows.call[self._own], call, "right")
        ]
        return np.concatenate((some, own[rows.end_ns[own] > begin]))

    def _held(self, call: int, work: IntArray) -> BoolArray:
        """Which of some work can have held a call: where it is for one stream, nothing that runs apart."""
        if not self._of_stream[call]:
            return np.ones(len(work), dtype=np.bool_)
        rows, begin, named = self._rows, self._calls.start_ns[call], self._named.get(call)
        streams = self._mixed if named is None else np.array([named])
        waits = np.searchsorted(self._waits_ns, begin) - np.searchsorted(self._waits_ns, self._launched[work])
        apart = (rows.bucket[work] == Bucket.COMM) & ~np.isin(rows.stream_id[work], streams)
        held: BoolArray = ~apart | (waits > 0)
        return held

    def _cause(self, call: int, cause: int) -> int:
        """`token_count_sync` where a small copy to the host was the last that a call waited for on a stream.

        A poll is such a read as well. Of each stream the last: a kernel of another one that ends while the
        call returns was not waited for.
        """
        if cause != CAUSE["sync"]:
            return cause
        if self._host.is_poll(call):
            return CAUSE["token_count_sync"]
        begin, back = self._calls.start_ns[call], self._calls.end_ns[call]
        low, high = np.searchsorted(self._ends, (begin, back), side="right")
        some = self._all_by_end[low:high]
        some = some[self._launched[some] < begin]
        counts = some[self._is_count[some]]
        for stream in distinct(self._rows.stream_id[counts]).tolist():
            beside = some[self._rows.stream_id[some] == stream]
            latest_ns = self._rows.end_ns[beside[-1]]  # of equals, the copy says more
            if self._is_count[beside[self._rows.end_ns[beside] == latest_ns]].any():
                return CAUSE["token_count_sync"]
        return cause

    def _name_cold_starts(self, host: HostPieces) -> HostPieces:
        """Give the cold start after a synchronising call the name of that call."""
        cause = host.cause.copy()
        cold = np.flatnonzero((host.after >= 0) & (cause == CAUSE["sync"]))
        named = {call: self._cause(call, CAUSE["sync"]) for call in set(host.after[cold].tolist())}
        cause[cold] = [named[call] for call in host.after[cold].tolist()]
        return replace(host, cause=cause)


def _routes(rows: Activities) -> bool:
    """Whether tokens are routed to experts at all: without that, a small copy holds no token counts."""
    routing = [KEYS[Bucket.COMPUTE].index(key) for key in ("router", "permute")]
    return bool(np.isin(rows.key[rows.bucket == Bucket.COMPUTE], routing).any())


class _Collected:
    """Pieces as they are found."""

    def __init__(self, host: HostPieces, kept: BoolArray) -> None:
        self._kept = host.take(kept)
        self._host: list[tuple[int, ...]] = []
        self._waited: list[tuple[int, int, int, int, int]] = []

    def add_host(self, host: HostPieces, index: int, start: int, end: int, cause: int, under: int) -> None:
        gap, kernel = int(host.pieces.gap[index]), int(host.pieces.kernel[index])
        self._host.append((start, end, gap, kernel, cause, int(host.call[index]), -1, under))

    def add_waited(self, host: HostPieces, index: int, start: int, end: int, work: int) -> None:
        self._waited.append((start, end, int(host.pieces.gap[index]), int(host.pieces.kernel[index]), work))

    def host(self) -> HostPieces:
        table = np.array(self._host, dtype=np.int64).reshape(-1, 8).T
        return join([self._kept, HostPieces(Pieces(*table[:4]), *table[4:])])

    def waited(self) -> Waited:
        table = np.array(self._waited, dtype=np.int64).reshape(-1, 5).T
        return Waited(Pieces(*table[:4]), table[4])
