"""Evidence: communicators and peers in the payloads of NCCL's ranges, where an export holds them."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import NULL, PROCESS_BITS, BoolArray, IntArray, NcclCalls, distinct
from traces.timeline import RankTimeline

NONE: Final = -1
"""No communicator, no peer, no count."""

_OWN_RANKS: Final = re.compile(r"ncclComm(?:Init|Destroy|Abort)")
"""Calls whose payload counts the ranks of the communicator it names.

`ncclCommSplit` and `ncclCommShrink` write those of the parent (NVIDIA/nccl, src/init.cc).
"""


@dataclass(frozen=True, slots=True)
class CallPayloads:
    """Of each NCCL call of one thread the number of its communicator, its peer and the bytes it names, shape
    (n,), or `NONE`.
    """

    communicator: IntArray
    peer: IntArray
    size_bytes: IntArray

    def peer_count(self, group: IntArray, which: BoolArray) -> IntArray:
        """How many different peers the calls in `which` have, by group, shape (n,).

        `group` gives each call a number below n. `NONE` where a call of the group names no peer.
        """
        mine, peer = group[which], self.peer[which]
        order = np.lexsort((peer, mine))
        mine, peer = mine[order], peer[order]
        new = np.ones(len(mine), dtype=np.bool_)
        new[1:] = (mine[1:] != mine[:-1]) | (peer[1:] != peer[:-1])
        count = np.bincount(mine[new], minlength=len(group))
        silent = np.bincount(mine[peer == NONE], minlength=len(group)) > 0
        return np.where(silent, NONE, count)

    def one_communicator(self, group: IntArray, which: BoolArray) -> IntArray:
        """The communicator of the calls in `which`, by group, shape (n,); `NONE` if not one and the same."""
        return _agreed(self.communicator[which], group[which], len(group))

    def one_peer(self, group: IntArray, which: BoolArray) -> IntArray:
        """The peer of the calls in `which`, by group, shape (n,); `NONE` if not one and the same."""
        return _agreed(self.peer[which], group[which], len(group))


def _agreed(values: IntArray, number: IntArray, count: int) -> IntArray:
    """The one value that all of a number have, shape (count,); `NONE` where they differ, or there is none."""
    most, least = (np.full(count, start, dtype=np.int64) for start in (NONE, np.iinfo(np.int64).max))
    np.maximum.at(most, number, values)
    np.minimum.at(least, number, values)
    return np.where(most == least, most, NONE)


@dataclass(frozen=True, slots=True)
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
        found = CallPayloads(*(np.full(len(start_ns), NONE, dtype=np.int64) for _ in range(3)))
        if self.calls is None:
            return found
        mine = np.flatnonzero(self.calls.thread_gid == thread_gid)
        mine = mine[np.argsort(self.calls.start_ns[mine], kind="stable")]
        if not len(mine):
            return found
        at = np.minimum(np.searchsorted(self.calls.start_ns[mine], start_ns), len(mine) - 1)
        row = mine[at]
        same = (self.calls.start_ns[row] == start_ns) & (self.calls.end_ns[row] == end_ns)
        hashed, peer = self.calls.payloads.communicator[row], self.calls.payloads.peer[row]
        named = same & (hashed != NULL)
        found.communicator[named] = np.searchsorted(self.hashes, hashed[named])
        found.peer[same & (peer != NULL)] = peer[same & (peer != NULL)]
        size = self.calls.payloads.size_bytes[row]
        found.size_bytes[same & (size >= 0)] = size[same & (size >= 0)]
        return found

    def rank_count_of(self, communicator: IntArray) -> IntArray:
        """Ranks of each communicator given by number, `NONE` where none is given; the shape of the input."""
        return np.append(self.rank_count, NONE)[communicator]


def communicators_in(rank: RankTimeline) -> Communicators:
    """Number the communicators that NCCL's payloads of the rank's process name."""
    calls = rank.columns.nccl_calls
    empty = np.zeros(0, dtype=np.int64)
    if calls is None:
        return Communicators(None, empty, empty, empty)
    hashed, ranks = calls.payloads.communicator, calls.payloads.rank_count
    ours = (calls.thread_gid & PROCESS_BITS == rank.process_gid) | (rank.process_gid == NULL)
    hashes = distinct(hashed[ours & (hashed != NULL)])
    counts_its_own = np.array([bool(_OWN_RANKS.match(name)) for name in calls.names] + [False])[calls.name]
    told = ours & (hashed != NULL) & (ranks > 0) & counts_its_own
    number, own = np.searchsorted(hashes, hashed[told]), calls.payloads.rank[told]
    counted = _agreed(ranks[told], number, len(hashes))
    return Communicators(calls, hashes, counted, _agreed(own[own >= 0], number[own >= 0], len(hashes)))
