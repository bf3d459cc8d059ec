"""What one rank's recording gives to the run it is of, and columns of all summaries one after the
other.

A run is judged from summaries alone, which are small, so that thousands of ranks are a matter of
seconds. Times are whole ns on the rank's own clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from dataclasses import field
from enum import IntEnum
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, Lasting, Rows, bools, codes_of, ints
from traces.frozen import frozen
from traces.groups import passing
from traces.names.kernels import COMM_KINDS

UNKNOWN: Final = -1
"""Stands for None in the columns of a summary: no size, no step, nothing before; never a zero."""


class Operation(IntEnum):
    """What a collective does, by its kernel's name: all its participants say the same."""

    EXCHANGE = 0
    ALL_REDUCE = 1
    ALL_GATHER = 2
    REDUCE_SCATTER = 3
    BROADCAST = 4
    REDUCE = 5
    DISPATCH = 6
    COMBINE = 7
    CONTROL = 8
    OTHER = 9


ENDS_TOGETHER: Final = (Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.REDUCE_SCATTER)
"""What ends on all ranks at once whoever is slow, since every rank's data passes all of them.

An exchange ends on each rank when its own data is there.
"""


class GroupSource(IntEnum):
    """By what a group of ranks is known."""

    COMMUNICATOR = 0
    """The hash that NCCL writes into its payloads: the same number on every rank."""
    PROCESS_GROUP = 1
    """Its name and its ranks, as PyTorch writes them beside a kernel."""
    ORDER = 2
    """Nothing says: collectives of one kind on one stream, in their order."""
    PEER = 3
    """Messages with one other rank of a communicator, of which the own place in it is not
    recorded."""


@frozen
class Group:
    """A group of ranks that communicate. `key` is equal on all its ranks, and only there.

    `size`, `members` (global ranks) and `own`, this rank's place in it, are None where the
    recording does not say; `purpose` indexes `traces.columns.PURPOSES` or is `UNKNOWN`. With
    `PEER`, `key` is that of the communicator, and `peer` the other's place in it.
    """

    source: GroupSource
    key: int
    size: int | None = None
    members: tuple[int, ...] | None = None
    purpose: int = UNKNOWN
    own: int | None = None
    peer: int | None = None


@frozen
class Identity:
    """Who recorded this. Nothing in it names a host, a user or a path.

    `clock` and `recording` are fingerprints: recordings with one `clock` share a clock, and two
    with one `recording` are the same. `session_start_ns` makes times UNIX times, None where the
    recording does not say. GPU work was recorded from `begin_ns` to `end_ns`. `version` is that of
    the recorder's format, `process` the operating system's id. `world_size_from`: where a world
    size is from that was not recorded, such as `run.yaml:12`.
    """

    trace: str
    kind: str
    version: str | None
    rank: int | None
    world_size: int | None
    device: int
    clock: int
    recording: int
    process: int | None = None
    session_start_ns: int | None = None
    begin_ns: int = 0
    end_ns: int = 0
    world_size_from: str | None = None


@frozen
class Fingerprint:
    """What work a rank does in a step, so that only like is compared with like: kernels in a median
    step.
    """

    attention: int
    routers: int
    has_experts: bool
    has_embedding: bool
    has_loss: bool


@frozen
class StepParts(Rows, Lasting):
    """The used steps, arrays of shape (k,). `loader_ns` is the idle time before a step's first
    launch.

    It is no part of `host_starved_ns`, which is other time without work that the host made.
    `grouped_ns` is the time of grouped GEMMs, `pace_ns` the median time from one launch of a thread
    to its next. `UNKNOWN` where the recording does not tell.
    """

    start_ns: IntArray
    end_ns: IntArray
    compute_ns: IntArray
    exposed_comm_ns: IntArray
    host_starved_ns: IntArray
    loader_ns: IntArray
    grouped_ns: IntArray
    pace_ns: IntArray


@frozen
class Instances(Rows, Lasting):
    """Collectives that the rank took part in, in order of start, arrays of shape (m,).

    `group` indexes the summary's groups; `sequence` is the recorded number within the group, else
    the order. `kind` indexes `traces.names.kernels.COMM_KINDS`. `size_bytes` is what the rank said
    it gives. `step` is that of the used steps in which it started. Of its time no compute ran in
    `exposed_ns`. The last four say what the rank did since its previous collective of the same
    group ended: time of compute, of it in grouped GEMMs, of a GPU that the host left idle, and of
    the idle time before a step's first launch; `UNKNOWN` without a previous one. `host_ns` is since
    any collective of the rank had begun or ended, so that all of a rank's add up.
    """

    group: IntArray
    sequence: IntArray
    operation: IntArray
    kind: IntArray
    size_bytes: IntArray
    step: IntArray
    start_ns: IntArray
    end_ns: IntArray
    exposed_ns: IntArray
    compute_ns: IntArray
    grouped_ns: IntArray
    host_ns: IntArray
    loader_ns: IntArray


@frozen
class KernelTimes(Rows):
    """How long kernels of one kind take with no communication beside them, arrays of shape (j,).

    `kernel` is a fingerprint of name and launch shape, equal on all ranks that run it; `total_ns`
    is of all `count` of a kind, `key` that of their class among compute.
    """

    kernel: IntArray
    median_ns: IntArray
    total_ns: IntArray
    key: IntArray
    count: IntArray


