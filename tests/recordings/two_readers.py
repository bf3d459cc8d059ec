"""One table read by both readers of SQLite files, and what makes databases of odd shapes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from traces.errors import DamagedTrace
from traces.formats.sqlite_pages import PageTables
from traces.formats.sqlite_tables import EVERY_ROW, RowFilter, SqliteTables
from traces.formats.tables import Table

Cells = dict[str, list[object]]


def cells(table: Table) -> Cells:
    """Every cell of a table, column by column, and the distinct texts in their order."""
    found: Cells = {name: values.tolist() for name, values in table.integers.items()}
    for name, text in table.texts.items():
        found[name] = [None if code < 0 else text.values[code] for code in text.codes.tolist()]
        found[f"texts of {name}"] = list(text.values)
    return found


def read(
    path: Path,
    reader: type[PageTables] | type[SqliteTables],
    table: str,
    integers: Sequence[str],
    texts: Sequence[str] = (),
    only: RowFilter = EVERY_ROW,
) -> tuple[Cells | str, str]:
    """The cells, or what the error says, and which reader ran."""
    try:
        with reader(path) as tables:
            return cells(tables.read(table, integers, texts, only)), tables.reader
    except DamagedTrace as error:
        return str(error), "none"


def both(
    path: Path, table: str, integers: Sequence[str], texts: Sequence[str] = (), only: RowFilter = EVERY_ROW
) -> str:
    """Read a table by both and demand the same -> which ran where pages were asked for."""
    by_pages, ran = read(path, PageTables, table, integers, texts, only)
    by_sql, _ = read(path, SqliteTables, table, integers, texts, only)
    assert by_pages == by_sql
    return ran


def database(path: Path, *statements: str, rows: Iterable[Sequence[object]] = ()) -> Path:
    """A new database made by statements; those with `?` take all rows. The last leaves it closed."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as made:
        made.execute("PRAGMA synchronous = OFF")
        for statement in statements:
            if "?" in statement:
                made.execute("BEGIN")
                made.executemany(statement, rows)
                made.execute("COMMIT")
            else:
                made.execute(statement)
    return path
