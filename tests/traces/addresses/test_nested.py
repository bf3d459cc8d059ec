"""The innermost span of every instant, held against looking at each instant alone."""

from __future__ import annotations

import random

import numpy as np
import pytest

from traces.addresses.nested import innermost

Spans = list[tuple[int, int]]


def labels(spans: Spans, times: range) -> list[int]:
    start, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    found = innermost(start, end, np.arange(len(spans)))
    at = np.searchsorted(found.start_ns, np.array(times), side="right") - 1
    return [int(one) for one in found.label[at]]


def by_instant(spans: Spans, at: int) -> int:
    """The last to begin of those that last, of these the first to end, of these the last row."""
    there = [(start, -end, row) for row, (start, end) in enumerate(spans) if start <= at < end]
    return max(there)[2] if there else -1


def nest(draw: random.Random, low: int, high: int, depth: int, found: Spans) -> None:
    if depth > 6 or low >= high:
        return
    found.append((low, high))
    while low < high and draw.random() < 0.8:
        begin = draw.randint(low, high)
        end = draw.randint(begin, high)
        nest(draw, begin, end, depth + 1, found)
        low = end


@pytest.mark.parametrize("seed", range(200))
def test_of_spans_that_nest_the_innermost_is_the_same_instant_by_instant(seed: int) -> None:
    draw, spans, at = random.Random(seed), Spans(), 0
    for _ in range(3):
        begin = at + draw.randint(0, 3)
        at = begin + draw.randint(1, 40)
        nest(draw, begin, at, 0, spans)
    times = range(-1, at + 2)
    assert labels(spans, times) == [by_instant(spans, one) for one in times]


def test_a_span_that_outlives_the_one_around_it_ends_with_it() -> None:
    assert labels([(0, 4), (2, 5), (5, 6)], range(7)) == [0, 0, 1, 1, -1, 2, -1]
