"""What holds of any replay: less makes nothing later, costs lie in the window, of nothing none is left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from tests.recordings.told import Teller, recorded, words
from traces.account.account import measure_account
from traces.account.device import find_queueing
from traces.arrays import IntArray
from traces.formats.open import read_trace
from traces.replay.changes.costs import Costs, measure_costs
from traces.replay.edits import Subject
from traces.replay.graph import Timing, build_graph
from traces.replay.run import replay
from traces.replay.waits import Waits
from traces.steps.found import Step, Steps, from_steps
from traces.timeline import RankTimeline, build

US = 1_000
SM_COUNT, STRETCH_FRAC, TENSOR_FRAC = 132, 0.25, 0.125


def ranks_of(path: Path, recording: Recording) -> tuple[RankTimeline, ...]:
    write_export(path, recording)
    return build(read_trace(path)).ranks


def halves(rank: RankTimeline) -> Steps:
    """Two steps: the first and the second half of what ran."""
    first, last = int(rank.activities.start_ns.min()), int(rank.activities.end_ns.max())
    middle = (first + last) // 2
    return from_steps("user", "halves", (Step(0, first, middle), Step(1, middle, last)))


def every_third(rank: RankTimeline, steps: Steps) -> Subject:
    """A rank of which every third activity counts as recomputed, every fifth as offloaded."""
    places = np.arange(len(rank.activities))
    return Subject(
        rank,
        steps,
        places[::3],
        places[::5],
        places[1::7],
        STRETCH_FRAC,
        SM_COUNT,
        simt=places[::2],
        tensor_frac=TENSOR_FRAC,
    )


class Freeing(Teller):
    """A teller whose `cudaFree` waits for all work, as the real one does."""

    def tell(self, op: str, thread: int, stream: int, after: int, length: int, delay: int, work: int) -> None:
        super().tell(op, thread, stream, after, length, delay, work)
        if op == "cudaFree_v3020":
            self.returns_at(len(self.calls) - 1, max(one.end for one in self.works) + delay * US)


def random_rank(path: Path, told: list[Any], with_ids: bool) -> RankTimeline:
    teller = Freeing()
    for said in told:
        teller.tell(*said)
    teller.tell("compute", 1000, 7, 10, 5, 3, 10)
    (rank,) = ranks_of(path, recorded(teller.story(with_ids)))
    return rank


stories = st.lists(words, min_size=6, max_size=25)


@settings(max_examples=40, deadline=None)
@given(stories, st.booleans(), st.data())
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
    assert (after.end_ns <= before.end_ns).all()
    assert (after.start_ns <= before.start_ns).all()


def less(values: IntArray, place: int, data: st.DataObject) -> IntArray:
    changed = values.copy()
    changed[place] = data.draw(st.integers(min(0, int(values[place])), max(0, int(values[place]))))
    return np.minimum(changed, values)


@settings(max_examples=40, deadline=None)
@given(stories, st.booleans())
def test_costs_lie_between_nothing_and_the_window(
    tmp_path_factory: pytest.TempPathFactory, told: list[Any], with_ids: bool
) -> None:
    rank = random_rank(tmp_path_factory.mktemp("costs") / "run.sqlite", told, with_ids)
    steps = halves(rank)
    queueing = find_queueing(rank)
    account = measure_account(rank, steps.windows, queueing)
    found = measure_costs(every_third(rank, steps), account, queueing)
    assert isinstance(found, Costs)
    for cost in (found.communication, found.host_overhead, found.memory, found.compute):
        if cost is not None:
            assert 0 <= cost.ns <= steps.windows.total_ns
            assert all(0 < ns <= cost.ns for ns in cost.by_kind_ns.values())
            assert len(cost.step_ns) == 2
    assert 0 <= found.proofs.unexplained_frac <= 1


@settings(max_examples=40, deadline=None)
@given(stories, st.booleans())
def test_with_everything_taken_away_nothing_is_left(
    tmp_path_factory: pytest.TempPathFactory, told: list[Any], with_ids: bool
) -> None:
    rank = random_rank(tmp_path_factory.mktemp("nothing") / "run.sqlite", told, with_ids)
    graph = build_graph(rank, halves(rank).windows, find_queueing(rank))
    timing = graph.timing
    no_work, no_call = np.zeros_like(timing.duration_ns), np.zeros_like(timing.own_ns)
    done = replay(
        graph,
        Timing(
            duration_ns=no_work,
            gap_ns=no_work,
            arrival_ns=no_work,
            residual_ns=no_work,
            engine=np.full_like(timing.engine, -1),
            pause_ns=no_call,
            own_ns=no_call,
            waits=Waits.of(()),
            polled=Waits.of(()),
        ),
    )
    # all falls together at the first call, but for what stays where it was, and what follows that: the first
    # work of all, and work of which no launch was recorded
    first, rows = int(graph.calls.start_ns.min()), graph.rows
    stays = {int(rows.start_ns[0]), *rows.start_ns[rows.call < 0].tolist()}
    assert set(done.start_ns.tolist()) <= {first} | stays
    assert (done.end_ns == done.start_ns).all()
