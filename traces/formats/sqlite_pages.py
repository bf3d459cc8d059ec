"""`Tables` of an SQLite file whose event tables are decoded from their pages, many times faster than by SQL.

Only plain tables of plain files: whatever is unusual in a table makes SQLite itself read it, with its own
errors for damage. So what is given is always what `SqliteTables` gives, row by row and in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from traces.columns import IntArray
from traces.errors import DamagedTrace
from traces.formats.readers import PAGES_FROM, Reader
from traces.formats.sqlite_rows import PageFile, TableReader, Unusual
from traces.formats.sqlite_tables import SqliteTables
from traces.formats.tables import EVERY_ROW, RowFilter, TableColumns
from traces.loops import runs_compiled
from traces.progress import Progress, silent


def open_tables(path: Path, reader: Reader, progress: Progress, shown: Path) -> PageTables | SqliteTables:
    """The tables of a file as a context manager; `Reader.AUTO` decodes pages of large files, compiled."""
    size = path.stat().st_size
    is_worth_it = reader is Reader.AUTO and size >= PAGES_FROM.value and runs_compiled(size)
    if reader is Reader.PAGES or is_worth_it:
        return PageTables(path, progress, shown)
    return SqliteTables(path, progress, shown)


class PageTables:
    """Tables of one SQLite file, read from its pages, as a context manager; `shown` as for `SqliteTables`."""

    def __init__(self, path: Path, progress: Progress = silent, shown: Path | None = None) -> None:
        self._sql = SqliteTables(path, progress, shown)
        self._progress = progress
        self._left: list[str] = []
        self._pages: PageFile | None = None
        try:
            self._pages = PageFile(path)
        except Unusual:
            return

    def __enter__(self) -> PageTables:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._pages:
            self._pages.close()
        self._sql.__exit__(kind, *rest)

    @property
    def reader(self) -> str:
        """Which readers ran: `pages`, `sqlite3`, or `pages, sqlite3 for` the tables that it read."""
        if self._pages is None:
            return self._sql.reader
        return f"pages, {self._sql.reader} for {', '.join(self._left)}" if self._left else "pages"

    def columns_of(self, table: str) -> frozenset[str]:
        """Column names of a table; empty where the table is absent."""
        return self._sql.columns_of(table)

    def read(
        self, table: str, integers: Sequence[str], texts: Sequence[str] = (), only: RowFilter = EVERY_ROW
    ) -> TableColumns:
        """Whole columns of a table that has them, in one pass and the table's own row order."""
        if self._pages is not None:
            try:
                return TableReader(self._pages, self._sql, table, integers, texts, only).read(self._progress)
            except (Unusual, DamagedTrace):
                if table not in self._left:
                    self._left.append(table)
        return self._sql.read(table, integers, texts, only)

    def strings(self, ids: IntArray) -> Mapping[int, str]:
        """Texts of `StringIds` for the distinct ids given; ids that are not there are left out."""
        return self._sql.strings(ids)

    def blobs(self, table: str, integers: Sequence[str], blob: str) -> tuple[IntArray, list[bytes]]:
        """Rows where `blob` is not NULL: the integer columns, shape (n, len(integers)), and the blobs."""
        return self._sql.blobs(table, integers, blob)

    def rows(self, table: str, columns: Sequence[str]) -> Iterable[Sequence[object]]:
        """Rows of a small table, with NULL as None."""
        return self._sql.rows(table, columns)
