"""Rows of a rank by when they ended."""

from typing import Final

import numpy as np

from traces.arrays import IntArray, count_from_0, last_at
from traces.ranks.rows import parts

NO_ROW: Final = -1
"""Nothing of the rank came before."""


class ByTime:
    """Rows of each place by a time of theirs, as when they ended."""

    def __init__(self, place: IntArray, time_ns: IntArray) -> None:
        self._zero_ns = int(time_ns.min()) - 1 if len(time_ns) else 0
        self._span = int(time_ns.max()) - self._zero_ns + 1 if len(time_ns) else 1
        times = self._key(place, time_ns)
        order = parts.order_of(times, (count_from_0(place)) * self._span)
        self._times, self._rows = np.append(-1, times[order]), np.append(NO_ROW, order)

    def before(self, place: IntArray, time_ns: IntArray) -> IntArray:
        """Of each (place, time) the last row of that place by then; else `NO_ROW`."""
        at = last_at(self._times, self._key(place, time_ns))
        return np.where(self._times[at] >= place * self._span, self._rows[at], NO_ROW)

    @property
    def rows(self) -> IntArray:
        """All rows, those of a place together, by their time."""
        return self._rows[1:]

    def _key(self, place: IntArray, time_ns: IntArray) -> IntArray:
        return place * self._span + np.clip(time_ns - self._zero_ns, 0, self._span - 1)
