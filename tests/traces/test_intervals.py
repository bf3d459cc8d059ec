"""The interval algebra, and numbers for rows that are alike, against sets and sorted lists."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traces.arrays import IntArray
from traces.columns import NULL
from traces.groups import group_of, place_in_run, places_of_each, sorted_within
from traces.intervals import Spans, covered_ns, first_come, intersect, join, spans, subtract, union

Pairs = list[tuple[int, int]]
pairs = st.lists(
    st.tuples(st.integers(-30, 30), st.integers(-30, 30)).map(lambda p: (min(p), max(p))), max_size=12
)


def instants(some: Pairs | Spans) -> set[int]:
    both = some.pairs() if isinstance(some, Spans) else some
    return {t for start, end in both for t in range(start, end)}


def arrays(some: Pairs) -> tuple[IntArray, IntArray]:
    array = np.array(some, dtype=np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def is_canonical(some: Spans) -> bool:
    flat = [t for pair in some.pairs() for t in pair]
    return all(a < b for a, b in pairwise(flat))


@given(pairs, pairs)
def test_set_operations_agree_with_sets_of_nanoseconds(a: Pairs, b: Pairs) -> None:
    in_a, in_b = union(*arrays(a)), union(*arrays(b))
    for result, expected in (
        *((in_a, instants(a)), (intersect(in_a, in_b), instants(a) & instants(b))),
        *((subtract(in_a, in_b), instants(a) - instants(b)), (join(in_a, in_b), instants(a) | instants(b))),
    ):
        assert instants(result) == expected
        assert result.total_ns == len(expected)
        assert is_canonical(result)


@given(pairs, pairs)
def test_covered_time_of_each_interval_agrees_with_sets(some: Pairs, by: Pairs) -> None:
    covered = covered_ns(*arrays(some), union(*arrays(by)))
    assert covered.tolist() == [len(instants([pair]) & instants(by)) for pair in some]


@given(pairs)
def test_each_instant_goes_to_the_interval_that_started_first(some: Pairs) -> None:
    some = sorted(some, key=lambda pair: pair[0])
    own = first_come(*arrays(some)).tolist()
    taken: set[int] = set()
    for (start, end), own_start in zip(some, own, strict=True):
        expected = set(range(start, end)) - taken
        assert set(range(own_start, end)) == expected
        taken |= expected


def test_touching_intervals_become_one() -> None:
    assert spans((0, 5), (5, 9), (20, 20)).pairs() == [[0, 9]]


def test_times_beyond_two_to_the_53_stay_exact() -> None:
    late = 1_763_700_000_000_000_001
    assert spans((late, late + 3), (late + 2, late + 5)).pairs() == [[late, late + 5]]
    assert covered_ns(*arrays([(late + 1, late + 4)]), spans((late, late + 2))).tolist() == [1]


NUMBERS = st.sampled_from((0, 1, 2, -1, 2**20, 2**40, -(2**61), 2**62, NULL))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=30))
def test_rows_that_are_alike_get_one_number_in_order_of_the_last_column(rows: list[tuple[int, ...]]) -> None:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    kinds = sorted({row[::-1] for row in rows})
    assert group_of(*columns).tolist() == [kinds.index(row[::-1]) for row in rows]


def test_places_count_from_the_begin_of_each_run() -> None:
    assert place_in_run(np.array([7, 7, 7, 2, 9, 9])).tolist() == [0, 1, 2, 0, 0, 1]
    assert place_in_run(np.empty(0, dtype=np.int64)).tolist() == []


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from((0, 1, 7, -3, 2**40, -(2**61))))))
def test_values_are_sorted_by_group_and_then_by_size(pairs: list[tuple[int, int]]) -> None:
    groups, values = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    assert sorted_within(groups, values).tolist() == [value for _, value in sorted(pairs)]


def test_each_value_has_its_places_in_order() -> None:
    found = places_of_each(np.array([7, -2, 7, 9, -2]))
    assert [(value, places.tolist()) for value, places in found] == [(-2, [1, 4]), (7, [0, 2]), (9, [3])]
    assert places_of_each(np.empty(0, dtype=np.int64)) == []
