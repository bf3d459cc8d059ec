"""Numbers for rows that are alike."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traces.columns import NULL
from traces.groups import group_of, place_in_run, places_of_each, sorted_within

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
