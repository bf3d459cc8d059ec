"""Recordings that began at different moments: collectives of a communicator are matched all the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.recordings.ranks import Work, together
from traces.ranks.match import match
from traces.ranks.run import analyse_run
from traces.ranks.summary import RankSummary
from traces.sections.cause import Cause
from traces.sections.run import Late, RunWithout


def ranks_of() -> list[RankSummary]:
    """Four ranks, whose work differs from collective to collective; the third has a slow device."""
    works = [
        [Work(compute=(130 if rank == 2 else 100) + 7 * (number % 11), host=2) for number in range(40)]
        for rank in range(4)
    ]
    kernels = [[13.0] * 3 if rank == 2 else [10.0] * 3 for rank in range(4)]
    return together(works, per_step=10, kernels_us=kernels)


def begun_later(one: RankSummary, count: int) -> RankSummary:
    """Without the first collectives, counted from the first that is left."""
    rows = one.instances.take(np.arange(count, len(one.instances)))
    return replace(one, instances=replace(rows, sequence=rows.sequence - rows.sequence.min()))


def test_a_rank_that_began_three_collectives_later_is_matched_from_there() -> None:
    whole = ranks_of()
    later = [*whole[:3], begun_later(whole[3], 3)]
    matched = match(later)
    assert len(matched) == len(match(whole)) == 40
    assert np.diff(matched.first).tolist() == [3] * 3 + [4] * 37
    for begin, end in zip(matched.first[:-1], matched.first[1:], strict=True):
        assert np.ptp(matched.end_ns[begin:end]) < 1_000


def test_what_began_at_four_moments_gives_the_late_rank() -> None:
    run = analyse_run([begun_later(one, 2 * place) for place, one in enumerate(ranks_of())])
    assert isinstance(run.late, Late)
    assert (run.late.cause, run.late.rank) == (Cause.SLOW_DEVICE, 2)
    assert run.clocks.aligned


def test_a_recording_that_ends_early_keeps_its_numbers() -> None:
    whole = ranks_of()
    short = replace(whole[1], instances=whole[1].instances.take(np.arange(25)))
    matched = match([whole[0], short, *whole[2:]])
    assert np.diff(matched.first).tolist() == [4] * 25 + [3] * 15


def test_windows_that_lose_as_many_at_either_end_are_matched_by_their_ends() -> None:
    whole = ranks_of()
    early = replace(whole[0], instances=whole[0].instances.take(np.arange(37)))
    matched = match([early, begun_later(whole[1], 3), begun_later(whole[2], 3), whole[3]])
    assert np.diff(matched.first).tolist() == [2] * 3 + [4] * 34 + [3] * 3
    for begin, end in zip(matched.first[:-1], matched.first[1:], strict=True):
        assert np.ptp(matched.end_ns[begin:end]) < 1_000


def test_who_begins_within_a_step_holds_nobody_up_in_the_replay() -> None:
    whole = analyse_run(ranks_of()).without
    later = analyse_run([begun_later(one, 4 * place) for place, one in enumerate(ranks_of())]).without
    assert isinstance(whole, RunWithout)
    assert isinstance(later, RunWithout)
    assert whole.saved_frac > 0.15
    assert later.saved_frac == pytest.approx(whole.saved_frac, abs=0.02)