@frozen
class Messages(Rows):
    """What the calls behind collectives say, arrays of shape (m,) as `Instances`; empty where
    nothing does.

    `sends` and `receives` count calls with one peer, `received_bytes` is what they receive,
    `UNKNOWN` where nothing says so.
    """

    sends: IntArray
    receives: IntArray
    received_bytes: IntArray


@frozen
class Peers(Rows):
    """Bytes sent to and received from each peer in the used steps, arrays of shape (q,).

    `kind` indexes `traces.names.kernels.COMM_KINDS`; `communicator` is its hash, `peer` a place in
    it and `own` that of the rank, `UNKNOWN` where it is not recorded.
    """

    kind: IntArray
    communicator: IntArray
    own: IntArray
    peer: IntArray
    sent_bytes: IntArray
    received_bytes: IntArray


@frozen
class ExpertWork(Rows):
    """GPU time of the experts' GEMMs by used step and MoE layer, arrays of shape (e,); empty where
    unknown.

    Layers count those that this rank has, or are as ranges name them.
    """

    step: IntArray
    layer: IntArray
    work_ns: IntArray


class FirstStep(IntEnum):
    """How a rank's first whole step stands to its others."""

    USUAL = 0
    LONGER = 1
    """It is among the steps of the summary and longer than all others, which are alike; `peers`,
    `experts`, `kernels` and the fingerprint are without it."""
    INITIALISES = 2
    """It was left out: calls that load modules or allocate make it longer."""


@frozen
class Dropped:
    """What a summary left out to stay small: collectives, of steps in the middle, and
    resolution.
    """

    instances: int = 0
    steps: int = 0
    resolution_ns: int = 1


@frozen
class RankSummary:
    """One rank of one recording."""

    identity: Identity
    fingerprint: Fingerprint
    steps: StepParts
    groups: tuple[Group, ...]
    instances: Instances
    kernels: KernelTimes
    first_step: FirstStep = FirstStep.USUAL
    dropped: Dropped = Dropped()
    messages: Messages = field(default_factory=Messages.none)
    peers: Peers = field(default_factory=Peers.none)
    experts: ExpertWork = field(default_factory=ExpertWork.none)

    @property
    def communicators(self) -> set[int]:
        """Keys of groups that are those of no other run."""
        known = GroupSource.COMMUNICATOR, GroupSource.PEER
        return {group.key for group in self.groups if group.source in known}

    def own_places(self) -> Iterator[tuple[int, int, int]]:
        """Communicators whose size and whose place of this rank are recorded: key, size, place."""
        for group in self.groups:
            if group.source is GroupSource.COMMUNICATOR and group.size and group.own is not None:
                yield group.key, group.size, group.own


Summaries = Sequence[RankSummary]
"""Of ranks of one run; which place is which rank."""


@frozen
class RecordedCollectives:
    """The collectives of all summaries, shape (n,): `place` is that of the summary, `rows` as it
    has them.
    """

    place: IntArray
    rows: Instances


def kinds_of(*names: str) -> tuple[int, ...]:
    """Kinds of communication, by name, as `Instances` has them."""
    return tuple(map(COMM_KINDS.index, names))


def of_source(source: GroupSource, groups: Sequence[Group]) -> BoolArray:
    """Which groups are known by that; one more at the end, which is not."""
    return passing(lambda group: group.source is source, groups)


def sizes_of(groups: Sequence[Group]) -> IntArray:
    """The ranks of each group; 0 where that is not recorded."""
    return ints([group.size or 0 for group in groups])


def clocks_of(summaries: Summaries) -> tuple[list[int], IntArray]:
    """The clocks, by fingerprint, and the number among them of that of each summary."""
    clocks = [summary.identity.clock for summary in summaries]
    number = codes_of(sorted({*clocks}))
    return [*number], ints([number[clock] for clock in clocks])


def places_of(tables: Sequence[Sized]) -> IntArray:
    """Of each row of tables, one after the other, the place of its table."""
    return np.repeat(np.arange(len(tables)), [*map(len, tables)])


def recorded_of(summaries: Summaries) -> RecordedCollectives:
    """The collectives, in the order of the summaries."""
    tables = [summary.instances for summary in summaries]
    return RecordedCollectives(places_of(tables), Instances.joined(*tables))


def messages_beside(summaries: Summaries) -> Messages:
    """What calls say of the same collectives, `UNKNOWN` for ranks of which none is recorded."""
    tables = []
    for rank in summaries:
        nothing = np.full(len(rank.instances), UNKNOWN)
        tables.append(rank.messages if len(rank.messages) else Messages(nothing, nothing, nothing))
    return Messages.joined(*tables)


def in_steps(summaries: Summaries, recorded: RecordedCollectives) -> BoolArray:
    """Which collectives are in used steps; of a recording without steps all are."""
    has_steps = bools([len(summary.steps) for summary in summaries])
    return (recorded.rows.step != UNKNOWN) | ~has_steps[recorded.place]
