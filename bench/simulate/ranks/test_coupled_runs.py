"""Runs of several ranks: groups, the effect of each cause, and what is true of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from bench.simulate.host_program import Busy, Engine, Launch
from bench.simulate.knobs import Knobs
from bench.simulate.ranks.causes import jittered_rank, programs_of
from bench.simulate.ranks.described import Cause, Hot, Jitter, RanksRun
from bench.simulate.ranks.drawn import LEAST_EFFECT_FRAC, draw_run, layouts
from bench.simulate.ranks.happened import Instance, Participant, RanksDone, simulate, waited_for
from bench.simulate.ranks.layout import Group, Layout
from bench.simulate.ranks.routing import hot_factor
from bench.simulate.ranks.truth import Truth

TWO = Layout(expert=2, data=2, ranks_per_host=2)
KNOBS = Knobs(
    step_count=2, microbatch_count=1, layer_count=2, pipeline_us=30.0, tensor_parallel_us=20.0, head_us=40.0
)
SMALL = RanksRun(1, TWO, KNOBS)


def test_groups_are_cut_as_megatron_core_cuts_them() -> None:
    """16 ranks: tensor first, then data, then pipeline; experts over 4 consecutive ranks of a stage."""
    layout = Layout(tensor=2, expert=4, pipeline=2, data=4)
    assert {kind: layout.group(kind, 13) for kind in Group} == {
        Group.TENSOR: (12, 13),
        Group.EXPERT: (12, 13, 14, 15),
        Group.DATA: (9, 11, 13, 15),
        Group.EXPERT_DATA: (9, 13),
        Group.PIPELINE: (5, 13),
        Group.WORLD: tuple(range(16)),
    }
    assert (layout.stage(13), layout.host(13), layout.local(13)) == (1, 1, 5)


def test_a_stage_that_experts_do_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple"):
        Layout(expert=4, data=6)


@pytest.mark.parametrize("rank_count", [8, 16, 64])
@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_layouts_of_every_size(rank_count: int, cause: Cause) -> None:
    found = layouts(rank_count, cause)
    assert {layout.world_size for layout in found} == {rank_count}
    assert cause is not Cause.PIPELINE_IMBALANCE or all(layout.pipeline > 1 for layout in found)


@pytest.mark.parametrize(
    "layout", [Layout(2, 4, 1, 4), Layout(1, 2, 4, 2), Layout(2, 2, 2, 2)], ids=["tp", "pp4", "tp and pp"]
)
@pytest.mark.parametrize("dispatcher", ["alltoall", "deepep", "hybridep", "allgather"])
@pytest.mark.parametrize("microbatches", [1, 4])
def test_every_participant_ends_its_transfer_after_the_last_arrival(
    layout: Layout, dispatcher: str, microbatches: int
) -> None:
    knobs = replace(KNOBS, step_count=1, dispatcher=dispatcher, microbatch_count=microbatches)
    instances = simulate(RanksRun(2, layout, knobs, device_syncs=microbatches == 4)).instances()
    assert {Group(instance.name) for instance in instances} == {
        kind for kind in Group if len(layout.group(kind, 0)) > 1
    }
    for instance in instances:
        assert tuple(sorted(instance.parts)) == instance.group
        for part in instance.parts.values():
            assert part.end_ns == instance.last_ns + part.transfer_ns


def test_one_forward_one_backward_meets_each_neighbour_as_often_as_there_are_microbatches() -> None:
    """Of 4 stages and 4 microbatches: 8 messages between neighbours, fewer meetings where two are one."""
    run = RanksRun(2, Layout(expert=2, pipeline=4, data=2), replace(KNOBS, step_count=1, microbatch_count=4))
    instances = [one for one in simulate(run).instances() if one.name == Group.PIPELINE.value]
    pairs = Counter(one.group for one in instances)
    assert {pair: pairs[pair] for pair in ((0, 2), (2, 4), (4, 6))} == {(0, 2): 7, (2, 4): 6, (4, 6): 5}


def instance(*arrivals_ns: int) -> Instance:
    parts = {rank: Participant(ns, 10, max(arrivals_ns) + 10) for rank, ns in enumerate(arrivals_ns)}
    return Instance(tuple(parts), "EP", 0, 0, "dispatch 1", "nccl_send_recv", parts)


def test_waits_are_charged_to_who_arrived_last() -> None:
    """The first waits 30 and 10 for rank 1, the second 5 and 5 for rank 0."""
    assert instance(0, 30, 20).waits_ns() == {0: 30, 1: 0, 2: 10}
    assert waited_for([instance(0, 30, 20), instance(5, 0, 0)]) == {1: 40, 0: 10}


def changed(run: RanksRun) -> dict[int, set[str]]:
    """Which kinds of operations a cause changes, by rank."""
    found: dict[int, set[str]] = {}
    for rank, (before, after) in enumerate(zip(programs_of(run.mended()), programs_of(run), strict=True)):
        for thread in before.threads:
            pairs = zip(before.threads[thread], after.threads[thread], strict=True)
            kinds = {
                one.works[0].engine.name if isinstance(one, Launch) else type(one).__name__
                for one, other in pairs
                if one != other
            }
            if kinds:
                found[rank] = found.get(rank, set()) | kinds
    return found


def test_a_slow_device_computes_longer_and_nothing_else() -> None:
    run = replace(SMALL, cause=Cause.SLOW_DEVICE, rank=1, strength=2.0)
    assert changed(run) == {1: {Engine.SMS.name}}
    before, after = programs_of(run.mended())[1], programs_of(run)[1]
    for one, other in zip(before.threads["main"], after.threads["main"], strict=True):
        if isinstance(one, Launch) and isinstance(other, Launch) and one.works[0].engine is Engine.SMS:
            assert other.works[0].alone_ns == 2 * one.works[0].alone_ns


def test_a_slow_host_takes_longer_for_every_call_of_one_rank() -> None:
    found = changed(replace(SMALL, cause=Cause.SLOW_HOST, rank=0, strength=3.0))
    assert found.keys() == {0}
    assert {"Busy", "Record", "StreamWait", "Synchronise", "Await", "SMS"} <= found[0]


def transfers(run: RanksRun, rank: int, kernel: str) -> int:
    launches = [one for one in programs_of(run)[rank].threads["main"] if isinstance(one, Launch)]
    return sum(
        one.collective.transfer_ns for one in launches if one.collective and one.works[0].kernel == kernel
    )


@pytest.mark.parametrize(("kernel", "others"), [("nccl_send_recv", 1 + 1 / 3), ("nccl_all_reduce", 2.0)])
def test_a_slow_link_lengthens_its_transfers_and_its_peers_by_what_passes_it(
    kernel: str, others: float
) -> None:
    """Of four ranks one link is slow by a factor of 2: a third of the others' all-to-all passes it."""
    run = RanksRun(1, Layout(expert=4, data=4), KNOBS, Cause.SLOW_LINK, rank=1, strength=2.0)
    for rank, factor in ((0, others), (1, 2.0), (3, others)):
        longer = transfers(run, rank, kernel) / transfers(run.mended(), rank, kernel)
        assert longer == pytest.approx(factor, abs=1e-4)
    assert set(changed(run)) == {0, 1, 2, 3}


