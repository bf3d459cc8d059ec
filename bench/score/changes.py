"""Changes of a recording, measured as the costs are, and the same run with the change really made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.simulate.export import write_export
from bench.simulate.happened import Executed
from bench.simulate.host_program import Engine
from bench.simulate.recorded import START_NS, View, record
from bench.simulate.run import Run
from traces.account.account import measure_account
from traces.account.device import find_queueing
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.measure.recompute import measure_recompute
from traces.measure.sm import measure_sm
from traces.measurements import subject_of
from traces.replay.changes.change import Change
from traces.replay.changes.costs import Costs, measure_costs
from traces.resolve.kinds import resolve_kinds
from traces.resolve.resolution import with_kinds
from traces.steps.found import Step, Steps, from_steps
from traces.timeline import RankTimeline

FULL = View(ranges="layers")


@dataclass(frozen=True)
class Found:
    """What was found in a recording: its changes by kind, the costs they are part of, and its length."""

    changes: Mapping[str, Change]
    costs: Costs
    window_ns: int


def changes_of(rank: RankTimeline, steps: Steps) -> Found:
    """Changes of a rank over the used steps, of those whose kinds cost a part of them."""
    rank = with_kinds(rank, resolve_kinds(rank))
    sm = measure_sm(rank, steps.windows, rank.gpu, rank.columns.gpu_samples).sm
    queueing = find_queueing(rank)
    subject = subject_of(rank, steps, measure_recompute(rank, steps.windows), sm)
    account = measure_account(rank, steps.windows, queueing)
    costs = measure_costs(subject, account, queueing)
    assert isinstance(costs, Costs)
    return Found({change.kind: change for change in costs.changes}, costs, steps.windows.total_ns)


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
