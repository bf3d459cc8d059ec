"""Recordings for the replay in microseconds, and what becomes of them when something takes another time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from traces.account.account import measure_account
from traces.account.device import find_queueing
from traces.arrays import IntArray
from traces.formats.open import read_trace
from traces.replay.changes.costs import Costs, measure_costs
from traces.replay.edits import Subject
from traces.replay.graph import Graph, build_graph
from traces.replay.run import replay
from traces.replay.waits import Waits
from traces.steps.found import Step, Steps, from_steps, one_window
from traces.timeline import RankTimeline, build

US = 1_000
GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
LAYOUT = "void deep_ep::layout::get_dispatch_layout<(int)256, (int)32, (int)8>(const long *, int *)"
NOTIFY = "void deep_ep::intranode::notify_dispatch<(int)8>(const int *, int *)"
SYNC, DEVICE_SYNC = "cudaStreamSynchronize_v3020", "cudaDeviceSynchronize_v3020"
RECORD, WAIT = "cudaEventRecord_v3020", "cudaStreamWaitEvent_v3020"


def by_call(waits: Waits) -> dict[int, list[tuple[int, int]]]:
    """What each waiting call waits for: some work, and how long after its end."""
    found: dict[int, list[tuple[int, int]]] = {}
    for call, work, after_ns in zip(waits.call, waits.work, waits.after_ns, strict=True):
        found.setdefault(int(call), []).append((int(work), int(after_ns)))
    return found


class Said:
    """A recording whose first kernel runs 0-100 on stream 7, launched at -10."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.kernel(GEMM, 0, 100, launch=(-10, -8))

    def kernel(self, name: str, start: float, end: float, launch: tuple[float, float], **how: Any) -> int:
        return self.recording.kernel(name, us(start), us(end), **self._launched(launch), **how)

    def copy(
        self, kind: str, start: float, end: float, launch: tuple[float, float], size_bytes: int = 1 << 20,
        **how: Any,
    ) -> int:  # fmt: skip
        how |= {"size_bytes": size_bytes, **self._launched(launch)}
        return self.recording.copy(kind, us(start), us(end), **how)

    def call(self, name: str, start: float, end: float, **how: Any) -> int:
        return self.recording.call(name, us(start), us(end), **how)

    def sync_of(self, stream: int, start: float, end: float) -> None:
        """A synchronisation whose row names its stream."""
        number = self.call(SYNC, start, end)
        self.recording.synchronisation("stream", us(start), us(end), correlation_id=number, stream=stream)

    def event(self, stream: int, record_at: float, waiting_stream: int, wait_at: float) -> None:
        """What comes next on one stream waits for what another was given so far; each call takes 1 us."""
        record = self.call(RECORD, record_at, record_at + 1)
        wait = self.call(WAIT, wait_at, wait_at + 1)
        self.recording.event_record(5, record, stream, correlation_id=record)
        times = us(wait_at), us(wait_at + 1)
        self.recording.synchronisation(
            "stream wait", *times, correlation_id=wait, stream=waiting_stream, event_id=5, sync_id=record
        )

    def _launched(self, launch: tuple[float, float]) -> dict[str, Any]:
        return {"launch_ns": us(launch[0]), "launch_end_ns": us(launch[1])}


def us(time: float) -> int:
    """Microseconds in nanoseconds."""
    return round(time * US)


@dataclass(frozen=True)
class Again:
    """A recording as a graph; places of calls and of work count in order of start."""

    rank: RankTimeline
    graph: Graph

    def times(
        self, work: Mapping[int, float] | None = None, pause: Mapping[int, float] | None = None,
        own: Mapping[int, float] | None = None,
    ) -> list[tuple[float, float]]:  # fmt: skip
        """Starts and ends of all work, with some work, pauses before calls and calls taking another time."""
        timing = self.graph.timing
        timing = replace(
            timing,
            duration_ns=_with(timing.duration_ns, work),
            pause_ns=_with(timing.pause_ns, pause),
            own_ns=_with(timing.own_ns, own),
        )
        done = replay(self.graph, timing)
        both = zip(done.start_ns.tolist(), done.end_ns.tolist(), strict=True)
        return [(start / US, end / US) for start, end in both]

    @property
    def recorded(self) -> list[tuple[float, float]]:
        rows = self.rank.activities
        both = zip(rows.start_ns.tolist(), rows.end_ns.tolist(), strict=True)
        return [(start / US, end / US) for start, end in both]


def _with(values: IntArray, other: Mapping[int, float] | None) -> IntArray:
    changed = values.copy()
    for place, time in (other or {}).items():
        changed[place] = us(time)
    return changed


def rank_of(path: Path, said: Said) -> RankTimeline:
    write_export(path, said.recording)
    (rank,) = build(read_trace(path)).ranks
    return rank


def again(path: Path, said: Said) -> Again:
    """The whole recording as a graph, which must give itself back."""
    rank = rank_of(path, said)
    rows = rank.activities
    whole = one_window("none", "", int(rows.start_ns.min()), int(rows.end_ns.max()))
    found = Again(rank, build_graph(rank, whole.windows, find_queueing(rank)))
    assert found.times() == found.recorded
    return found


def costs_of(path: Path, said: Said, *steps: tuple[float, float], **about: Any) -> Costs:
    """What each handicap costs over some steps; `about` is what else a `Subject` holds, places as lists."""
    rank = rank_of(path, said)
    found = from_steps("user", "", tuple(Step(n, us(a), us(b)) for n, (a, b) in enumerate(steps)))
    queueing = find_queueing(rank)
    account = measure_account(rank, found.windows, queueing)
    costs = measure_costs(subject_of(rank, found, **about), account, queueing)
    assert isinstance(costs, Costs)
    return costs


def subject_of(
    rank: RankTimeline, steps: Steps, recomputed: list[int] | None = None, offloaded: list[int] | None = None,
    resident: list[int] | None = None, simt: list[int] | None = None, **about: Any,
) -> Subject:  # fmt: skip
    some = {"recomputed": recomputed, "offloaded": offloaded, "resident": resident, "simt": simt}
    about |= {name: np.array(one or [], dtype=np.int64) for name, one in some.items()}
    return Subject(rank, steps, **about)
