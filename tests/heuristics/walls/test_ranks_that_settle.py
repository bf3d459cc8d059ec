"""When several ranks separate waiting from data transfer, and when the verdict stays less sure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.walls.confidence import reasons_against
from heuristics.walls.price import costs_of
from tests.doubles.opinions import budget, rank, walls
from tests.recordings.ranks import Work, together
from traces.ranks.run import analyse_run
from traces.ranks.summary import Group, GroupSource
from traces.sections.run import Run


def run_of(group: Group | None = None, *, world_size: int | None = 4, steps: int = 3) -> Run:
    """Four ranks, of which one is slow; in one group."""
    works = [[Work(compute=130 if one == 2 else 100, host=2)] * (10 * steps) for one in range(4)]
    kernels = [[13.0, 26.0] if one == 2 else [10.0, 20.0] for one in range(4)]
    ranks = [
        replace(
            one,
            identity=replace(one.identity, world_size=world_size),
            groups=one.groups if group is None else (group,),
        )
        for one in together(works, per_step=10, kernels_us=kernels)
    ]
    return analyse_run(ranks)


def reasons(found: Run) -> list[str]:
    speaks = rank(budget=budget(900, 100))
    sure = reasons_against("communication", costs_of([speaks] * 4), walls(communication=20.0), found)
    return [one.text for one in sure]


def test_whole_groups_leave_no_reason_even_where_nobody_knows_how_many_ranks_there_are() -> None:
    assert reasons(run_of()) == []
    assert reasons(run_of(world_size=None)) == []


def test_one_step_separates_waiting_though_it_does_not_show_who_is_always_late() -> None:
    found = run_of(steps=1)
    assert not hasattr(found.late, "cause")
    assert reasons(found) == []


PART = "100 % of communication time is in groups that"


@pytest.mark.parametrize(
    ("group", "world_size", "text"),
    [
        (
            Group(GroupSource.COMMUNICATOR, 7),
            None,
            "the sizes of the groups of 100 % of communication time were not recorded, so ranks of them may "
            "be missing here",
        ),
        (
            Group(GroupSource.COMMUNICATOR, 7, 8),
            8,
            f"4 of 8 ranks were recorded, and {PART} may wait for the others",
        ),
    ],
)
def test_groups_that_may_lack_a_rank_are_a_reason(group: Group, world_size: int | None, text: str) -> None:
    assert reasons(run_of(group, world_size=world_size)) == [text]


def test_some_ranks_of_a_large_run_are_no_reason_where_their_groups_are_whole() -> None:
    assert reasons(run_of(world_size=64)) == []
