"""Producers across streams where no event was recorded, inferred from repetition.

An event wait can only mean work launched earlier. So for work X and another stream S the candidates are the
latest activities launched on S before X. Work that repeats the same way (its name, the work before it on its
stream and how many launches ago, the candidate's name and how many launches ago) forms a group; a candidate
that never, in the whole group, ended after its X began is taken as a producer. Never violated is not proven:
edges from here are marked, and where the host is the limit everything looks ordered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import COPY_KINDS, NULL, PLACE, BoolArray, IntArray, distinct
from traces.groups import group_of
from traces.limits import Limit
from traces.timeline import Activities, Bucket

OCCURRENCES: Final = Limit(
    20, "repetitions", "ours, tried on simulated and 37 real recordings: fewer agree by chance"
)
DEPTH: Final = 3
"""Candidates tried per stream, the latest first: the work of interest need not be the last launched."""
STREAMS: Final = 32
"""Streams considered, busiest first: each costs a pass, and real training steps use about ten."""


def infer_producers(rows: Activities, before: IntArray) -> tuple[IntArray, IntArray]:
    """(consumer, producer) pairs; `before` is the previous activity on each stream."""
    launched = np.flatnonzero(rows.launch_ns != NULL)
    by_launch = launched[np.lexsort((launched, rows.launch_ns[launched]))].astype(PLACE)
    nothing = np.empty(0, dtype=PLACE)
    if len(by_launch) < OCCURRENCES.value:
        return nothing, nothing
    order = _LaunchOrder.of(rows, by_launch, before)
    pairs = [_from_stream(order, stream) for stream in _busiest(order.stream)]
    consumers, producers = zip(*pairs, strict=True)
    return by_launch[np.concatenate(consumers)], by_launch[np.concatenate(producers)]


@dataclass(frozen=True, slots=True)
class _LaunchOrder:
    """Activities in order of launch, shape (m,). Places here are numbers of launches."""

    start_ns: IntArray
    end_ns: IntArray
    stream: IntArray
    what: IntArray
    context: IntArray
    """What it is, what ran before it on its stream, and how many launches ago."""
    feeds_host: BoolArray
    is_copy: BoolArray

    @classmethod
    def of(cls, rows: Activities, by_launch: IntArray, before: IntArray) -> _LaunchOrder:
        """Of a rank's; `by_launch` are their places in this order."""
        number = np.full(len(rows), -1, dtype=PLACE)
        number[by_launch] = np.arange(len(by_launch))
        what, previous = signature(rows), before[by_launch]
        has = previous >= 0
        ago = np.arange(len(by_launch), dtype=PLACE) - number[previous]
        mine = what[by_launch]
        context = group_of(mine, np.where(has, what[previous], -1), np.where(has, ago, -1))
        bucket, key = rows.bucket[by_launch], rows.key[by_launch]
        is_copy: BoolArray = bucket == Bucket.COPY
        feeds_host = is_copy & (key == COPY_KINDS.index("memcpy_d2h"))  # the host, never a kernel
        times = rows.start_ns[by_launch], rows.end_ns[by_launch]
        return cls(*times, rows.stream_id[by_launch], mine, context, feeds_host, is_copy)


def _from_stream(order: _LaunchOrder, stream: int) -> tuple[IntArray, IntArray]:
    """For each activity of other streams the nearest candidate on this stream that is never violated."""
    mine = order.stream == stream
    is_candidate = mine & ~order.feeds_host
    candidates, consumer = (
        np.flatnonzero(which).astype(PLACE) for which in (is_candidate, ~mine & ~order.is_copy)
    )
    latest = np.cumsum(is_candidate, dtype=PLACE)[consumer] - 1
    chosen = np.full(len(consumer), -1, dtype=PLACE)
    for depth in range(DEPTH):
        place = latest - depth
        open_ = np.flatnonzero((chosen < 0) & (place >= 0))
        if not len(open_):
            break
        candidate = candidates[place[open_]]
        holds = _never_violated(order, consumer[open_], candidate)
        chosen[open_[holds]] = candidate[holds]
    found = chosen >= 0
    return consumer[found], chosen[found]


def _never_violated(order: _LaunchOrder, x: IntArray, candidate: IntArray) -> BoolArray:
    """Which pairs belong to a large enough group in which no candidate ended after its X began."""
    group = group_of(order.context[x], order.what[candidate], x - candidate)
    size = np.bincount(group)
    violated = np.bincount(group[order.end_ns[candidate] > order.start_ns[x]], minlength=len(size))
    holds: BoolArray = (size >= OCCURRENCES.value) & (violated == 0)
    return holds[group]


def signature(rows: Activities) -> IntArray:
    """A number for what each activity is, shape (n,): its kernel name, or its kind where it has none."""
    return np.where(rows.name >= 0, rows.name, -2 - (rows.bucket * 64 + rows.key))


def _busiest(stream_id: IntArray) -> list[int]:
    streams = distinct(stream_id)
    counts = np.bincount(np.searchsorted(streams, stream_id))
    return [int(stream) for stream in streams[np.argsort(-counts, kind="stable")][:STREAMS]]
