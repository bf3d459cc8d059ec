"""Where ends of two ranks are crowded, and which ranks are held beside each other: by plain loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from tests.recordings.ranks import US, array
from traces.arrays import IntArray
from traces.ranks.clocks import rendezvous
from traces.ranks.clocks.rendezvous import (
    CoincidingEnds,
    Sequences,
    _apart,
    _crowded,
    _followed,
    _line,
    _meetings,
    meet,
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


def met(count: int) -> CoincidingEnds:
    return CoincidingEnds(*[np.arange(count)] * 3)


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ({500: [10, 6]}, 10),  # SECOND
        ({500: [6, 10, 5]}, 10),
        ({500: [10, 7], 200: [10, 6], 800: [9]}, 10),
        ({500: [10, 7], 200: [], 800: [9]}, 9),
        ({500: [4], 200: [10, 7], 800: []}, None),
    ],
)
def test_of_offsets_in_the_middle_then_near_both_ends_that_is_taken_at_which_far_more_ends_coincide(
    monkeypatch: pytest.MonkeyPatch, counts: dict[int, list[int]], found: int | None
) -> None:
    """Of a recording from 5 000 to 6 000; less than five that coincide are not independent."""
    monkeypatch.setattr(rendezvous, "_apart", lambda own, other, at_ns: (at_ns - 5_000, other))
    monkeypatch.setattr(rendezvous, "_crowded", lambda at, _: counts[at])
    monkeypatch.setattr(rendezvous, "_followed", lambda own, other, at_ns, count: met(count))
    monkeypatch.setattr(rendezvous, "_independent", lambda one, *_: len(one) >= 5)
    own = sequences_of(array([5_000, 5_100, 6_000]), array([0, 0, 0]), array([0, 0, 0]), 1)
    taken = meet(own, own)
    assert (None if taken is None else len(taken)) == found


@pytest.mark.parametrize(("count", "ends"), [(5, [2, 4, 6, 6, 6]), (4, [2, 6])])
def test_clocks_are_followed_along_a_line_farther_and_farther_while_five_ends_coincide(
    monkeypatch: pytest.MonkeyPatch, count: int, ends: list[int]
) -> None:
    """Within 100 ms, 800 ms and everywhere. A line through -1 us, and 2 us after 100 ms, is less steep than
    30 ppm by as much as if as many ends lay 50 us off.
    """
    asked = []

    def pairs(own: object, other: object, at: object, line: object, which: IntArray) -> CoincidingEnds:
        asked.append(int(which.sum()))
        return met(count)

    monkeypatch.setattr(rendezvous, "_pairs", pairs)
    zero = array([0] * 6)
    own = sequences_of(1_000 * US * array([0, 100, 101, 800, 801, 5_000]), zero, zero, 1)
    _followed(own, own, 0, 7)
    assert asked == ends
    assert _line(np.array([0, 1e8]), np.array([-1e3, 2e3])) == pytest.approx([-500, 2e-5])


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
