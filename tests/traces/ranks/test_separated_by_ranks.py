"""What only several ranks tell: exposed waiting for the late one, complete groups, steps, clocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.recordings.ranks import Part, Work, summary_of, together
from traces.missing import known
from traces.ranks.charge import COLUMNS
from traces.ranks.run import analyse_run
from traces.ranks.summary import Group, GroupSource, RankSummary


def slow(count: int = 4, *, world_size: int | None = None, steps: int = 4) -> list[RankSummary]:
    """Rank 2 computes 30 us longer before each of ten collectives a step."""
    works = [[Work(compute=130 if rank == 2 else 100, host=2)] * (10 * steps) for rank in range(count)]
    kernels = [[13.0, 26.0] if rank == 2 else [10.0, 20.0] for rank in range(count)]
    found = together(works, per_step=10, kernels_us=kernels)
    return [replace(one, identity=replace(one.identity, world_size=world_size)) for one in found]


@pytest.mark.parametrize(
    ("size", "world_size", "complete"), [(None, None, 0.0), (4, None, 1.0), (8, 8, 0.0), (None, 4, 1.0)]
)
def test_communication_is_complete_where_every_rank_of_its_group_is_there(
    size: int | None, world_size: int | None, complete: float
) -> None:
    group = (Group(GroupSource.COMMUNICATOR, 7, size),)
    ranks = [replace(one, groups=group) for one in slow(world_size=world_size)]
    assert analyse_run(ranks).complete_frac == complete


def test_a_collective_that_no_other_rank_recorded_is_not_complete() -> None:
    groups = [Group(GroupSource.COMMUNICATOR, 7, 2), Group(GroupSource.COMMUNICATOR, 8, 2)]
    both = [Part(0, number, 100 * number, 100 * number + 10) for number in range(3)]
    ranks = [
        summary_of(0, [*both, Part(1, 0, 400, 410)], groups, world_size=4),
        summary_of(1, both, groups, world_size=4),
    ]
    assert analyse_run(ranks).complete_frac == 60 / 70


def test_of_many_steps_several_are_one_column_and_the_number_is_named() -> None:
    steps = 2 * int(COLUMNS.value) + 1
    run = analyse_run(slow(2, steps=steps))
    assert run.steps == steps
    assert run.steps_per_column == 3
    assert len(run.ranks[0].step_lengths_ns) == -(-steps // 3)
    lengths = [one for one in run.ranks[0].step_lengths_ns if one]
    step_ns = known(run.ranks[0].step_ns) or 0
    assert abs(np.mean(lengths) - step_ns) < 0.05 * step_ns
