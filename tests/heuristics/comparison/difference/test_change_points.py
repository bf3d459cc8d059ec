"""Change points: rates over many series, and two other ways to the same answer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heuristics.comparison.difference.change_points import (
    CUT_LEVEL,
    LEAST,
    STRETCH_LEVEL,
    ChangePoint,
    Floats,
    best_cut,
    best_stretch,
    change_points,
    without_outliers,
)

SERIES = {10: 80, 30: 80, 100: 40}
"""How many series of each length are tried."""


def noise(kind: str, count: int, seed: int) -> Floats:
    rng = np.random.default_rng([seed, count])
    normal = rng.normal(size=count)
    if kind == "lognormal":
        return np.exp(0.5 * normal)
    return np.where(rng.random(count) < 0.1, 6 * normal, normal) if kind == "outliers" else normal


def weight(length: int, count: int) -> float:
    """Of a difference of means: of `length` values and of all others."""
    return math.sqrt(length * (count - length) / count)


def least_squares(series: list[float], cuts: int) -> list[int]:
    """By trying every segmentation: the one that leaves least of the squares."""

    def left(places: Iterable[int]) -> float:
        return sum(float(np.var(series[a:b])) * (b - a) for a, b in pairwise([0, *places, len(series)]))

    allowed: list[tuple[int, ...]] = [
        places
        for places in combinations(range(1, len(series)), cuts)
        if all(b - a >= LEAST.value for a, b in pairwise([0, *places, len(series)]))
    ]
    return list(min(allowed, key=left))


def test_a_gap_is_no_value_and_keeps_its_place() -> None:
    series = [10.0, None, 11, 10, 9, 10, None, None, 20, 21, 20, 19, 20, None]
    assert change_points(series) == (ChangePoint(8, 10.0, 20.0),)


@pytest.mark.parametrize("series", [[], [1.0], [None, None], [1.0, 2.0, 3.0, 9.0, 9.0, 9.0, 9.0], [7.0] * 50])
def test_too_few_or_equal_values_have_no_change(series: list[float | None]) -> None:
    assert change_points(series) == ()


def test_one_or_two_outliers_are_no_change() -> None:
    series = [float(10 + place % 3) for place in range(20)]
    series[12] = series[13] = 500.0
    assert change_points(series) == ()


@pytest.mark.parametrize("count", [10, 30, 100])
@pytest.mark.parametrize("kind", ["normal", "lognormal", "outliers"])
def test_of_unchanged_series_at_most_one_in_twenty_is_marked(kind: str, count: int) -> None:
    marked = sum(bool(change_points(list(noise(kind, count, seed)))) for seed in range(SERIES[count]))
    assert marked <= 0.05 * SERIES[count]
    assert CUT_LEVEL.value + STRETCH_LEVEL.value <= 0.05


@pytest.mark.parametrize(("count", "after", "found_frac"), [(30, 15, 0.95), (30, 10, 0.9), (100, 5, 0.8)])
def test_a_shift_of_two_sigma_is_found_and_placed(count: int, after: int, found_frac: float) -> None:
    found = placed = 0
    for seed in range(SERIES[count]):
        series = noise("normal", count, seed)
        series[count - after :] += 2
        points = change_points(list(series))
        found += bool(points)
        placed += any(abs(point.index - (count - after)) <= 2 for point in points)
    assert found >= found_frac * SERIES[count]
    assert placed >= 0.85 * found


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=6, max_size=11))
def test_the_best_cut_leaves_least_of_the_squares(values: list[int]) -> None:
    series = [float(value) for value in values]
    sizes, places = best_cut(np.array([series]))
    cut, best = int(places[0, 0]), least_squares(series, 1)[0]
    explained = [
        np.var(series) * len(series) - sum(np.var(p) * len(p) for p in (series[:c], series[c:]))
        for c in (cut, best)
    ]
    assert explained[0] == pytest.approx(explained[1], abs=1e-6)
    assert sizes[0] ** 2 == pytest.approx(explained[0], abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=9, max_size=14))
def test_the_best_stretch_differs_most_from_the_rest(values: list[int]) -> None:
    series, count, least = np.array(values, dtype=float), len(values), int(LEAST.value)
    by_hand = max(
        abs(series[a:b].mean() - np.delete(series, range(a, b)).mean()) * weight(b - a, count)
        for a in range(least, count - 2 * least + 1)
        for b in range(a + least, count - least + 1)
    )
    assert best_stretch(series[None, :])[0][0] == pytest.approx(by_hand, abs=1e-9)


def test_outliers_are_drawn_in_and_the_rest_left() -> None:
    series = np.array([1.0, 2, 3, 4, 5, 600])
    # median 3.5, absolute deviations 2.5 1.5 0.5 0.5 1.5 596.5: median 1.5, so reach 3 x 1.4826 x 1.5
    assert without_outliers(series).tolist() == [1, 2, 3, 4, 5, pytest.approx(3.5 + 6.6717)]
