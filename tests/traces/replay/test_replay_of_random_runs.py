"""What every replay must hold, whatever the host called and the GPU ran."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.simulate.export import write_export
from tests.recordings.told import Teller, recorded, words
from traces.account.account import measure_account
from traces.account.device import find_queueing
from traces.arrays import IntArray
from traces.formats.open import read_trace
from traces.replay.changes.costs import Costs, measure_costs
from traces.replay.edits import Subject
from traces.replay.graph import build_graph
from traces.replay.run import replay
from traces.steps.found import Step, Steps, from_steps
from traces.timeline import RankTimeline, build

STORIES = st.lists(words, min_size=6, max_size=25)


def random_rank(path: Path, told: list[Any], with_ids: bool) -> RankTimeline:
    teller = Teller()
    for said in told:
        teller.tell(*said)
    teller.tell("compute", 1000, 7, 10, 5, 3, 10)
    write_export(path, recorded(teller.story(with_ids)))
    (rank,) = build(read_trace(path)).ranks
    return rank


def halves(rank: RankTimeline) -> Steps:
    """Two steps: the first and the second half of what ran."""
    first, last = int(rank.activities.start_ns.min()), int(rank.activities.end_ns.max())
    middle = (first + last) // 2
    return from_steps("user", "halves", (Step(0, first, middle), Step(1, middle, last)))


@settings(max_examples=40, deadline=None)
@given(STORIES, st.booleans(), st.data())
def test_nothing_ends_later_when_anything_takes_less(
    tmp_path_factory: pytest.TempPathFactory, told: list[Any], with_ids: bool, data: st.DataObject
) -> None:
    rank = random_rank(tmp_path_factory.mktemp("shorter") / "run.sqlite", told, with_ids)
    graph = build_graph(rank, halves(rank).windows, find_queueing(rank))
    timing = graph.timing
    work, call = (data.draw(st.integers(0, len(some) - 1)) for some in (graph.rows, graph.calls))
    shorter = replace(
        timing,
        duration_ns=less(timing.duration_ns, work, data),
        own_ns=less(timing.own_ns, call, data),
        pause_ns=less(timing.pause_ns, call, data),
        arrival_ns=less(timing.arrival_ns, work, data),
    )
    before, after = replay(graph, timing), replay(graph, shorter)
    assert (before.end_ns == graph.rows.end_ns).all()  # what nothing changes ends as recorded
    assert (after.end_ns <= before.end_ns).all()
    assert (after.start_ns <= before.start_ns).all()


def less(values: IntArray, place: int, data: st.DataObject) -> IntArray:
    changed = values.copy()
    changed[place] = data.draw(st.integers(min(0, int(values[place])), max(0, int(values[place]))))
    return np.minimum(changed, values)


@settings(max_examples=40, deadline=None)
@given(STORIES, st.booleans())
def test_costs_lie_between_nothing_and_the_window(
    tmp_path_factory: pytest.TempPathFactory, told: list[Any], with_ids: bool
) -> None:
    rank = random_rank(tmp_path_factory.mktemp("costs") / "run.sqlite", told, with_ids)
    steps, queueing, places = halves(rank), find_queueing(rank), np.arange(len(rank.activities))
    subject = Subject(
        rank, steps, places[::3], places[::5], places[1::7], 0.25, 132, simt=places[::2], tensor_frac=0.125
    )
    found = measure_costs(subject, measure_account(rank, steps.windows, queueing), queueing)
    assert isinstance(found, Costs)
    for cost in (found.communication, found.host_overhead, found.memory, found.compute):
        if cost is not None:
            assert 0 <= cost.ns <= steps.windows.total_ns
            assert all(0 < ns <= cost.ns for ns in cost.by_kind_ns.values())
            assert len(cost.step_ns) == 2
    assert 0 <= found.proofs.unexplained_frac <= 1
