"""What NCCL's calls say of a rank's collectives: how many messages, how many bytes, and with whom."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.ranks.summary import UNKNOWN, Messages, Peers, none_of
from traces.resolve.communication import Communication
from traces.resolve.nccl_communicators import CallPayloads, communicators_in
from traces.resolve.nccl_groups import ThreadCalls, calls_by_thread
from traces.timeline import RankTimeline

_MOST: Final = 64
"""Pairs of kind and peer that a summary lists: those with the most bytes."""


@dataclass(frozen=True, slots=True)
class Called:
    """Of each communication activity, shape (m,), what the calls behind it say, `UNKNOWN` where nothing does.

    `sends` and `receives` count calls with one peer. `given_bytes` is what all other calls name, or what is
    sent; `received_bytes` is what is received. `ranks` are those of the communicator. `calls`: each call with
    a peer, as rows of activity, communicator, peer, bytes sent and bytes received.
    """

    sends: IntArray
    receives: IntArray
    given_bytes: IntArray
    received_bytes: IntArray
    ranks: IntArray
    calls: IntArray


def called_by(comm: Communication) -> Called:
    """What the calls of all threads say. A group that launched several kernels says nothing of each."""
    communicators = communicators_in(comm.rank)
    told: IntArray = np.full((5, len(comm)), UNKNOWN, dtype=np.int64)
    with_peers: list[IntArray] = [np.empty((5, 0), dtype=np.int64)]
    for mine, calls, payloads in calls_by_thread(comm, communicators):
        call, behind = _joined(calls, calls.launching(comm.rows.launch_ns[mine]))
        activity = mine[behind]
        sends, receives = calls.sends[call], calls.receives[call]
        ranks = communicators.rank_count_of(payloads.communicator[call])
        size = _of_all(payloads.size_bytes[call], ranks, calls.all_to_alls[call])
        seen = np.zeros(len(comm), dtype=np.bool_)
        seen[activity] = True
        silent = np.bincount(activity[size < 0], minlength=len(comm)) > 0
        ones = np.ones_like(size)
        columns = ((sends, ones), (receives, ones), (~receives, size), (receives, size))
        for row, (which, amount) in enumerate(columns):
            added = np.zeros(len(comm), dtype=np.int64)
            np.add.at(added, activity[which], amount[which])
            known = seen if row < 2 else seen & ~silent
            told[row, known] = added[known]
        told[4, activity] = ranks
        with_peers.append(_with_peers(payloads, call, activity, sends, receives))
    rows = np.concatenate(with_peers, axis=1)
    rows[1] = np.append(communicators.hashes, UNKNOWN)[rows[1]]
    sends, receives, given, received, ranks = told
    received[sends + receives <= 0] = UNKNOWN
    return Called(sends, receives, given, received, ranks, rows)


def _of_all(size: IntArray, ranks: IntArray, of_one: BoolArray) -> IntArray:
    """Bytes for all ranks, where a call names those for one."""
    return np.where(of_one, np.where((size >= 0) & (ranks > 0), size * ranks, UNKNOWN), size)


def _joined(calls: ThreadCalls, launched: IntArray) -> tuple[IntArray, IntArray]:
    """Calls that move data, and of each the one launch, by place, that its group made."""
    group = np.where(calls.moves, calls.group, UNKNOWN)
    order = np.argsort(launched, kind="stable")
    numbers = launched[order]
    at = np.searchsorted(numbers, group)
    until = np.searchsorted(numbers, group, side="right")
    call = np.flatnonzero((until - at == 1) & (group >= 0))
    return call, order[at[call]]


def _with_peers(
    payloads: CallPayloads, call: IntArray, activity: IntArray, sends: BoolArray, receives: BoolArray
) -> IntArray:
    size, peer, communicator = payloads.size_bytes[call], payloads.peer[call], payloads.communicator[call]
    named = (peer >= 0) & (communicator >= 0) & (size >= 0) & (sends | receives)
    columns = activity, communicator, peer, size * sends, size * receives
    return np.stack(columns)[:, named]


def messages_of(called: Called, mine: IntArray) -> Messages:
    """Of some activities, as a summary keeps it; empty where nothing says anything."""
    columns = called.sends[mine], called.receives[mine], called.received_bytes[mine]
    if all((column <= 0).all() for column in columns):
        return Messages(*none_of(Messages))
    return Messages(*columns)


def own_places(rank: RankTimeline) -> dict[int, int]:
    """Of each communicator, by its hash, which of its ranks this one is, where that is recorded."""
    known = communicators_in(rank)
    return {
        key: own for key, own in zip(known.hashes.tolist(), known.own_rank.tolist(), strict=True) if own >= 0
    }


def peers_of(called: Called, inside: BoolArray, kind: IntArray, own: dict[int, int]) -> Peers:
    """Bytes by kind, communicator and peer, of the activities inside, masks and kinds of shape (m,).

    `own`: the rank's own place in each communicator, by its hash.
    """
    rows = called.calls[:, inside[called.calls[0]]]
    keys = np.stack((kind[rows[0]], rows[1], rows[2]))
    several, place = np.unique(keys, axis=1, return_inverse=True)
    sent, received = (np.zeros(several.shape[1], dtype=np.int64) for _ in range(2))
    np.add.at(sent, place.reshape(-1), rows[3])
    np.add.at(received, place.reshape(-1), rows[4])
    most = np.sort(np.argsort(-(sent + received), kind="stable")[:_MOST])
    where = np.array([own.get(key, UNKNOWN) for key in several[1].tolist()], dtype=np.int64)
    columns = several[0], several[1], where, several[2], sent, received
    return Peers(*(column[most] for column in columns))
