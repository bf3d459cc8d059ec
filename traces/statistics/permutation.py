"""The interval of a difference of means over few steps, by the permutation test.

If two runs do the same, each way to share out all steps into sides of these counts was as likely as
the recorded one. p is the share of the ways that differ at least as far the same way, and as many
again for the other: four steps against four that do not overlap are 2 of 70 ways, p = 1/35.

The interval holds each shift of the new side after which the test would still take both for one. A
way that exchanges some steps differs further than the recorded one for each shift beyond the mean
of the exchanged steps of new less that of those of base. These differences, in order, are where p
changes: four against four leave out the first and the last of 70 ways, so the interval ends where
steps begin to overlap (E. L. Lehmann, Nonparametrics, 1975; P. H. Garthwaite, Confidence Intervals
from Randomization Tests, Biometrics 52, 1996).

The ways are as likely only where both sides vary alike. Equal counts forgive much, others little:
with them the interval is at least as wide as Welch's, in which each side varies as its own steps
do.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations
from math import ceil, comb, floor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.arrays import IntArray, ints, summed
from traces.frozen import frozen
from traces.limits import Limit
from traces.statistics.student import welch

DRAWN_VALUES: Final = Limit(
    2_500_000, "values", "ours: some 0.1 s; all ways to share out 4 against 58 steps are fewer"
)
DRAWN: Final = Limit(
    20_000, "ways drawn", "ours: where there are more than that; 5 % is then 5 +- 0.3 %"
)
SEED: Final = 0


@frozen
class Shift:
    """Shifts of new against base that the test does not refuse, and its p for none.

    `ways`: how many were tried, `is_exact`: all there are. `by_spread`: Welch's interval is the
    wider.
    """

    low_ns: int
    high_ns: int
    p: Fraction
    ways: int
    is_exact: bool
    by_spread: bool


def least_p(base_count: int, new_count: int) -> Fraction:
    """The least p that there can be, that of steps which do not overlap."""
    return min(Fraction(1), Fraction(2, comb(base_count + new_count, base_count)))


def shifts_of(base_ns: Sequence[int], new_ns: Sequence[int], level: float) -> Shift:
    """The interval of the shift from base to new; swapped sides give the mirrored one.

    Raises `ValueError` where the counts are so small that no difference would be refused.
    """
    is_mirrored = (len(base_ns), sorted(base_ns)) < (len(new_ns), sorted(new_ns))
    few_ns, many_ns = map(sorted, (base_ns, new_ns) if is_mirrored else (new_ns, base_ns))
    moved_ns, exchanged, is_exact = _exchanges(few_ns, many_ns)
    ways, changing = len(moved_ns) + 1, exchanged > 0
    below, above = summed(moved_ns <= 0) + 1, summed(moved_ns >= 0) + 1
    p = min(Fraction(1), Fraction(2 * min(below, above), ways))
    left_out = floor((1 - Fraction(str(level))) / 2 * ways) - (ways - 1 - summed(changing))
    if left_out < 1:
        raise ValueError(
            f"{len(base_ns)} and {len(new_ns)} steps refuse no difference at a level of {level}"
        )
    low, high = _ends(moved_ns[changing], exchanged[changing], left_out)
    low_ns, high_ns = ceil(low), floor(high)  # inwards: an end of half a ns is beyond zero
    by_spread = False
    if len(few_ns) != len(many_ns):
        low_of_each_ns, high_of_each_ns = welch(few_ns, many_ns, level)
        by_spread = low_of_each_ns < low_ns or high_of_each_ns > high_ns
        low_ns, high_ns = min(low_ns, low_of_each_ns), max(high_ns, high_of_each_ns)
    ends = (-high_ns, -low_ns) if is_mirrored else (low_ns, high_ns)
    return Shift(*ends, p, ways, is_exact, by_spread)


def _ends(moved_ns: IntArray, exchanged: IntArray, left_out: int) -> tuple[Fraction, Fraction]:
    """The `left_out`-th mean difference from below and from above, exactly."""
    mean_ns = moved_ns / exchanged
    places = np.argpartition(mean_ns, (left_out - 1, len(mean_ns) - left_out))
    low, high = int(places[left_out - 1]), int(places[len(mean_ns) - left_out])
    return Fraction(int(moved_ns[low]), int(exchanged[low])), Fraction(
        int(moved_ns[high]), int(exchanged[high])
    )


def _exchanges(few_ns: Sequence[int], many_ns: Sequence[int]) -> tuple[IntArray, IntArray, bool]:
    """Per way but the recorded one: how much more the exchanged of the few take, and how many those
    are.
    """
    few = len(few_ns)
    ways, is_exact = _ways(few, few + len(many_ns))
    values_ns = ints((*few_ns, *many_ns)) - few_ns[0]
    moved_ns: IntArray = values_ns[:few].sum() - values_ns[ways].sum(axis=1)
    return moved_ns, (ways >= few).sum(axis=1), is_exact


@lru_cache(maxsize=4)
def _ways(few: int, count: int) -> tuple[NDArray[np.intp], bool]:
    """Per way the places of the few in all steps [way, place], but for the recorded one, the first
    places.
    """
    if few * (every := comb(count, few)) <= DRAWN_VALUES.value:
        places = chain.from_iterable(combinations(range(count), few))
        return np.fromiter(places, dtype=np.intp, count=few * every).reshape(-1, few)[1:], True
    drawn = int(min(DRAWN.value, DRAWN_VALUES.value // count))
    bits = raw_bits(drawn * count).reshape(drawn, count)
    return np.argpartition(bits, few, axis=1)[:, :few], False


def raw_bits(count: int) -> NDArray[np.uint64]:
    """64 random bits each, the same ones every time.

    Raw bits are the one stream of random numbers that numpy promises never to change.
    """
    return np.random.PCG64(SEED).random_raw(count)
