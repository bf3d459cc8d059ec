"""Producers across streams where no event was recorded, inferred from repetition.

An event wait can only mean work launched earlier. So for work X and another stream S the candidates are the
latest activities launched on S before X. Work that repeats the same way (its name, the work before it on its
stream and how many launches ago, the candidate's name and how many launches ago) forms a group; a candidate
that never, in the whole group, ended after its X began is taken as a producer. Never violated is not proven:
edges from here are marked, and where the host is the limit everything looks ordered.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from traces.columns import COPY_KINDS, NULL, PLACE, IntArray, distinct
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
    number = np.full(len(rows), -1, dtype=PLACE)
    number[by_launch] = np.arange(len(by_launch))
    what = signature(rows)
    context = group_of(  # what it is, what ran before it on its stream, and how many launches ago
        what, np.where(before >= 0, what[before], -1), np.where(before >= 0, number - number[before], -1)
    )
    consumers, producers = [], []
    for stream in _busiest(rows.stream_id[by_launch]):
        consumer, producer = _from_stream(rows, stream, by_launch, number, what, context)
        consumers.append(consumer)
        producers.append(producer)
    return np.concatenate(consumers or [nothing]), np.concatenate(producers or [nothing])


def _from_stream(
    rows: Activities, stream: int, by_launch: IntArray, number: IntArray, what: IntArray, context: IntArray
) -> tuple[IntArray, IntArray]:
    """For each activity of other streams the nearest candidate on this stream that is never violated."""
    is_candidate = rows.stream_id[by_launch] == stream
    is_candidate &= ~_feeds_the_host(rows)[by_launch]
    candidates = by_launch[is_candidate]
    consumer = by_launch[(rows.stream_id[by_launch] != stream) & (rows.bucket[by_launch] != Bucket.COPY)]
    if len(candidates) == 0 or len(consumer) == 0:
        return consumer[:0], consumer[:0]
    latest = np.searchsorted(number[candidates], number[consumer]).astype(PLACE) - 1
    chosen = np.full(len(consumer), -1, dtype=PLACE)
    for depth in range(DEPTH):
        place = latest - depth
        open_ = (chosen < 0) & (place >= 0)
        if not open_.any():
            break
        x, candidate = consumer[open_], candidates[place[open_]]
        holds = _never_violated(rows, x, candidate, number[x] - number[candidate], what, context)
        chosen[np.flatnonzero(open_)[holds]] = candidate[holds]
    found = chosen >= 0
    return consumer[found], chosen[found]


def _never_violated(
    rows: Activities, x: IntArray, candidate: IntArray, ago: IntArray, what: IntArray, context: IntArray
) -> IntArray:
    """Which pairs belong to a large enough group in which no candidate ended after its X began."""
    group = group_of(context[x], what[candidate], ago)
    size = np.bincount(group)
    violated = np.bincount(group[rows.end_ns[candidate] > rows.start_ns[x]], minlength=len(size))
    result: IntArray = (size[group] >= OCCURRENCES.value) & (violated[group] == 0)
    return result


def signature(rows: Activities) -> IntArray:
    """A number for what each activity is, shape (n,): its kernel name, or its kind where it has none."""
    return np.where(rows.name >= 0, rows.name, -2 - (rows.bucket * 64 + rows.key))


def _feeds_the_host(rows: Activities) -> IntArray:
    """Copies to the host: they feed the host, never a kernel."""
    result: IntArray = (rows.bucket == Bucket.COPY) & (rows.key == COPY_KINDS.index("memcpy_d2h"))
    return result


def _busiest(stream_id: IntArray) -> list[int]:
    streams = distinct(stream_id)
    counts = np.searchsorted(np.sort(stream_id), streams, side="right") - np.searchsorted(
        np.sort(stream_id), streams
    )
    return [int(stream) for stream in streams[np.argsort(-counts, kind="stable")][:STREAMS]]
