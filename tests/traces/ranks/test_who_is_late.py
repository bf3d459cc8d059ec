"""Who is late and why, on a few ranks with one cause each, in round numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.recordings.ranks import ALIKE, US, Part, Work, array, summary_of, together
from traces.names.kernels import compute_classes
from traces.ranks.run import analyse_run
from traces.ranks.side_by_side import device_factors, groups_alike
from traces.ranks.summary import Group, GroupSource, Operation, RankSummary
from traces.sections.cause import Cause
from traces.sections.run import Late

RANKS, STEPS, PER_STEP = 4, 4, 10
Rule = Callable[[int, int], Work]
"""Work of a rank before a collective, by number."""


def works(rule: Rule) -> list[list[Work]]:
    return [[rule(rank, number) for number in range(STEPS * PER_STEP)] for rank in range(RANKS)]


def late_of(ranks: list[RankSummary]) -> tuple[Cause, int | None]:
    late = analyse_run(ranks).late
    assert isinstance(late, Late)
    return late.cause, late.rank


def test_a_slow_device_is_late_by_its_kernels_and_charged_with_all_that_waited() -> None:
    def rule(rank: int, number: int) -> Work:
        return Work(compute=130 if rank == 2 else 100, host=2)

    kernels = [[13.0, 26, 39] if rank == 2 else [10.0, 20, 30] for rank in range(RANKS)]
    run = analyse_run(together(works(rule), per_step=PER_STEP, kernels_us=kernels))
    assert isinstance(run.late, Late)
    assert (run.late.cause, run.late.rank) == (Cause.SLOW_DEVICE, 2)
    assert run.late.wait_ns == 3 * 30 * US * STEPS * PER_STEP == run.wait_ns
    assert run.wait_by_kind_ns == {"all_reduce": run.wait_ns}
    assert run.late.cost_ns == 300 * US
    assert run.ranks[2].device_factor == pytest.approx(1.3)
    assert [rank.caused_ns for rank in run.ranks] == [0, 0, 900 * US, 0]
    assert [rank.waited_ns for rank in run.ranks] == [300 * US, 300 * US, 0, 300 * US]


@pytest.mark.parametrize(
    ("median_us", "mean_us", "factor"),
    [
        ((40, 20, 20), (31, 30, 30), 1.0),  # of a hundred kernels of 20 and 40 us one more is long
        ((20, 20, 20), (30, 45, 30), 1.0),  # one stood still
        ((24, 24, 24), (36, 36, 36), 1.2),
        ((40, 24, 24), (37, 36, 36), 1.2),
        ((24, 24, 24), (30, 30, 30), 1.2),  # the others paused as well: nothing is left but medians
    ],
)
def test_a_gpu_is_as_slow_as_its_median_kernels_of_the_kinds_whose_means_show_it_too(
    median_us: tuple[int, ...], mean_us: tuple[int, ...], factor: float
) -> None:
    """Three kinds of a hundred kernels, of 20 us in the middle and 30 us in the mean; of rank 3 others."""
    ranks = together(
        works(lambda rank, number: Work(compute=100)), per_step=PER_STEP, kernels_us=[[20.0] * 3] * 4
    )
    for place, one in enumerate(ranks):
        median_ns, mean_ns = (
            array([US * each for each in several])
            for several in ((median_us, mean_us) if place == 3 else ((20,) * 3, (30,) * 3))
        )
        kernels = replace(one.kernels, median_ns=median_ns, total_ns=100 * mean_ns, count=array([100] * 3))
        ranks[place] = replace(one, kernels=kernels)
    assert device_factors(ranks, groups_alike(ranks))[3] == pytest.approx(factor)


HOST, LOADER, JITTER, NOBODY = Cause.SLOW_HOST, Cause.DATA_LOADER, Cause.ROTATING_JITTER, Cause.NONE


def test_kernels_that_took_no_time_on_one_rank_tell_nothing_of_its_device() -> None:
    kernels_us = [[10.0, 20, 0 if rank == 1 else 30] for rank in range(RANKS)]
    ranks = together(works(lambda rank, number: Work(compute=100)), per_step=PER_STEP, kernels_us=kernels_us)
    gemm, norm = (compute_classes().index(key) for key in ("gemm", "norm"))
    for place, one in enumerate(ranks):
        ranks[place] = replace(one, kernels=replace(one.kernels, key=array([gemm, gemm, norm])))
    with np.errstate(all="raise"):
        factors = device_factors(ranks, groups_alike(ranks))
    assert factors.tolist() == pytest.approx([1.0] * RANKS)


def test_a_slow_link_is_that_of_the_rank_whose_stage_moves_longer_than_the_other_stage_too() -> None:
    """Of two stages of two ranks: messages between 0 and 2 are slow, and what 0 and 1 reduce."""
    ranks = []
    for rank in range(4):
        stage, alike = rank // 2, replace(ALIKE, has_loss=rank > 1)
        parts = []
        for number in range(STEPS * PER_STEP):
            begin, step = 1_000 * number, number // PER_STEP
            message, reduced = 60 if rank in (0, 2) else 20, 100 if stage else 300
            parts.append(Part(0, number, begin, begin + message, Operation.EXCHANGE, step=step))
            parts.append(Part(1, number, begin + 500, begin + 500 + reduced, step=step))
        groups = [
            Group(GroupSource.COMMUNICATOR, 10 + rank % 2, 2),
            Group(GroupSource.COMMUNICATOR, 20 + stage, 2),
        ]
        borders = range(0, 1_000 * (STEPS * PER_STEP + 1), 1_000 * PER_STEP)
        steps = [{"start": begin, "end": begin + 1_000 * PER_STEP} for begin in borders[:-1]]
        one = summary_of(rank, parts, groups, world_size=4, steps=steps, alike=alike)
        ranks.append(replace(one, identity=replace(one.identity, clock=1)))
    assert late_of(ranks) == (Cause.SLOW_LINK, 0)


def test_ranks_that_do_other_work_are_not_compared() -> None:
    def rule(rank: int, number: int) -> Work:
        return Work(compute=140 if rank == 3 else 100, host=2)

    ranks = together(works(rule), per_step=PER_STEP, kernels_us=[[10.0]] * 3 + [[14.0]])
    ranks[3] = replace(ranks[3], fingerprint=replace(ALIKE, has_loss=True))
    assert late_of(ranks) == (Cause.NONE, None)


def on_nodes(ranks: list[RankSummary], per_node: int) -> list[RankSummary]:
    """The same, so many ranks a node."""
    return [
        replace(one, identity=replace(one.identity, device=place % per_node))
        for place, one in enumerate(ranks)
    ]


def staged(slow: set[int]) -> list[RankSummary]:
    """Four stages of two ranks, the ends of their own kind; four ranks a node; some GPUs take 1.2 times."""

    def rule(rank: int, number: int) -> Work:
        return Work(compute=120 if rank in slow else 100, host=2)

    kernels = [[12.0] * 3 if rank in slow else [10.0] * 3 for rank in range(8)]
    works_ = [[rule(rank, number) for number in range(4 * PER_STEP)] for rank in range(8)]
    ranks = on_nodes(together(works_, per_step=PER_STEP, kernels_us=kernels), 4)
    ends = {
        0: {"has_embedding": True},
        1: {"has_embedding": True},
        6: {"has_loss": True},
        7: {"has_loss": True},
    }
    return [
        replace(one, fingerprint=replace(one.fingerprint, **ends.get(place, {})))
        for place, one in enumerate(ranks)
    ]


def test_a_slow_node_is_named_whole_though_it_holds_the_end_of_a_pipeline() -> None:
    late = analyse_run(staged({4, 5, 6, 7})).late
    assert isinstance(late, Late)
    assert (late.cause, late.indices, late.host) == (Cause.SLOW_DEVICE, (4, 5, 6, 7), "node 1")
