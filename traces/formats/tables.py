"""A table's columns, whichever recorder wrote it; distinct texts of a column are found by their
bytes.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from traces.arrays import BoolArray, IntArray, order_of, zeros
from traces.columns import COPY_KINDS, NULL, Copies, GpuRows
from traces.frozen import frozen
from traces.loops import loop
from traces.names.foreign import cut_name

_Bytes = NDArray[np.uint8]
_Number = TypeVar("_Number", bound=np.generic)
_FIRST_ROOM: Final = 256
_FIRST_BYTES: Final = 1 << 16


def first_told(*columns: IntArray) -> IntArray:
    """Of each row the first value that is not NULL."""
    result = columns[0]
    for other in columns[1:]:
        result = np.where(result == NULL, other, result)
    return result


class Texts(NamedTuple):
    """A text column: `codes` of shape (n,) index the distinct `values`; -1 where the row has
    none.
    """

    codes: IntArray
    values: tuple[str, ...]


@frozen
class Table:
    """Columns of one table in the same row order; integers hold `traces.columns.NULL` for NULL."""

    integers: Mapping[str, IntArray]
    texts: Mapping[str, Texts]

    def __len__(self) -> int:
        return len(next(iter(self.integers.values()), ())) or max(
            (len(text.codes) for text in self.texts.values()), default=0
        )

    def __getitem__(self, name: str) -> IntArray:
        return self.integers[name]

    def columns(self, names: Iterable[str]) -> list[IntArray]:
        """The columns of these names, in their order."""
        return [self.integers[name] for name in names]

    def only(self, wanted: BoolArray) -> "Table":
        """The rows that are wanted, with the texts that these have."""
        if wanted.all():
            return self
        texts = {
            name: in_order(code[wanted], several) for name, (code, several) in self.texts.items()
        }
        return Table({name: column[wanted] for name, column in self.integers.items()}, texts)


def left_out(what: str, count: int) -> tuple[str, ...]:
    """What is said of rows that are left out; nothing where there are none."""
    if count:
        return (f"{what}, left out: {count}",)
    return ()


def copies_of(
    memcpy: Table,
    memset: Table,
    rows_of: Callable[[Table], GpuRows],
    kind: IntArray,
    memory: IntArray,
) -> Copies:
    """Copies, whose kinds and memory are given, then memsets; both have a column of bytes."""
    return Copies(
        GpuRows.joined(rows_of(memcpy), rows_of(memset)),
        np.concatenate((kind, np.full(len(memset), COPY_KINDS.index("memset")))),
        np.concatenate((memcpy["bytes"], memset["bytes"])),
        np.concatenate((memory, np.full(len(memset), NULL))),
    )


@loop("out", "buckets", "hashes", "ends", "arena", "state")
def encode_texts(
    data: _Bytes,
    start: int,
    rows: int,
    place_from: int,
    length_from: int,
    out: IntArray,
    buckets: IntArray,
    hashes: IntArray,
    ends: IntArray,
    arena: _Bytes,
    state: IntArray,
) -> int:
    """Replace the places of texts in `out` by codes, in order of first sight -> the row where room
    ran out.

    The distinct texts stand end to end in `arena`, text n up to `ends[n]`; `state[0]` counts them.
    `buckets` is an open hash table of codes, at most half full, -1 where empty; its length is a
    power of two.
    """
    mask = len(buckets) - 1
    for row in range(start, rows):
        first, length = out[place_from + row], out[length_from + row]
        if length < 0:
            out[place_from + row] = -1
            continue
        mixed = 2166136261  # FNV-1a of 32 bits
        for place in range(first, first + length):
            mixed = ((mixed ^ data[place]) * 16777619) & 0xFFFFFFFF
        bucket = (mixed ^ (mixed >> 15)) & mask
        code = buckets[bucket]
        while code >= 0:
            begin = ends[code - 1] if code > 0 else 0
            if hashes[code] == mixed and ends[code] - begin == length:
                same = 0
                while same < length and arena[begin + same] == data[first + same]:
                    same += 1
                if same == length:
                    break
            bucket = (bucket + 1) & mask
            code = buckets[bucket]
        if code < 0:
            code = state[0]
            begin = ends[code - 1] if code > 0 else 0
            if 2 * code >= len(buckets) or code >= len(ends) or begin + length > len(arena):
                return row
            for place in range(length):
                arena[begin + place] = data[first + place]
            ends[code] = begin + length
            hashes[code] = mixed
            buckets[bucket] = code
            state[0] = code + 1
        out[place_from + row] = code
    return rows


@loop("buckets")
def fill_buckets(hashes: IntArray, count: int, buckets: IntArray) -> None:
    """Enter `count` codes by their hashes into an empty table."""
    mask = len(buckets) - 1
    for code in range(count):
        bucket = (hashes[code] ^ (hashes[code] >> 15)) & mask
        while buckets[bucket] >= 0:
            bucket = (bucket + 1) & mask
        buckets[bucket] = code


class TextStore:
    """The distinct texts of a column so far."""

    def __init__(self) -> None:
        self._buckets = np.full(2 * _FIRST_ROOM, -1)
        self._hashes = zeros(_FIRST_ROOM)
        self._ends = zeros(_FIRST_ROOM)
        self._arena = np.zeros(_FIRST_BYTES, dtype=np.uint8)
        self._state = zeros(1)

    def encode(
        self, data: NDArray[np.uint8], rows: int, out: IntArray, slot: int, capacity: int, work: int
    ) -> None:
        """Replace places in `out` from `slot` on, with lengths `capacity` after them, by codes."""
        done, run = 0, encode_texts.over(work)
        while True:
            tables = self._buckets, self._hashes, self._ends, self._arena, self._state
            done = run(data, done, rows, slot, slot + capacity, out, *tables)
            if done == rows:
                return
            self._grow(int(out[slot + capacity + done]), work)

    def coded(self, codes: IntArray) -> Texts:
        """The column of these codes. Distinct bytes that are no UTF-8 can be one text."""
        ends = [0, *self._ends[: int(self._state[0])].tolist()]
        raw = self._arena[: ends[-1]].tobytes()
        values = tuple(raw[first:end].decode("utf-8", "replace") for first, end in pairwise(ends))
        return names(codes, values)

    def _grow(self, needed_bytes: int, work: int) -> None:
        count = int(self._state[0])
        used = int(self._ends[count - 1]) if count else 0
        if used + needed_bytes > len(self._arena):
            self._arena = _longer(self._arena, 2 * len(self._arena) + needed_bytes)
        if count == len(self._ends):
            self._hashes = _longer(self._hashes, 2 * count)
            self._ends = _longer(self._ends, 2 * count)
            self._buckets = np.full(4 * count, -1)
            fill_buckets.over(work)(self._hashes, count, self._buckets)


def names(codes: IntArray, values: Iterable[str]) -> Texts:
    """The column of these codes, with each text once; each is cut where no name is so long."""
    kept = tuple(map(cut_name, values))
    if len({*kept}) == len(kept):
        return Texts(codes, kept)
    return in_order(codes, kept)


def in_order(codes: IntArray, values: tuple[str, ...]) -> Texts:
    """The column with each text once, in order of first sight, and only those that it has."""
    place = dict[str, int]()
    first = np.full(len(values) + 1, len(codes))  # code -1 takes the last entry, here and below
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    new = np.full(len(values) + 1, -1)
    for code in order_of(first[:-1]).tolist():
        if first[code] < len(codes):
            new[code] = place.setdefault(values[code], len(place))
    return Texts(new[codes], tuple(place))


def _longer(values: NDArray[_Number], length: int) -> NDArray[_Number]:
    longer = np.zeros(length, dtype=values.dtype)
    longer[: len(values)] = values
    return longer
