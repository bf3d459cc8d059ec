"""Pieces of time with a reason, and the cutting of pieces by what happens in them.

Gaps are the intervals without compute, each with the kernel that ends it. Of several pieces of work
that run at an instant the one counts that ends last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Self, TypeVar

import numpy as np

from traces.arrays import (
    FOREVER,
    PLACE,
    BoolArray,
    IntArray,
    Lasting,
    Rows,
    codes_of,
    distinct,
    last_at,
    ranges_of,
)
from traces.frozen import frozen
from traces.intervals import Spans, instants_of
from traces.launchers import helper_work
from traces.timeline import KEYS, Activities, Bucket

BEGINNING: Final = int(np.iinfo(np.int64).min)


@frozen
class Pieces(Rows, Lasting):
    """Disjoint pieces of time, shape (n,): [start, end), judged for `kernel`."""

    start_ns: IntArray
    end_ns: IntArray
    kernel: IntArray

    def clipped(self, low_ns: IntArray, high_ns: IntArray) -> Self:
        """The part of each piece within [low, high), shape (n,); pieces without such a part are
        left out.
        """
        start = np.maximum(self.start_ns, low_ns)
        end = np.minimum(self.end_ns, high_ns)
        return replace(self, start_ns=start, end_ns=end).take(end > start)


P = TypeVar("P", bound=Pieces)


@frozen
class Tiling:
    """All time in tiles: tile k begins at `start_ns[k]`, the first at `BEGINNING`; shape (n,)."""

    start_ns: IntArray
    label: IntArray


def tile(start_ns: IntArray, end_ns: IntArray, label: IntArray, otherwise: int) -> Tiling:
    """A tiling from spans that may nest, shape (n,); where several hold an instant, the innermost
    labels it.

    Spans of one thread nest: the innermost is the one that started last among those that have not
    ended. Exact for two levels (a driver call within a runtime call); deeper, the outermost labels
    what the innermost leaves.
    """
    order = np.lexsort((-end_ns, start_ns))
    start, end, label = start_ns[order], end_ns[order], label[order]
    cuts = distinct(np.concatenate((start, end)))
    latest = last_at(start, cuts)
    furthest = np.maximum.accumulate(end)
    longest = np.searchsorted(furthest, furthest[latest])  # the first that ends so late
    innermost = np.where(end[latest] > cuts, latest, longest)
    held = (latest >= 0) & (end[innermost] > cuts)
    labels = np.where(held, label[innermost], otherwise)
    return Tiling(np.append(BEGINNING, cuts), np.append(otherwise, labels))


def cut(pieces: P, tiling: Tiling) -> tuple[P, IntArray]:
    """Cut pieces at the tiles' borders; of each result its tile's label."""
    first = last_at(tiling.start_ns, pieces.start_ns)
    beyond = np.searchsorted(tiling.start_ns, pieces.end_ns)
    of = np.repeat(np.arange(len(pieces)), beyond - first)
    at = ranges_of(first, beyond)
    tile_end = np.append(tiling.start_ns[1:], FOREVER)
    uncut = pieces.take(of)
    start_ns = np.maximum(uncut.start_ns, tiling.start_ns[at])
    end_ns = np.minimum(uncut.end_ns, tile_end[at])
    return replace(uncut, start_ns=start_ns, end_ns=end_ns), tiling.label[at]


def last_to_end(
    rows: Activities, work: IntArray, start_ns: int, end_ns: int
) -> Iterator[tuple[int, int, int]]:
    """Cut [start, end) into (from, until, place): place of the work that runs and ends last, -1 for
    none.

    `work`: places in `rows`, in any order.
    """
    starts, ends, at = rows.start_ns[work], rows.end_ns[work], start_ns
    while at < end_ns:
        running = work[(starts <= at) & (ends > at)]
        # where the next begins, another may be the one that ends last
        until = int(starts[starts > at].min(initial=end_ns))
        last = int(running[np.argmax(rows.end_ns[running])]) if len(running) else -1
        until = min(until, int(rows.end_ns[last])) if len(running) else until
        yield at, until, last
        at = until


NO_KERNEL: Final = -1


def compute_gaps(activities: Activities, windows: Spans) -> Pieces:
    """Maximal intervals without compute that touch the windows, in order, shape (m,), reaching no
    further than the windows' ends.

    `kernel` is the place in the activities of the compute kernel that ends the interval,
    `NO_KERNEL` after the last one; where a helper's kernel ends it, the next one of the rank's own.
    A border of a step cuts an interval's time, never its kernel.
    """
    first, last = int(windows.start_ns[0]), int(windows.end_ns[-1])
    compute = np.flatnonzero(activities.is_compute)
    compute = compute[activities.end_ns[compute] > activities.start_ns[compute]]
    busy = instants_of(activities, compute)
    own = compute[~helper_work(activities)[compute]]
    ended_by = np.append(own, NO_KERNEL)[np.searchsorted(activities.start_ns[own], busy.start_ns)]
    start = np.append(first, busy.end_ns)
    end = np.append(busy.start_ns, last)
    kernel = np.append(ended_by, NO_KERNEL)
    touching = (end > first) & (start < last)
    return Pieces(start[touching], end[touching], kernel[touching].astype(PLACE))


CAUSES: Final = (
    "launch",
    "sync",
    "token_count_sync",
    "allocator",
    "lazy_init",
    "profiler",
    "gc",
    "data",
    "checkpoint",
    "evaluation",
    "logging",
    "cpu_optimizer",
    "host_comm",
    "os_wait",
    "python",
)
"""Causes of a late launch. `token_count_sync`: the per-layer read of token counts in dropless
routing.

