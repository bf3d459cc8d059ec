"""The collectives of one rank: their groups and numbers, and what the rank did before each.

What the rank spends its time on is kept as sets of instants, to be asked of any stretch. NCCL's
calls say how many messages and bytes a collective has, and with whom.
"""

from typing import Final

import numpy as np

from traces.account.host import input_copies
from traces.account.pieces import REASONS, AbsentPieces
from traces.arrays import (
    FOREVER,
    BoolArray,
    IntArray,
    count_from_0,
    distinct,
    ints,
    none_of,
    order_of,
    zeros,
)
from traces.frozen import frozen
from traces.groups import before_of, group_of, mask_of, passing, place_in_run, sums_of
from traces.intervals import Spans, covered_ns, instants_of, join, ns_in, subtract, union
from traces.missing import Missing
from traces.ranks.summaries.identity import fingerprint_of_pair, fingerprint_of_text
from traces.ranks.summaries.summary import (
    UNKNOWN,
    Group,
    GroupSource,
    Instances,
    Messages,
    Operation,
    Peers,
)
from traces.resolve.communication import Communication, communication_of
from traces.resolve.nccl_calls import (
    CallPayloads,
    Communicators,
    ThreadCalls,
    calls_by_thread,
    communicators_in,
    groups_of,
)
from traces.resolve.resolution import UNTOLD
from traces.steps.found import Steps
from traces.timeline import KEYS, Bucket, RankTimeline, Source
from traces.toml_tables import read_table

_STARVED: Final = passing(lambda reason: reason.startswith("launch_starved."), REASONS)


@frozen
class SpentInstants:
    """Instants of compute, of grouped GEMMs, of communication without compute, and of a GPU without
    either for which the host is the reason: `loader` before a step's first kernel and the copy of
    its batch, or in a range of a loader, `host` all other. None where the recording does not tell
    why no compute ran.
    """

    compute: Spans
    grouped: Spans
    comm: Spans
    exposed: Spans
    host: Spans | None
    loader: Spans | None


def spent_by(rank: RankTimeline, steps: Steps, absent: AbsentPieces | Missing) -> SpentInstants:
    """Sort the time of a rank."""
    rows = rank.activities
    computes = rows.is_compute
    compute, comm = instants_of(rows, computes), instants_of(rows, rows.is_comm)
    grouped = instants_of(rows, computes & (rows.key == KEYS[Bucket.COMPUTE].index("grouped_gemm")))
    host = loader = None
    if not isinstance(absent, Missing):
        places, begins = np.flatnonzero(computes), [step.start_ns for step in steps.recorded]
        at = np.searchsorted(rows.start_ns[places], begins)
        first = places[at[at < len(places)]]
        starved, by_data = (
            _STARVED[absent.reason],
            absent.reason == REASONS.index("launch_starved.data"),
        )
        early = instants_of(absent, starved & np.isin(absent.kernel, first) & ~by_data)
        early = subtract(early, _after_batch(rank, ints(begins), rows.start_ns[first]))
        loader = subtract(join(early, instants_of(absent, by_data)), comm)
        host = subtract(subtract(instants_of(absent, starved), comm), loader)
    return SpentInstants(compute, grouped, comm, subtract(comm, compute), host, loader)


def _after_batch(rank: RankTimeline, begin_ns: IntArray, first_ns: IntArray) -> Spans:
    """From where the copy of its batch begins until a step's first compute does, in steps that have
    both in that order: what the host waits for there is no batch.
    """
    copies_ns = np.append(np.sort(rank.activities.start_ns[input_copies(rank)]), FOREVER)
    copy_ns = copies_ns[np.searchsorted(copies_ns, begin_ns[: len(first_ns)])]
    copied = copy_ns < first_ns
    return union(copy_ns[copied], first_ns[copied])


_MOST: Final = 64
"""Pairs of kind and peer that a summary lists: those with the most bytes."""