def test_a_late_loader_stalls_one_rank_in_every_second_step() -> None:
    run = replace(
        SMALL, knobs=replace(KNOBS, step_count=4), cause=Cause.DATA_LOADER, rank=1, strength=5.0, every=2
    )

    def stalls_ns(given: RanksRun) -> list[int]:
        return [
            one.ns
            for one in programs_of(given)[1].threads["main"]
            if isinstance(one, Busy) and one.doing == "data"
        ]

    longer = [after - before for before, after in zip(stalls_ns(run.mended()), stalls_ns(run), strict=True)]
    assert [ns > 2_000_000 for ns in longer] == [False, True, False, True]
    assert longer[0] == longer[2] == 0


@pytest.mark.parametrize("jitter", Jitter)
def test_rotating_jitter_disturbs_another_rank_in_each_step(jitter: Jitter) -> None:
    knobs = replace(KNOBS, step_count=5)
    run = RanksRun(3, Layout(expert=4, data=4), knobs, Cause.ROTATING_JITTER, strength=1.5, jitter=jitter)
    hit = [jittered_rank(run, step) for step in range(5)]
    assert all(one != other for one, other in pairwise(hit))
    disturbed = {
        rank
        for rank, (before, after) in enumerate(zip(programs_of(run.mended()), programs_of(run), strict=True))
        if before.threads != after.threads
    }
    assert disturbed == set(hit)


