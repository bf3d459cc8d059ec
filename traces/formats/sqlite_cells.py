"""Loops that decode the rows of SQLite's table leaf pages.

Layout: https://www.sqlite.org/fileformat2.html, sections 1.6 and 2.1. A leaf page of a table: type
13, cell count at byte 3, from byte 8 on one two-byte place for each cell. A cell: bytes of its
record, rowid (both varints), record. A record: bytes of its header, one serial type for each column
(varints), the values. Every place is checked against its page; a page buffer ends with
`SPARE_BYTES`, so that a varint at its end can be read before it is refused.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.arrays import IntArray
from traces.columns import NULL
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
    value = 0
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
    value = data[at] + 0
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
    if kept <= most:
        return kept
    return least


SPARE_BYTES: Final = 32
UNUSUAL: Final = -1
"""What the loops return for anything that only SQLite itself should read."""


@loop("out")
def decode_record(
    data: _Bytes,
    first: int,
    size: int,
    local: int,
    slot_of: IntArray,
    integers: int,
    capacity: int,
    row: int,
    out: IntArray,
) -> int:
    """Values of the wanted columns into row `row`; 1 where one is in an overflow page, else 0, or
    `UNUSUAL`.

    `slot_of`: of each column the place in `out` or -1. The first `integers` slots take numbers; the
    others are pairs, of a text's place and its length, -1 for NULL.
    """
    at, header = first + 1, data[first] + 0
    if header >= 128:
        header, at = varint(data, first), first + varint_bytes(data, first)
    end = first + header
    if header < 1 or header > local:
        return UNUSUAL
    value_at = end
    for column in range(len(slot_of)):
        kind = data[at] + 0
        if kind < 128:
            at += 1
        else:
            kind = varint(data, at)
            at += varint_bytes(data, at)
        if at > end or kind < 0 or kind == 10 or kind == 11 or kind >= 1 << 32:
            return UNUSUAL
        if kind < 5:
            length = kind
        elif kind == 5:
            length = 6
        elif kind < 8:
            length = 8
        elif kind < 12:  # the numbers 0 and 1 themselves
            length = 0
        else:
            length = (kind - 12) >> 1
        slot = slot_of[column]
        if slot >= 0:
            if value_at + length > first + local:
                if size > local:
                    return 1
                return UNUSUAL
            if slot >= integers:
                if kind != 0 and (kind < 12 or kind & 1 == 0):
                    return UNUSUAL
                out[slot * capacity + row] = value_at
                out[(slot + 1) * capacity + row] = -1 if kind == 0 else length
            elif kind == 0:
                out[slot * capacity + row] = NULL
            elif kind < 7:
                out[slot * capacity + row] = integer(data, value_at, length)
            elif kind == 8 or kind == 9:
                out[slot * capacity + row] = kind - 8
            else:
                return UNUSUAL
        value_at += length
    if value_at - first > size or (at == end and value_at - first != size):
        return UNUSUAL
    return 0


@loop()
def is_wanted(
    row: int, capacity: int, out: IntArray, only_slot: IntArray, only_from: IntArray, only: IntArray
) -> int:
    """1 where each column of `only_slot` has one of its values in `only`, or any where none is
    there.
    """
    for condition in range(len(only_slot)):
        value = out[only_slot[condition] * capacity + row]
        first, end = only_from[condition], only_from[condition + 1]
        is_among = first == end
        for place in range(first, end):
            if only[place] == value:
                is_among = True
        if value == NULL or not is_among:
            return 0
    return 1


@loop("out", "state")
def decode_pages(
    data: _Bytes,
    pages: int,
    page_size: int,
    usable: int,
    slot_of: IntArray,
    integers: int,
    slots: int,
    only_slot: IntArray,
    only_from: IntArray,
    only: IntArray,
    capacity: int,
    out: IntArray,
    state: IntArray,
) -> int:
    """Rows of leaf pages that are wanted -> how many, or `UNUSUAL`.

    Slot `slots` of `out` takes the rows left to SQLite, slot `slots + 1` their rowids. `state`:
    rowid before these pages, whether there was one, and how many rows were left.
    """
    row = left_rows = 0
    last, is_first = state[0], state[1] == 0
    for page in range(pages):
        base = page * page_size
        cells = data[base + 3] * 256 + data[base + 4]
        # 13: a leaf of a table
        if data[base] != 13 or 8 + 2 * cells > usable:
            return UNUSUAL
        for place in range(base + 8, base + 8 + 2 * cells, 2):
            at = data[place] * 256 + data[place + 1]
            if at < 8 + 2 * cells or at > usable - 4:
                return UNUSUAL
            at += base
            size = data[at] + 0
            if size < 128:
                at += 1
            else:
                size = varint(data, at)
                at += varint_bytes(data, at)
            rowid = varint(data, at)
            at += varint_bytes(data, at)
            if size < 1 or size > 1 << 40 or (rowid <= last and not is_first):
                return UNUSUAL
            last, is_first = rowid, False
            local = local_bytes(size, usable)
            # a longer record ends with the number of its first overflow page
            if at + local + (4 if size > local else 0) > base + usable:
                return UNUSUAL
            left = decode_record(data, at, size, local, slot_of, integers, capacity, row, out)
            if left == UNUSUAL:
                return UNUSUAL
            if left == 1:
                out[slots * capacity + left_rows] = row
                out[(slots + 1) * capacity + left_rows] = rowid
                for slot in range(integers + 1, slots, 2):
                    out[slot * capacity + row] = -1
                left_rows += 1
                row += 1
            else:
                row += is_wanted(row, capacity, out, only_slot, only_from, only)
    state[0], state[1], state[2] = last, 0 if is_first else 1, left_rows
    return row
