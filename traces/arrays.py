"""Arrays, and tables of them: a column each, all of one length."""

from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.signedinteger[Any]]
"""Whole numbers: times and packed ids in 64 bits, what counts or names things narrower."""
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

PLACE: Final = np.int32
"""The width of places in tables and of codes of texts: a trace has fewer than 2**31 of anything."""
CODE: Final = np.int16
"""The width of members of enumerations, such as kinds of work."""


def distinct(values: IntArray) -> IntArray:
    """The distinct values of an array, sorted.

    Not np.unique: numpy 2.4 hashes, and on packed ids, all multiples of 2**24, that took 27 of the 40 s of a
    recording with a million kernels (measured 2026-11-21).
    """
    least, most = int(values.min(initial=0)), int(values.max(initial=0))
    if most - least < 4 * len(values):  # several times as fast as sorting
        seen = np.zeros(most - least + 1, dtype=np.bool_)
        seen[values - least] = True
        return (np.flatnonzero(seen) + least).astype(values.dtype)
    ordered = np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


class Rows:
    """A table: a dataclass whose fields are columns of one length."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]]  # the names of all fields, by `dataclass`

    def __len__(self) -> int:
        return len(getattr(self, self.__match_args__[0]))

    def take(self, which: BoolArray | IntArray) -> Self:
        """Some of the rows, by mask or place, where every field is a column."""
        return type(self)(*(getattr(self, name)[which] for name in self.__match_args__))

    @classmethod
    def joined(cls, *tables: Self) -> Self:
        several = ([getattr(one, name) for one in tables] for name in cls.__match_args__)
        return cls(*map(np.concatenate, several)) if tables else cls.none()

    @classmethod
    def none(cls) -> Self:
        return cls(*(np.empty(0, dtype=np.int64) for _ in cls.__match_args__))
