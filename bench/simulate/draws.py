"""Random draws that hang on a name, never on an order: taking one thing away changes no other draw."""

from __future__ import annotations

import math
from hashlib import blake2b
from statistics import NormalDist
from typing import Final

_NORMAL: Final = NormalDist()
_BITS: Final = 16
_WHOLE: Final = 1 << _BITS


def uniforms(name: str) -> tuple[float, ...]:
    """Eight independent draws strictly between 0 and 1, always the same for one name."""
    digest = blake2b(name.encode(), digest_size=8 * _BITS // 8).digest()
    return tuple((int.from_bytes(digest[at : at + 2], "little") + 0.5) / _WHOLE for at in range(0, 16, 2))


def uniform(name: str) -> float:
    """One draw between 0 and 1."""
    return uniforms(name)[0]


def between(share: float, low: float, high: float, *, by_factors: bool = False) -> float:
    """The value at a share (0 to 1) of a range; `by_factors`: every factor of two is as wide as the next."""
    if by_factors:
        return low * math.exp(share * math.log(high / low))
    return low + (high - low) * share


def spread(share: float, sigma_frac: float) -> float:
    """A factor around 1, log-normal: half of the draws are above 1."""
    return math.exp(sigma_frac * _NORMAL.inv_cdf(share))


def exponential(share: float, mean: float) -> float:
    """A waiting time of a given mean: mostly short, now and then long."""
    return -mean * math.log(share)
