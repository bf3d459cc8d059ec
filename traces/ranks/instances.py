"""The collectives of one rank: their groups and numbers, and what the rank did before each."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import NULL, IntArray, distinct
from traces.groups import group_of, place_in_run
from traces.intervals import Spans, covered_ns
from traces.ranks.fingerprints import of_pair, of_text
from traces.ranks.payloads import Called, called_by, messages_of, own_places, peers_of
from traces.ranks.spent import Spent
from traces.ranks.summary import UNKNOWN, Group, GroupSource, Instances, Messages, Operation, Peers
from traces.resolve.communication import Communication, communication_of
from traces.resolve.nccl_communicators import Communicators, communicators_in
from traces.resolve.nccl_groups import groups_of
from traces.resolve.resolution import UNTOLD
from traces.steps.found import Steps
from traces.timeline import RankTimeline, Source

_OPERATIONS: Final = {
    "sendrecv": Operation.EXCHANGE,
    "pp_p2p": Operation.EXCHANGE,
    "cp_a2a": Operation.EXCHANGE,
    "ep_a2a": Operation.EXCHANGE,
    "all_reduce": Operation.ALL_REDUCE,
    "all_gather": Operation.ALL_GATHER,
    "reduce_scatter": Operation.REDUCE_SCATTER,
    "broadcast": Operation.BROADCAST,
    "reduce": Operation.REDUCE,
    "ep_dispatch": Operation.DISPATCH,
    "ep_combine": Operation.COMBINE,
    "ep_notify": Operation.CONTROL,
    "ep_sync": Operation.CONTROL,
    "ep_layout": Operation.CONTROL,
}
"""Subclass of a kernel's name -> what it does."""
_MEMBERS: Final = 64
"""Ranks of a group that a summary lists; of larger ones it has the number."""
_PARTS: Final = 256
"""Kernels of one numbered collective; a coalesced one has several."""


@dataclass(frozen=True, slots=True)
class Collectives:
    """The collectives of a rank, and what the calls behind them say."""

    groups: tuple[Group, ...]
    instances: Instances
    messages: Messages
    peers: Peers


def collectives_of(rank: RankTimeline, steps: Steps, spent: Spent) -> Collectives:
    """The collectives of a rank whose activities carry the resolved kinds, in order of start."""
    comm = communication_of(rank)
    mine = np.flatnonzero(comm.rows.source == Source.KERNEL)
    called = called_by(comm)
    told = _told(comm, mine, called)
    rows = comm.rows.take(mine)
    start_ns, end_ns = rows.start_ns, rows.end_ns
    before = _before(told.group, start_ns, end_ns, spent)
    instances = Instances(
        group=told.group,
        sequence=told.sequence,
        operation=told.operation,
        kind=rows.key.astype(np.int64),
        size_bytes=told.size_bytes,
        step=steps.used_at(start_ns),
        start_ns=start_ns,
        end_ns=end_ns,
        exposed_ns=covered_ns(start_ns, end_ns, spent.exposed),
        **before,
    )
    used = steps.used_at(comm.rows.start_ns) != UNKNOWN if steps.used else np.ones(len(comm), dtype=np.bool_)
    peers = peers_of(called, used, comm.rows.key.astype(np.int64), own_places(rank))
    return Collectives(told.groups, instances, messages_of(called, mine), peers)


@dataclass(frozen=True, slots=True)
class _Told:
    """What the recording tells of each collective, shape (m,); `group` indexes `groups`."""

    groups: tuple[Group, ...]
    group: IntArray
    sequence: IntArray
    operation: IntArray
    size_bytes: IntArray


def _told(comm: Communication, mine: IntArray, called: Called) -> _Told:
    rows = comm.rows.take(mine)
    by_name = [_OPERATIONS.get(one.subclass, Operation.OTHER) for one in comm.classes]
    operation = np.array(by_name, dtype=np.int64)[rows.name]
    recorded = comm.rank.columns.collectives
    size_bytes = _given_bytes(called, mine, operation)
    number = np.full(len(mine), UNKNOWN, dtype=np.int64)
    if recorded is not None:
        if (beside := recorded.size_bytes) is not None:
            size_bytes = np.where(beside[rows.row] >= 0, beside[rows.row], size_bytes)
        number = number if recorded.sequence is None else recorded.sequence[rows.row]
    groups, group = _groups(comm, mine, operation)
    return _Told(groups, group, _sequences(group, number), operation, size_bytes)


def _given_bytes(called: Called, mine: IntArray, operation: IntArray) -> IntArray:
    """What the rank gives. Of a reduce-scatter NCCL names the part that it gets (src/collectives.cc)."""
    given, ranks = called.given_bytes[mine], called.ranks[mine]
    of_part = (operation == Operation.REDUCE_SCATTER) & (given >= 0)
    return np.where(of_part, np.where(ranks > 0, given * ranks, UNKNOWN), given)


