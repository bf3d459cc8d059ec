"""Transfers that share a rank's way, by a second implementation: one that moves them instant by instant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traces.arrays import IntArray
from traces.ranks.shared_ways import shares

Transfer = tuple[int, int, int]
"""The rank, when it begins, and how long it moves alone."""


def moved(transfers: Sequence[Transfer]) -> list[tuple[int, int]]:
    """When each begins and ends, in steps of a whole: of k on one way each moves one k-th a step."""
    unit = 60  # that two, three, four or five share in whole numbers
    left = [alone * unit for _, _, alone in transfers]
    ended = [0] * len(transfers)
    now = 0
    while any(left):
        here = [n for n, (_, begin, _) in enumerate(transfers) if begin <= now and left[n]]
        for n in here:
            beside = sum(transfers[other][0] == transfers[n][0] for other in here)
            left[n] = max(0, left[n] - unit // beside)
        now += 1
        for n in here:
            ended[n] = ended[n] or (now if not left[n] else 0)
    return [(begin, end) for (_, begin, _), end in zip(transfers, ended, strict=True)]


def parts_of(times: Sequence[tuple[int, int]], places: Sequence[int], *, over: bool = True) -> list[float]:
    """Of transfers of one rank each."""
    ends: IntArray = np.array([end for _, end in times])
    lasts: IntArray = np.array([end - begin for begin, end in times])
    first = np.arange(len(times) + 1)
    found: list[float] = shares(first, np.array(places), ends, lasts, np.full(len(times), over)).tolist()
    return found


def test_all_ranks_of_one_move_as_the_one_with_the_least() -> None:
    """Ranks 0 and 1 move together; rank 1 moves with rank 2 at the same time."""
    first, place = np.array([0, 2, 4]), np.array([0, 1, 1, 2])
    whole, over = np.full(4, 100), np.ones(4, dtype=np.bool_)
    assert shares(first, place, whole, whole, over).tolist() == [0.5, 0.5]
    assert shares(first, np.array([0, 1, 2, 3]), whole, whole, over).tolist() == [1.0, 1.0]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(1, 40)), min_size=1, max_size=5))
def test_the_time_that_each_would_have_taken_alone_is_its_share_of_what_it_took(
    transfers: list[Transfer],
) -> None:
    times = moved(transfers)
    parts = parts_of(times, [rank for rank, _, _ in transfers])
    for (begin, end), (_, _, alone), part in zip(times, transfers, parts, strict=True):
        assert abs((end - begin) * part - alone) <= len(transfers)  # the last step of each is not whole
