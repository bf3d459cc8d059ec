"""The edits that take each wall's overhead away, whole and kind by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial

import numpy as np

from traces.account.calls import APART, NONE, CallKind, is_kind
from traces.account.waits import routes_tokens
from traces.arrays import NOWHERE, BoolArray, FloatArray, IntArray, distinct, none_of
from traces.frozen import frozen
from traces.groups import mask_of
from traces.intervals import instants_of, ns_in
from traces.limits import MOST
from traces.names.kernels import COMM_KINDS
from traces.replay.graph import Graph, Timing
from traces.replay.without import (
    with_shares,
    without_activities,
    without_allocator,
    without_arrival,
    without_copies,
    without_host,
    without_stretch,
    without_work,
)
from traces.steps.found import Steps
from traces.timeline import KEYS, Bucket, RankTimeline


@frozen
class Wide:
    """Matrix work of one format wider than 16 bits: places in the activities, and what part of its
    time it would take in 16 bits; not `exact` where the GPU's rates are unknown, and it may take
    less.
    """

    places: IntArray
    frac: float
    exact: bool


@frozen
class Subject:
    """A rank and what was measured of it that an edit needs.

    `recomputed`, `offloaded` and `resident` (copies of what lives in host memory) are places in its
    activities; `stretch_frac`: how much longer compute takes beside communication, in this
    recording where `stretch_measured`, else by the SMs that it takes; `sm_count` of its GPU.
    `simt`: places of GEMMs that do without tensor cores, which would take `tensor_frac` of their
    time; `wide`: the rest of the matrix work that 16 bits would speed up. `apart`: kernels that are
    probably communication, whose grid says nothing. None where it could not be told.
    """

    rank: RankTimeline
    steps: Steps
    recomputed: IntArray
    offloaded: IntArray
    resident: IntArray
    stretch_frac: float | None = None
    sm_count: int | None = None
    stretch_measured: bool = True
    simt: IntArray = field(default_factory=lambda: NOWHERE)
    tensor_frac: float | None = None
    wide: tuple[Wide, ...] = ()
    apart: IntArray = field(default_factory=lambda: NOWHERE)

    def mask(self, places: IntArray) -> BoolArray:
        return mask_of(places, len(self.rank.activities))

    @property
    def knows_grids(self) -> bool:
        return self.sm_count is not None and bool((self.rank.blocks > 0).any())

    def filled_share(self, count: int | None = None) -> FloatArray:
        """The share of its time that each activity takes with its grid filled, of `count` SMs where
        given.
        """
        blocks, count = self.rank.blocks, count or self.sm_count or 0
        under = (blocks > 0) & (blocks < count) & self.rank.activities.is_compute
        under &= ~self.mask(self.apart)
        return np.where(under, blocks / max(count, 1), 1.0)

    def crowded(self) -> BoolArray:
        """Compute that communication beside it stretches, a mask of shape (n,).

        Where that was not measured, but follows from the SMs that communication takes, a kernel of
        no more blocks than are left finds its room as if alone.
        """
        compute: BoolArray = self.rank.activities.is_compute
        if self.stretch_measured or self.stretch_frac is None or self.sm_count is None:
            return compute
        blocks, left_count = self.rank.blocks, self.sm_count / (1 + self.stretch_frac)
        return compute & ((blocks <= 0) | (blocks > left_count))

    def tensor_share(self) -> FloatArray:
        """The share of its time that each FP32 GEMM takes in TF32, shape (n,)."""
        share = np.ones(len(self.rank.activities))
        share[self.simt] = min(1.0, self.tensor_frac or 1.0)
        return share

    def narrow_share(self, least: bool = False) -> FloatArray:
        """The share of its time that other matrix work takes in 16 bits; `least`: none if
        unknown.
        """
        share = np.ones(len(self.rank.activities))
        for wide in self.wide:
            share[wide.places] = 0.0 if least and not wide.exact else wide.frac
        return share

    @property
    def prices_compute(self) -> bool:
        """Whether anything of the compute wall can be replayed: grids, or faster matrix work."""
        return self.knows_grids or any(len(one.places) for one in self.wide) or bool(len(self.simt))


def steady_allocator_calls(subject: Subject, graph: Graph) -> BoolArray:
    """Allocator calls in steps after the first recorded: that one fills the cache, as it should.

    Where it gives memory back about as often as the next, its cache is full too, from the first
    call that frees. A mask of shape (m,). Without steps, all.
    """
    calls, used = graph.calls, subject.steps.used
    allocating = is_kind(calls, CallKind.FREE, CallKind.ALLOCATE)
    if not used:
        return allocating
    later = [step.start_ns for step in used if step.index > 0]
    if not later:
        return none_of(len(calls))
    rows, launched = graph.rows, graph.rows.is_launched
    since = [  # when the host first launched what runs from then on
        int(rows.launch_ns[launched & (rows.start_ns >= begin_ns)].min(initial=begin_ns))
        for begin_ns in (used[0].start_ns, *later)
    ]
    freed = np.sort(calls.start_ns[is_kind(calls, CallKind.FREE)])
    place = np.searchsorted(freed, since)
    first, *others = np.diff(place, append=len(freed)).tolist()
    full = used[0].index == 0 and 0 < MOST.value * np.mean(others) <= first
    return allocating & (calls.start_ns >= (freed[place[0]] if full else since[1]))


@frozen
class Edits:
    """Edits of one graph's timing; each method gives it without an overhead."""

    subject: Subject
    graph: Graph
    timing: Timing

    def walls(self) -> dict[str, tuple[Callable[[], Timing], Callable[[], Mapping[str, Timing]]]]:
        """What gives the timing without each wall's overhead, and without each of its kinds alone.

        Made when asked for: each is large. `compute` is not among them where neither launch shapes
        nor formats are known.
        """
        walls = {
            "communication": (self.communication, self.communication_kinds),
            "host_overhead": (self.host, self.host_kinds),
            "memory": (self.memory, self.memory_kinds),
        }
        if self.subject.prices_compute:
            walls["compute"] = self.compute, self.compute_kinds
        return walls

    def communication(self) -> Timing:
        """Communication takes no time on the GPU, and compute beside it is no longer stretched."""
        return self._without_comm(self.graph.rows.is_comm)

    def communication_kinds(self) -> Mapping[str, Timing]:
        rows = self.graph.rows
        mine, kinds = rows.is_comm, {}
        for code in distinct(rows.key[mine]).tolist():
            kinds[COMM_KINDS[code]] = self._without_comm(mine & (rows.key == code))
        return kinds

    def host(self) -> Timing:
        """The host takes no time; the profiler's own work and allocator calls stay."""
        every = ~none_of(len(self.graph.calls))
        return without_arrival(
            without_host(self.graph, self.timing, self.graph.pauses.profiler_ns, every)
        )

    def host_kinds(self) -> Mapping[str, Timing]:
        graph, timing = self.graph, self.timing
        calls, pauses = graph.calls, graph.pauses
        none = none_of(len(calls))
        said_ns = pauses.said_ns + pauses.cold_ns
        left = np.maximum(timing.pause_ns - pauses.cold_ns, 0)
        read = graph.feeds_host & routes_tokens(graph.rows)  # small copies, which hold token counts
        counts = timing.waits.holding(read, len(calls))
        feeds = counts[calls.before] & (calls.before != NONE)
        sync = is_kind(calls, CallKind.SYNC)
        named = dict(pauses.named_ns)
        compiles = timing.pause_ns - named.pop("lazy_init")
        long = self._long_pauses(timing.pause_ns - said_ns)
        edit = partial(without_host, graph, timing)
        edits = {
            "python": edit(np.where(long, timing.pause_ns, said_ns), none),
            "launch": edit(
                timing.pause_ns, is_kind(calls, CallKind.LAUNCH, CallKind.COPY, CallKind.OTHER)
            ),
            "sync": edit(np.where(feeds, timing.pause_ns, left), sync & ~counts),
            "token_count_sync": edit(np.where(feeds, left, timing.pause_ns), sync & counts),
            "lazy_init": edit(compiles, is_kind(calls, CallKind.INIT)),
            "arrival": without_arrival(timing),
        }
        if long.any():
            edits["long_python_pauses"] = edit(np.where(long, said_ns, timing.pause_ns), none)
        for kind, ns in named.items():
            if ns.any():
                edits[kind] = edit(timing.pause_ns - ns, none)
        return edits

    def memory(self) -> Timing:
        """Recomputed stretches, copies from and to host memory with their calls, and allocator
        calls go.
        """
        graph, subject = self.graph, self.subject
        copies = subject.mask(subject.offloaded) | subject.mask(subject.resident)
        without = without_copies(graph, self.timing, copies)
        without = without_allocator(without, steady_allocator_calls(subject, graph))
        return without_activities(graph, without, subject.mask(subject.recomputed))

    def memory_kinds(self) -> Mapping[str, Timing]:
        graph, timing, subject = self.graph, self.timing, self.subject
        return {
            "recompute": without_activities(graph, timing, subject.mask(subject.recomputed)),
            "offload": without_copies(graph, timing, subject.mask(subject.offloaded)),
            "host_resident": without_copies(graph, timing, subject.mask(subject.resident)),
            "allocator": without_allocator(timing, steady_allocator_calls(subject, graph)),
        }

    def compute(self) -> Timing:
        """Under-filled kernels take blocks / SMs of their time, matrix work its share in a faster
        format.
        """
        subject = self.subject
        faster = subject.tensor_share() * subject.narrow_share()
        return with_shares(self.timing, subject.filled_share() * faster)

    def compute_kinds(self) -> Mapping[str, Timing]:
        """Of each class of compute filled grids alone, and each faster format alone."""
        rows = self.graph.rows
        filled = self.subject.filled_share()
        kinds = {}
        for code in distinct(rows.key[filled < 1]).tolist():
            share = np.where(rows.key == code, filled, 1.0)
            kinds[KEYS[Bucket.COMPUTE][code]] = with_shares(self.timing, share)
        faster = {
            "no_tensor_cores": self.subject.tensor_share(),
            "low_precision_unused": self.subject.narrow_share(),
        }
        for kind, share in faster.items():
            if (share < 1).any():
                kinds[kind] = with_shares(self.timing, share)
        return kinds

    def _without_comm(self, which: BoolArray) -> Timing:
        rows, stretch = self.graph.rows, self.subject.stretch_frac
        timing = without_work(self.timing, which)
        if not stretch or stretch < 0:
            return timing
        beside = ns_in(rows, instants_of(rows, which))
        # work that an earlier edit made shorter was beside it for as much less
        beside = beside * self.timing.duration_ns // np.maximum(rows.length_ns, 1)
        return without_stretch(timing, np.where(self.subject.crowded(), beside, 0), stretch)

    def _long_pauses(self, pause_ns: IntArray) -> BoolArray:
        """Pauses far longer than nearly all others of their thread: garbage collection, perhaps."""
        calls, long = self.graph.calls, none_of(len(pause_ns))
        for thread in distinct(calls.thread).tolist():
            mine = calls.thread == thread
            long[mine] = pause_ns[mine] > APART.value * np.percentile(pause_ns[mine], 99)
        return long & (pause_ns > 0)
