"""Tables of whole numbers as few bytes: differences, then bytes of one weight together, for zlib to take."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import IntArray

_WIDEST: Final = 8
_ONE: Final = np.uint64(1)


@dataclass(frozen=True, slots=True)
class Shape:
    """How many rows a table has; of those in `rising` the differences are kept."""

    rows: int
    rising: tuple[int, ...] = ()


def packed(tables: Sequence[IntArray], shapes: Sequence[Shape]) -> bytes:
    """Tables of shape (rows, n each), all numbers of one width."""
    flat = np.concatenate(
        [_falling(table, shape).ravel() for table, shape in zip(tables, shapes, strict=True)]
    )
    folded = (flat << 1 ^ flat >> 63).astype(np.uint64)  # small where near zero, whatever the sign
    most = int(folded.max(initial=0))
    width = max(1, (most.bit_length() + 7) // 8)
    planes = folded.view(np.uint8).reshape(-1, _WIDEST)[:, :width].T
    return bytes([width]) + np.ascontiguousarray(planes).tobytes()


def unpacked(blob: bytes, lengths: Sequence[int], shapes: Sequence[Shape]) -> list[IntArray]:
    """The tables again, shape (rows, length) each. Raises ValueError where the bytes are no such tables."""
    count = sum(shape.rows * length for shape, length in zip(shapes, lengths, strict=True))
    if min(lengths) < 0 or not blob or not 1 <= blob[0] <= _WIDEST or len(blob) != 1 + count * blob[0]:
        raise ValueError("not whole")
    planes = np.frombuffer(blob, dtype=np.uint8, offset=1).reshape(blob[0], count)
    folded = np.zeros(count, dtype=np.uint64)
    weights = folded.view(np.uint8).reshape(count, _WIDEST).T
    for weight, plane in enumerate(planes):
        weights[weight] = plane
    sign = folded & _ONE
    folded >>= _ONE
    folded ^= np.negative(sign, out=sign)
    flat: IntArray = folded.view(np.int64)
    tables, at = [], 0
    for shape, length in zip(shapes, lengths, strict=True):
        table = flat[at : at + shape.rows * length].reshape(shape.rows, length)
        for row in shape.rising:
            np.add.accumulate(table[row], out=table[row])
        tables.append(table)
        at += table.size
    return tables


def _falling(table: IntArray, shape: Shape) -> IntArray:
    table = table.astype(np.int64)
    for row in shape.rising:
        table[row, 1:] = np.diff(table[row])
    return table
