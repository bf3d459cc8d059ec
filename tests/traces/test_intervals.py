"""The interval algebra against sets of single nanoseconds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traces.arrays import IntArray
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
        (in_a, instants(a)),
        (intersect(in_a, in_b), instants(a) & instants(b)),
        (subtract(in_a, in_b), instants(a) - instants(b)),
        (join(in_a, in_b), instants(a) | instants(b)),
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
