"""How a sequence of codes repeats: the lags at which most of it equals itself."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.columns import IntArray
from traces.limits import Limit

TIED: Final = Limit(
    0.002,
    "fraction of the kernels beyond chance",
    "ours: multiples of a period match as well; the least counts",
)
_MOST: Final = 64
"""How many lags are compared code by code; the sequence has as many as half its length."""
_CLOSE: Final = 0.01
"""Lags whose estimate is this near the best are candidates, the shortest first: a lag's multiples are too."""


def matching_lags(codes: IntArray, shortest: int, longest: int) -> list[tuple[float, int]]:
    """Lags in [shortest, longest] at which the codes, shape (n,), match themselves best, best first.

    Each with its match: the share of places that equal the place one lag later, on a scale where 0 is what
    chance gives and 1 is all. A correlation of random numbers, one per code, finds candidates among all lags
    in n log n; the match itself is counted.
    """
    longest = min(longest, len(codes) - 1)
    if longest < shortest:
        return []
    estimate = _correlation(codes, longest)[shortest - 1 :]
    most = min(_MOST, len(estimate))
    best = np.argpartition(-estimate, most - 1)[:most]
    close = np.flatnonzero(estimate >= estimate.max() - _CLOSE)[:_MOST]
    chance = chance_of(codes)
    lags = {int(place) + shortest for place in (*best, *close)}
    found = {lag: match_at(codes, lag, chance) for lag in lags}
    best_lag = min(found, key=lambda lag: (-found[lag], lag))
    least = _least_divisor(codes, best_lag, found[best_lag], shortest, chance)
    found[least] = match_at(codes, least, chance)
    return sorted(((match, lag) for lag, match in found.items()), key=lambda pair: (-pair[0], pair[1]))


def _least_divisor(codes: IntArray, lag: int, match: float, shortest: int, chance: float) -> int:
    """The lag divided by primes as long as the result matches as well."""
    prime, rest = 2, lag
    while rest > 1:
        if rest % prime:
            prime = prime + 1 if prime * prime <= rest else rest
            continue
        rest //= prime
        if lag // prime >= shortest and match_at(codes, lag // prime, chance) >= match - TIED.value:
            lag //= prime
    return lag


def match_at(codes: IntArray, lag: int, chance: float) -> float:
    """Match at one lag, 0 for what chance gives and 1 for all; 0 where chance alone gives all."""
    if chance >= 1 or lag >= len(codes):
        return 0.0
    return (float(np.mean(codes[lag:] == codes[:-lag])) - chance) / (1 - chance)


def chance_of(codes: IntArray) -> float:
    """How often two places of the sequence, picked at random, are equal."""
    shares = np.bincount(codes) / max(1, len(codes))
    return float((shares**2).sum())


def _fast_size(least: int) -> int:
    """The least product of powers of 2, 3 and 5 that is so large: such transforms are fast."""
    odd: list[int] = [3**threes * 5**fives for threes in range(20) for fives in range(14)]
    return min(number << (-(-least // number) - 1).bit_length() for number in odd)


def _correlation(codes: IntArray, longest: int) -> NDArray[np.float64]:
    """Estimated match at the lags 1 to `longest`, 1 where all places match."""
    drawn = np.random.default_rng(0).standard_normal(int(codes.max()) + 1)[codes]
    signal = drawn - drawn.mean()
    size = _fast_size(len(signal) + longest)
    power = np.abs(np.fft.rfft(signal, size)) ** 2
    overlap = len(signal) - np.arange(1, longest + 1)
    variance = float(np.mean(signal**2)) or 1.0
    result: NDArray[np.float64] = np.fft.irfft(power, size)[1 : longest + 1] / overlap / variance
    return result
