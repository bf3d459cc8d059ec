"""Kernels that one thread launches one right after the other on one stream, and several launches made one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from traces.account.calls import CallKind
from traces.account.host_calls import NONE
from traces.columns import IntArray, distinct
from traces.replay.changes.change import Recorded
from traces.replay.graph import Timing
from traces.replay.without import without_waits
from traces.timeline import Bucket

_APART: Final = (CallKind.SYNC, CallKind.FREE, CallKind.ALLOCATE, CallKind.INIT, CallKind.COPY)
_EVENTS: Final = ("EventRecord", "WaitEvent", "Memset")


def uninterrupted(recorded: Recorded) -> list[list[int]]:
    """Compute kernels in order of launch, split wherever one launch cannot take in what comes next.

    That is at a synchronisation, an allocator call, a copy, an event's record or wait, a collective, another
    stream's work, a handover to another thread, and a call that launches several kernels already.
    """
    calls = recorded.graph.calls
    found: list[list[int]] = [[]]
    launches = _single(recorded)
    apart = np.isin(calls.kind, _APART).tolist()
    names, stream, thread = recorded.call_names, recorded.rows.stream_id.tolist(), calls.thread.tolist()
    for call, work in enumerate(launches):
        last = found[-1][-1] if found[-1] else None
        if work != NONE:
            by = recorded.graph.launched_by
            if last is not None and (stream[last] != stream[work] or thread[by[last]] != thread[call]):
                found.append([])
            found[-1].append(work)
        elif last is not None and (
            apart[call] or recorded.launch_count[call] or any(event in names[call] for event in _EVENTS)
        ):
            found.append([])
    return [run for run in found if run]


def _single(recorded: Recorded) -> list[int]:
    """Of each call the compute kernel that it alone launched, -1 where there is none."""
    graph, rows = recorded.graph, recorded.rows
    work = np.full(len(graph.calls), NONE, dtype=np.int64)
    fits = (graph.launched_by != NONE) & (rows.bucket == Bucket.COMPUTE) & recorded.is_kernel()
    places = np.flatnonzero(fits)
    places = places[recorded.launch_count[graph.launched_by[places]] == 1]
    work[graph.launched_by[places]] = places
    return [int(one) for one in work]


@dataclass(frozen=True, slots=True)
class Merged:
    """Launches made one: of each run `first`, the call that stays, and `size`, how many kernels it launches.

    `gone`: the calls that go; `followers`: the kernels of each run but the first.
    """

    first: IntArray
    gone: IntArray
    size: IntArray
    followers: IntArray


def merge(recorded: Recorded, runs: Sequence[Sequence[int]]) -> Merged:
    """Let one call launch each run of at least two kernels; calls between them, of its thread, go as well."""
    graph = recorded.graph
    by, thread = graph.launched_by, graph.calls.thread
    gone: list[int] = []
    order = {one: np.flatnonzero(thread == one) for one in distinct(thread).tolist()}
    for run in runs:
        mine = order[int(thread[by[run[0]]])]
        begin, end = np.searchsorted(mine, (by[run[0]], by[run[-1]]), side="right")
        gone += mine[begin:end].tolist()
    first = np.array([by[run[0]] for run in runs], dtype=np.int64)
    followers = np.array([work for run in runs for work in run[1:]], dtype=np.int64)
    return Merged(first, np.array(gone, dtype=np.int64), np.array([len(run) for run in runs]), followers)


def launched_at_once(
    recorded: Recorded, timing: Timing, merged: Merged, call_ns: IntArray | None = None
) -> Timing:
    """Only the first call of each run is left, which takes `call_ns` of each run (None: what it took).

    Collection, loading and the profiler's work between them stay, for they would have come elsewhere.
    """
    own, pause = timing.own_ns.copy(), timing.pause_ns.copy()
    own[merged.gone] = 0
    pause[merged.gone] = np.minimum(pause, recorded.graph.pauses.said_ns)[merged.gone]
    if call_ns is not None:
        own[merged.first] = call_ns
    gone = np.zeros(len(own), dtype=np.bool_)
    gone[merged.gone] = True
    return replace(without_waits(timing, gone), own_ns=own, pause_ns=pause)


def back_to_back(timing: Timing, merged: Merged) -> Timing:
    """Kernels of each run follow its first without a gap, and arrive with it."""
    gap, arrival = timing.gap_ns.copy(), timing.arrival_ns.copy()
    gap[merged.followers] = arrival[merged.followers] = 0
    return replace(timing, gap_ns=gap, arrival_ns=arrival)


def runs_of(places: Sequence[int], wanted: Sequence[bool]) -> Iterator[list[int]]:
    """Stretches of at least two neighbours that are wanted."""
    run: list[int] = []
    for place, want in zip(places, wanted, strict=True):
        if want:
            run.append(place)
            continue
        if len(run) > 1:
            yield run
        run = []
    if len(run) > 1:
        yield run
