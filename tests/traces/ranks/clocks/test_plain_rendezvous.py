"""Where ends of two ranks are crowded, and which ranks are held beside each other: by plain loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from tests.recordings.ranks import US, array
from traces.ranks.clocks import rendezvous
from traces.ranks.clocks.rendezvous import (
    Sequences,
    _apart,
    _crowded,
    _meetings,
    of_one_program,
    sequences_of,
)


def drawn(draw: np.random.Generator) -> Sequences:
    """Up to forty ends by 5 us in three sequences, of two operations."""
    number = draw.integers(0, 3, draw.integers(1, 41))
    return sequences_of(5 * US * draw.integers(0, 60, len(number)), number % 2 + 1, number, 4)


def test_ends_are_crowded_where_most_lie_within_ten_us_and_each_sequence_weighs_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rendezvous, "_WINDOW_NS", 200 * US)
    draw = np.random.default_rng(1)
    for _ in range(40):
        own, other = drawn(draw), drawn(draw)
        at, found = 5 * US * int(draw.integers(0, 60)), list[tuple[int, float]]()
        for one in range(3):
            mine = [row for row in range(len(own.end_ns)) if own.number[row] == one]
            mine = [row for row in mine if abs(own.end_ns[row] - at) <= 100 * US]
            mine = sorted(mine, key=lambda row: (abs(own.end_ns[row] - at), row))[:16]
            theirs = [
                int(ns) for ns, what in zip(other.end_ns, other.operation, strict=True) if what == one % 2 + 1
            ]
            found += [(ns - int(own.end_ns[row]), 1 / len(mine)) for row in mine for ns in theirs]
        found.sort(key=lambda each: each[0])
        apart, weight = _apart(own, other, at)
        assert (apart.tolist(), weight.tolist()) == ([ns for ns, _ in found], [each for _, each in found])
        weight = draw.choice([0.25, 0.5, 1.0], len(apart))
        crowd = [sum(weight[(apart >= begin) & (apart < begin + 10 * US)]) for begin in apart]
        least, offsets = 0.4 * max(crowd, default=0), list[int]()
        while len(offsets) < 6 and max(crowd, default=0) > least:
            begin = apart[crowd.index(max(crowd))]
            offsets.append(int(np.median(apart[(apart >= begin) & (apart < begin + 10 * US)])))
            crowd = [
                0 if abs(ns - offsets[-1]) <= 20 * US else one for ns, one in zip(apart, crowd, strict=True)
            ]
        assert _crowded(apart, weight) == offsets


def test_islands_are_held_together_by_four_pairs_those_in_equal_places_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three ranks meet, and four, and two, and of these those 3 or 5 apart; 0 and 1 have one clock. The first
    and the last are one through the second, and not asked again.
    """
    asked: dict[tuple[int, int], int] = defaultdict(int)

    def meet(one: int, other: int) -> object:
        asked[one, other] += 1
        same = (one < 3, one < 7) == (other < 3, other < 7)
        return True if same or other - one in (3, 5) else None

    monkeypatch.setattr(rendezvous, "meet", meet)
    ranks: Sequence[object] = range(9)
    found = [(one, other) for one, other, _ in _meetings(ranks, array([0, 0, *range(2, 9)]))]  # type: ignore[arg-type]
    assert found == [
        (1, 2), (3, 4), (4, 5), (5, 6), (7, 8), (0, 2), (3, 5), (4, 6), (0, 3), (1, 4), (2, 5), (0, 5),
        (4, 7), (5, 8), (3, 8),
    ]  # fmt: skip
    assert (0, 1) not in asked


@pytest.mark.parametrize(
    ("counts", "others", "alike"),
    [
        ({1: 20}, {1: 10}, True),  # two steps' of ten, 20 // 4 of each
        ({1: 20}, {1: 9}, False),
        ({1: 2}, {1: 4}, True),  # two more
        ({1: 2}, {1: 5}, False),
        ({1: 4}, {2: 4}, False),
        ({1: 4}, {1: 4, 2: 4}, False),
    ],
)
def test_ranks_are_of_one_program_where_each_operation_has_as_many_sequences_that_come_as_often(
    counts: dict[int, int], others: dict[int, int], alike: bool
) -> None:
    def made(count: dict[int, int]) -> Sequences:
        what = array([code for code, often in count.items() for _ in range(often)])
        return sequences_of(np.arange(len(what)), what, what, 4)

    for several in ([counts, others], [others, counts], [counts, counts, others]):
        assert of_one_program([*map(made, several)]) is alike
    assert of_one_program([made(counts)] * 2)
