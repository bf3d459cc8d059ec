"""Tables decoded from pages are those that SQLite reads, cell by cell; what is unusual it reads itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.recordings.two_readers import both, database, read
from traces.formats import sqlite_pages
from traces.formats.readers import PAGES_FROM, Reader
from traces.formats.sqlite_pages import PageTables, open_tables
from traces.progress import silent

EDGES: Final = [
    side
    for bits in (7, 8, 15, 16, 23, 24, 31, 32, 47, 48, 63)
    for side in (2**bits - 1, -(2**bits) + 1, 2 ** min(bits, 62), -(2 ** min(bits, 62)))
]
NUMBERS: Final = st.none() | st.sampled_from([0, 1, *EDGES]) | st.integers(-(2**63) + 1, 2**63 - 1)
LONG: Final = ["", "x" * 57, "x" * 58, "é" * 200, "y" * 700, "z" * 5_000, "NUL\0inside"]
TEXTS: Final = st.none() | st.sampled_from(LONG) | st.text(st.characters(codec="utf-8"), max_size=20)
ROWIDS: Final = st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200)
ROWS: Final = st.dictionaries(ROWIDS, st.tuples(NUMBERS, TEXTS, NUMBERS, TEXTS), max_size=60)
SMALL: Final = tuple((number, f"name {number % 7}", number * number, None) for number in range(300))

one_file = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@one_file
@given(
    rows=ROWS,
    page=st.sampled_from([512, 1024, 4096, 65536]),
    vacuum=st.sampled_from(["NONE", "FULL", "INCREMENTAL"]),
    unread=st.integers(0, 12),
    deleted=st.integers(2, 9),
)
def test_every_cell_is_the_one_that_sqlite_reads(
    engine: str,
    tmp_path: Path,
    rows: dict[int, tuple[object, ...]],
    page: int,
    vacuum: str,
    unread: int,
    deleted: int,
) -> None:
    between = "".join(f"unread{number} INTEGER, " for number in range(unread))
    path = database(
        tmp_path / "run.sqlite",
        f"PRAGMA page_size = {page}",
        f"PRAGMA auto_vacuum = {vacuum}",
        "CREATE TABLE gone (filler TEXT)",
        "INSERT INTO gone SELECT hex(zeroblob(3000)) FROM pragma_table_info('gone')",
        f"CREATE TABLE t (a INTEGER, s TEXT, {between}b INTEGER NOT NULL DEFAULT 5, u TEXT)",
        "INSERT INTO t (_rowid_, a, s, b, u) VALUES (?, ?, ?, ifnull(?, -1), ?)",
        "DROP TABLE gone",
        f"DELETE FROM t WHERE _rowid_ % {deleted} = 0",
        rows=[(key, *row) for key, row in rows.items()],
    )
    assert both(path, "t", ("a", "b"), ("s", "u")) == "pages"
    assert both(path, "t", ("b", "a"), ("s",), {"b": [-1, 0, 1], "a": None}) == "pages"


@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_a_table_of_many_pages_is_read_in_its_order(engine: str, tmp_path: Path, page: int) -> None:
    rows = [(number * 3, f"range {number % 400}", -number, None) for number in range(6_000)]
    path = database(
        tmp_path / "run.sqlite",
        f"PRAGMA page_size = {page}",
        "CREATE TABLE t (a INTEGER, s TEXT, b INTEGER, u TEXT)",
        "INSERT INTO t VALUES (?, ?, ?, ?)",
        "CREATE INDEX covers ON t (b, a)",
        rows=rows,
    )
    found, ran = read(path, PageTables, "t", ("a", "b"), ("s",))
    assert ran == "pages"
    assert isinstance(found, dict)
    assert found["a"] == [row[0] for row in rows]
    assert both(path, "t", ("a", "b"), ("s",)) == both(path, "t", ("b", "a")) == "pages"


def test_a_column_added_later_is_read_where_its_rows_have_it(engine: str, tmp_path: Path) -> None:
    made = ("CREATE TABLE t (a INTEGER, s TEXT, b INTEGER, u TEXT)", "INSERT INTO t VALUES (?, ?, ?, ?)")
    added = "ALTER TABLE t ADD COLUMN late INTEGER DEFAULT 7"
    path = database(tmp_path / "run.sqlite", *made, added, rows=SMALL)
    assert both(path, "t", ("a",)) == "pages"
    assert both(path, "t", ("a", "late")) == "pages, sqlite3 for t"


UNUSUAL: Final = {
    "WITHOUT ROWID": "CREATE TABLE t (a INTEGER PRIMARY KEY, s TEXT, b INTEGER, u TEXT) WITHOUT ROWID",
    "the key is the rowid": "CREATE TABLE t (a INTEGER PRIMARY KEY, s TEXT, b INTEGER, u TEXT)",
    "whole numbers read as REAL": "CREATE TABLE t (a DOUBLE, s TEXT, b INTEGER, u TEXT)",
    "texts in place of numbers": "CREATE TABLE t (s TEXT, a TEXT, b INTEGER, u TEXT)",
    "a computed column": "CREATE TABLE t (a INTEGER, s TEXT, b INTEGER, u TEXT, c INTEGER AS (a + 1))",
}


@pytest.mark.parametrize("what", UNUSUAL)
def test_an_unusual_table_is_read_by_sqlite(engine: str, tmp_path: Path, what: str) -> None:
    path = database(tmp_path / "run.sqlite", UNUSUAL[what], "INSERT INTO t VALUES (?, ?, ?, ?)", rows=SMALL)
    assert both(path, "t", ("a",), ("s",)) in ("pages, sqlite3 for t", "none")
    assert both(path, "t", ("b",)) == "pages" or what in ("WITHOUT ROWID", "a computed column")


@pytest.mark.parametrize("value", ["1.5", "x'00ff'", "'text'"])
def test_a_value_of_another_type_is_never_taken_for_a_number(engine: str, tmp_path: Path, value: str) -> None:
    path = database(tmp_path / "run.sqlite", "CREATE TABLE t (a, s)", f"INSERT INTO t VALUES ({value}, 5)")
    assert both(path, "t", ("a",)) == "none"
    assert both(path, "t", ("s",), ("a",)) == ("pages" if value == "'text'" else "pages, sqlite3 for t")


@pytest.mark.parametrize("pragma", ["encoding = 'UTF-16le'", "encoding = 'UTF-16be'", "journal_mode = WAL"])
def test_an_unusual_file_is_read_by_sqlite(engine: str, tmp_path: Path, pragma: str) -> None:
    path = database(
        tmp_path / "run.sqlite",
        f"PRAGMA {pragma}",
        "CREATE TABLE t (a INTEGER, s TEXT, b INTEGER, u TEXT)",
        "INSERT INTO t VALUES (?, ?, ?, ?)",
        rows=SMALL,
    )
    assert both(path, "t", ("a",), ("s",)) == "sqlite3"


def test_auto_decodes_pages_of_large_files_where_loops_compile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = database(tmp_path / "run.sqlite", "CREATE TABLE t (a INTEGER)")

    def chosen(reader: Reader) -> str:
        with open_tables(path, reader, silent, path) as tables:
            return tables.reader

    assert [chosen(reader) for reader in Reader] == ["sqlite3", "pages", "sqlite3"]
    monkeypatch.setattr(sqlite_pages, "PAGES_FROM", replace(PAGES_FROM, value=0))
    monkeypatch.setattr(sqlite_pages, "runs_compiled", lambda work: True)
    assert [chosen(reader) for reader in Reader] == ["pages", "pages", "sqlite3"]
    monkeypatch.setattr(sqlite_pages, "runs_compiled", lambda work: False)
    assert chosen(Reader.AUTO) == "sqlite3"
