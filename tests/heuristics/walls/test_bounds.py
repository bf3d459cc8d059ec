"""The most that a wall can cost by the partition alone, and what follows where no replay is proven."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.simulate.recording import Recording
from heuristics.run.run import WALL_IDS
from tests.doubles.opinions import GEMM, JUDGE, costs, measured, rank
from tests.places import Export
from traces.measure.bounds import Bounds
from traces.missing import Missing, known
from traces.sections.tables import WallId

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
BLIND = Missing("replay", "no launch was recorded", "record more")
US = 1_000


def bounds(export: Export, recording: Recording) -> Bounds:
    return measured(export(recording)).bounds


def fifty_of_a_hundred() -> Recording:
    """Of compute 30 us, 20 more at a quarter of the SMs; 20 of communication, 10 beside it; 40 of nothing."""
    recording = Recording()
    recording.gpu(sm_count=132)
    recording.kernel(GEMM, 0, 30 * US, grid=(132, 1, 1))
    recording.kernel(ALL_REDUCE, 20 * US, 40 * US, stream=20, grid=(1, 1, 1))
    recording.kernel(GEMM, 80 * US, 100 * US, grid=(33, 1, 1))
    return recording


def test_communication_costs_no_more_than_it_runs_and_what_it_stretches(export: Export) -> None:
    """One block of 132 SMs leaves 131 to the 10 us beside it: a 132nd of them is stretch."""
    assert bounds(export, fifty_of_a_hundred()).communication == 20 * US + 10 * US // 132


def test_communication_costs_no_more_than_the_time_without_compute(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 90 * US)
    recording.kernel(ALL_REDUCE, 10 * US, 100 * US, stream=20)
    assert bounds(export, recording).communication == 10 * US


def test_without_an_account_the_host_costs_no_more_than_the_time_without_compute(export: Export) -> None:
    found = measured(export(fifty_of_a_hundred()))
    assert isinstance(found.account, Missing)
    assert found.bounds.host_overhead == 50 * US


def test_small_grids_at_once_count_once(export: Export) -> None:
    recording = Recording()
    recording.gpu(sm_count=132)
    recording.kernel(GEMM, 0, 80 * US, grid=(33, 1, 1), stream=7)
    recording.kernel(GEMM, 0, 80 * US, grid=(33, 1, 1), stream=8)
    assert bounds(export, recording).compute == 60 * US


def test_an_unknown_number_of_sms_is_bounded_by_the_largest_gpu(export: Export) -> None:
    """Of 188 SMs 132 blocks leave 56 for 30 us and 33 leave 155 for 20."""
    recording = fifty_of_a_hundred()
    recording.gpus.clear()
    found = bounds(export, recording)
    assert found.compute == pytest.approx(30 * US * 56 / 188 + 20 * US * 155 / 188, abs=2)
    assert found.memory is not None  # nothing runs backward, so nothing runs twice


def bounded(ns: int | None) -> Bounds:
    return Bounds(ns, ns, ns, ns)


@pytest.mark.parametrize("wall", WALL_IDS)
def test_without_a_replay_a_bound_below_the_limit_is_clear_and_from_there_the_most(wall: WallId) -> None:
    clear, open_ = (JUDGE[wall]([rank(BLIND, bounds=bounded(ns))]) for ns in (99, 100))
    assert (clear.outcome, clear.cost_ns, clear.cost_frac, clear.at_most_frac) == ("clear", 99, 0.099, 0.099)
    assert "not replayed: no launch was recorded" in clear.evidence[0].because
    assert (open_.outcome, known(open_.cost_ns), open_.at_most_frac) == ("unmeasurable", None, 0.1)
    assert open_.missing == (BLIND.reason,)


@pytest.mark.parametrize("wall", ["communication", "host_overhead", "compute"])
def test_no_cost_is_more_than_the_partition_holds_proven_or_not(wall: WallId) -> None:
    """What a replay saves in a step that is left out is no cost of the others."""
    proven, doubted = (
        JUDGE[wall]([rank(costs(**{wall: 120}, **doubt), bounds=bounded(80))])  # type: ignore[arg-type]
        for doubt in ({}, {"at_least": BLIND})
    )
    assert (proven.outcome, proven.cost_ns, proven.cost_frac) == ("clear", 80, 0.08)
    assert (doubted.outcome, doubted.cost_ns, doubted.at_most_frac) == ("clear", 80, 0.08)


def test_what_goes_with_repeated_work_is_beside_its_bound() -> None:
    found = JUDGE["memory"]([rank(costs(memory=95, at_least=BLIND), bounds=bounded(80))])
    assert (found.outcome, found.cost_frac, found.at_most_frac) == ("clear", 0.095, 0.095)
    over = JUDGE["memory"]([rank(costs(memory=1_200), bounds=bounded(80))])
    assert (over.cost_ns, over.cost_frac) == (1_000, 1.0)  # of a window of 1,000 ns


def test_cost_and_bound_are_parts_of_the_same_where_one_rank_of_two_has_no_price() -> None:
    ranks = [rank(costs(160, 200), bounds=bounded(500)), rank(BLIND, bounds=bounded(20))]
    found = JUDGE["communication"](ranks)
    assert (found.outcome, found.cost_frac, found.at_most_frac) == ("clear", 0.08, 0.09)
    graphed = replace(bounded(None), communication_seen=150)  # no bound but of what is outside of graphs
    ranks = [replace(one, bounds=graphed) for one in ranks]
    fracs = [JUDGE["communication"](ranks).cost_frac, JUDGE["host_overhead"](ranks).cost_frac]
    assert fracs == [0.15, 0.2]  # of the rank that can be told
