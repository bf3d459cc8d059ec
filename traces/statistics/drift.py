"""Does a series get longer or shorter as it goes: a trend, that no mean of the whole stands for.

Means of consecutive blocks are ranked (Mann 1945, Kendall 1975), as values that follow each other
are alike: the distribution of the rank sum is exact, ties count for neither way. The slope is the
median of the slopes between all pairs of blocks (Theil 1950), with Sen's interval (1968,
doi:10.1080/01621459.1968.10480934). Both ignore how the values are distributed, and one far value
moves neither.

A series that jumps once has a trend too: which of the two fits the blocks better is the shape.
"""

from collections.abc import Sequence
from functools import cache
from math import factorial, fsum
from statistics import fmean, median
from typing import Final, Literal

import numpy as np

from traces.arrays import FloatArray, summed
from traces.frozen import frozen
from traces.limits import LITTLE, Limit
from traces.statistics.interval import LEVEL, MANY

BLOCKS: Final = Limit(
    10,
    "blocks at most",
    "ours: of 400 series without a trend at most 1.5 % pass for one, 1.0 to 5.2 % where each value "
    "holds "
    "half of the one before it (10 to 500 values); a climb of 3 % in noise of 2 % is found in 40 % "
    "of series "
    "of 47 values, 91 % of 200. 16 blocks pass a slow wander for a trend twice as often",
)

JUMP: Final = Limit(
    3.0,
    "times the range of the blocks on either side",
    "ours: the ranks of ten blocks cannot show a jump in the middle (4 % by chance); of 1,980 "
    "series without "
    "one, single values and such that hold half of the one before, none is this far apart; one of "
    "10 % in "
    "noise of 1 % is found in 200 of 200",
)

ASKED: Final = 4
"""Series of one comparison, two logs and two figures of memory, which share what may be by
chance."""
State = Literal["rising", "falling", "none"]


@frozen
class Drift:
    """How a series moves; figures are in the unit of its values, per unit of its places.

    `first` and `last`: the fitted line at both ends, or the levels before and after a jump. `at`:
    the place of one jump, where that fits the blocks better than a line, else None. `chance`: how
    likely unordered values show as much of a trend.
    """

    state: State
    slope: float
    low: float
    high: float
    first: float
    last: float
    chance: float
    count: int
    at: float | None

    @property
    def change(self) -> float:
        return self.last - self.first


def drift_of(places: Sequence[float], values: Sequence[float]) -> Drift | None:
    """The drift of values at rising places; None with fewer than `MANY`. Reversed values mirror
    it.
    """
    count = len(values)
    if count < MANY.value:
        return None
    at, means = _blocks(places, values)
    earlier, later = np.triu_indices(len(means), 1)
    more = means[later] - means[earlier]
    slopes = np.sort(more / (at[later] - at[earlier])).tolist()
    slope, chance = median(slopes), chance_of(len(means), summed(np.sign(more)))
    middle = float(np.median(means - slope * at))
    first, last = middle + slope * places[0], middle + slope * places[-1]
    typical = median(values)
    cut = _cut(means, at, slope, middle)
    if cut is not None:
        first, last = float(np.median(means[:cut])), float(np.median(means[cut:]))
    is_moving = abs(last - first) > LITTLE.value * abs(typical) and (
        chance <= (1 - LEVEL) / ASKED or (cut is not None and _is_apart(means[:cut], means[cut:]))
    )
    state: State = "none"
    if is_moving:
        state = "rising" if last > first else "falling"
    low, high = _ends(slopes, len(means))
    jump = None if cut is None else float(at[cut - 1] + at[cut]) / 2
    return Drift(state, slope, low, high, first, last, chance, count, jump)


def _blocks(places: Sequence[float], values: Sequence[float]) -> FloatArray:
    """Where blocks of equal length lie, and their means."""
    blocks = min(len(values), BLOCKS.whole)
    points = np.empty((2, blocks))
    for block in range(blocks):
        part = slice(block * len(values) // blocks, (block + 1) * len(values) // blocks)
        points[:, block] = fmean(places[part]), fmean(values[part])
    return points


@cache
def _inversions(count: int) -> tuple[int, ...]:
    """How many orders of `count` different values have 0, 1, ... pairs the wrong way round."""
    orders = [1]
    for length in range(2, count + 1):
        grown = [0] * (len(orders) + length - 1)
        for wrong, ways in enumerate(orders):
            for more in range(length):
                grown[wrong + more] += ways
        orders = grown
    return tuple(orders)


def chance_of(count: int, rank_sum: int) -> float:
    """How likely a random order has a rank sum as far from zero, either way; with ties it is at
    most that.
    """
    most = count * (count - 1) // 2
    wrong = (most - abs(rank_sum)) // 2
    tail = sum(_inversions(count)[: wrong + 1])
    return min(1.0, 2 * tail / factorial(count))


def _ends(slopes: Sequence[float], count: int) -> tuple[float, float]:
    """Sen's 95 % interval: slopes as far from the middle as the rank sum goes by chance."""
    most = count * (count - 1) // 2
    inside = next(
        wrong for wrong in range(most + 1) if chance_of(count, most - 2 * wrong) > 1 - LEVEL
    )
    below = max(inside - 1, 0)
    return slopes[below], slopes[len(slopes) - 1 - below]


def _cut(means: FloatArray, at: FloatArray, slope: float, middle: float) -> int | None:
    """The block with which the series jumps; None where a line fits as well.

    A jump has at least two blocks on either side, which the far ends of a line are not.
    """

    def off(cut: int) -> float:
        return _deviation(means[:cut]) + _deviation(means[cut:])

    best = min(range(2, len(means) - 1), key=off)
    # two levels are one figure more than a line
    if off(best) < fsum(np.abs(means - middle - slope * at)) / 2:
        return best
    return None


def _is_apart(before: FloatArray, after: FloatArray) -> bool:
    """Whether two levels differ by far more than the blocks of either do, which ranks of few cannot
    show.
    """
    shift = abs(np.median(after) - np.median(before))
    apart = after.min() > before.max() or after.max() < before.min()
    return bool(apart and shift > JUMP.value * max(np.ptp(before), np.ptp(after)))


def _deviation(values: FloatArray) -> float:
    return fsum(np.abs(values - np.median(values)))
