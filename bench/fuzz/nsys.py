"""Exports whose tables are spoiled: rows, columns and tables of any kind, read and diagnosed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Final

from bench.fuzz.exports import exports
from bench.fuzz.mutations import FLOATS, NUMBERS, TEXTS
from bench.fuzz.same import assert_same
from bench.fuzz.target import Target
from bench.fuzz.whole_way import diagnosed
from traces.errors import MoeDiagError
from traces.formats.open import ReadOptions, read_trace
from traces.formats.readers import Reader
from traces.gpu_work import build

_VALUES: Final = (
    *("NULL", "NULL", "NULL", "x'00ff80'", "CAST(x'fffe61' AS TEXT)", "zeroblob(40)", "randomblob(36)"),
    *map(str, NUMBERS),
    *map(repr, FLOATS),
    *(f"CAST(x'{text.encode('utf-8', 'surrogatepass').hex()}' AS TEXT)" for text in TEXTS),
)
_READ: Final = (
    "CUPTI_",
    "NVTX_",
    "StringIds",
    "TARGET_INFO",
    "META_",
    "EXPORT_",
    "GPU_",
    "GENERIC",
    "MPI",
    "Thread",
)


def begin(rng: Random) -> bytes:
    """A whole export."""
    return rng.choice(exports())


def spoil(rng: Random, content: bytes) -> bytes:
    """One statement changes rows, a column or a table. What SQLite refuses stays as it is."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.deserialize(content)
        found = [
            row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        ]
        read = [name for name in found if name.startswith(_READ)]
        if not read:
            return content
        table = rng.choice(read)
        columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
        weights = [weight for _, weight in _WAYS]
        way = rng.choices([way for way, _ in _WAYS], weights)[0]
        with suppress(sqlite3.Error):
            for statement in way(rng, table, columns, read):
                db.execute(statement)
        return bytes(db.serialize())


def _cells(rng: Random, table: str, columns: list[str], others: list[str]) -> list[str]:
    where = rng.choice(("1", f"rowid = {rng.randrange(1, 15)}", f"rowid % {rng.randrange(2, 5)} = 0"))
    return [f'UPDATE "{table}" SET "{rng.choice(columns)}" = {rng.choice(_VALUES)} WHERE {where}']


def _moved(rng: Random, table: str, columns: list[str], others: list[str]) -> list[str]:
    column, by = rng.choice(columns), rng.choice(NUMBERS)
    change = rng.choice(
        (f'"{column}" + {by}', f'-"{column}"', f'"{rng.choice(columns)}"', f'"{column}" * 1000003')
    )
    return [f'UPDATE "{table}" SET "{column}" = {change}']


def _rows(rng: Random, table: str, columns: list[str], others: list[str]) -> list[str]:
    return [
        rng.choice(
            (
                f'DELETE FROM "{table}" WHERE rowid % {rng.randrange(1, 4)} = 0',
                f'INSERT INTO "{table}" SELECT * FROM "{table}"',
                f'INSERT INTO "{table}" DEFAULT VALUES',
                f'INSERT INTO "{table}" SELECT * FROM "{table}" ORDER BY 1 DESC LIMIT 3',
            )
        )
    ]


def _columns(rng: Random, table: str, columns: list[str], others: list[str]) -> list[str]:
    column, other = rng.choice(columns), rng.choice(columns)
    value = rng.choice(_VALUES)
    gone = f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "was {column}"'
    return rng.choice(
        (
            [f'ALTER TABLE "{table}" DROP COLUMN "{column}"'],
            [gone],
            [gone, f'ALTER TABLE "{table}" ADD COLUMN "{column}" AS ("{other}")'],
            [gone, f'ALTER TABLE "{table}" ADD COLUMN "{column}" AS ({value})'],
            [gone, f'ALTER TABLE "{table}" ADD COLUMN "{column}" REAL DEFAULT {value}'],
            [f'ALTER TABLE "{table}" ADD COLUMN "user\'s {column}" TEXT DEFAULT {value}'],
        )
    )


def _tables(rng: Random, table: str, columns: list[str], others: list[str]) -> list[str]:
    other, away = rng.choice(others), f'ALTER TABLE "{table}" RENAME TO "was {table}"'
    listed = ", ".join(f'"{name}"' for name in columns)
    return rng.choice(
        (
            [f'DROP TABLE "{table}"'],
            [f'DROP TABLE "{table}"', f'CREATE TABLE "{table}" (x)'],
            [away, f'CREATE VIEW "{table}" AS SELECT * FROM "was {table}"'],
            [away, f'CREATE VIEW "{table}" AS SELECT * FROM "no such table"'],
            [away, f'CREATE VIEW "{table}" AS SELECT * FROM "{table}"'],
            [away, f'ALTER TABLE "{other}" RENAME TO "{table}"',
             f'ALTER TABLE "was {table}" RENAME TO "{other}"'],
            [away, f'CREATE TABLE "{table}" AS SELECT * FROM "was {table}" ORDER BY 1 DESC'],
            [away, f'CREATE TABLE "{table}" ({listed}, PRIMARY KEY ("{columns[0]}")) WITHOUT ROWID',
             f'INSERT OR IGNORE INTO "{table}" SELECT * FROM "was {table}"'],
            [f'CREATE TRIGGER "t {table}" AFTER INSERT ON "{table}" BEGIN DELETE FROM "{table}"; END'],
            [f'CREATE INDEX "i {table}" ON "{table}" ({listed})'],
            [f'CREATE VIRTUAL TABLE "v {table}" USING fts5(x)'],
        )
    )  # fmt: skip


Way = Callable[[Random, str, list[str], list[str]], list[str]]
_WAYS: Final[tuple[tuple[Way, int], ...]] = (
    (_cells, 10),
    (_moved, 4),
    (_rows, 2),
    (_columns, 3),
    (_tables, 2),
)


def written(rng: Random, content: bytes) -> tuple[str, bytes]:
    """The file."""
    return "run.sqlite", content


def check(path: Path, deep: bool) -> None:
    """It is read and its timeline is built; the whole way also by the other reader, to a report."""
    columns = read_trace(path, ReadOptions(reader=Reader.SQLITE3))
    build(columns)
    if deep:
        with suppress(MoeDiagError):
            assert_same(read_trace(path, ReadOptions(reader=Reader.PAGES)), columns, "reader")
        diagnosed(path)


TARGET: Final = Target("nsys", begin, spoil, written, check)
