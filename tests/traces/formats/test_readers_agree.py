"""Both readers give the same cells of every table of every recording."""

from __future__ import annotations

import lzma
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from diagnoser.demo import compressed
from tests.recordings.two_readers import both
from traces.formats.sqlite_tables import RowFilter

DEMOS = sorted(
    path.name.removesuffix(".sqlite.xz") for path in compressed("healthy").parent.glob("*.sqlite.xz")
)


def agree(path: Path) -> tuple[int, list[str]]:
    """Compare every table -> how many were compared, and those that SQLite read."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as opened:
        tables = [row[0] for row in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {table: _typed(opened, table) for table in tables}
    left = []
    for table, (integers, texts) in columns.items():
        if integers or texts:
            only: RowFilter = (
                {"eventType": [59, 60], "end": None} if {"eventType", "end"} <= {*integers} else {}
            )
            ran = {both(path, table, integers, texts), both(path, table, integers, texts, only)}
            left += [table] * (ran != {"pages"})
    return len(columns), left


def _typed(opened: sqlite3.Connection, table: str) -> tuple[list[str], list[str]]:
    """Columns with whole numbers only, and with texts only, but for keys and what is declared REAL."""
    integers, texts = [], []
    for _, name, declared, _, _, key in opened.execute(f'PRAGMA table_info("{table}")').fetchall():
        kinds = {row[0] for row in opened.execute(f'SELECT DISTINCT typeof("{name}") FROM "{table}"')}
        if key or declared == "REAL":
            continue
        if kinds <= {"integer", "null"}:
            integers.append(name)
        elif kinds <= {"text", "null"}:
            texts.append(name)
    return integers, texts


@pytest.mark.parametrize("name", DEMOS)
def test_on_every_recording_of_the_demo(engine: str, tmp_path: Path, name: str) -> None:
    path = tmp_path / "run.sqlite"
    path.write_bytes(lzma.decompress(compressed(name).read_bytes()))
    count, left = agree(path)
    assert count > 5
    assert left == []