def _groups(comm: Communication, mine: IntArray, operation: IntArray) -> tuple[tuple[Group, ...], IntArray]:
    """The group of each collective: of its communicator, else its process group, else by order."""
    rank, rows = comm.rank, comm.rows.take(mine)
    found: list[Group] = []
    group = np.full(len(mine), UNKNOWN, dtype=np.int64)
    recorded = rank.columns.collectives
    purpose = np.full(len(mine), UNTOLD, dtype=np.int64)
    if recorded is not None and recorded.groups:
        purpose = recorded.purpose[rows.row]
        number = recorded.group[rows.row]
        for one in distinct(number[number >= 0]).tolist():
            known, here = recorded.groups[one], number == one
            group[here] = len(found)
            about = int(purpose[here].max())
            few = known.members if known.members and len(known.members) <= _MEMBERS else None
            found.append(Group(GroupSource.PROCESS_GROUP, known.key, known.size, few, about))
    communicators = communicators_in(rank)
    if communicators.calls is not None:
        behind = groups_of(comm)
        number, peer = behind.communicator[mine], behind.peer[mine]
        several = np.unique(np.stack((number, peer))[:, (number >= 0) & (group == UNKNOWN)], axis=1)
        for one, other in several.T.tolist():
            group[(number == one) & (peer == other) & (group == UNKNOWN)] = len(found)
            found.append(_of_communicator(communicators, one, other))
    for key, here in _by_order(rows.stream_id, operation, group):
        group[here] = len(found)
        found.append(Group(GroupSource.ORDER, key))
    return tuple(found), group


def _of_communicator(communicators: Communicators, number: int, peer: int) -> Group:
    """All ranks of a communicator, or a pair of them where calls name one peer only."""
    size, own = int(communicators.rank_count[number]), int(communicators.own_rank[number])
    key = int(communicators.hashes[number])
    if peer == UNTOLD or size == 2:
        return Group(GroupSource.COMMUNICATOR, key, size if size > 0 else None, own=own if own >= 0 else None)
    if own < 0:
        return Group(GroupSource.PEER, key, 2, peer=peer)
    return Group(GroupSource.COMMUNICATOR, of_pair(key, own, peer), 2, own=int(own > peer))


def _by_order(stream: IntArray, operation: IntArray, group: IntArray) -> list[tuple[int, IntArray]]:
    """What nothing is told of: by operation, and the turn of its stream among those that have it."""
    result = []
    open_ = np.flatnonzero(group == UNKNOWN)
    for code in distinct(operation[open_]).tolist():
        of_code = open_[operation[open_] == code]
        for turn, one in enumerate(distinct(stream[of_code]).tolist()):
            key = of_text(f"{Operation(code).name} {turn}")
            result.append((key, of_code[stream[of_code] == one]))
    return result


def _sequences(group: IntArray, number: IntArray) -> IntArray:
    """The recorded number within the group where all of a group have one, else the order."""
    order = np.argsort(group, kind="stable")
    turn = np.empty(len(group), dtype=np.int64)
    turn[order] = place_in_run(group[order])
    silent = np.bincount(group[number < 0], minlength=int(group.max(initial=-1)) + 1) > 0
    again = np.empty(len(group), dtype=np.int64)
    same = group_of(group, number) if len(group) else group
    by_number = np.argsort(same, kind="stable")
    again[by_number] = place_in_run(same[by_number])
    return np.where(silent[group], turn, number * _PARTS + np.minimum(again, _PARTS - 1))


def _before(group: IntArray, start_ns: IntArray, end_ns: IntArray, spent: Spent) -> dict[str, IntArray]:
    """What the rank did since its previous collective of the same group ended."""
    order = np.argsort(group, kind="stable")
    previous_ns = np.full(len(group), NULL, dtype=np.int64)
    same = np.flatnonzero(group[order][1:] == group[order][:-1])
    previous_ns[order[same + 1]] = end_ns[order[same]]
    has = previous_ns != NULL
    since_ns = np.where(has, np.minimum(previous_ns, start_ns), start_ns)

    def within(spans: Spans | None) -> IntArray:
        if spans is None:
            return np.full(len(group), UNKNOWN, dtype=np.int64)
        return np.where(has, covered_ns(since_ns, start_ns, spans), UNKNOWN)

    return {
        "compute_ns": within(spent.compute),
        "grouped_ns": within(spent.grouped),
        "host_ns": within(spent.host),
        "loader_ns": within(spent.loader),
    }
