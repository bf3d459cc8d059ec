"""The interval of a difference of means over steps or logged iterations.

With `MANY` or more on both sides it is a bootstrap, with fewer the permutation test decides
(`permutation.py`), and with less than `LEAST` nothing does. Of the bootstrap:

Deviations from each side's mean are drawn with replacement, and the interval is the difference of
the means give or take the length that `level` of the drawn differences stay below. Four things make
it hold with few values and long logs:

- Deviations are widened for few values, by sqrt(n / (n - 1)) and by Student's t over the normal
  quantile (the expanded percentile interval: T. Hesterberg, What Teachers Should Know About the
  Bootstrap, The American Statistician 69, 2015).
- Values that follow each other are alike, so means of consecutive blocks are drawn in place of
  single ones from twice `MANY` values a side on: `MANY` blocks or more, of one length on both
  sides.
- Where values have a rhythm, as data loaders with several workers give it, blocks are of whole
  rounds: half a round more or less is no other mean. Of fewer than `MANY` rounds the permutation
  test shares out the rounds.
- A side with few values may not have met the rare slow step that the other met: deviations are
  drawn from their own side and from both sides together, and the wider of the two counts.

How often intervals hold the true difference, and how small a difference is found: docs/score.md.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.arrays import FloatArray, ints
from traces.frozen import frozen
from traces.limits import MOST, Limit
from traces.statistics.permutation import DRAWN_VALUES, least_p, raw_bits, shifts_of
from traces.statistics.student import student

LEVEL: Final = 0.95
LEAST: Final = next(count for count in range(1, 100) if least_p(count, count) <= 1 - LEVEL)
"""Steps a side of which the permutation test can refuse a difference: 4, as 3 against 3 are p =
1/10."""
MANY: Final = Limit(
    8,
    "steps a side",
    "measurement of this project, section 8: with fewer, what is drawn with replacement varies too "
    "little",
)
RESAMPLES: Final = Limit(
    4000, "resamples", "ours: another seed then moves the ends by some 1.5 % of half the interval"
)


@frozen
class Interval:
    """An interval of new mean less base mean, both ends in ns, and how it was made.

    `p`: of the permutation test, None by bootstrap. `by_spread`: the ends are not the test's, as
    the counts differ and each side's own scatter gives wider ones.
    """

    low_ns: int
    high_ns: int
    level: float
    method: str
    p: Fraction | None = None
    by_spread: bool = False

    @property
    def ends_ns(self) -> tuple[int, int]:
        return self.low_ns, self.high_ns

    @property
    def shows_ns(self) -> int:
        """About the smallest difference that would have been beyond it."""
        return (self.high_ns - self.low_ns) // 2


def interval_of(
    base_ns: Sequence[int], new_ns: Sequence[int], level: float = LEVEL
) -> Interval | None:
    """The interval; None with fewer than `LEAST` values on a side. Swapped sides give the mirrored
    one.

    Values in the order they were recorded. Values that never vary give an interval without width.
    """
    fewest = min(len(base_ns), len(new_ns))
    if fewest < LEAST:
        return None
    if fewest < MANY.value:
        return _of_few(base_ns, new_ns, level)
    round_ = max(round_of(_shifted(base_ns), LEAST), round_of(_shifted(new_ns), LEAST))
    if round_ > 1 and LEAST <= fewest // round_ < MANY.value:
        return _of_few_rounds(base_ns, new_ns, round_, level)
    length = max(1, fewest // MANY.whole)
    first, second = sorted((tuple(base_ns), tuple(new_ns)))
    half_ns = ceil(
        _half_width(_deviations(first, length, level), _deviations(second, length, level), level)
    )
    delta_ns = round(_delta_ns(base_ns, new_ns))
    method = (
        "bootstrap of single values" if length == 1 else f"bootstrap of blocks of {length} values"
    )
    return Interval(delta_ns - half_ns, delta_ns + half_ns, level, method)


def _of_few(base_ns: Sequence[int], new_ns: Sequence[int], level: float) -> Interval:
    shifts = shifts_of(base_ns, new_ns, level)
    ways = f"{'all' if shifts.is_exact else 'drawn'} {shifts.ways:,} ways to share out the steps"
    method = f"permutation test over {ways}{', and Welch' if shifts.by_spread else ''}"
    return Interval(shifts.low_ns, shifts.high_ns, level, method, shifts.p, shifts.by_spread)


def _of_few_rounds(
    base_ns: Sequence[int], new_ns: Sequence[int], length: int, level: float
) -> Interval:
    """The test over sums of whole rounds, about the difference of all steps."""
    base_rounds_ns, new_rounds_ns = _rounds(base_ns, length), _rounds(new_ns, length)
    interval = _of_few(base_rounds_ns, new_rounds_ns, level)
    left_ns = _delta_ns(base_ns, new_ns) - _delta_ns(base_rounds_ns, new_rounds_ns) / length
    return replace(
        interval,
        low_ns=ceil(Fraction(interval.low_ns, length) + left_ns),
        high_ns=floor(Fraction(interval.high_ns, length) + left_ns),
        method=f"{interval.method}, of rounds of {length}",
    )


def _rounds(values_ns: Sequence[int], length: int) -> list[int]:
    whole = ints(values_ns[: len(values_ns) // length * length])
    return list(whole.reshape(-1, length).sum(axis=1).tolist())


def _delta_ns(base_ns: Sequence[int], new_ns: Sequence[int]) -> Fraction:
    return Fraction(sum(new_ns), len(new_ns)) - Fraction(sum(base_ns), len(base_ns))


def _shifted(values_ns: Sequence[int]) -> FloatArray:
    """Deviations from the mean; the first value is taken off before, so that long times stay
    exact.
    """
    shifted = (ints(values_ns) - values_ns[0]).astype(np.float64)
    shifted -= shifted.mean()
    return shifted


def _deviations(values_ns: tuple[int, ...], length: int, level: float) -> FloatArray:
    """Per block, what it adds to the deviation from the mean, widened for few blocks; they add up
    to 0.
    """
    count, shifted = len(values_ns), _shifted(values_ns)
    rounds = count // (round_ := round_of(shifted))
    blocks = min(count // length, rounds)
    sums = np.add.reduceat(shifted, np.arange(blocks) * rounds // blocks * round_)
    normal = NormalDist().inv_cdf((1 + level) / 2)
    widened = sqrt(blocks / (blocks - 1)) * student(level, blocks - 1) / normal
    return sums * (blocks / count * widened)


def _half_width(first: FloatArray, second: FloatArray, level: float) -> float:
    """What `level` of the drawn differences stay below, whichever sign they have."""
    both = np.concatenate((first, second))
    resamples = int(min(RESAMPLES.value, DRAWN_VALUES.value // both.size))
    bits = raw_bits(resamples * both.size).reshape(both.size, -1)
    of_first, of_second = np.split(bits >> np.uint64(32), [first.size])
    own = _means(first, of_first) - _means(second, of_second)
    together = _means(both, of_first) - _means(both, of_second)
    place = min(ceil(level * (resamples + 1)), resamples) - 1
    return float(np.partition(np.abs((own, together)), place)[:, place].max())


def _means(values: FloatArray, bits: NDArray[np.uint64]) -> FloatArray:
    """Means of values drawn with replacement, one per column of `bits`, of 32 random bits each."""
    places = ((bits * np.uint64(values.size)) >> np.uint64(32)).astype(np.intp)
    return values[places].mean(axis=0)


def round_of(deviations: FloatArray, least: int = MANY.whole) -> int:
    """How many values a round has, 1 without a rhythm; `least` rounds or more are recorded.

    The first distance at which values are alike as nowhere nearer: slow drifts are alike next door.
    """
    total, nearest = float(deviations @ deviations), 0.0
    for length in range(1, deviations.size // least + 1 if total else 1):
        alike = float(deviations[length:] @ deviations[:-length]) / total
        if length > 1 and alike >= MOST.value and alike >= nearest + MOST.value:
            return length
        nearest = max(nearest, alike)
    return 1
