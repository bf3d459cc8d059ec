"""A damaged file gives what SQLite gives of it or its error: never another value, a crash or no end."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest

from tests.recordings.two_readers import database, read
from traces.formats.sqlite_pages import PageTables
from traces.formats.sqlite_tables import SqliteTables

COPIES: Final = 150
BYTES: Final = (0, 1, 5, 10, 13, 127, 128, 255)


def table(path: Path, page: int) -> bytes:
    drawn = random.Random(page)
    texts = (None, "aten::add", "é" * 5, "x" * 70, "y" * 700)
    rows = [(drawn.randint(-(2**40), 2**40), drawn.choice(texts), number % 5) for number in range(300)]
    return database(
        path,
        f"PRAGMA page_size = {page}",
        "CREATE TABLE t (a INTEGER, s TEXT, b INTEGER)",
        "INSERT INTO t VALUES (?, ?, ?)",
        "DELETE FROM t WHERE a % 11 = 0",
        rows=rows,
    ).read_bytes()


@pytest.mark.parametrize("page", [512, 1024, 4096])
def test_damaged_bytes_never_give_what_sqlite_does_not(engine: str, tmp_path: Path, page: int) -> None:
    whole, path = table(tmp_path / "run.sqlite", page), tmp_path / "damaged.sqlite"
    drawn = random.Random(page)
    ways: set[str] = set()
    for _ in range(COPIES):
        content = bytearray(whole)
        for _ in range(drawn.choice((1, 2, 8))):
            start = drawn.randrange(len(content) // page) * page
            at = max(start + drawn.randrange(drawn.choice((12, 60, page))), 100)
            content[at] = drawn.choice((*BYTES, drawn.randrange(256)))
        path.write_bytes(content)
        found, ran = read(path, PageTables, "t", ("a", "b"), ("s",))
        # What is left to SQLite cannot be compared with it: of a cell that leaves its page, 3.40 gives now an
        # error and now values, by what stands in memory behind the page.
        if ran == "pages":
            assert found == read(path, SqliteTables, "t", ("a", "b"), ("s",))[0]
        ways.add(ran)
    assert ways == {"pages", "pages, sqlite3 for t", "none"}  # every kind of damage was met


@pytest.mark.parametrize("page", [512, 4096])
def test_a_file_cut_off_is_an_error(engine: str, tmp_path: Path, page: int) -> None:
    whole, path = table(tmp_path / "run.sqlite", page), tmp_path / "damaged.sqlite"
    for length in range(1, len(whole), len(whole) // 20):
        path.write_bytes(whole[:length])
        assert read(path, PageTables, "t", ("a", "b"), ("s",))[1] == "none"
