"""`Tables` of an SQLite file whose event tables are decoded from their pages, many times faster than by SQL.

Only plain tables of plain files: whatever is unusual in a table makes SQLite itself read it, with its own
errors for damage. So what is given is always what `SqliteTables` gives, row by row and in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from traces.errors import DamagedTrace
from traces.formats.readers import PAGES_FROM, Reader
from traces.formats.sqlite_rows import PageFile, TableReader, Unusual
from traces.formats.sqlite_tables import SqliteTables
from traces.formats.tables import EVERY_ROW, RowFilter, TableColumns
from traces.loops import runs_compiled
from traces.progress import Progress, silent


def open_tables(path: Path, reader: Reader, progress: Progress, shown: Path) -> SqliteTables:
    """The tables of a file as a context manager; `Reader.AUTO` decodes pages of large files, compiled."""
    size = path.stat().st_size
    is_worth_it = reader is Reader.AUTO and size >= PAGES_FROM.value and runs_compiled(size)
    tables = PageTables if reader is Reader.PAGES or is_worth_it else SqliteTables
    return tables(path, progress, shown)


class PageTables(SqliteTables):
    """Tables of one SQLite file, the event tables from its pages, as a context manager."""

    def __init__(self, path: Path, progress: Progress = silent, shown: Path | None = None) -> None:
        super().__init__(path, progress, shown)
        self._left: list[str] = []
        self._pages: PageFile | None = None
        with suppress(Unusual):
            self._pages = PageFile(path)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._pages:
            self._pages.close()
        super().__exit__(kind, *rest)

    @property
    def reader(self) -> str:
        """Which readers ran: `pages`, `sqlite3`, or `pages, sqlite3 for` the tables that it read."""
        if self._pages is None:
            return super().reader
        return f"pages, {super().reader} for {', '.join(self._left)}" if self._left else "pages"

    def read(
        self, table: str, integers: Sequence[str], texts: Sequence[str] = (), only: RowFilter = EVERY_ROW
    ) -> TableColumns:
        """Whole columns of a table that has them, in one pass and the table's own row order."""
        if self._pages is not None:
            try:
                return TableReader(self._pages, self, table, integers, texts, only).read(self._progress)
            except (Unusual, DamagedTrace):
                if table not in self._left:
                    self._left.append(table)
        return super().read(table, integers, texts, only)
