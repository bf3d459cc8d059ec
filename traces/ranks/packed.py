"""Tables of whole numbers as few bytes: differences, then bytes of one weight together, for zlib to take."""

from __future__ import annotations

from typing import Final

import numpy as np

from traces.columns import IntArray

_WIDEST: Final = 8
_ONE: Final = np.uint64(1)


def packed(table: IntArray, rising: tuple[int, ...]) -> bytes:
    """A table of shape (rows, n); of the rows in `rising` the differences are kept."""
    table = table.astype(np.int64)
    for row in rising:
        table[row, 1:] = np.diff(table[row])
    folded = (table << 1 ^ table >> 63).astype(np.uint64)  # small where near zero, whatever the sign
    most = int(folded.max(initial=0))
    width = max(1, (most.bit_length() + 7) // 8)
    planes = np.ascontiguousarray(folded).view(np.uint8).reshape(-1, _WIDEST)[:, :width].T
    return bytes([width]) + np.ascontiguousarray(planes).tobytes()


def unpacked(blob: bytes, rows: int, rising: tuple[int, ...]) -> IntArray:
    """The table again, shape (rows, n). Raises ValueError where the bytes are no such table."""
    if not blob:
        raise ValueError("no bytes")
    width, held = blob[0], len(blob) - 1
    if not 1 <= width <= _WIDEST or held % (width * rows):
        raise ValueError("not whole")
    if not held:
        return np.zeros((rows, 0), dtype=np.int64)
    planes = np.frombuffer(blob, dtype=np.uint8, offset=1).reshape(width, -1)
    folded = np.zeros(planes.shape[1], dtype=np.uint64)
    folded.view(np.uint8).reshape(-1, _WIDEST)[:, :width] = planes.T
    sign = folded & _ONE
    folded >>= _ONE
    folded ^= np.negative(sign, out=sign)
    table: IntArray = folded.view(np.int64).reshape(rows, held // (width * rows))
    for row in rising:
        np.add.accumulate(table[row], out=table[row])
    return table
