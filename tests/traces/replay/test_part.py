"""Some stretches of a recording replayed, in place of all of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench.simulate.export import write_export
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import START_NS, View, record
from bench.simulate.run import run
from traces.account.device import find_queueing
from traces.formats.open import read_trace
from traces.intervals import spans
from traces.replay.changes.costs import part_of
from traces.replay.edits import Edits, Subject
from traces.replay.graph import Graph, build_graph, happens_in
from traces.replay.run import Borders, Replayed, replay
from traces.steps.found import Step, Steps, from_steps, one_window
from traces.steps.sample import WHOLE, sample_of
from traces.timeline import Activities, RankTimeline, build

STEPS = 12
KNOBS = Knobs(
    step_count=STEPS, layer_count=2, microbatch_count=1, dispatch_us=400, peer_late_us=40, python_us=12,
    recompute="moe",
)  # fmt: skip
BORDERS_NS = [START_NS + at for at in run(KNOBS).borders_ns]
STRETCHES = spans((BORDERS_NS[2], BORDERS_NS[4]), (BORDERS_NS[7], BORDERS_NS[9]))
LATER = spans((BORDERS_NS[3], BORDERS_NS[4]), (BORDERS_NS[8], BORDERS_NS[9]))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("cut") / "run.sqlite"
    view = View(ranges="steps")
    write_export(found, record(run(KNOBS), view), view.schema)
    return found


@pytest.fixture(scope="module")
def rank(path: Path) -> RankTimeline:
    (found,) = build(read_trace(path)).ranks
    return found


@pytest.fixture(scope="module")
def steps() -> Steps:
    return from_steps(
        "user", "", tuple(Step(number, *pair) for number, pair in enumerate(pairwise(BORDERS_NS)))
    )


@pytest.fixture(scope="module")
def whole(rank: RankTimeline, steps: Steps) -> Subject:
    places = np.arange(len(rank.activities))
    nowhere = np.empty(0, dtype=np.int64)
    return Subject(rank, steps, places[::7], nowhere, nowhere, sm_count=132)


@pytest.fixture(scope="module")
def graph(whole: Subject, steps: Steps) -> Graph:
    return build_graph(
        whole.rank, spans((steps.used[0].start_ns, steps.used[-1].end_ns)), find_queueing(whole.rank)
    )


@pytest.fixture(scope="module")
def part(whole: Subject) -> tuple[Subject, Graph]:
    """Steps 2 and 3, and steps 7 and 8."""
    subject, queueing = part_of(whole, find_queueing(whole.rank), STRETCHES)
    return subject, build_graph(subject.rank, STRETCHES, queueing)


def test_only_what_happens_in_the_stretches_moves(part: tuple[Subject, Graph]) -> None:
    _, graph = part
    halved = replace(graph.timing, duration_ns=graph.timing.duration_ns // 2)
    moved = replay(graph, halved).end_ns != graph.rows.end_ns
    assert moved.any()
    assert not (moved & ~happens_in(graph.rows, STRETCHES)).any()


def test_the_graph_of_a_part_is_smaller_and_gives_back_the_recording(
    part: tuple[Subject, Graph], graph: Graph
) -> None:
    subject, found = part
    assert len(found.rows) < 0.4 * len(graph.rows)
    assert len(found.calls) < 0.4 * len(graph.calls)
    assert len(subject.rank.activities) == len(found.rows)
    assert (replay(found, found.timing).end_ns == found.rows.end_ns).all()


@pytest.mark.parametrize("wall", ["communication", "host_overhead", "memory", "compute"])
def test_the_graph_of_a_part_replays_as_the_whole_one(
    whole: Subject, part: tuple[Subject, Graph], graph: Graph, wall: str
) -> None:
    """The lengths of the later step of each stretch."""
    subject, found = part
    pairs = [(start, end) for start, end in LATER.pairs()]
    lengths = [
        Borders(one.rows, pairs).lengths_ns(replay(one, Edits(of, one, one.timing).walls()[wall][0]()))
        for of, one in ((whole, graph), (subject, found))
    ]
    assert lengths[0].tolist() == lengths[1].tolist()


def at(rows: Activities, start_ns: list[int], end_ns: list[int]) -> Activities:
    """As many of some activities, at other times."""
    some = rows.take(np.arange(len(start_ns)))
    taken = {name: getattr(some, name) for name in Activities.__slots__}
    return Activities(**{**taken, "start_ns": np.array(start_ns), "end_ns": np.array(end_ns)})


def test_work_that_ends_late_in_one_stretch_does_not_make_the_next_begin_late(graph: Graph) -> None:
    """Two steps of 100 ns, 100 ns apart; all work of the first takes 900 ns longer."""
    rows = at(graph.rows, [0, 210], [100, 300])
    done = Replayed(rows.start_ns, np.array([1_000, 300]))
    pairs = [(0, 100), (200, 300)]
    together, apart = Borders(rows, pairs), Borders(rows, pairs, [100, 500], [150])
    assert together.lengths_ns(done).tolist() == [1_000, 0]
    assert apart.lengths_ns(done).tolist() == [1_000, 500]


def test_a_step_counts_for_those_that_it_stands_for(graph: Graph) -> None:
    rows = at(graph.rows, [0], [100])
    found = Borders(rows, [(0, 100)], [1_000])
    assert found.lengths_ns(Replayed(rows.start_ns, np.array([60]))).tolist() == [600]


def test_slices_of_a_long_window_stand_for_all_of_it() -> None:
    """A window of 32 parts of 1,000 ns; half of the activities are replayed, a quarter of them counts."""
    window = one_window("none", "", 0, 32_000)
    assert sample_of(window, int(WHOLE.value)).pairs_ns == ((0, 32_000),)
    found = sample_of(window, 2 * int(WHOLE.value))
    assert found.pairs_ns[:2] == ((500, 750), (1_500, 1_750))
    assert found.stretches.pairs()[:2] == [[250, 750], [1_250, 1_750]]
    assert set(found.stand_for_ns) == {1_000}
    assert (len(found.pairs_ns), sum(found.stand_for_ns)) == (32, 32_000)
