"""Bytes: what each rank gives by kind of communication, to whom, and how fast it moves.

Sizes are those that NCCL's payloads or the PyTorch profiler record beside a collective. Where they
are not recorded nothing is known, and no figure is made.
"""

from collections import defaultdict
from collections.abc import Mapping
from itertools import compress
from typing import Final

import numpy as np

from traces.arrays import (
    BoolArray,
    IntArray,
    bools,
    count_from_0,
    distinct,
    none_of,
    row_by_row,
    summed,
    zeros,
)
from traces.frozen import frozen
from traces.missing import Missing, gap
from traces.names.kernels import COMM_KINDS
from traces.ranks.matching.match import SIZES_AGREE, Matched
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import (
    UNKNOWN,
    FirstStep,
    Operation,
    RecordedCollectives,
    Summaries,
    in_steps,
    messages_beside,
)
from traces.ranks.waiting.waits import Waits, complete
from traces.sections.run import CollectiveSpeed, PeerBytes, Traffic

_PAIRS: Final = 32
"""Pairs of ranks that are listed: those with the most bytes."""
_NS: Final = 1_000_000_000
NO_SIZES: Final = gap(
    "no sizes of collectives are recorded",
    "nsys: NCCL 2.25 or later, export with --include-blobs=true; or record with the PyTorch "
    "profiler",
)


@frozen
class Bytes:
    """Bytes of a run. `by_rank`: in order of places, what each gives in a mean step by kind of
    communication; kinds of which a size is missing are left out.
    """

    by_rank: tuple[Mapping[str, int], ...]
    traffic: Traffic


def bytes_of(
    summaries: Summaries,
    matched: Matched,
    waits: Waits,
    counted: BoolArray,
    *,
    all_ranks_seen: bool,
) -> Bytes | Missing:
    """Add up what is recorded. `counted`: which instances are in steps of the run, shape (n,)."""
    if not (matched.recorded.rows.size_bytes != UNKNOWN).any():
        return NO_SIZES
    step, place = matched.recorded.rows.step, matched.recorded.place
    seen = none_of((len(summaries), count_from_0(step)))
    seen[place[step != UNKNOWN], step[step != UNKNOWN]] = True
    steps = np.maximum(seen.sum(axis=1), 1)  # without steps the whole window
    speeds = _speeds(summaries, matched, waits, counted & complete(matched, all_ranks_seen))
    longer = bools([summary.first_step is FirstStep.LONGER for summary in summaries])
    sent = _pairs(summaries, np.maximum(steps - longer, 1))
    return Bytes(_given_by_rank(summaries, matched.recorded, steps), Traffic(speeds, sent))


def _given_by_rank(
    summaries: Summaries, recorded: RecordedCollectives, steps: IntArray
) -> tuple[dict[str, int], ...]:
    place, kind, size = recorded.place, recorded.rows.kind, recorded.rows.size_bytes
    counts = (kind >= 0) & in_steps(summaries, recorded)
    shape = len(summaries), len(COMM_KINDS)
    table = zeros(shape)
    unsized, used = none_of(shape), none_of(shape)
    np.add.at(table.reshape(-1), place[counts] * shape[1] + kind[counts], size[counts])
    used[place[counts], kind[counts]] = True
    unsaid = counts & (size == UNKNOWN)
    unsized[place[unsaid], kind[unsaid]] = True
    known, mean = (used & ~unsized).tolist(), (table // steps[:, None]).tolist()
    return tuple(
        dict(compress(zip(COMM_KINDS, row, strict=True), known_kinds))
        for row, known_kinds in zip(mean, known, strict=True)
    )


def _speeds(
    summaries: Summaries, matched: Matched, waits: Waits, whole: BoolArray
) -> tuple[CollectiveSpeed, ...] | Missing:
    """Of those that all ranks of their group recorded, in steps.

    Size over transfer is the algorithm bandwidth of nccl-tests (doc/PERFORMANCE.md): of a gather
    and a scatter the size is that of all ranks together, of an exchange what the shortest
    participant moves.
    """
    moved = _moved_bytes(summaries, matched)
    kind = matched.kinds
    is_told = whole & (moved != UNKNOWN) & (kind >= 0)
    speeds = []
    for code in distinct(kind[is_told]).tolist():
        mine = is_told & (kind == code)
        size, ns = summed(moved[mine]), summed(waits.transfer_ns[mine])
        no_time = gap("their transfers took no time that was recorded", "none")
        speed = size * _NS / ns if ns else no_time
        speeds.append(CollectiveSpeed(COMM_KINDS[code], summed(mine), size, ns, speed))
    if speeds:
        return tuple(speeds)
    return gap(
        "no collective of known size was recorded by all ranks of its group",
        "record every rank of the groups",
    )


def _moved_bytes(summaries: Summaries, matched: Matched) -> IntArray:
    """The size of each instance, shape (n,); `UNKNOWN` where that of a participant is not
    recorded.
    """
    sent = matched.recorded.rows.size_bytes[matched.at]
    received = messages_beside(summaries).received_bytes[matched.at]
    first = matched.first
    lasts_ns = matched.length_ns
    shortest = lasts_ns == parts.spread(parts.least(lasts_ns, first), first)
    of_shortest = parts.most(np.where(shortest, np.maximum(sent, received), UNKNOWN), first)
    of_all = parts.most(sent, first) * np.where(
        matched.operation == Operation.ALL_GATHER, np.diff(first), 1
    )
    exchanges = ~np.isin(matched.operation, SIZES_AGREE)
    known = parts.least(sent, first) != UNKNOWN
    return np.where(known, np.where(exchanges, of_shortest, of_all), UNKNOWN)


def _pairs(summaries: Summaries, steps: IntArray) -> tuple[PeerBytes, ...]:
    """Who sends most to whom, where both are known by their places in a communicator."""
    place_of: dict[tuple[int, int], int] = {}
    for place, summary in enumerate(summaries):
        for key, own in row_by_row(summary.peers.communicator, summary.peers.own):
            if own != UNKNOWN:
                place_of[key, own] = place
    sent = defaultdict[tuple[str, int, int], int](int)
    for place, summary in enumerate(summaries):
        table = summary.peers
        for kind, key, peer, size in row_by_row(
            table.kind, table.communicator, table.peer, table.sent_bytes
        ):
            other = place_of.get((key, peer))
            if other is not None and other != place and size and kind >= 0:
                sent[COMM_KINDS[kind], place, other] += size // int(steps[place])
    most = sorted(sent, key=lambda pair: (-sent[pair], pair))[:_PAIRS]
    return tuple(PeerBytes(*pair, sent[pair]) for pair in most)
