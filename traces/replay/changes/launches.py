"""Fewer launches: kernels that follow each other made one, neighbours fused, the experts' GEMMs
grouped.

Kernels count as following each other where one thread launches them one right after the other on
one stream.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from math import ceil
from typing import Final

import numpy as np

from traces.account.calls import NONE, CallKind
from traces.arrays import IntArray, ints, summed
from traces.frozen import frozen
from traces.groups import mask_of, places_of_each
from traces.names.kernels import KernelClass
from traces.replay.changes.change import DraftChange, Recorded
from traces.replay.changes.dispatcher import PAYLOAD, of_kinds
from traces.replay.graph import Timing
from traces.replay.without import without_waits

_APART: Final = (CallKind.SYNC, CallKind.FREE, CallKind.ALLOCATE, CallKind.INIT, CallKind.COPY)
LAUNCH_KINDS: Final = {"host_overhead": ("launch", "python", "arrival")}


def uninterrupted(recorded: Recorded) -> list[list[int]]:
    """Compute kernels in order of launch, split wherever one launch cannot take in what comes next.

    That is at a synchronisation, an allocator call, a copy, an event's record or wait, a
    collective, another stream's work, a handover to another thread, and a call that launches
    several kernels already.
    """
    calls = recorded.graph.calls
    runs: list[list[int]] = [[]]
    apart = np.isin(calls.kind, _APART).tolist()
    names = recorded.call_names
    by = recorded.graph.launched_by
    stream = recorded.rows.stream_id.tolist()
    thread = calls.thread.tolist()
    for call, work in enumerate(_single(recorded)):
        last = runs[-1][-1] if runs[-1] else None
        if work != NONE:
            if last is not None and (
                stream[last] != stream[work] or thread[by[last]] != thread[call]
            ):
                runs.append([])
            runs[-1].append(work)
        elif last is not None and (
            apart[call]
            or recorded.launch_count[call]
            or any(word in names[call] for word in ("EventRecord", "WaitEvent", "Memset"))
        ):
            runs.append([])
    return [*filter(None, runs)]


def _single(recorded: Recorded) -> list[int]:
    """Of each call the compute kernel that it alone launched, -1 where there is none."""
    graph, rows = recorded.graph, recorded.rows
    work = np.full(len(graph.calls), NONE)
    places = np.flatnonzero((graph.launched_by != NONE) & rows.is_compute & rows.is_kernel)
    places = places[recorded.launch_count[graph.launched_by[places]] == 1]
    work[graph.launched_by[places]] = places
    return work.tolist()


@frozen
class Merged:
    """Launches made one: of each run `first`, the call that stays, and `size`, how many kernels it
    launches.

    `gone`: the calls that go; `followers`: the kernels of each run but the first.
    """

    first: IntArray
    gone: IntArray
    size: IntArray
    followers: IntArray


def merge(recorded: Recorded, runs: Sequence[Sequence[int]]) -> Merged:
    """Let one call launch each run of at least two kernels; calls between them, of its thread, go
    as well.
    """
    graph = recorded.graph
    by, thread = graph.launched_by, graph.calls.thread
    first, gone, followers = list[int](), list[int](), list[int]()
    order = dict(places_of_each(thread))
    for run in runs:
        mine = order[int(thread[by[run[0]]])]
        begin, end = np.searchsorted(mine, (by[run[0]], by[run[-1]]), "right")
        first.append(by[run[0]])
        gone += mine[begin:end].tolist()
        followers += run[1:]
    return Merged(ints(first), ints(gone), np.array([*map(len, runs)]), ints(followers))


def launched_at_once(
    recorded: Recorded, timing: Timing, merged: Merged, call_ns: IntArray | None = None
) -> Timing:
    """Only the first call of each run is left, which takes `call_ns` of each run (None: what it
    took).

    Collection, loading and the profiler's work between them stay, for they would have come
    elsewhere.
    """
    own, pause = timing.own_ns.copy(), timing.pause_ns.copy()
    own[merged.gone] = 0
    pause[merged.gone] = np.minimum(pause, recorded.graph.pauses.said_ns)[merged.gone]
    if call_ns is not None:
        own[merged.first] = call_ns
    return replace(
        without_waits(timing, mask_of(merged.gone, len(own))), own_ns=own, pause_ns=pause
    )


def back_to_back(timing: Timing, merged: Merged) -> Timing:
    """Kernels of each run follow its first without a gap, and arrive with it."""
    gap, arrival = timing.gap_ns.copy(), timing.arrival_ns.copy()
    gap[merged.followers] = arrival[merged.followers] = 0
    return replace(timing, gap_ns=gap, arrival_ns=arrival)


def fusion_drafts(recorded: Recorded) -> Iterator[DraftChange]:
    """`fused_kernels`: of each run of kernels that a fusion exists for, only the first is launched.

    The fusions are Megatron-Core's of the router and of the permutation, and norm or activation
    with the quantisation that follows. What the kernels do still takes its time in the pessimistic
    end.
    """
    runs = list[list[int]]()
    for places in uninterrupted(recorded):
        for family, neighbours in groupby(places, lambda place: _family(recorded.classes[place])):
            run = [*neighbours]
            if family is not None and len(run) > 1:
                runs.append(run)
        runs += _quantised(recorded, places)
    if runs:
        yield merged_draft(recorded, "fused_kernels", merge(recorded, runs))


def merged_draft(
    recorded: Recorded,
    kind: str,
    merged: Merged,
    low_ns: IntArray | None = None,
    high_ns: IntArray | None = None,
) -> DraftChange:
    """Launches made one: each call takes so long at either end, and at the other one kernels have
    no gaps.
    """

    def low(timing: Timing) -> Timing:
        return launched_at_once(recorded, timing, merged, low_ns)

    def high(timing: Timing) -> Timing:
        return back_to_back(launched_at_once(recorded, timing, merged, high_ns), merged)

    return DraftChange(kind, LAUNCH_KINDS, low, high)


def _family(kind: KernelClass) -> int | None:
    """Which fusion a kernel could be part of; None where none."""
    if kind.class_ == "router" and kind.subclass != "map":
        return 0
    if kind.class_ in ("permute", "router"):
        return 1
    return None


def _quantised(recorded: Recorded, places: Sequence[int]) -> Iterator[list[int]]:
    """A norm or an activation with the quantisations that follow it at once."""
    classes = [recorded.classes[place].class_ for place in places]
    for at, class_ in enumerate(classes):
        end = at + 1
        while end < len(classes) and classes[end] == "quantize":
            end += 1
        if class_ in ("norm", "activation") and end > at + 1:
            yield list(places[at:end])


@frozen
class _Experts:
    """GEMMs of one kernel that follow each other, and the quantisation before each of them."""

    gemms: list[int]
    quantised: list[int]

    @property
    def all(self) -> list[int]:
        return sorted(self.gemms + self.quantised)


def grouped_drafts(recorded: Recorded) -> Iterator[DraftChange]:
    """`grouped_experts`: between a dispatch and its combine, GEMMs of one kernel in a row become
    one.

    Pessimistic: whole waves of blocks, each as long as the slowest seen, and quantisation as
    before. The other end: no part of a wave is idle, what any kernel takes (the shortest one's
    time) is taken once, and quantisation takes as long as the longest of it.
    """
    runs = _expert_runs(recorded)
    if not runs:
        return
    merged = merge(recorded, [run.all for run in runs])
    count = recorded.subject.sm_count
    blocks = recorded.rank.blocks
    rows = recorded.rows
    lengths = rows.length_ns[rows.is_compute]
    fixed_ns = int(lengths[lengths > 0].min())

    def low(timing: Timing) -> Timing:
        once = launched_at_once(recorded, timing, merged)
        return replace(once, duration_ns=_by_waves(timing.duration_ns, blocks, runs, count))

    def high(timing: Timing) -> Timing:
        once = back_to_back(launched_at_once(recorded, timing, merged), merged)
        return replace(once, duration_ns=_filled(timing.duration_ns, blocks, runs, count, fixed_ns))

    acts_on = {"compute": ("gemm", "quantize"), **LAUNCH_KINDS}
    yield DraftChange("grouped_experts", acts_on, low, high)


def _by_waves(
    duration_ns: IntArray, blocks: IntArray, runs: Sequence[_Experts], count: int | None
) -> IntArray:
    result = duration_ns.copy()
    for run in runs:
        sizes = blocks[run.gemms]
        if count is None or not (sizes > 0).all():
            continue
        wave_ns = float((duration_ns[run.gemms] / np.ceil(sizes / count)).max())
        _shrink(result, run.gemms, ceil(summed(sizes) / count) * wave_ns)
    return result


def _filled(
    duration_ns: IntArray,
    blocks: IntArray,
    runs: Sequence[_Experts],
    count: int | None,
    fixed_ns: int,
) -> IntArray:
    result = duration_ns.copy()
    for run in runs:
        quantised = run.quantised
        result[quantised] = 0
        if quantised:
            result[quantised[0]] = duration_ns[quantised].max()
        sizes = blocks[run.gemms]
        if count is not None and (sizes > 0).all():
            filled_ns = np.maximum(duration_ns[run.gemms] - fixed_ns, 0) * np.minimum(
                1.0, sizes / count
            )
            _shrink(result, run.gemms, fixed_ns + filled_ns.sum() / min(1.0, summed(sizes) / count))
    return result


def _shrink(result: IntArray, places: Sequence[int], to_ns: float) -> None:
    """Let some work take so long together, never longer than before."""
    whole_ns = summed(result[places])
    if whole_ns > to_ns:
        result[places] = ints(np.ceil(result[places] * (to_ns / whole_ns)))


def _expert_runs(recorded: Recorded) -> list[_Experts]:
    rows = recorded.rows
    exchanges = rows.start_ns[of_kinds(recorded, PAYLOAD)]
    attention = rows.start_ns[recorded.rank.of_class("attention")]
    runs = []
    for run in chain.from_iterable(map(partial(_rows_of_gemms, recorded), uninterrupted(recorded))):
        if len(run.gemms) > 1 and _between_exchanges(
            rows.start_ns[run.gemms[0]], exchanges, attention
        ):
            runs.append(run)
    return runs


def _rows_of_gemms(recorded: Recorded, places: Sequence[int]) -> Iterator[_Experts]:
    """GEMMs of one kernel's name with at most quantisation between them."""
    rows = recorded.rows
    run = _Experts([], [])
    waiting: list[int] = []
    for place in places:
        kernel = recorded.classes[place]
        if kernel.class_ == "quantize":
            waiting.append(place)
            continue
        is_gemm = kernel.class_ == "gemm" and not kernel.subclass.startswith("grouped")
        if not is_gemm or (run.gemms and rows.name[run.gemms[-1]] != rows.name[place]):
            yield run
            run = _Experts([], [])
        if is_gemm:
            run.gemms.append(place)
            run.quantised.extend(waiting)
        waiting = []
    yield run


def _between_exchanges(
    start_ns: int | IntArray, exchanges_ns: IntArray, attention_ns: IntArray
) -> bool:
    """Whether the exchanges before and after an instant have no attention between them."""
    at = int(np.searchsorted(exchanges_ns, start_ns))
    if at == 0 or at == len(exchanges_ns):
        return False
    first, last = np.searchsorted(attention_ns, (exchanges_ns[at - 1], exchanges_ns[at]))
    return bool(first == last)
