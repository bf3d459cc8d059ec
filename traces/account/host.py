"""What the host did while a kernel had not been launched: the time before its launch call returned.

The thread that decides is the launching one. Where another launching thread was the last to return
from a CUDA call before the launch (the main thread before autograd's takes over, or the reverse),
that thread decides until then: its successor was only waiting to be called.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from traces.account.calls import APART as AGAIN
from traces.account.calls import (
    NONE,
    PAUSE,
    CallKind,
    call_kinds,
    kinds_of_calls,
    settled_ns,
)
from traces.account.named import named_spans, ranges_of_cause, spans_of
from traces.account.pieces import BEGINNING, CAUSES, Pieces, Tiling, cut, tile
from traces.arrays import (
    FOREVER,
    NOWHERE,
    PLACE,
    IntArray,
    codes_of,
    ints,
    last_at,
    zeros,
)
from traces.columns import Calls, Columns, HostSpans, Ranges
from traces.frozen import frozen
from traces.groups import begins, in_order, passing, places_of_each
from traces.intervals import Spans, instants_of
from traces.launchers import equal_replays, helper_threads
from traces.limits import ENOUGH, Limit
from traces.patterns import compiled
from traces.texts import Texts
from traces.timeline import RankTimeline
from traces.training import judge_training, roles_of

LARGE: Final = Limit(
    1 << 20,
    "bytes",
    "measurement.md: activations, gradients, weights; token counts and losses are smaller",
)
APART: Final = Limit(2.0, "times the bytes", "gradients and weights have 2 or 4 bytes a parameter")


def cpu_optimizer(rank: RankTimeline) -> HostSpans:
    """Spans of host threads between large copies to the host and as many bytes back, in training
    alone.

    No kernel but an optimizer's may be launched between on that thread: activations that are
    offloaded have kernels between, and where the CPU steps only a part the GPU steps the rest
    meanwhile. Several copies each way: a model has many parameters. What the thread waits for
    within a span is not separated here.
    """
    rows, size = rank.activities, _sizes(rank)
    roles, is_large = roles_of(rank), size >= LARGE.value
    out, back = rows.copies("memcpy_d2h") & is_large, rows.copies("memcpy_h2d") & is_large
    moves = rows.is_launched & (out | back | ~rows.is_transfer) & ~roles.optimizer
    order = np.flatnonzero(moves)
    order = in_order(order, rows.launch_thread, rows.launch_ns)
    if judge_training(roles)[0] is not True:
        return spans_of(NOWHERE, NOWHERE, NOWHERE)
    thread = rows.launch_thread[order]
    begin = np.flatnonzero(begins(ints(out[order]), ints(back[order]), thread))
    total, count = np.add.reduceat(size[order], begin), np.diff(begin, append=len(order))
    first, several = order[begin], count > 1
    fits = (total[1:] <= APART.value * total[:-1]) & (total[:-1] <= APART.value * total[1:])
    fits &= (out[first] & several)[:-1] & (back[first] & several)[1:]
    fits &= thread[begin[1:]] == thread[begin[:-1]]
    then = begin[1:][fits]
    first, then = order[then - 1], order[then]
    start_ns = rows.launch_end_ns[first]
    end_ns = np.maximum(rows.launch_ns[then], start_ns)
    return spans_of(start_ns, end_ns, rows.launch_thread[first])


def _sizes(rank: RankTimeline) -> IntArray:
    """Bytes of copies between host and GPU, shape (n,), 0 for all else."""
    rows = rank.activities
    size, copy = zeros(len(rows)), rows.copies("memcpy_d2h") | rows.copies("memcpy_h2d")
    size[copy] = rank.copy_bytes(copy)
    return size


COLD: Final = Limit(
    50_000,
    "ns from the return of a synchronising call",
    "measurement.md: its cold start; what the thread does beyond that is no matter of the call",
)


def data_pauses(rank: RankTimeline) -> HostSpans:
    """Pauses outside CUDA calls of launching threads, each before an input copy.

    What the thread does in them (Python, a wait for a worker in the operating system) makes no
    difference, but where ranges say when it loads: then it waits for a batch in these.
    """
    rows, pauses = rank.activities, [np.empty((3, 0), dtype=np.int64)]
    feeding, loader = rows.take(input_copies(rank)), ranges_of_cause(rank.columns, "data")
    for thread in rows.launching_threads.tolist():
        own = feeding.launch_thread == thread
        copies_ns = feeding.launch_ns[own], np.sort(feeding.launch_ns[~own])
        spans = _on_thread(rank.columns, thread, *copies_ns)
        loads = loader.take(loader.thread_gid == thread)
        if len(loads):
            begun = np.searchsorted(np.sort(loads.start_ns), spans[1])
            spans = spans[:, begun > np.searchsorted(np.sort(loads.end_ns), spans[0], "right")]
        pauses.append(spans)
    return spans_of(*np.concatenate(pauses, axis=1))


def _on_thread(columns: Columns, thread: int, own_ns: IntArray, others_ns: IntArray) -> IntArray:
    """Starts, ends and thread, shape (3, k), of pauses after which an input copy is the first work
    launched, or that end as another thread has launched one.

    The first begins with the thread's first range. `own_ns`, `others_ns`: when input copies were
    launched, by this thread and by others, these in order.
    """
    calls = columns.calls
    mine = np.flatnonzero(calls.thread_gid == thread)
    mine = in_order(mine, calls.start_ns)
    kind = call_kinds(columns.call_names)[calls.name[mine]]
    moves = np.flatnonzero(np.isin(kind, (CallKind.LAUNCH, CallKind.COPY)))
    start_ns, until_ns = calls.start_ns[mine], np.maximum.accumulate(calls.end_ns[mine])
    ranges_ns = columns.ranges.start_ns[columns.ranges.thread_gid == thread]
    began_ns = np.append(ranges_ns, start_ns).min()
    until_ns = np.append(began_ns, until_ns[:-1])
    after = np.flatnonzero(start_ns - until_ns > PAUSE.value)
    after = after[np.searchsorted(moves, after) < len(moves)]
    first = moves[np.searchsorted(moves, after)]
    since_ns = np.maximum(until_ns, start_ns - PAUSE.whole)[after]
    fed = np.searchsorted(others_ns, start_ns[after]) > np.searchsorted(others_ns, since_ns)
    ends = after[fed | np.isin(start_ns[first], own_ns)]
    return np.stack((until_ns[ends], start_ns[ends], np.full(len(ends), thread)))


def single_pauses(rank: RankTimeline, sets_up: Spans) -> HostSpans:
    """Pauses outside CUDA calls of first calls: what these compile or load does not recur.

    All while the program sets up; and before half of the launches those of which none comes later a
    tenth as long. Each is of the thread that calls next.
    """
    calls, rows = rank.calls, rank.activities
    mine = np.flatnonzero(np.isin(calls.thread_gid, rows.launching_threads))
    mine = in_order(mine, calls.start_ns)
    since_ns = np.maximum.accumulate(calls.end_ns[mine])[:-1]
    until_ns, thread = calls.start_ns[mine[1:]], calls.thread_gid[mine[1:]]
    length_ns = until_ns - since_ns
    later_ns = length_ns[until_ns > settled_ns(rows)].max(initial=0)
    single = (length_ns >= PAUSE.value) & (length_ns > AGAIN.value * later_ns)
    single |= (length_ns > 0) & sets_up.hold(until_ns)
    return spans_of(since_ns[single], until_ns[single], thread[single])


def input_copies(rank: RankTimeline) -> IntArray:
    """Places in the activities of copies to the GPU that helpers make, or that recur with equal
    bytes, a pass apart.

    Input comes once a step or microbatch, weights and token counts with every layer. A step that is
    one graph, recorded whole, is a pass.
    """
    rows = rank.activities
    at = np.flatnonzero(rows.copies("memcpy_h2d") & rows.is_launched)
    size = rank.copy_bytes(at)
    kernels_ns = rows.launch_ns[rows.is_compute & rows.is_launched]
    passes_ns = np.repeat(rows.launch_ns[equal_replays(rows)], ENOUGH.whole)
    before = np.searchsorted(np.sort(np.concatenate((kernels_ns, passes_ns))), rows.launch_ns[at])
    recurs = np.isin(rows.launch_thread[at], helper_threads(rows))
    for _, same in places_of_each(size):
        apart = np.diff(np.sort(before[same]))  # a pass between most of one size
        recurs[same] |= len(apart) > 0 and float(np.median(apart)) >= ENOUGH.value
    return at[recurs]


def cold_starts(rank: RankTimeline, kind: IntArray) -> tuple[HostSpans, IntArray]:
    """Cold starts after synchronising calls, and the row of each one's call; `kind`: of every call.

    Each lasts until the next such call of its thread has returned, or compute begins, and `COLD` at
    most.
    """
    calls, rows = rank.calls, rank.activities
    sync = np.flatnonzero(kind == CallKind.SYNC)
    sync = in_order(sync, calls.thread_gid, calls.end_ns)
    thread, since_ns = calls.thread_gid[sync], calls.end_ns[sync]
    until_ns = since_ns + COLD.whole
    follows = thread[1:] == thread[:-1]
    until_ns[:-1][follows] = np.minimum(until_ns[:-1], since_ns[1:])[follows]
    compute = instants_of(rows, rows.is_compute)
    place = np.searchsorted(compute.start_ns, since_ns)
    running = np.append(compute.end_ns, BEGINNING)[place - 1] > since_ns
    until_ns = np.minimum(until_ns, np.append(compute.start_ns, FOREVER)[place])
    cold = spans_of(since_ns[~running], until_ns[~running], thread[~running])
    return cold, sync[~running]


_BEGINS_CAPTURE: Final = compiled("StreamBeginCapture")
_ENDS_CAPTURE: Final = compiled("StreamEndCapture")


def captures(columns: Columns) -> HostSpans:
    """From each call that begins to capture a graph to the next of its thread that ends one: what
    is launched between does not run.
    """
    calls, kind = columns.calls, np.zeros(len(columns.calls), dtype=PLACE)
    for way, called in ((1, _BEGINS_CAPTURE), (2, _ENDS_CAPTURE)):
        kind[passing(called.search, columns.call_names)[calls.name]] = way
    mine = np.flatnonzero(kind)
    mine = in_order(mine, calls.thread_gid, calls.start_ns)
    thread = calls.thread_gid[mine]
    pairs = (kind[mine][:-1] == 1) & (kind[mine][1:] == 2) & (thread[1:] == thread[:-1])
    begin, end = mine[:-1][pairs], mine[1:][pairs]
    return spans_of(calls.start_ns[begin], calls.end_ns[end], thread[:-1][pairs])


CAUSE: Final = codes_of(CAUSES)

_BY_KIND: Final = {
    CallKind.OTHER: "launch",  # event records, attribute reads: the small calls around a launch
    CallKind.LAUNCH: "launch",
    CallKind.COPY: "launch",
    CallKind.SYNC: "sync",
    CallKind.FREE: "allocator",
    CallKind.ALLOCATE: "allocator",
    CallKind.INIT: "lazy_init",
}
_CAUSE_OF_KIND: Final = ints([CAUSE[_BY_KIND[kind]] for kind in CallKind])


@frozen
class HostPieces(Pieces):
    """Pieces before a launch, shape (n,), each with its cause (in `CAUSES`) and the call in it (-1:
    none).

    `after` is the synchronising call whose cold start a piece without a call is (-1: none).
    `under`: work, by its place in the activities, that its call did not wait for but returned after
    (-1: none).
    """

    cause: IntArray
    call: IntArray
    after: IntArray
    under: IntArray


class Handover:
    """Which launching thread decides until when: the last to return from a call before a launch.

    Helpers hand over to nobody.
    """

    def __init__(self, rank: RankTimeline) -> None:
        self._rows, self._calls = rank.activities, rank.calls
        threads = np.setdiff1d(self._rows.launching_threads, helper_threads(self._rows))
        mine = np.flatnonzero(np.isin(self._calls.thread_gid, threads))
        self._by_end = in_order(mine, self._calls.end_ns).astype(PLACE)

    def before(self, kernel: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """For the launch of each kernel: its thread, the one that decides before it, and until
        when.
        """
        launch, own = self._rows.launch_ns[kernel], self._rows.take(kernel).launch_thread
        last = last_at(self._calls.end_ns[self._by_end], launch)
        call = self._by_end[last]
        handed_over = np.where(last >= 0, self._calls.end_ns[call], BEGINNING)
        return own, self._calls.thread_gid[call], handed_over


class Host:
    """The host side of one rank: its launching threads and what they did."""

    def __init__(self, rank: RankTimeline) -> None:
        self._rank = rank
        self.kind, sets_up = kinds_of_calls(rank)
        self._threads, self._handover = rank.activities.launching_threads, Handover(rank)
        self._cold = cold_starts(rank, self.kind)
        self._optimizes, self._pauses = cpu_optimizer(rank), data_pauses(rank)
        self._single, self._captures = single_pauses(rank, sets_up), captures(rank.columns)
        self._named = named_spans(rank.columns, self._single)
        self._overlays = {thread: [*self._overlays_of(thread)] for thread in self._threads.tolist()}

    def judge(self, pieces: Pieces) -> HostPieces:
        """Causes of pieces of time before the launch of their kernel, which must have one."""
        own, other, handed_over = self._handover.before(pieces.kernel)
        parts = []
        for thread in self._threads.tolist():
            of_other, of_own = other == thread, own == thread
            until = pieces.take(of_other)
            until = until.clipped(until.start_ns, handed_over[of_other])
            since = pieces.take(of_own)
            since = since.clipped(handed_over[of_own], since.end_ns)
            parts += [self._on_thread(until, thread), self._on_thread(since, thread)]
        return HostPieces.joined(*parts)

    def _on_thread(self, pieces: Pieces, thread: int) -> HostPieces:
        """What one thread did, cut by its calls, OS calls, named ranges and the profiler's own
        work.
        """
        if not len(pieces):
            return HostPieces.none()
        calls = self._rank.calls
        pieces, call = cut(pieces, _tiled(calls, np.arange(len(calls)), thread))
        cause = np.where(call != NONE, _CAUSE_OF_KIND[self.kind[call]], CAUSE["python"])
        columns = (pieces.start_ns, pieces.end_ns, pieces.kernel)
        none = np.full(len(pieces), NONE)
        judged = HostPieces(*columns, cause, call, none, none)
        cuts, after = cut(judged, _tiled(*self._cold, thread))
        after = np.where(cuts.call == NONE, after, NONE)
        cuts = replace(cuts, cause=np.where(after != NONE, CAUSE["sync"], cuts.cause), after=after)
        for tiling, label, weaker in self._overlays[thread]:
            cuts, inside = cut(cuts, tiling)
            may = (inside != NONE) & np.isin(cuts.cause, [*map(CAUSES.index, weaker)])
            may &= (cuts.call == NONE) | (label == "profiler")
            cuts = replace(cuts, cause=np.where(may, CAUSE[label], cuts.cause))
        return cuts

    def _overlays_of(self, thread: int) -> Iterator[tuple[Tiling, str, Texts]]:
        """Spans of a thread that say more than its calls, weakest first: tiling, cause, what it
        outweighs.
        """
        columns, weaker = self._rank.columns, ("python", "os_wait", "sync", "cpu_optimizer")
        overlays: list[tuple[HostSpans | Ranges, str, Texts]] = [
            (columns.os_calls, "os_wait", ("python",)),
            (self._pauses, "data", ("python", "os_wait", "sync")),
            (self._optimizes, "cpu_optimizer", ("python", "os_wait")),
        ]
        for place, (cause, ranges) in enumerate(self._named.items()):
            overlays.append((ranges, cause, (*weaker, *[*self._named][:place])))
        overlays.append((self._single, "lazy_init", ("python", "os_wait")))
        overlays.append((self._captures, "lazy_init", (*weaker, *self._named)))
        for spans, cause, outweighed in (*overlays, (columns.overheads, "profiler", CAUSES)):
            if (spans.thread_gid == thread).any():
                yield _tiled(spans, zeros(len(spans)), thread), cause, outweighed


def _tiled(spans: Calls | HostSpans | Ranges, label: IntArray, thread: int) -> Tiling:
    """All time in tiles by the spans of one thread."""
    mine = spans.thread_gid == thread
    return tile(spans.start_ns[mine], spans.end_ns[mine], label[mine], NONE)
