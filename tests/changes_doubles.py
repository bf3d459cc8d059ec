"""Changes of a recording, measured as the costs are, and the same run with the change really made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from traces.account.account import measure_account
from traces.account.tight import UNEXPLAINED
from traces.formats.open import read_trace
from traces.measure.measurements import gpu_of
from traces.measure.memory import offload_places
from traces.measure.recompute import measure_recompute
from traces.measure.sm import measure_sm
from traces.missing import Missing
from traces.replay.borders import Borders
from traces.replay.changes.change import Change
from traces.replay.changes.measure import Priced, measure_changes
from traces.replay.costs import WORTH, Costs, measure_costs
from traces.replay.edits import Subject
from traces.replay.graph import build_graph
from traces.resolve.kinds import resolve_kinds
from traces.resolve.resolution import with_kinds
from traces.simulate.export import write_export
from traces.simulate.happened import Executed
from traces.simulate.host_program import Engine
from traces.simulate.recorded import START_NS, View, record
from traces.simulate.run import Run
from traces.steps.found import Step, Steps, from_steps
from traces.timeline import RankTimeline, build

FULL = View(ranges="layers")


@dataclass(frozen=True)
class Found:
    """What was found in a recording: its changes by kind, the costs they are part of, and its length."""

    changes: Mapping[str, Change]
    costs: Costs
    window_ns: int


def changes_of(rank: RankTimeline, steps: Steps, worth_frac: float = WORTH.value) -> Found:
    """Changes of a rank over the used steps, of those whose kinds cost a part of them."""
    resolution = resolve_kinds(rank)
    rank = with_kinds(rank, resolution)
    costs = measure_costs(_subject(rank, steps), steps, measure_account(rank, steps.windows))
    assert isinstance(costs, Costs)
    graph = build_graph(rank, steps.windows)
    kept = graph.timing.residual_ns
    explained = replace(graph.timing, residual_ns=np.where(kept > UNEXPLAINED.value, 0, kept))
    walls = ("communication", "host_overhead", "memory", "compute")
    told = {wall: cost for wall in walls if (cost := getattr(costs, wall)) is not None}
    priced = {wall: Priced(cost.ns, cost.by_kind_ns) for wall, cost in told.items()}
    pairs = np.array([(step.start_ns, step.end_ns) for step in steps.used], dtype=np.int64)
    borders = Borders(graph.rows, pairs)
    window_ns = steps.windows.total_ns
    worth_ns = round(worth_frac * window_ns)
    found = measure_changes(_subject(rank, steps), graph, explained, borders, priced, worth_ns)
    return Found({change.kind: change for change in found}, costs, window_ns)


def _subject(rank: RankTimeline, steps: Steps) -> Subject:
    gpu = gpu_of(rank)
    offloaded = offload_places(rank, steps)
    sm = measure_sm(rank, steps.windows, gpu, rank.columns.gpu_samples)
    return Subject(
        rank,
        steps,
        measure_recompute(rank, steps.windows).places,
        np.empty(0, dtype=np.int64) if isinstance(offloaded, Missing) else offloaded,
        None if sm.stretch is None else sm.stretch.frac,
        sm.sm_count,
    )


def changes_of_run(simulated: Run, view: View = FULL) -> Found:
    """Changes of a simulated run, over all its steps."""
    borders = [START_NS + at for at in simulated.borders_ns]
    found = tuple(Step(number, *pair) for number, pair in enumerate(pairwise(borders)))
    steps = from_steps("user", "", found)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        write_export(path, record(simulated, view), view.schema)
        (rank,) = build(read_trace(path)).ranks
        return changes_of(rank, steps)


def length_ns(executed: Executed) -> int:
    """From the first compute kernel of a program to the end of its last work: the length of all its steps."""
    starts = [one.start_ns for one in executed.activities if one.work.engine is Engine.SMS]
    return max(one.end_ns for one in executed.activities) - min(starts)
