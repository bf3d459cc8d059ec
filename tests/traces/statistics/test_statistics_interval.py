from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from statistics import mean, stdev

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some
from numpy.typing import NDArray

from traces.statistics.interval import Interval, interval_of, round_of

MS = 1_000_000
"""Student's t at 97.5 % by steps a side: 7 degrees of freedom for 8 steps, 9 for 10 blocks of 20 steps."""
Made = Callable[[random.Random, int], list[int]]

sides = some.lists(some.integers(0, 10**10), min_size=8, max_size=16)


def even(rng: random.Random, count: int) -> list[int]:
    """100 ms, give or take 1 %."""
    return [round(rng.gauss(100, 1) * MS) for _ in range(count)]


def skewed(rng: random.Random, count: int) -> list[int]:
    """Never under 99 ms, 100 ms on average."""
    return [round((99 + rng.expovariate(1)) * MS) for _ in range(count)]


def paused(rng: random.Random, count: int) -> list[int]:
    """One step in ten is 10 ms longer; 100 ms on average."""
    return [round((rng.gauss(99, 0.5) + 10 * (rng.random() < 0.1)) * MS) for _ in range(count)]


def uneven(rng: random.Random, count: int) -> list[int]:
    """100 ms, give or take 5 %."""
    return [round(rng.gauss(100, 5) * MS) for _ in range(count)]


def alike(rng: random.Random, count: int) -> list[int]:
    """100 ms, give or take 1 %, each like the one before: an autocorrelation of 0.6."""
    now, made = rng.gauss(0, 1), []
    for _ in range(count):
        now = 0.6 * now + 0.8 * rng.gauss(0, 1)
        made.append(round((100 + now) * MS))
    return made


def centred(values: list[int]) -> NDArray[np.float64]:
    made: NDArray[np.float64] = np.array(values, dtype=np.float64)
    made -= made.mean()
    return made


def around(base_ns: list[int], new_ns: list[int]) -> Interval:
    interval = interval_of(base_ns, new_ns)
    assert interval is not None
    return interval


def half_ns(interval: Interval) -> float:
    return (interval.high_ns - interval.low_ns) / 2


CALIBRATED: list[tuple[Made, int, Made, int]] = [
    (even, 8, even, 8), (skewed, 8, skewed, 8), (paused, 20, paused, 20), (even, 8, uneven, 8),
    (paused, 8, paused, 50), (alike, 200, alike, 200),
]  # fmt: skip


def test_the_interval_covers_the_true_difference() -> None:
    """A sample of the calibration in the docstring of the module; plain normal intervals fall short of it."""
    rng, repeats = random.Random(7), 80
    covered, narrow = [], []
    for base, base_count, new, new_count in CALIBRATED:
        held = held_by_normal = 0
        for _ in range(repeats):
            base_ns, new_ns = base(rng, base_count), new(rng, new_count)
            interval = around(base_ns, [one + 5 * MS for one in new_ns])
            held += interval.low_ns <= 5 * MS <= interval.high_ns
            error_ns = math.hypot(stdev(base_ns) / base_count**0.5, stdev(new_ns) / new_count**0.5)
            held_by_normal += abs(mean(new_ns) - mean(base_ns)) <= 1.96 * error_ns
        covered.append(held / repeats)
        narrow.append(held_by_normal / repeats)
    assert min(covered) >= 0.90
    assert mean(covered) >= 0.93
    assert mean(narrow) < 0.90


def test_fewer_than_four_values_on_a_side_give_none() -> None:
    assert interval_of([100] * 3, [100] * 50) is None
    assert interval_of([100] * 50, [100] * 3) is None
    assert interval_of([100] * 4, [100] * 50) is not None


def test_below_eight_the_permutation_test_decides_and_the_bootstrap_from_there_on() -> None:
    assert around([100] * 7, [100] * 8).method.startswith("permutation test")
    assert around([100] * 8, [100] * 8).method.startswith("bootstrap")


def test_a_rhythm_of_two_loaders_is_no_noise_of_the_mean() -> None:
    """In turn 10 and 230 ms: blocks of 3 would differ by a third of 220 ms, whole rounds do not at all."""
    in_turn = [10 * MS, 230 * MS] * 16
    assert around(in_turn, [one + MS for one in in_turn]).ends_ns == (MS, MS)
    mixed = random.Random(1).sample(in_turn, k=32)
    assert half_ns(around(mixed, mixed)) > 30 * MS


def test_of_four_to_seven_rounds_the_permutation_test_shares_out_the_rounds() -> None:
    base_ns = [ms * MS for ms in (1, 1, 1, 5, 1, 1, 1, 6, 1, 1, 1, 5, 1, 1, 1, 6)]  # rounds of 8 and 9 ms
    new_ns = [ms * MS for ms in (1, 1, 1, 8, 1, 1, 1, 9, 1, 1, 1, 8, 1, 1, 1, 9)]  # rounds of 11 and 12 ms
    interval = around(base_ns, new_ns)
    assert (interval.low_ns, interval.high_ns, interval.p) == (500_000, 1_000_000, Fraction(1, 35))
    assert interval.method.endswith("of rounds of 4")


def test_a_rhythm_is_seen_and_none_where_there_is_none() -> None:
    rng = random.Random(2)
    assert [round_of(centred([10, 230] * 16)), round_of(centred([10, 10, 230] * 11))] == [2, 3]
    assert round_of(centred([10, 230] * 7)) == 1  # fewer than eight rounds
    assert round_of(centred([*range(60)])) == 1  # a drift
    assert sum(round_of(centred(made(rng, 59))) > 1 for made in (even, skewed, paused, alike) * 25) == 0


@settings(max_examples=30)
@given(sides, sides)
def test_swapped_sides_give_the_mirrored_interval(base_ns: list[int], new_ns: list[int]) -> None:
    one, other = around(base_ns, new_ns), around(new_ns, base_ns)
    assert (one.low_ns, one.high_ns) == (-other.high_ns, -other.low_ns)
    assert one.method == other.method


def test_the_method_says_whether_blocks_were_drawn() -> None:
    assert around([100] * 15, [100] * 2000).method == "bootstrap of single values"
    assert around([100] * 200, [100] * 2000).method == "bootstrap of blocks of 25 values"
