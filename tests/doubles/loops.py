"""A loop written as the program's own are, to be compiled."""

from __future__ import annotations

import numpy as np

from traces.arrays import IntArray
from traces.loops import loop


@loop("sums")
def add_up(values: IntArray, sums: IntArray, most: int) -> int:
    total = 0
    for place in range(len(values)):
        total = smaller(total + values[place], most)
        sums[place] = total
    return total


@loop()
def smaller(one: int, other: int) -> int:
    return min(one, other)


VALUES = np.array([3, 4, 5], dtype=np.int64)
