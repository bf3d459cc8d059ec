"""Files that a stranger made: tables without an end, values beyond any memory, a number that is NULL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recordings.two_readers import both, database, read
from traces.columns import NULL
from traces.formats.sqlite_pages import PageTables
from traces.formats.sqlite_tables import SqliteTables

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"


@pytest.mark.parametrize("rows", [
    f"{ENDLESS} SELECT n AS a FROM c", f"{ENDLESS} SELECT n AS a FROM c WHERE n < 0",
    f"{ENDLESS} SELECT sum(n) AS a FROM c",
    f"{ENDLESS} SELECT one.n AS a FROM c AS one JOIN c AS two ON one.n = -two.n",
])  # fmt: skip
def test_a_view_without_an_end_is_an_error(tmp_path: Path, rows: str) -> None:
    path = database(tmp_path / "run.sqlite", f"CREATE VIEW t AS {rows}")
    for reader in (SqliteTables, PageTables):
        said, ran = read(path, reader, "t", ("a",))
        assert ran == "none"
        assert "a view or a table that does not end, in t" in str(said)


def test_pages_that_stand_in_many_places_do_not_keep_it_busy(tmp_path: Path) -> None:
    """Nine levels of pages, each with a hundred times the same child: 10**18 rows in twelve pages."""
    path = database(tmp_path / "run.sqlite", "PRAGMA page_size = 1024", "CREATE TABLE t (a INTEGER)")
    content = bytearray(path.read_bytes())
    leaf = bytearray(1024)
    leaf[0], leaf[3:5], leaf[5:7], leaf[8:10] = (
        13,
        b"\0\1",
        (1000).to_bytes(2, "big"),
        (1000).to_bytes(2, "big"),
    )
    leaf[1000:1005] = b"\x03\x01\x02\x01\x07"
    levels = 9
    for level in range(levels):
        page = bytearray(1024)
        child = (3 + level).to_bytes(4, "big")
        page[0], page[3:5], page[5:7], page[8:12] = 5, b"\0\x64", (400).to_bytes(2, "big"), child
        for cell in range(100):
            at = 400 + 6 * cell
            page[12 + 2 * cell : 14 + 2 * cell] = at.to_bytes(2, "big")
            page[at : at + 5] = child + b"\1"
        content[1024 * (1 + level) : 1024 * (2 + level)] = page
    content[1024 * (1 + levels) :] = leaf
    content[28:32] = (len(content) // 1024).to_bytes(4, "big")
    path.write_bytes(content)
    for reader in (SqliteTables, PageTables):
        said, ran = read(path, reader, "t", ("a",))
        assert ran == "none"
        assert "is damaged" in str(said)


def test_the_number_that_stands_for_null_is_no_wanted_row(tmp_path: Path) -> None:
    rows = [(5, 1), (NULL, 2), (None, 3), (NULL + 1, 4)]
    made = ("CREATE TABLE t (a INTEGER, b INTEGER)", "INSERT INTO t VALUES (?, ?)")
    path = database(tmp_path / "run.sqlite", *made, rows=rows)
    assert both(path, "t", ("a", "b"), (), {"a": None}) == "pages"
    assert both(path, "t", ("a", "b"), (), {"a": [NULL, 5]}) == "pages"
    assert read(path, SqliteTables, "t", ("a", "b"), (), {"a": None})[0] == {"a": [5, NULL + 1], "b": [1, 4]}


@pytest.mark.parametrize("name", [b"\xc0", b"a\xff"])
def test_a_message_of_sqlite_that_is_no_text_is_an_error_of_ours(tmp_path: Path, name: bytes) -> None:
    """It names what the schema holds."""
    path = database(
        tmp_path / "run.sqlite", "CREATE TABLE xx (a INTEGER)", "CREATE VIEW t AS SELECT a FROM xx"
    )
    path.write_bytes(path.read_bytes().replace(b"FROM xx", b"FROM " + name.ljust(2, b"y")))
    said, ran = read(path, SqliteTables, "t", ("a",))
    assert ran == "none"
    assert "is damaged" in str(said)


def test_what_sqlite_quotes_of_a_file_stays_one_short_line(tmp_path: Path) -> None:
    name = "no\nsuch\ntable" * 30
    path = database(tmp_path / "run.sqlite", f'CREATE VIEW t AS SELECT 1 AS a FROM "{name}"')
    said, _ = read(path, SqliteTables, "t", ("a",))
    assert "no such table" in str(said)
    assert "\n" not in str(said)
    assert len(str(said)) < len(str(path)) + 250


def test_a_row_of_more_bytes_than_there_can_be_is_damage_and_no_want_of_memory(tmp_path: Path) -> None:
    made = ("PRAGMA page_size = 512", "CREATE TABLE t (s TEXT)", "INSERT INTO t VALUES (?)")
    path = database(tmp_path / "run.sqlite", *made, rows=[("x" * 100,)])
    data = bytearray(path.read_bytes())
    row = data.index(b"x" * 100) - 5  # its size and number, then those of the text
    data[row : row + 10] = b"\xff" * 9 + b"\x01"
    path.write_bytes(data)
    for reader in (SqliteTables, PageTables):
        said, _ = read(path, reader, "t", (), ("s",))
        assert "is damaged" in str(said)
