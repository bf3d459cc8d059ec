"""`Tables` of an SQLite file whose event tables are decoded from their pages, many times faster
than by SQL.

Only plain tables of plain files: whatever is unusual in a table makes SQLite itself read it, with
its own errors for damage. So what is given is always what `SqliteTables` gives, row by row and in
the same order.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.arrays import IntArray, codes_of, ints, none_of, summed, zeros
from traces.errors import DamagedTrace
from traces.files.beneath import descriptor
from traces.formats.readers import PAGES_FROM, Reader
from traces.formats.sqlite_cells import SPARE_BYTES, UNUSUAL, decode_pages
from traces.formats.sqlite_tables import EVERY_ROW, RowFilter, SqliteTables, StoredColumn
from traces.formats.tables import Table, TextStore, in_order
from traces.loops import runs_compiled
from traces.names.foreign import cut_name
from traces.patterns import compiled
from traces.progress import Progress, silent

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
            self._file = descriptor(path)
        except OSError:
            raise Unusual from None
        try:
            self.page_size, self.usable, self.count = self._layout()
        except Unusual:
            self.close()
            raise

    def close(self) -> None:
        os.close(self._file)

    def leaves(self, root: int) -> IntArray:
        """Numbers of a table's leaf pages in order; of an empty table its one page."""
        seen = none_of(self.count + 1)
        level = ints([root])
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
        """Bytes of pages end to end, and spare bytes after them; `into` is used where it is
        given.
        """
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
        children, total = [], 0
        for page in level:
            children.append(self._children(int(page)))
            total += len(children[-1])
            if total > self.count:  # before a damaged file makes them fill the memory
                raise Unusual
        return np.concatenate(children)

    def _children(self, page: int) -> IntArray:
        data = self.read(ints([page]))
        cells = int(data[3]) * 256 + int(data[4])
        if data[0] != _INTERIOR or not cells or 12 + 2 * cells > self.usable:
            raise Unusual
        places = data[12 : 12 + 2 * cells].view(">u2").astype(np.int64)
        if (places < 12 + 2 * cells).any() or (places > self.usable - 5).any():
            raise Unusual
        places = np.append(places, 8)  # the last child stands in the header
        return (
            np.ascontiguousarray(data[places[:, None] + np.arange(4)])
            .view(">u4")[:, 0]
            .astype(np.int64)
        )

    def _layout(self) -> tuple[int, int, int]:
        header = os.pread(self._file, _HEADER_BYTES, 0)
        if len(header) < _HEADER_BYTES:
            raise Unusual
        size = int.from_bytes(header[16:18], "big")
        size = 65536 if size == 1 else size  # which two bytes cannot hold
        usual_size = 512 <= size <= 65536 and size & (size - 1) == 0
        # 2 stands for a write-ahead log, whose newest pages are in another file
        rollback_journal = header[18:20] == b"\1\1"
        fractions = header[21:24] == b"\x40\x20\x20"
        utf8 = 1
        usable = size - header[20]
        if not (usual_size and rollback_journal and fractions) or usable < 480:
            raise Unusual
        if (
            int.from_bytes(header[56:60], "big") != utf8
            or not 1 <= int.from_bytes(header[44:48], "big") <= 4
        ):
            raise Unusual
        count = os.fstat(self._file).st_size // size
        # releases before 3.7.0 did not keep the count up to date: the two counters tell
        if header[24:28] == header[92:96] and (stated := int.from_bytes(header[28:32], "big")):
            if stated > count:
                raise Unusual
            count = stated
        return size, usable, count


_BATCH_BYTES: Final = 1 << 20  # stays in the processor's cache
_SMALLEST_CELL_BYTES: Final = 6  # with its place in the page
_MOST_LEFT: Final = (
    10_000  # rows with a wanted value in overflow pages, which SQLite reads one by one
)
_ROOM: Final = 1.05  # more rows than the pages read so far promise
# in the name of a type: numbers stored whole are read as REAL
_REAL: Final = compiled("(?i)REAL|FLOA|DOUB")
_TEXT_OR_WHOLE: Final = compiled("(?i)INT|CHAR|CLOB|TEXT|BLOB")  # these words count before


