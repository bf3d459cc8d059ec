"""Values drawn again with replacement, as one would meet them in another run of the same."""

from typing import Final

import numpy as np

from traces.arrays import IntArray
from traces.limits import Limit

CHANCE: Final = Limit(0.05, "of resampled runs", "statistics: the usual error level, one-sided")
_RESAMPLES: Final = 1000


def drawn_again(count: int) -> IntArray:
    """Places of so many values, shape (resamples, count), the same ones every time."""
    return np.random.default_rng(0).integers(0, count, (_RESAMPLES, count))