@frozen
class Called:
    """Of each communication activity, shape (m,), what the calls behind it say, `UNKNOWN` where
    nothing does.

    `sends` and `receives` count calls with one peer. `given_bytes` is what all other calls name, or
    what is sent; `received_bytes` is what is received. `ranks` are those of the communicator.
    `calls`: each call with a peer, as rows of activity, communicator, peer, bytes sent and bytes
    received.
    """

    sends: IntArray
    receives: IntArray
    given_bytes: IntArray
    received_bytes: IntArray
    ranks: IntArray
    calls: IntArray


def called_by(comm: Communication) -> Called:
    """What the calls of all threads say. A group that launched several kernels says nothing of
    each.
    """
    communicators = communicators_in(comm.rank)
    amounts: IntArray = np.full((5, len(comm)), UNKNOWN)
    with_peers = [zeros((5, 0))]
    for mine, calls, payloads in calls_by_thread(comm, communicators):
        call, behind = _joined(calls, calls.launching(comm.rows.launch_ns[mine]))
        activity = mine[behind]
        sends, receives = calls.sends[call], calls.receives[call]
        ranks = communicators.rank_count_of(payloads.communicator[call])
        size = _of_all(payloads.size_bytes[call], ranks, calls.all_to_alls[call])
        seen = mask_of(activity, len(comm))
        silent = mask_of(activity[size < 0], len(comm))
        ones = np.ones_like(size)
        columns = ((sends, ones), (receives, ones), (~receives, size), (receives, size))
        for row, (which, amount) in enumerate(columns):
            added = sums_of(amount[which], activity[which], len(comm))
            known = seen if row < 2 else seen & ~silent
            amounts[row, known] = added[known]
        amounts[4, activity] = ranks
        with_peers.append(_with_peers(payloads, call, activity, sends, receives))
    rows = np.concatenate(with_peers, axis=1)
    rows[1] = np.append(communicators.hashes, UNKNOWN)[rows[1]]
    sends, receives, given, received, ranks = amounts
    received[sends + receives <= 0] = UNKNOWN
    return Called(sends, receives, given, received, ranks, rows)


def _of_all(size: IntArray, ranks: IntArray, of_one: BoolArray) -> IntArray:
    """Bytes for all ranks, where a call names those for one, as of a reduce-scatter
    (src/collectives.cc).
    """
    return np.where(of_one, np.where((size >= 0) & (ranks > 0), size * ranks, UNKNOWN), size)


def _joined(calls: ThreadCalls, launched: IntArray) -> tuple[IntArray, IntArray]:
    """Calls that move data, and of each the one launch, by place, that its group made."""
    group = np.where(calls.moves, calls.group, UNKNOWN)
    order = order_of(launched)
    numbers = launched[order]
    at = np.searchsorted(numbers, group)
    until = np.searchsorted(numbers, group, side="right")
    call = np.flatnonzero((until - at == 1) & (group >= 0))
    return call, order[at[call]]


def _with_peers(
    payloads: CallPayloads,
    call: IntArray,
    activity: IntArray,
    sends: BoolArray,
    receives: BoolArray,
) -> IntArray:
    size = payloads.size_bytes[call]
    peer = payloads.peer[call]
    communicator = payloads.communicator[call]
    named = (peer >= 0) & (communicator >= 0) & (size >= 0) & (sends | receives)
    return np.stack((activity, communicator, peer, size * sends, size * receives))[:, named]


def messages_of(called: Called, mine: IntArray) -> Messages:
    """Of some activities, as a summary keeps it; empty where nothing says anything."""
    columns = np.stack((called.sends, called.receives, called.received_bytes))[:, mine]
    if (columns <= 0).all():
        return Messages.none()
    return Messages(*columns)