class TableReader:
    """One pass over a table. `read` raises `Unusual` where SQLite has to read the table instead."""

    def __init__(
        self,
        pages: PageFile,
        sql: SqliteTables,
        table: str,
        integers: Sequence[str],
        texts: Sequence[str],
        only: RowFilter,
    ) -> None:
        self._pages, self._sql = pages, sql
        self._table, self._integers, self._texts, self._only = table, integers, texts, only
        stored = sql.stored(table)
        wanted = [*integers, *texts]
        if (
            stored is None
            or not wanted
            or any(values is not None and not values for values in only.values())
        ):
            raise Unusual
        self._root, columns = stored
        self._slot_of = _slots(columns, integers, texts)
        self._slots = len(integers) + 2 * len(texts)
        self._work = pages.count * pages.page_size  # all tables of a file run alike

    def read(self, progress: Progress) -> Table:
        """The columns, in rowid order."""
        leaves = self._pages.leaves(self._root)
        size = self._pages.page_size
        batch = max(_BATCH_BYTES // size, 1)
        buffer = np.zeros(min(batch, len(leaves)) * size + SPARE_BYTES, dtype=np.uint8)
        # of a text its code is kept, not its length
        slots = [*range(count := len(self._integers)), *range(count, self._slots, 2)]
        columns = [_Growing() for _ in slots]
        stores = [TextStore() for _ in self._texts]
        state = zeros(3)
        left = []
        for first in range(0, len(leaves), batch):
            numbers = leaves[first : first + batch]
            data = self._pages.read(numbers, buffer)
            capacity = self._cells(data, len(numbers), is_alone=len(leaves) == 1)
            out, rows = self._decoded(data, len(numbers), capacity, state)
            at = self._slots * capacity
            pairs = out[at : at + 2 * capacity].reshape(2, capacity)[:, : state[2]]
            left += [(columns[0].used + row, rowid) for row, rowid in pairs.T.tolist()]
            if len(left) > _MOST_LEFT:
                raise Unusual
            for slot, store in zip(slots[len(self._integers) :], stores, strict=True):
                store.encode(data, rows, out, slot * capacity, capacity, self._work)
            done = first + len(numbers)
            for column, slot in zip(columns, slots, strict=True):
                column.append(out[slot * capacity : slot * capacity + rows], len(leaves) / done)
            progress(f"reading {self._table}", done / len(leaves), columns[0].used)
        whole = [*map(_Growing.finished, columns)]
        numbers_of = dict(zip(self._integers, whole, strict=False))
        coded = map(TextStore.coded, stores, whole[len(self._integers) :])
        return self._with_left(Table(numbers_of, dict(zip(self._texts, coded, strict=True))), left)

    def _cells(self, data: NDArray[np.uint8], pages: int, is_alone: bool) -> int:
        heads = data[: pages * self._pages.page_size].reshape(pages, -1)
        cells = heads[:, 3].astype(np.int64) * 256 + heads[:, 4]
        if cells.max() > (self._pages.usable - 8) // _SMALLEST_CELL_BYTES or (
            cells.min() < 1 and not is_alone
        ):
            raise Unusual
        return summed(cells)

    def _decoded(
        self, data: NDArray[np.uint8], pages: int, capacity: int, state: IntArray
    ) -> tuple[IntArray, int]:
        out = np.empty((self._slots + 2) * capacity, dtype=np.int64)
        numbers = [values or () for values in self._only.values()]
        rows = decode_pages.over(self._work)(
            data,
            pages,
            self._pages.page_size,
            self._pages.usable,
            self._slot_of,
            len(self._integers),
            self._slots,
            ints([*map(self._integers.index, self._only)]),
            np.cumsum([0, *map(len, numbers)], dtype=np.int64),
            np.fromiter(chain.from_iterable(numbers), dtype=np.int64),
            capacity,
            out,
            state,
        )
        if rows == UNUSUAL:
            raise Unusual
        return out, rows

    def _with_left(self, table: Table, left: list[tuple[int, int]]) -> Table:
        """The columns with the rows in them that SQLite reads."""
        if not left:
            return table
        keep = ~none_of(len(table))
        known = {name: codes_of(table.texts[name].values) for name in self._texts}
        for row, rowid in left:
            read = self._sql.row_at(self._table, rowid, self._integers, self._texts, self._only)
            if read is None:
                raise Unusual
            keep[row], values = read
            for name, value in zip(self._integers, values, strict=False):
                if type(value) is not int:
                    raise Unusual
                table.integers[name][row] = value
            for name, value in zip(self._texts, values[len(self._integers) :], strict=True):
                if not (value is None or type(value) is str):
                    raise Unusual
                code = (
                    -1
                    if value is None
                    else known[name].setdefault(cut_name(value), len(known[name]))
                )
                table.texts[name].codes[row] = code
        return Table(
            {name: values[keep] for name, values in table.integers.items()},
            {
                name: in_order(text.codes[keep], tuple(known[name]))
                for name, text in table.texts.items()
            },
        )


