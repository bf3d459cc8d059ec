"""A trend is told from steps that merely vary, and a jump from a trend."""

from __future__ import annotations

from itertools import permutations
from math import factorial

import pytest

from traces.statistics.drift import chance_of, drift_of


def test_a_climb_from_20_to_32_over_199_iterations_is_a_climb() -> None:
    found = drift_of(range(1, 200), [20.06 + 0.06 * place for place in range(199)])
    assert found is not None
    assert found.state == "rising"
    assert found.first == pytest.approx(20.06)
    assert found.last == pytest.approx(31.94)
    assert found.low <= 0.06 + 1e-9
    assert found.high >= 0.06 - 1e-9
    assert found.at is None


def test_a_jump_is_one_and_where_it_is() -> None:
    found = drift_of(range(40), [10.0] * 20 + [12.0] * 20)
    assert found is not None
    assert found.state == "rising"
    assert found.at == pytest.approx(19.5)


def test_a_change_below_one_percent_is_none() -> None:
    found = drift_of(range(100), [100 + 0.005 * place for place in range(100)])
    assert found is not None
    assert found.chance < 0.001
    assert found.state == "none"


def test_too_few_values_tell_nothing() -> None:
    assert drift_of(range(7), [float(place) for place in range(7)]) is None
    assert drift_of(range(8), [1.0 * place for place in range(8)]) is not None


@pytest.mark.parametrize("count", [3, 4, 5, 6])
def test_the_chance_is_that_of_counting_every_order(count: int) -> None:
    def rank_sum(order: tuple[int, ...]) -> int:
        pairs = ((a, b) for a in range(count) for b in range(a + 1, count))
        return sum(1 if order[b] > order[a] else -1 for a, b in pairs)

    sums = [rank_sum(order) for order in permutations(range(count))]
    for asked in {*sums}:
        as_far = sum(abs(one) >= abs(asked) for one in sums) / factorial(count)
        assert chance_of(count, asked) == pytest.approx(min(1.0, as_far)) or asked == 0