def peers_of(called: Called, inside: BoolArray, kind: IntArray, known: Communicators) -> Peers:
    """Bytes by kind, communicator and peer, of the activities inside, masks and kinds of shape
    (m,).
    """
    rows = called.calls[:, inside[called.calls[0]]]
    keys = np.stack((kind[rows[0]], rows[1], rows[2]))
    triples, place = np.unique(keys, axis=1, return_inverse=True)
    place, count = place.reshape(-1), triples.shape[1]
    sent, received = sums_of(rows[3], place, count), sums_of(rows[4], place, count)
    most = np.sort(order_of(-(sent + received))[:_MOST])
    own = dict(zip(known.hashes.tolist(), known.own_rank.tolist(), strict=True))
    where = ints([max(own.get(key, UNKNOWN), UNKNOWN) for key in triples[1].tolist()])
    return Peers(triples[0], triples[1], where, triples[2], sent, received).take(most)


_OPERATIONS: Final = read_table("traces.ranks.summaries", "operations.toml", dict[str, str])
"""Subclass of a kernel's name -> what it does."""
_MEMBERS: Final = 64
"""Ranks of a group that a summary lists; of larger ones it has the number."""
_PARTS: Final = 256
"""Kernels of one numbered collective; a coalesced one has several."""


@frozen
class Collectives:
    """The collectives of a rank, and what the calls behind them say."""

    groups: tuple[Group, ...]
    instances: Instances
    messages: Messages
    peers: Peers


def collectives_of(
    rank: RankTimeline, steps: Steps, spent: SpentInstants, usual: Steps
) -> Collectives:
    """The collectives of a rank whose activities carry the resolved kinds, in order of start.

    `usual`: the steps of which bytes are counted.
    """
    comm = communication_of(rank)
    mine = np.flatnonzero(comm.rows.source == Source.KERNEL)
    called = called_by(comm)
    rows = comm.rows.take(mine)
    by_name = [Operation[_OPERATIONS.get(named.subclass, "OTHER")] for named in comm.classes]
    operation = ints(by_name)[rows.name]
    given, ranks = called.given_bytes[mine], called.ranks[mine]
    of_part = operation == Operation.REDUCE_SCATTER  # NCCL names the part that it gets
    size_bytes, number = _of_all(given, ranks, of_part), np.full(len(mine), UNKNOWN)
    if (recorded := comm.rank.columns.collectives) is not None:
        if (beside := recorded.size_bytes) is not None:
            size_bytes = np.where(beside[rows.row] >= 0, beside[rows.row], size_bytes)
        number = number if recorded.sequence is None else recorded.sequence[rows.row]
    groups, group = _groups(comm, mine, operation)
    instances = Instances(
        group=group,
        sequence=_sequences(group, number),
        operation=operation,
        kind=ints(rows.key),
        size_bytes=size_bytes,
        step=steps.used_at(rows.start_ns),
        start_ns=rows.start_ns,
        end_ns=rows.end_ns,
        exposed_ns=ns_in(rows, spent.exposed),
        **_before(group, rows.start_ns, rows.end_ns, spent),
    )
    used = usual.used_at(comm.rows.start_ns) != UNKNOWN if usual.used else ~none_of(len(comm))
    peers = peers_of(called, used, ints(comm.rows.key), communicators_in(rank))
    return Collectives(groups, instances, messages_of(called, mine), peers)


