"""The pages of one SQLite file: its header, and a table's tree down to its leaf pages, in rowid order.

Layout: https://www.sqlite.org/fileformat2.html, sections 1.3 and 1.6. The file is read, not mapped: where it
is cut off meanwhile, a mapping would end the process, and a read only ends short.
"""

import os
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.columns import IntArray
from traces.formats.sqlite_cells import SPARE_BYTES

_HEADER_BYTES: Final = 100
_INTERIOR: Final = 5
_LEAF: Final = 13
_DEEPEST: Final = 20  # SQLite's own limit
_Bytes = NDArray[np.uint8]


class Unusual(Exception):
    """The file has something that only SQLite itself should read."""


class PageFile:
    """A file's pages, read only; numbers begin at 1. Each method raises `Unusual`."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError:
            raise Unusual from None
        try:
            self.page_size, self.usable, self.count = self._layout()
        except Unusual:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def leaves(self, root: int) -> IntArray:
        """Numbers of a table's leaf pages in order; of an empty table its one page."""
        seen = np.zeros(self.count + 1, dtype=np.bool_)
        level = np.array([root], dtype=np.int64)
        for _ in range(_DEEPEST):
            if level.min() < 2 or level.max() > self.count or seen[level].any():
                raise Unusual
            seen[level] = True
            if len(np.unique(level)) != len(level):
                raise Unusual
            if self.read(level[:1])[0] == _LEAF:
                return level
            level = self._below(level)
        raise Unusual

    def read(self, pages: IntArray, into: _Bytes | None = None) -> _Bytes:
        """Bytes of pages end to end, and spare bytes after them; `into` is used where it is given."""
        size = len(pages) * self.page_size
        data = np.zeros(size + SPARE_BYTES, dtype=np.uint8) if into is None else into
        view = memoryview(data)  # type: ignore[arg-type]
        breaks = np.flatnonzero(np.diff(pages) != 1) + 1
        for first, end in zip([0, *breaks.tolist()], [*breaks.tolist(), len(pages)], strict=True):
            part = view[first * self.page_size : end * self.page_size]
            try:
                got = os.preadv(self._file, [part], (int(pages[first]) - 1) * self.page_size)
            except OSError:
                raise Unusual from None
            if got != len(part):
                raise Unusual
        return data

    def _below(self, level: IntArray) -> IntArray:
        found, total = [], 0
        for page in level:
            found.append(self._children(int(page)))
            total += len(found[-1])
            if total > self.count:  # before a damaged file makes them fill the memory
                raise Unusual
        return np.concatenate(found)

    def _children(self, page: int) -> IntArray:
        data = self.read(np.array([page], dtype=np.int64))
        cells = int(data[3]) * 256 + int(data[4])
        if data[0] != _INTERIOR or not cells or 12 + 2 * cells > self.usable:
            raise Unusual
        places = data[12 : 12 + 2 * cells].view(">u2").astype(np.int64)
        if (places < 12 + 2 * cells).any() or (places > self.usable - 5).any():
            raise Unusual
        places = np.append(places, 8)  # the last child stands in the header
        return np.ascontiguousarray(data[places[:, None] + np.arange(4)]).view(">u4")[:, 0].astype(np.int64)

    def _layout(self) -> tuple[int, int, int]:
        """Page size, its usable part and the number of pages."""
        header = os.pread(self._file, _HEADER_BYTES, 0)
        if len(header) < _HEADER_BYTES:
            raise Unusual
        size = int.from_bytes(header[16:18], "big")
        size = 65536 if size == 1 else size
        usual_size = 512 <= size <= 65536 and size & (size - 1) == 0
        rollback_journal, fractions, utf8 = header[18:20] == b"\1\1", header[21:24] == b"\x40\x20\x20", 1
        usable = size - header[20]
        if not (usual_size and rollback_journal and fractions) or usable < 480:
            raise Unusual
        if int.from_bytes(header[56:60], "big") != utf8 or not 1 <= int.from_bytes(header[44:48], "big") <= 4:
            raise Unusual
        count = os.fstat(self._file).st_size // size
        if header[24:28] == header[92:96] and (told := int.from_bytes(header[28:32], "big")):
            if told > count:
                raise Unusual
            count = told
        return size, usable, count
