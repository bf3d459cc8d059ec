"""Recordings for the replay in microseconds, and what becomes of them when something takes another time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.by_hand.run import Run
from traces.account.account import measure_account
from traces.account.device import find_queueing
from traces.arrays import IntArray
from traces.replay.changes.costs import Costs, measure_costs
from traces.replay.edits import Subject
from traces.replay.graph import Graph, build_graph
from traces.replay.run import replay
from traces.replay.waits import CallWaits
from traces.steps.found import Step, Steps, from_steps, one_window
from traces.timeline import RankTimeline

US = 1_000


def by_call(waits: CallWaits) -> dict[int, list[tuple[int, int]]]:
    """What each waiting call waits for: some work, and how long after its end."""
    found: dict[int, list[tuple[int, int]]] = {}
    for call, work, after_ns in zip(waits.call, waits.work, waits.after_ns, strict=True):
        found.setdefault(int(call), []).append((int(work), int(after_ns)))
    return found


def begun() -> Run:
    """A run whose first kernel runs 0-100 on stream 7, launched at -10."""
    run = Run()
    run.work("gemm", 0, 100)
    return run


def recomputed_with_its_collective() -> Run:
    """From 100 to 220 a GEMM, an exchange, a sync and a GEMM run again, then the GEMM that needs them."""
    run = begun()
    run.work("gemm", 100, 150, launch=10)
    run.work("send_recv", 150, 170, launch=14)
    run.call("sync", 17, 175)
    run.work("gemm", 190, 220, launch=180)
    run.work("gemm", 230, 300, launch=220)
    return run


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


def again(run: Run) -> Again:
    """The whole recording as a graph, which must give itself back."""
    rank = run.rank()
    rows = rank.activities
    whole = one_window("none", "", int(rows.start_ns.min()), int(rows.end_ns.max()))
    found = Again(rank, build_graph(rank, whole.windows, find_queueing(rank)))
    assert found.times() == found.recorded
    return found


def costs_of(run: Run, *steps: tuple[float, float], **about: Any) -> Costs:
    """What each handicap costs over some steps; `about` is what else a `Subject` holds, places as lists."""
    rank = run.rank()
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