def _groups(
    comm: Communication, mine: IntArray, operation: IntArray
) -> tuple[tuple[Group, ...], IntArray]:
    rank, rows = comm.rank, comm.rows.take(mine)
    groups: list[Group] = []
    group = np.full(len(mine), UNKNOWN)
    recorded = rank.columns.collectives
    purpose = np.full(len(mine), UNTOLD)
    if recorded is not None and recorded.groups:
        purpose = recorded.purpose[rows.row]
        number = recorded.group[rows.row]
        for group_number in distinct(number[number >= 0]).tolist():
            known, rows_of_group = recorded.groups[group_number], number == group_number
            group[rows_of_group] = len(groups)
            about = int(purpose[rows_of_group].max())
            few = known.members if known.members and len(known.members) <= _MEMBERS else None
            groups.append(Group(GroupSource.PROCESS_GROUP, known.key, known.size, few, about))
    communicators = communicators_in(rank)
    if communicators.calls is not None:
        behind = groups_of(comm)
        number, peer = behind.communicator[mine], behind.peer[mine]
        several = np.unique(np.stack((number, peer))[:, (number >= 0) & (group == UNKNOWN)], axis=1)
        for communicator, at in several.T.tolist():
            group[(number == communicator) & (peer == at) & (group == UNKNOWN)] = len(groups)
            groups.append(_of_communicator(communicators, communicator, at))
    for key, rows_of_group in _by_order(rows.stream_id, operation, group):
        group[rows_of_group] = len(groups)
        groups.append(Group(GroupSource.ORDER, key))
    return tuple(groups), group


def _of_communicator(communicators: Communicators, number: int, peer: int) -> Group:
    """All ranks of a communicator, or a pair of them where calls name one peer only."""
    size, own = int(communicators.rank_count[number]), int(communicators.own_rank[number])
    key = int(communicators.hashes[number])
    if peer == UNTOLD or size == 2:
        return Group(
            GroupSource.COMMUNICATOR, key, size if size > 0 else None, own=own if own >= 0 else None
        )
    if own < 0:
        return Group(GroupSource.PEER, key, 2, peer=peer)
    return Group(
        GroupSource.COMMUNICATOR, fingerprint_of_pair(key, own, peer), 2, own=int(own > peer)
    )


def _by_order(stream: IntArray, operation: IntArray, group: IntArray) -> list[tuple[int, IntArray]]:
    """What nothing is told of: by operation, and the turn of its stream among those that have
    it.
    """
    result = []
    open_ = np.flatnonzero(group == UNKNOWN)
    for code in distinct(operation[open_]).tolist():
        of_code = open_[operation[open_] == code]
        for turn, stream_id in enumerate(distinct(stream[of_code]).tolist()):
            key = fingerprint_of_text(f"{Operation(code).name} {turn}")
            result.append((key, of_code[stream[of_code] == stream_id]))
    return result


def _sequences(group: IntArray, number: IntArray) -> IntArray:
    """The recorded number within the group where all of a group have one, else the order."""
    silent = mask_of(group[number < 0], count_from_0(group))
    turn, again = _turns(group), _turns(group_of(group, number) if len(group) else group)
    return np.where(silent[group], turn, number * _PARTS + np.minimum(again, _PARTS - 1))


def _turns(group: IntArray) -> IntArray:
    """Of each row its place, from 0, among those of its group."""
    order, turn = order_of(group), zeros(len(group))
    turn[order] = place_in_run(group[order])
    return turn


def _before(
    group: IntArray, start_ns: IntArray, end_ns: IntArray, spent: SpentInstants
) -> dict[str, IntArray]:
    before = before_of(group)
    has = before >= 0
    since_ns = np.where(has, np.minimum(end_ns[before], start_ns), start_ns)
    ends_ns, order = np.sort(end_ns), order_of(start_ns)
    ended = np.searchsorted(ends_ns, start_ns, side="right")
    last_ns = ends_ns[ended - 1]  # of any group; of the first one nothing is said
    last_ns[order[1:]] = np.maximum(last_ns[order[1:]], start_ns[order[:-1]])

    def within(begin_ns: IntArray, known: BoolArray, spans: Spans | None) -> IntArray:
        if spans is None:
            return np.full(len(group), UNKNOWN)
        return np.where(known, covered_ns(begin_ns, start_ns, spans), UNKNOWN)

    return {
        "compute_ns": within(since_ns, has, spent.compute),
        "grouped_ns": within(since_ns, has, spent.grouped),
        "host_ns": within(last_ns, ended > 0, spent.host),
        "loader_ns": within(since_ns, has, spent.loader),
    }