`cpu_optimizer`: the CPU steps an optimizer between its gradients' copies and those of its weights.
"""
REASONS: Final = (
    *(f"launch_starved.{cause}" for cause in CAUSES),
    *(f"blocking.{kind}" for bucket in (Bucket.COMM, Bucket.COPY) for kind in KEYS[bucket]),
    "blocking.unrecorded",
    "launch_latency.arrival",
    "launch_latency.kernel_gap",
    "graph_opaque",
    "dependency_stalled",
    "trailing",
)
"""Every reason that time without compute can have, in the words of the document; causes come
first."""
REASON: Final = codes_of(REASONS)
DECIDED: Final = ("recorded", "inferred", "none")
"""By what a reason was decided."""
RECORDED, INFERRED, UNDECIDED = range(3)
_COMM, _COPY = len(CAUSES), len(CAUSES) + len(KEYS[Bucket.COMM])


@frozen
class AbsentPieces(Rows):
    """Disjoint pieces, shape (n,), that hold all time without compute in the windows; they may
    reach beyond.

    `reason` indexes `REASONS`. `work` is the place in `Activities` of the work that was waited for,
    `kernel` that of the kernel judged; -1 where there is none.
    """

    start_ns: IntArray
    end_ns: IntArray
    reason: IntArray
    work: IntArray
    kernel: IntArray


@frozen
class Judged(Pieces):
    """Pieces with what is told of them in `AbsentPieces`; `decided` indexes `DECIDED`."""

    reason: IntArray
    work: IntArray
    decided: IntArray


def judged(
    pieces: Pieces,
    reason: IntArray | int,
    decided: IntArray | int = UNDECIDED,
    work: IntArray | int = -1,
) -> Judged:
    """Pieces of some reasons, or all of one."""
    columns = np.broadcast_arrays(pieces.kernel, reason, work, decided)
    return Judged(pieces.start_ns, pieces.end_ns, *columns)


def waited_for(
    rows: Activities, pieces: Pieces, work: IntArray, inferred: BoolArray | bool = False
) -> Judged:
    """Pieces in which awaited work without compute ran."""
    base = np.where(rows.bucket[work] == Bucket.COMM, _COMM, _COPY)
    return judged(pieces, base + rows.key[work], np.where(inferred, INFERRED, RECORDED), work)
