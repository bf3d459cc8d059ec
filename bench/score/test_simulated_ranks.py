"""Waits of pipeline stages and work of experts, as a simulator of ranks drew them."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause, Hot, RanksRun
from bench.simulate.ranks.drawn import draw_run
from bench.simulate.ranks.happened import RanksDone
from bench.simulate.ranks.layout import Group as Kind
from bench.simulate.ranks.recorded import Capture, Nccl, write_ranks
from bench.simulate.ranks.routing import hot_factor
from diagnoser.running.work.measured import MeasuredTrace, TraceTask, measure_trace
from tests.recordings.ranks import US, analyse_run, summaries_in
from traces.formats.open import ReadOptions
from traces.missing import Missing
from traces.ranks.summaries.summary import RankSummary
from traces.sections.cause import HotRank
from traces.sections.run import ExpertGroups, Pipeline
from traces.steps.selection import Selection


def true_phases(done: RanksDone) -> dict[int, list[float]]:
    """Of each stage what a mean rank and step waits, by phase: from arrivals, by the schedule's own names."""
    layout = done.run.layout
    last_stage = layout.pipeline - 1
    begun: dict[int, int] = defaultdict(int)
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    last_ns: dict[tuple[int, int], int] = {}
    names: dict[tuple[int, int], list[tuple[int, str, int]]] = defaultdict(list)
    of_all: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    operations = {
        (rank, one.collective[:3]): one.work.place.operation
        for rank, each in enumerate(done.ranks)
        for one in each.activities
        if one.collective is not None
    }
    for one in done.instances():
        for rank, wait_ns in one.waits_ns().items():
            cell, arrived = (rank, one.step), one.parts[rank].arrival_ns
            if one.name == Kind.PIPELINE.value:
                name = operations[rank, (one.group, one.name, one.sequence)]
                names[cell].append((arrived, name, wait_ns))
                last_ns[cell] = max(last_ns.get(cell, 0), one.parts[rank].end_ns)
            elif one.name == Kind.WORLD.value:
                of_all[cell].append((arrived, wait_ns))
    for (rank, step), several in names.items():
        stage = layout.stage(rank)
        if step == 0 and stage:
            continue  # its first wait lies before its first step
        first, final = (
            ("receive_forward",) * 2 if stage == last_stage else ("receive_backward", "send_forward")
        )
        ordered = sorted(several)
        warm = next(place for place, (_, name, _) in enumerate(ordered) if first in name)
        steady = max(place for place, (_, name, _) in enumerate(ordered) if final in name)
        for place, (_, _, wait_ns) in enumerate(ordered):
            sums[stage][0 if place <= warm else 1 if place <= max(warm, steady) else 2] += wait_ns
        after = [wait_ns for arrived, wait_ns in of_all[rank, step] if arrived >= last_ns[rank, step]]
        sums[stage][2] += sum(after)
        begun[stage] += 1
    return {stage: [value / begun[stage] for value in sums[stage]] for stage in sums}


@pytest.mark.parametrize("seed", [101, 102])
def test_simulated_stages_wait_as_their_schedule_has_it(seed: int, tmp_path: Path) -> None:
    truth = draw_run(seed, Cause.PIPELINE_IMBALANCE)
    written = write_ranks(truth.done, tmp_path, draw_clocks(truth.run), Capture(mpi=True))
    found = analyse_run([summary for one in written for summary in summaries_in(one.path)]).pipeline
    assert isinstance(found, Pipeline)
    assert found.microbatches == truth.run.knobs.microbatch_count
    expected = true_phases(truth.done)
    for number, stage in enumerate(found.stages):
        assert stage.ranks == truth.run.layout.ranks_of_stage(number)
        phases_ns = (stage.warm_up_ns, stage.steady_ns, stage.cool_down_ns)
        for seen_ns, true_ns in zip(phases_ns, expected[number], strict=True):
            assert seen_ns == pytest.approx(true_ns, rel=0.02, abs=20 * US)


def test_without_communicators_nobody_knows_who_sends_to_whom(tmp_path: Path) -> None:
    truth = draw_run(101, Cause.PIPELINE_IMBALANCE)
    capture = Capture(mpi=True, nccl=Nccl.RANGES)
    written = write_ranks(truth.done, tmp_path, draw_clocks(truth.run), capture)
    found = analyse_run([summary for one in written for summary in summaries_in(one.path)]).pipeline
    assert isinstance(found, Missing)


def measured(path: Path) -> list[RankSummary]:
    found = measure_trace(TraceTask(path, Selection(), ReadOptions(), None, False))
    assert isinstance(found, MeasuredTrace)
    return [rank.summary for rank in found.ranks]


def drawn_pattern(run: RanksRun, ranks: tuple[int, ...], steps: range) -> HotRank:
    """What is true of a group: how often each rank was drawn to be hot, over all and by layer."""
    hot = Counter(
        (layer, max(ranks, key=lambda rank: hot_factor(run, rank, step, layer)))
        for step in steps
        for layer in range(run.knobs.layer_count)
    )
    by_rank: Counter[int] = Counter()
    for (_, rank), times in hot.items():
        by_rank[rank] += times
    most = [max(hot[layer, rank] for rank in ranks) for layer in range(run.knobs.layer_count)]
    if max(by_rank.values()) >= 0.8 * hot.total():
        return HotRank.SAME_RANK
    return HotRank.BY_LAYER if sum(most) >= 0.8 * hot.total() else HotRank.BY_STEP


@pytest.mark.parametrize(
    ("hot", "seed"), [(Hot.RANK, 105), (Hot.LAYER, 105), (Hot.LAYER, 107), (Hot.STEP, 105)]
)
def test_simulated_routing_has_the_pattern_that_was_drawn(hot: Hot, seed: int, tmp_path: Path) -> None:
    truth = draw_run(seed, Cause.ROUTING_IMBALANCE, hot=hot)
    run = truth.run
    written = write_ranks(truth.done, tmp_path, draw_clocks(run), Capture(mpi=True))
    summaries = [summary for one in written for summary in measured(one.path)]
    found = analyse_run(summaries).experts
    assert isinstance(found, ExpertGroups)
    steps = range(run.knobs.step_count - len(summaries[0].steps), run.knobs.step_count)
    assert found.pattern is drawn_pattern(run, found.groups[found.worst.expert_group], steps)
    assert max(one.imbalance for one in found.uneven_layers) == pytest.approx(run.strength, rel=0.06)
    if hot is Hot.RANK:
        assert found.worst.hot_index == truth.late_rank
