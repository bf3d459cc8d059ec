"""Evidence: communicators and peers in the payloads of NCCL's ranges, where an export holds
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

import numpy as np

from traces.arrays import (
    FOREVER,
    NOWHERE,
    BoolArray,
    IntArray,
    distinct,
    ints,
    last_at,
    order_of,
    sums_before,
)
from traces.columns import NULL, PROCESS_BITS, NcclCalls, Ranges
from traces.frozen import frozen
from traces.groups import begins, mask_of, passing
from traces.limits import Limit
from traces.patterns import compiled
from traces.resolve.communication import Communication
from traces.timeline import RankTimeline

NONE: Final = -1
"""No communicator, no peer, no count."""

_OWN_RANKS: Final = compiled(r"ncclComm(?:Init|Destroy|Abort)")
"""Calls whose payload counts the ranks of the communicator it names.

`ncclCommSplit` and `ncclCommShrink` write those of the parent (NVIDIA/nccl, src/init.cc).
"""


@frozen
class CallPayloads:
    """Of each NCCL call of one thread the number of its communicator, its peer and the bytes it
    names, shape (n,), or `NONE`.
    """

    communicator: IntArray
    peer: IntArray
    size_bytes: IntArray

    def peer_count(self, group: IntArray, which: BoolArray) -> IntArray:
        """How many different peers the calls in `which` have, by group, shape (n,)."""
        mine, peer = group[which], self.peer[which]
        order = np.lexsort((peer, mine))
        mine, peer = mine[order], peer[order]
        count = np.bincount(mine[begins(mine, peer)], minlength=len(group))
        return np.where(mask_of(mine[peer == NONE], len(group)), NONE, count)


def _agreed(values: IntArray, number: IntArray, count: int) -> IntArray:
    """The one value that all of a number have, shape (count,); `NONE` where they differ, or there
    is none.
    """
    most, least = np.full(count, NONE), np.full(count, FOREVER)
    np.maximum.at(most, number, values)
    np.minimum.at(least, number, values)
    return np.where(most == least, most, NONE)


@frozen
class Communicators:
    """The communicators of one process, by number, and the calls that name them."""

    calls: NcclCalls | None
    hashes: IntArray
    rank_count: IntArray
    """Ranks of each communicator, `NONE` where untold or told differently."""
    own_rank: IntArray
    """Which of them the process is, `NONE` likewise."""

    def of_calls(self, thread_gid: int, start_ns: IntArray, end_ns: IntArray) -> CallPayloads:
        """Payloads of the calls of a thread that began and ended at these times, shape (n,)."""
        payloads = CallPayloads(*np.full((3, len(start_ns)), NONE))
        if self.calls is None:
            return payloads
        mine = np.flatnonzero(self.calls.thread_gid == thread_gid)
        mine = mine[order_of(self.calls.start_ns[mine])]
        if not len(mine):
            return payloads
        at = np.minimum(np.searchsorted(self.calls.start_ns[mine], start_ns), len(mine) - 1)
        row = mine[at]
        same = (self.calls.start_ns[row] == start_ns) & (self.calls.end_ns[row] == end_ns)
        hashed, peer = self.calls.payloads.communicator[row], self.calls.payloads.peer[row]
        named = same & (hashed != NULL)
        payloads.communicator[named] = np.searchsorted(self.hashes, hashed[named])
        payloads.peer[same & (peer != NULL)] = peer[same & (peer != NULL)]
        size = self.calls.payloads.size_bytes[row]
        payloads.size_bytes[same & (size >= 0)] = size[same & (size >= 0)]
        return payloads

    def rank_count_of(self, communicator: IntArray) -> IntArray:
        """Ranks of each communicator given by number, `NONE` where none is given; the shape of the
        input.
        """
        return np.append(self.rank_count, NONE)[communicator]


def communicators_in(rank: RankTimeline) -> Communicators:
    """Number the communicators that NCCL's payloads of the rank's process name."""
    calls = rank.columns.nccl_calls
    if calls is None:
        return Communicators(None, NOWHERE, NOWHERE, NOWHERE)
    hashed, ranks = calls.payloads.communicator, calls.payloads.rank_count
    ours = (calls.thread_gid & PROCESS_BITS == rank.process_gid) | (rank.process_gid == NULL)
    hashes = distinct(hashed[ours & (hashed != NULL)])
    counts_its_own = passing(_OWN_RANKS.match, calls.names)[calls.name]
    usable = ours & (hashed != NULL) & (ranks > 0) & counts_its_own
    number, own = np.searchsorted(hashes, hashed[usable]), calls.payloads.rank[usable]
    counted = _agreed(ranks[usable], number, len(hashes))
    return Communicators(
        calls, hashes, counted, _agreed(own[own >= 0], number[own >= 0], len(hashes))
    )


ALL_TO_ALL, POINT_TO_POINT, EITHER, UNKNOWN = 3, 2, 1, 0
"""Shapes of an exchange. `EITHER`: two sends and two receives, an all-to-all of two or two
neighbours."""

NEIGHBOURS: Final = Limit(
    2,
    "peers sent to (or received from) per group",
    "a pipeline stage and a ring have at most two neighbours, so three peers are an all-to-all",
)


@frozen
class Groups:
    """Of each activity the counts of its group, shape (m,): -1 where no whole group holds its
    launch.

    `communicator` numbers the one communicator of the group and `rank_count` are its ranks, -1
    where untold; `send_peer_count` and `receive_peer_count` count different peers in it, -1 where a
    call names none; `peer` is the one peer of all its calls, -1 where there are several.
    """

    send_count: IntArray
    receive_count: IntArray
    all_to_all_count: IntArray
    send_peer_count: IntArray
    receive_peer_count: IntArray
    communicator: IntArray
    rank_count: IntArray
    peer: IntArray

    @property
    def known(self) -> BoolArray:
        return self.send_count != NONE

    def shape(self) -> IntArray:
        """`ALL_TO_ALL`, `POINT_TO_POINT`, `EITHER` or `UNKNOWN` of each activity, by its own group.

        Peers count where they are told, else calls: several tensors may go to one peer. Who
        exchanges with every rank of a communicator, itself among them, is no neighbour.
        """
        sends = np.where(self.send_peer_count == NONE, self.send_count, self.send_peer_count)
        receives = np.where(
            self.receive_peer_count == NONE, self.receive_count, self.receive_peer_count
        )
        most, least = np.maximum(sends, receives), np.minimum(sends, receives)
        limit = NEIGHBOURS.whole
        peers_told = (self.send_peer_count != NONE) & (self.receive_peer_count != NONE)
        everyone = peers_told & (most == self.rank_count)
        return np.select(
            [(most > limit) | (self.all_to_all_count > 0) | everyone, least == limit, most > 0],
            [ALL_TO_ALL, EITHER, POINT_TO_POINT],
            UNKNOWN,
        )


def groups_of(comm: Communication) -> Groups:
    """Find the group behind each communication activity, on the thread that launched it."""
    communicators = communicators_in(comm.rank)
    columns = np.full((len(fields(Groups)) - 1, len(comm)), NONE)
    for mine, calls, payloads in calls_by_thread(comm, communicators):
        columns[:, mine] = _behind(calls, payloads, comm.rows.launch_ns[mine])
    return Groups(*np.insert(columns, 6, communicators.rank_count_of(columns[5]), axis=0))


def calls_by_thread(
    comm: Communication, communicators: Communicators
) -> Iterator[tuple[IntArray, ThreadCalls, CallPayloads]]:
    """Of each thread that launches communication: the places of that, and NCCL's calls with
    payloads.
    """
    ranges = comm.rank.columns.ranges
    codes = [_CALLS.get(text.strip(), NONE) for text in comm.rank.columns.range_texts]
    code = ints([*codes, NONE])[ranges.text]
    ranges, code = ranges.take(code != NONE), code[code != NONE]
    for gid in comm.rows.launching_threads:
        here = ranges.thread_gid == gid
        if not here.any():
            continue
        calls = _calls(ranges.take(here), code[here])
        payloads = communicators.of_calls(int(gid), calls.start_ns, calls.end_ns)
        yield np.flatnonzero(comm.rows.launch_thread == gid), calls, payloads


_GROUP_START, _GROUP_END, _SEND, _RECEIVE, _ALL_TO_ALL, _COLLECTIVE = range(6)
_CALLS: Final = {
    "ncclGroupStart": _GROUP_START,
    "ncclGroupEnd": _GROUP_END,
    "ncclSend": _SEND,
    "ncclRecv": _RECEIVE,
    "ncclAlltoAll": _ALL_TO_ALL,
    "ncclAllGather": _COLLECTIVE,
    "ncclReduceScatter": _COLLECTIVE,
    "ncclAllReduce": _COLLECTIVE,
    "ncclBroadcast": _COLLECTIVE,
    "ncclReduce": _COLLECTIVE,
}


@frozen
class ThreadCalls:
    """NCCL calls of one thread in order, shape (n,)."""

    start_ns: IntArray
    end_ns: IntArray
    code: IntArray
    first: IntArray
    """The place of the outermost group start around each, -1 where there is none."""
    last: BoolArray
    """Which end that group."""

    @property
    def sends(self) -> BoolArray:
        return self.code == _SEND

    @property
    def receives(self) -> BoolArray:
        return self.code == _RECEIVE

    @property
    def all_to_alls(self) -> BoolArray:
        """Which of them exchange with all ranks; the size they name is that for one of these."""
        return self.code == _ALL_TO_ALL

    @property
    def moves(self) -> BoolArray:
        """Which of them move data; the others begin and end groups."""
        return self.code >= _SEND

    @property
    def group(self) -> IntArray:
        """A number for each call: that of its outermost group's start; outside of groups its
        own.
        """
        return np.where(self.first >= 0, self.first, np.arange(len(self.first)))

    def open_at(self, launch_ns: IntArray) -> tuple[IntArray, BoolArray, BoolArray]:
        """The call open at each launch, the last that began before it: its place, whether it ends a
        whole group, which then launches, and whether it stands alone and launches itself.
        """
        at = last_at(self.start_ns, launch_ns)
        inside = (at >= 0) & (launch_ns <= self.end_ns[at])
        grouped = self.first[at] >= 0
        return at, inside & self.last[at] & grouped, inside & self.moves[at] & ~grouped

    def launching(self, launch_ns: IntArray) -> IntArray:
        """The group that launched each piece of work, by its number; -1 where no whole group
        did.
        """
        at, ends_group, alone = self.open_at(launch_ns)
        return np.where(ends_group | alone, self.group[at], NONE)


def _calls(ranges: Ranges, code: IntArray) -> ThreadCalls:
    order = order_of(ranges.start_ns)
    ranges, code = ranges.take(order), code[order]
    return ThreadCalls(ranges.start_ns, ranges.end_ns, code, *_outermost(code))


def _behind(calls: ThreadCalls, payloads: CallPayloads, launch_ns: IntArray) -> IntArray:
    """What is behind each launch, shape (7, m), `NONE` where no whole group is there.

    Sends, receives, all-to-alls; peers of sends and of receives; the communicator; the one peer.
    Outside a group a single call launches itself; within one, everything waits for the end of the
    outermost group.
    """
    at, ends_group, alone = calls.open_at(launch_ns)
    exchanges, group = alone & (calls.code[at] != _COLLECTIVE), calls.group
    counts = []
    for code in (_SEND, _RECEIVE, _ALL_TO_ALL):
        until = sums_before(calls.code == code)
        in_group = until[at] - until[calls.first[at]]
        counts.append(
            np.where(ends_group, in_group, np.where(exchanges, calls.code[at] == code, NONE))
        )
    count, moves, peers = len(group), calls.moves, calls.sends | calls.receives
    communicator = _agreed(payloads.communicator[moves], group[moves], count)[group[at]]
    communicator = np.where(ends_group | alone, communicator, NONE)
    known = (ends_group | exchanges) & (communicator != NONE)
    sent = payloads.peer_count(group, calls.sends)
    received = payloads.peer_count(group, calls.receives)
    peer = _agreed(payloads.peer[peers], group[peers], count)
    sent, received, peer = np.where(known, np.stack((sent, received, peer))[:, group[at]], NONE)
    return np.array([*counts, sent, received, communicator, peer])


def _outermost(code: IntArray) -> tuple[IntArray, BoolArray]:
    """Of each call the place of the outermost group start around it (-1: none), and if it ends that
    group.
    """
    depth = np.cumsum(np.where(code == _GROUP_START, 1, np.where(code == _GROUP_END, -1, 0)))
    depth -= np.minimum(np.minimum.accumulate(depth), 0)  # an end without its start closes nothing
    before = np.append(0, depth[:-1])
    opens = (before == 0) & (depth == 1)
    start = np.maximum.accumulate(np.where(opens, np.arange(len(code)), NONE))
    return np.where((before > 0) | opens, start, NONE), (before == 1) & (depth == 0)