@pytest.mark.parametrize("hot", Hot)
def test_the_hot_rank_has_its_factor_and_tokens_of_a_group_add_up(hot: Hot) -> None:
    run = RanksRun(4, Layout(expert=4, data=8), KNOBS, Cause.ROUTING_IMBALANCE, rank=5, strength=2.2, hot=hot)
    hottest = {}
    for step in range(4):
        for layer in range(4):
            factors = {rank: hot_factor(run, rank, step, layer) for rank in (4, 5, 6, 7)}
            assert sum(factors.values()) == pytest.approx(4.0)
            hottest[step, layer] = max(factors, key=lambda rank: factors[rank])
            assert factors[hottest[step, layer]] == 2.2
    assert (set(hottest.values()) == {5}) == (hot is Hot.RANK)
    same_each_step = all(hottest[step, layer] == hottest[0, layer] for step, layer in hottest)
    assert same_each_step == (hot is not Hot.STEP)
    assert hot is not Hot.RANK or hot_factor(run, 0, 0, 0) == 1.0


def test_pipeline_imbalance_moves_layers_and_keeps_their_number() -> None:
    run = RanksRun(
        1, Layout(expert=2, pipeline=4, data=2), KNOBS, Cause.PIPELINE_IMBALANCE, stage=2, strength=1.0
    )
    assert [run.layers_of(stage) for stage in range(4)] == [2, 1, 3, 2]
    assert [run.mended().layers_of(stage) for stage in range(4)] == [2, 2, 2, 2]
    assert [replace(run, stage=0).layers_of(stage) for stage in range(4)] == [3, 1, 2, 2]


def truth(run: RanksRun) -> Truth:
    return Truth(simulate(run), simulate(run.mended()))


@pytest.mark.parametrize("cause", [Cause.SLOW_DEVICE, Cause.SLOW_HOST, Cause.DATA_LOADER])
def test_a_late_rank_is_who_the_other_waits_for(cause: Cause) -> None:
    """Two ranks, one made much slower: nearly all waits are for it, and it costs what the truth says."""
    known = truth(replace(SMALL, cause=cause, rank=1, strength=8.0))
    assert (known.ranks, known.late_rank) == ((1,), 1)
    assert known.wait_ns > 0.9 * sum(known.wait_by_last_ns.values())
    assert known.effect_frac > 0.2
    assert known.done.whole_ns > known.mended.whole_ns


def test_a_slow_link_makes_transfers_longer_and_nobody_wait_for_it() -> None:
    known = truth(replace(SMALL, cause=Cause.SLOW_LINK, rank=1, strength=4.0))
    moved, healthy = (
        sum(part.transfer_ns for one in done.instances() for part in one.parts.values())
        for done in (known.done, known.mended)
    )
    assert moved / healthy == pytest.approx(4.0, abs=0.001)
    assert sum(known.wait_by_last_ns.values()) < 0.2 * (moved - healthy)


def test_moving_causes_name_no_rank_and_a_stage_names_all_of_its_ranks() -> None:
    moving = replace(SMALL, cause=Cause.ROUTING_IMBALANCE, rank=1, strength=1.5, hot=Hot.STEP)
    jitter = replace(SMALL, cause=Cause.ROTATING_JITTER, strength=2.0)
    done = simulate(SMALL)

    def ranks(run: RanksRun) -> tuple[int, ...]:
        return Truth(RanksDone(run, done.ranks), done).ranks

    assert ranks(moving) == ranks(jitter) == ranks(SMALL) == ()
    assert ranks(replace(moving, hot=Hot.RANK)) == (1,)
    stages = RanksRun(
        1, Layout(expert=2, pipeline=2, data=2), KNOBS, Cause.PIPELINE_IMBALANCE, stage=1, strength=1.0
    )
    assert ranks(stages) == (2, 3)


@pytest.mark.parametrize("cause", [Cause.SLOW_DEVICE, Cause.ROTATING_JITTER, Cause.NONE])
def test_a_drawn_cause_matters_and_a_drawn_run_repeats(cause: Cause) -> None:
    first, again = (draw_run(5, cause, 4, step_count=2) for _ in range(2))
    assert first.run == again.run
    assert first.done.steps_ns == again.done.steps_ns
    if cause is Cause.NONE:
        assert first.effect_frac == 0.0
    else:
        assert first.effect_frac >= LEAST_EFFECT_FRAC
