"""How SQLite writes numbers, as loops over a page's bytes: varints, big-endian integers, split records.

Layout: https://www.sqlite.org/fileformat2.html, sections 1.6 and 2.1. Nothing is checked here.
"""

import numpy as np
from numpy.typing import NDArray

from traces.loops import loop

_Bytes = NDArray[np.uint8]


@loop()
def varint_bytes(data: _Bytes, at: int) -> int:
    """Length of the varint at `at`, 1 to 9."""
    for length in range(1, 9):
        if data[at + length - 1] < 128:
            return length
    return 9


@loop()
def varint(data: _Bytes, at: int) -> int:
    """Value of the varint at `at`, as signed 64 bits."""
    value: int = 0
    for place in range(8):
        byte = data[at + place] + 0
        value = value * 128 + (byte & 127)
        if byte < 128:
            return value
    if value >= 1 << 55:
        value -= 1 << 56
    value = value * 256 + data[at + 8]
    return value


@loop()
def integer(data: _Bytes, at: int, size: int) -> int:
    """The big-endian signed integer of 1, 2, 3, 4, 6 or 8 bytes at `at`."""
    value: int = data[at] + 0
    if value >= 128:
        value -= 256
    if size == 1:
        return value
    value = value * 256 + data[at + 1]
    if size == 2:
        return value
    value = value * 256 + data[at + 2]
    if size == 3:
        return value
    value = value * 256 + data[at + 3]
    if size == 4:
        return value
    value = (value * 256 + data[at + 4]) * 256 + data[at + 5]
    if size == 6:
        return value
    value = (value * 256 + data[at + 6]) * 256 + data[at + 7]
    return value


@loop()
def local_bytes(size: int, usable: int) -> int:
    """How much of a record of `size` bytes stands in its leaf page; the rest has overflow pages."""
    most = usable - 35
    if size <= most:
        return size
    least = (usable - 12) * 32 // 255 - 23
    kept = least + (size - least) % (usable - 4)
    return kept if kept <= most else least
