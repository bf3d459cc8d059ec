"""What a launched kernel waited for on the GPU: its producers, then latency, then what nobody can
say.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from traces.account.calls import NONE
from traces.account.pieces import (
    BEGINNING,
    INFERRED,
    REASON,
    RECORDED,
    Judged,
    Pieces,
    judged,
    waited_for,
)
from traces.account.producers import Producers, find_producers
from traces.arrays import BoolArray, IntArray, order_of
from traces.columns import NULL
from traces.frozen import frozen
from traces.groups import begins, mask_of
from traces.host_clock import SOON
from traces.limits import LATENCY, Limit
from traces.timeline import Activities, Bucket, RankTimeline

MULTIPLE: Final = Limit(
    2, "times this trace's own latency", "measurement.md: twice the usual is no longer latency"
)


@frozen
class Latencies:
    """What this trace's launches and dependent kernels take, in ns: at least, and usually."""

    arrival_ns: int
    gap_ns: int
    usual_arrival_ns: int
    usual_gap_ns: int


@frozen
class Queueing:
    """What GPU work waits for on the GPU: its producers, and this trace's latencies."""

    producers: Producers
    latencies: Latencies


def find_queueing(rank: RankTimeline) -> Queueing:
    """Producers and latencies of a rank: found once, for the account and for the replay."""
    producers = find_producers(rank)
    return Queueing(producers, calibrate(rank.activities, producers))


def ready_ns(rows: Activities, kernel: IntArray) -> IntArray:
    """When each kernel's launch call had returned, or it started if earlier; `BEGINNING` if
    unknown.
    """
    back_ns = rows.take(kernel).launch_end_ns
    return np.where(back_ns != NULL, np.minimum(back_ns, rows.start_ns[kernel]), BEGINNING)


def calibrate(rows: Activities, producers: Producers) -> Latencies:
    """This trace's latencies: arrival on launches onto an empty stream only, gap between dependent
    kernels.

    Over all launches arrival would be the host's lead: 329 us in a real recording. So only launches
    that came after all known producers had ended count (5th percentile), and gaps only where the
    launch was long there. What starts later than work on an empty GPU does waited for something
    unknown: the first work of a cut capture follows work that was not recorded. Nodes of a graph
    but its first follow more closely, so they do not count. What is usual is the median of those up
    to their limit.
    """
    everything = np.arange(len(rows))
    ready, ended = ready_ns(rows, everything), _ended_ns(rows, producers, everything)
    lead = rows.start_ns - ready
    onto_empty = rows.is_launched & (ended <= rows.launch_ns) & (lead <= SOON.value)
    dependent = rows.is_launched & (ready < ended) & (ended <= rows.start_ns)
    by_call = order_of(rows.call)
    dependent &= mask_of(by_call[begins(rows.call[by_call])], len(rows))
    arrival_ns, usual_arrival_ns = _least_and_usual(lead[onto_empty])
    gap_ns, usual_gap_ns = _least_and_usual((rows.start_ns - ended)[dependent])
    return Latencies(arrival_ns, gap_ns, usual_arrival_ns, usual_gap_ns)


def _least_and_usual(values_ns: IntArray) -> tuple[int, int]:
    """The 5th percentile, and the median of what is no more than latency; 0 where there are no
    values.
    """
    if not len(values_ns):
        return 0, 0
    least = int(np.percentile(values_ns, 5))
    return least, int(np.median(values_ns[values_ns <= most_ns(least)]))


def most_ns(least_ns: int) -> int:
    """The longest latency beside the least one."""
    return int(max(LATENCY.value, MULTIPLE.value * least_ns))


def judge_device(rows: Activities, pieces: Pieces, queueing: Queueing) -> Iterator[Judged]:
    """What pieces of time after the launch of their kernel waited for.

    At each instant the producer that still runs and ends last is the answer. Where a producer had
    not begun itself, the question passes on to it. What is left is latency, up to its limit, and
    stall.
    """
    while len(pieces):  # each turn goes strictly back in time, from a kernel to its producer
        pieces, blocked = _blocked(rows, pieces, queueing.producers)
        yield from blocked
        pieces, pending = _pending(rows, pieces, queueing.producers)
        yield from _latency(rows, pieces, queueing)
        pieces = pending


def _blocked(rows: Activities, pieces: Pieces, producers: Producers) -> tuple[Pieces, list[Judged]]:
    """Take out the parts in which a producer without compute ran, the one that ends last first.

    Pieces are cut at a producer that took no time as well: before it the question passes on to it.
    """
    done = []
    for slot in range(producers.place.shape[1]):
        work = producers.place[pieces.kernel, slot]
        inferred = producers.inferred[pieces.kernel, slot]
        is_empty = rows.end_ns[work] == rows.start_ns[work]
        runs = (work != NONE) & (is_empty | (rows.bucket[work] != Bucket.COMPUTE))
        low = np.where(runs, rows.start_ns[work], pieces.end_ns)
        high = np.where(runs, rows.end_ns[work], pieces.end_ns)
        done.append(waited_for(rows, pieces, work, inferred).clipped(low, high))
        before, after = pieces.clipped(pieces.start_ns, low), pieces.clipped(high, pieces.end_ns)
        pieces = Pieces.joined(before, after)
    return pieces, done


def _pending(rows: Activities, pieces: Pieces, producers: Producers) -> tuple[Pieces, Pieces]:
    """Split off what lies before a producer began: there the question passes on to the one that
    ends last.
    """
    place = producers.place[pieces.kernel]
    to_come = (place != NONE) & (rows.start_ns[place] >= pieces.end_ns[:, None])
    ends = np.where(to_come, rows.end_ns[place], BEGINNING)
    slot = np.argmax(ends, axis=1)
    waits: BoolArray = np.asarray(to_come.any(axis=1))
    passed = replace(pieces, kernel=place[np.arange(len(pieces)), slot])
    return pieces.take(~waits), passed.take(waits)


def _latency(rows: Activities, pieces: Pieces, queueing: Queueing) -> tuple[Judged, Judged]:
    """Latency after whatever came last, launch or producer, up to its limit; stall beyond."""
    producers, latencies = queueing.producers, queueing.latencies
    ready, ended = ready_ns(rows, pieces.kernel), _ended_ns(rows, producers, pieces.kernel)
    launch_last, since = ready >= ended, np.maximum(ready, ended)
    most = np.where(launch_last, most_ns(latencies.arrival_ns), most_ns(latencies.gap_ns))
    until = since + most
    reason = np.where(
        launch_last, REASON["launch_latency.arrival"], REASON["launch_latency.kernel_gap"]
    )
    guessed = ~launch_last & producers.inferred[pieces.kernel, 0]
    latency = judged(pieces, reason, np.where(guessed, INFERRED, RECORDED))
    stalled = judged(pieces, REASON["dependency_stalled"])
    return latency.clipped(pieces.start_ns, until), stalled.clipped(until, pieces.end_ns)


def _ended_ns(rows: Activities, producers: Producers, kernel: IntArray) -> IntArray:
    """When the last known producer of each kernel ended; `BEGINNING` where there is none."""
    last = producers.place[kernel, 0]
    return np.where(last != NONE, rows.end_ns[last], BEGINNING)
