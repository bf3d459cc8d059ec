"""Runs of many ranks written another way: both simulators run them alike, and each cause is in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import diagnoser
from bench.score.ranks.known import HANDICAPS
from bench.second.ranks import LAYOUTS, RankWriter, draw_ranks, programs
from bench.second.ranks_truth import SecondTruth, draw_truth
from bench.second.times import by_the_engine, by_the_second
from bench.simulate.engine import execute_ranks
from bench.simulate.ranks.causes import slow_frac
from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause, Extent
from bench.simulate.ranks.drawn import BETWEEN_NODES
from bench.simulate.ranks.happened import waited_for
from bench.simulate.ranks.layout import Group, Layout
from bench.simulate.ranks.recorded import write_ranks

SEED = 4
ONE_RANK = (Cause.SLOW_DEVICE, Cause.SLOW_HOST, Cause.DATA_LOADER)


@pytest.mark.parametrize("cause", Cause)
def test_both_simulators_agree_on_runs_that_were_written_another_way(cause: Cause) -> None:
    written = programs(*draw_ranks(SEED, cause))
    ran = SecondTruth(written).ran.ranks
    first = execute_ranks([written[rank] for rank in sorted(written)])
    assert [by_the_second(ran[rank]) for rank in sorted(ran)] == [*map(by_the_engine, first)]


@pytest.mark.parametrize(("cause", "extent"), HANDICAPS)
def test_a_cause_that_reaches_farther_matters_and_is_of_the_ranks_that_it_says(
    cause: Cause, extent: Extent
) -> None:
    truth = draw_truth(SEED, cause, extent=extent)
    assert truth.effect_frac >= 0.04
    assert (len(truth.ranks) > 1) == (extent is Extent.NODE)
    assert (truth.ranks == ()) == (extent is Extent.PAUSES)


@pytest.mark.parametrize("layout", [*LAYOUTS, BETWEEN_NODES])
@pytest.mark.parametrize("extent", [Extent.RANK, Extent.NODE])
def test_both_slow_the_same_transfers_by_as_much(layout: Layout, extent: Extent) -> None:
    run, said = draw_ranks(SEED, Cause.SLOW_LINK, layout, extent)
    run = replace(run, layout=layout)
    for rank in range(run.layout.world_size):
        writer = RankWriter(run, said, rank)
        for group in {run.layout.group(kind, rank) for kind in Group}:
            for kernel in ("nccl_all_gather", "nccl_send_recv") if len(group) > 1 else ():
                ring = kernel == "nccl_all_gather"
                assert writer._slow_frac(kernel, group) == pytest.approx(slow_frac(run, ring, group, rank))


@pytest.mark.parametrize("cause", ONE_RANK)
def test_a_cause_of_one_rank_is_in_no_other_program(cause: Cause) -> None:
    run, said = draw_ranks(SEED, cause)
    whole, mended = programs(run, said), programs(run.mended(), said)
    assert [rank for rank in whole if whole[rank] != mended[rank]] == [run.rank]


@pytest.mark.parametrize("cause", [*ONE_RANK, Cause.SLOW_LINK])
def test_without_its_cause_a_run_is_shorter_and_waits_less_for_the_late_rank(cause: Cause) -> None:
    truth = draw_truth(SEED, cause)
    (late,) = truth.ranks
    assert truth.effect_frac >= 0.04
    assert truth.wait_by_last_ns[late] > waited_for(truth.mended.instances())[late]


def test_what_the_first_simulator_says_of_such_a_run_is_what_the_second_found(tmp_path: Path) -> None:
    run, said = draw_ranks(SEED, Cause.SLOW_DEVICE)
    truth = SecondTruth(programs(run, said))
    done = truth.done(run)
    assert done.whole_ns == truth.whole_ns
    assert waited_for(done.instances()) == truth.charged_ns
    written = write_ranks(done, tmp_path, draw_clocks(run))
    assert [file.ranks for file in written] == [(rank,) for rank in range(8)]
    rank = diagnoser.analyze(written[0].path).to_dict()["ranks"][0]
    assert len(rank["steps"]["used"]) == said.step_count
