"""What host calls wait for, as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from traces.columns import PLACE, BoolArray, IntArray


class Wait(NamedTuple):
    """A call waits for an activity: it returns, or begins, no sooner than so long after that one's end.

    `after_ns` is negative where the clocks of host and GPU differ.
    """

    call: int
    work: int
    after_ns: int


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits, arrays of shape (w,), in order of `call`."""

    call: IntArray
    work: IntArray
    after_ns: IntArray

    @classmethod
    def of(cls, waits: Iterable[Wait]) -> Waits:
        """The waits given, in order."""
        call, work, after_ns = np.array(list(waits), dtype=np.int64).reshape(-1, 3).T
        return cls.ordered(call, work, after_ns)

    @classmethod
    def ordered(cls, call: IntArray, work: IntArray, after_ns: IntArray) -> Waits:
        """The same of arrays in any order."""
        order = np.argsort(call, kind="stable")
        return cls(call[order].astype(PLACE), work[order].astype(PLACE), after_ns[order])

    def where(self, kept: BoolArray) -> Waits:
        """Some of the waits, by a mask of shape (w,)."""
        return Waits(self.call[kept], self.work[kept], self.after_ns[kept])

    def without(self, calls: BoolArray) -> Waits:
        """The waits of all but some calls, a mask of shape (m,)."""
        return self.where(~calls[self.call])

    def holding(self, works: BoolArray, calls: int) -> BoolArray:
        """Which of so many calls wait for one of some activities, a mask of shape (n,)."""
        result = np.zeros(calls, dtype=np.bool_)
        result[self.call[works[self.work]]] = True
        return result

    def first_of(self, calls: int) -> IntArray:
        """Where the waits of each of so many calls begin, shape (m + 1,)."""
        first = np.zeros(calls + 1, dtype=PLACE)
        first[self.call + 1] = np.arange(1, len(self.call) + 1)  # of several waits of a call the last stays
        return np.maximum.accumulate(first, out=first)

    def __len__(self) -> int:
        return len(self.call)
