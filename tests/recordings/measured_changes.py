"""Changes of traces that are measured already: of one rank, where each kind costs so much, and of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from diagnoser.running.work.measured import MeasuredTrace, joints
from diagnoser.running.work.processes import Engine
from tests.recordings.replay import US, subject_of, us
from traces.account.device import find_queueing
from traces.errors import InputError
from traces.limits import NEARLY_ALL
from traces.replay.changes.change import Change, Joint
from traces.replay.changes.costs import Costs
from traces.replay.changes.measure import measure_changes
from traces.replay.graph import build_graph
from traces.replay.proofs import Cost
from traces.replay.run import ReplayBorders, replay
from traces.replay.without import without_unexplained
from traces.steps.found import Step, from_steps
from traces.timeline import RankTimeline

ALL = ("communication", "host_overhead", "memory", "compute")
KINDS = (
    *(
        "launch", "python", "arrival", "gc", "long_python_pauses", "token_count_sync", "recompute",
        "allocator",
    ),
    *("ep_dispatch", "ep_combine", "ep_a2a", "ep_control", "gemm", "quantize"),
)  # fmt: skip


def changes(
    rank: RankTimeline, *steps: tuple[float, float], most: float = 1_000_000, **about: object
) -> Mapping[str, Change]:
    """Changes over some steps where every kind costs `most`, unless what is asked about says otherwise."""
    found = from_steps("user", "", tuple(Step(n, us(a), us(b)) for n, (a, b) in enumerate(steps)))
    graph = build_graph(rank, found.windows, find_queueing(rank))
    costs = {wall: Cost(us(most), dict.fromkeys(KINDS, us(most)), ()) for wall in ALL}
    borders = ReplayBorders(graph.rows, [(step.start_ns, step.end_ns) for step in found.used])
    subject = subject_of(rank, found, **about)  # type: ignore[arg-type]
    timings = (without_unexplained(graph.timing), graph.timing)
    bases = [(timing, int(borders.lengths_ns(replay(graph, timing)).sum())) for timing in timings]
    return {one.kind: one for one in measure_changes(subject, graph, bases, borders, costs, 1).changes}


def surely(saved_us: float) -> int:
    """What is told as the lower end where a pessimistic replay saves so much, in ns."""
    return int(saved_us * US * NEARLY_ALL.value)


def joints_of(engine: Engine, traces: Sequence[MeasuredTrace | InputError]) -> list[Joint]:
    """What all changes of the first rank of each trace save together."""
    questions = {}
    for place, trace in enumerate(traces):
        assert isinstance(trace, MeasuredTrace)
        costs = trace.ranks[0].costs
        assert isinstance(costs, Costs)
        questions[place] = partial(joints, {0: (0, [tuple(one.kind for one in costs.changes)])})
    return [answer[0][0] for answer in engine.ask(questions)]
