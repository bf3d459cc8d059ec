"""Recordings that began at different moments: collectives of a communicator are matched all the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.recordings.ranks import Work, together
from traces.ranks.match import match
from traces.ranks.summary import RankSummary


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


def test_windows_that_lose_as_many_at_either_end_are_matched_by_their_ends() -> None:
    whole = ranks_of()
    early = replace(whole[0], instances=whole[0].instances.take(np.arange(37)))
    matched = match([early, begun_later(whole[1], 3), begun_later(whole[2], 3), whole[3]])
    assert np.diff(matched.first).tolist() == [2] * 3 + [4] * 34 + [3] * 3
    for begin, end in zip(matched.first[:-1], matched.first[1:], strict=True):
        assert np.ptp(matched.end_ns[begin:end]) < 1_000