def _slots(
    stored: Sequence[StoredColumn], integers: Sequence[str], texts: Sequence[str]
) -> IntArray:
    """Of each stored column up to the last wanted one, the slot that takes it, -1 where it is not
    wanted.
    """
    slot = dict(zip(integers, count(), strict=False))
    slot |= zip(texts, count(len(integers), 2), strict=False)
    places = []
    for column in stored:
        is_odd = column.is_key or (column.name in integers and _is_real(column.type))
        if column.is_hidden or (column.name in slot and is_odd):
            raise Unusual
        places.append(slot.pop(column.name, -1))
    if slot:
        raise Unusual
    while places[-1] < 0:
        places.pop()
    return ints(places)


def _is_real(declared: str) -> bool:
    return bool(_REAL.search(declared)) and not _TEXT_OR_WHOLE.search(declared)


class _Growing:
    """One column while it is read: room for what is expected, given back at the end."""

    def __init__(self) -> None:
        self.used = 0
        self._values = np.empty(0, dtype=np.int64)

    def append(self, part: IntArray, pages_by_read: float) -> None:
        """Add values; `pages_by_read`: all pages by those read so far."""
        end = self.used + len(part)
        if end > len(self._values):
            room = int(end * pages_by_read * _ROOM)
            if self.used:
                self._values.resize(max(room, end), refcheck=False)
            else:  # numpy asks for large pages only here
                self._values = np.empty(max(room, end), dtype=np.int64)
        self._values[self.used : end] = part
        self.used = end

    def finished(self) -> IntArray:
        self._values.resize(self.used, refcheck=False)
        return self._values


def open_tables(path: Path, reader: Reader, progress: Progress, shown: Path) -> SqliteTables:
    """The tables of a file as a context manager; `Reader.AUTO` decodes pages of large files,
    compiled.
    """
    size = path.stat().st_size
    is_worth_it = reader is Reader.AUTO and size >= PAGES_FROM.value and runs_compiled(size)
    tables = PageTables if reader is Reader.PAGES or is_worth_it else SqliteTables
    return tables(path, progress, shown)


class PageTables(SqliteTables):
    """Tables of one SQLite file, the event tables from its pages, as a context manager."""

    def __init__(self, path: Path, progress: Progress = silent, shown: Path | None = None) -> None:
        super().__init__(path, progress, shown)
        self._left = dict[str, None]()
        self._pages: PageFile | None = None
        with suppress(Unusual):
            self._pages = PageFile(path)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._pages:
            self._pages.close()
        super().__exit__(kind, *rest)

    @property
    def reader(self) -> str:
        """Which readers ran: `pages`, `sqlite3`, or `pages, sqlite3 for` the tables that it
        read.
        """
        if not self._pages:
            return super().reader
        if self._left:
            return f"pages, {super().reader} for {', '.join(self._left)}"
        return "pages"

    def read(
        self,
        table: str,
        integers: Sequence[str],
        texts: Sequence[str] = (),
        only: RowFilter = EVERY_ROW,
    ) -> Table:
        if self._pages:
            try:
                return TableReader(self._pages, self, table, integers, texts, only).read(
                    self._progress
                )
            except (Unusual, DamagedTrace):
                self._left[table] = None
        return super().read(table, integers, texts, only)
