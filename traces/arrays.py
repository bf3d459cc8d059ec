"""Arrays, and tables of them: a column each, all of one length."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

IntArray = NDArray[np.signedinteger[Any]]
"""Whole numbers: times and packed ids in 64 bits, what counts or names things narrower."""
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

PLACE: Final = np.int32
"""The width of places in tables and of codes of texts: a trace has fewer than 2**31 of anything."""
CODE: Final = np.int16
"""The width of members of enumerations, such as kinds of work."""


NOWHERE: Final = np.empty(0, dtype=np.int64)
"""No places, no times: an array of nothing."""


FOREVER: Final = int(np.iinfo(np.int64).max)
"""Later than any time."""


def ints(values: ArrayLike | Sequence[object]) -> IntArray:
    """Whole numbers in 64 bits."""
    return np.array(values, dtype=np.int64)


def whole(values: NDArray[Any]) -> IntArray:
    """Rounded to whole numbers."""
    return ints(np.rint(values))


def count_from_0(numbers: IntArray) -> int:
    """How many numbers there are from 0 to the largest of some."""
    return int(numbers.max(initial=-1)) + 1


def bools(values: ArrayLike) -> BoolArray:
    """A mask, written out."""
    return np.array(values, dtype=np.bool_)


Shape = int | tuple[int, ...]


def zeros(shape: Shape) -> IntArray:
    """So many times zero, in 64 bits, to add to."""
    return np.zeros(shape, dtype=np.int64)


def none_of(shape: Shape) -> BoolArray:
    """A mask of so many places that holds none of them, to mark some in."""
    return np.zeros(shape, dtype=np.bool_)


def unknown(shape: Shape) -> FloatArray:
    """Figures of which none is known yet: NaN."""
    return np.full(shape, np.nan)


def nowhere(count: int) -> IntArray:
    """So many times -1, no place of a table, to name some places in."""
    return np.full(count, -1, dtype=PLACE)


def columns_of(rows: Iterable[Sequence[int]], width: int) -> IntArray:
    """Rows of so many numbers each as columns, shape (width, n)."""
    return ints([*rows]).reshape(-1, width).T


def summed(values: NDArray[Any]) -> int:
    """The sum as a whole number of Python: of a mask, how many it holds."""
    return int(values.sum())


def sums_before(values: NDArray[Any]) -> IntArray:
    """The sum of what stands before each place, shape (n + 1,): the last is that of all."""
    return np.append(0, np.cumsum(values))


def ranges_of(begin: IntArray, end: IntArray) -> IntArray:
    """The numbers of several ranges, one after the other."""
    lengths = end - begin
    return np.arange(summed(lengths)) + np.repeat(begin - (np.cumsum(lengths) - lengths), lengths)


def shifted(mask: BoolArray) -> BoolArray:
    """Of each place whether the mask holds the one before it; the first has none."""
    return np.append(False, mask[:-1])


def codes_of(names: Iterable[T]) -> dict[T, int]:
    """Each name with its place."""
    return {name: code for code, name in enumerate(names)}


def order_of(values: NDArray[Any]) -> IntArray:
    """Places by rising value; those of equal values stay in their order."""
    return np.argsort(values, kind="stable")


def last_at(rising: IntArray, values: ArrayLike) -> IntArray:
    """Of each value the place of the last of some rising numbers that is no larger; -1 where none
    is.
    """
    return np.searchsorted(rising, values, "right") - 1


def listed(column: NDArray[Any]) -> tuple[Any, ...]:
    """A column as a document has it: numbers of Python."""
    return tuple(column.tolist())


def row_by_row(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Columns of one length row by row, as numbers of Python."""
    return zip(*map(listed, columns), strict=True)


class Lasting:
    """What has rows that each last from start to end."""

    __slots__ = ()
    start_ns: IntArray
    end_ns: IntArray

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def length_ns(self) -> IntArray:
        return self.end_ns - self.start_ns


def reach(values: IntArray) -> tuple[int, int]:
    """The least and the most of the values and 0."""
    return int(values.min(initial=0)), int(values.max(initial=0))


def distinct(values: IntArray) -> IntArray:
    """The distinct values of an array, sorted.

    Not np.unique: numpy 2.4 hashes, and on packed ids, all multiples of 2**24, that took 27 of the
    40 s of a recording with a million kernels (measured 2026-11-21).
    """
    least, most = reach(values)
    if most - least <= 4 * len(values):  # several times as fast as sorting
        seen = none_of(most - least + 1)
        seen[values - least] = True
        return (np.flatnonzero(seen) + least).astype(values.dtype)
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])]


class Rows:
    """A table: a dataclass whose fields are columns of one length."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]]  # the names of all fields, by `dataclass`

    def __len__(self) -> int:
        return len(getattr(self, self.__match_args__[0]))

    def take(self, which: BoolArray | IntArray) -> Self:
        """Some of the rows, by mask or place, where every field is a column."""
        return type(self)(*(getattr(self, name)[which] for name in self.__match_args__))

    def _columns(self) -> Iterator[NDArray[Any]]:
        for name in self.__match_args__:
            yield getattr(self, name)

    @classmethod
    def joined(cls, *tables: Self) -> Self:
        if tables:
            return cls(*map(np.concatenate, zip(*map(cls._columns, tables), strict=True)))
        return cls.none()

    @classmethod
    def none(cls) -> Self:
        return cls(*[NOWHERE] * len(cls.__match_args__))
