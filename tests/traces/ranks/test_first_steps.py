"""Whether a longer first step is each rank's warm-up, or one that makes the others wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.recordings.ranks import Work, together
from traces.ranks.first_steps import without_warm_ups
from traces.ranks.summary import FirstStep, RankSummary


def run_of(first_us: tuple[float, ...]) -> list[RankSummary]:
    """Ranks whose first step of four takes longer: by what each works there; else 100 us."""
    works = [[Work(compute=100, host=us - 100), *[Work(compute=100)] * 7] for us in first_us]
    return [replace(one, first_step=FirstStep.LONGER) for one in together(works, per_step=2)]


def test_where_one_rank_initialises_the_first_step_is_left_out_of_all() -> None:
    ranks = run_of((100, 100, 400, 100))
    first, *others = ranks
    initialising = replace(first, first_step=FirstStep.INITIALISES)
    assert {len(one.steps) for one in without_warm_ups([initialising, *others])[1:]} == {3}


@pytest.mark.parametrize("count", [1, 2])
def test_one_rank_alone_does_not_tell_and_two_do(count: int) -> None:
    ranks = run_of((100, 400))[:count]
    assert [len(one.steps) for one in without_warm_ups(ranks)] == ([3] if count == 1 else [4, 4])
