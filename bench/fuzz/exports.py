"""Small exports to begin with: simulated ones of several schemas, the demo's, and recordings cut down."""

from __future__ import annotations

import lzma
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.simulate.export import schema_versions, write_export
from diagnoser.demo import compressed
from tests.doubles.document import DISPATCH, exposed
from traces.formats import sqlite_tables

ROWS: Final = 14
"""Of each table of a recording so many rows are kept."""
_LARGEST: Final = 4_000_000
_NAMES: Final = ("demangledName", "shortName", "mangledName", "nameId", "textId")
_PAGE: Final = 512
"""Small pages, so that small tables have trees."""
_LEFT_OUT: Final = ("sqlite_", "TARGET_INFO_SYSTEM", "ENUM_")


@cache
def exports() -> tuple[bytes, ...]:
    """Exports of a few dozen kB each; without `MOE_DIAG_TRACES` none of them was recorded."""
    found = []
    with TemporaryDirectory() as folder:
        for schema in ("2.9.1", "3.4.0", "3.17.1", "3.25.0", schema_versions()[-1]):
            if schema in schema_versions():
                path = Path(folder) / f"{schema}.sqlite"
                write_export(path, exposed(comm=DISPATCH), schema)
                found.append(cut_down(path))
        for name in ("healthy", "graphs", "gpu_metrics"):
            path = Path(folder) / f"{name}.sqlite"
            if compressed(name).exists():
                path.write_bytes(lzma.decompress(compressed(name).read_bytes()))
                found.append(cut_down(path))
    return (*found, *(cut_down(path) for path in recorded()))


def recorded() -> Iterator[Path]:
    """The small exports among the recordings, by name."""
    folder = os.environ.get("MOE_DIAG_TRACES")
    for path in sorted(Path(folder).rglob("*.sqlite")) if folder else ():
        if path.is_file() and path.stat().st_size <= _LARGEST and _is_database(path):
            yield path


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) == sqlite_tables.MAGIC


def cut_down(path: Path) -> bytes:
    """Every table with its first rows, and the strings that these name; no column has to be set."""
    with closing(sqlite3.connect(":memory:", isolation_level=None, uri=True)) as made:
        made.execute(f"PRAGMA page_size = {_PAGE}")
        made.execute("ATTACH ? AS whole", (f"file:{path}?mode=ro&immutable=1",))
        found = made.execute("SELECT name FROM whole.sqlite_master WHERE type = 'table'").fetchall()
        tables = [name for (name,) in found if not name.startswith(_LEFT_OUT)]
        used: list[str] = []
        for name in tables:
            columns = made.execute(f'PRAGMA whole.table_info("{name}")').fetchall()
            declared = ", ".join(f'"{column[1]}" {column[2]}' for column in columns)
            made.execute(f'CREATE TABLE main."{name}" ({declared})')
            if name != "StringIds":
                made.execute(f'INSERT INTO main."{name}" SELECT * FROM whole."{name}" LIMIT {ROWS}')
            used += [f'SELECT "{one[1]}" FROM main."{name}"' for one in columns if one[1] in _NAMES]
        if used and "StringIds" in tables:
            ids = " UNION ".join(used)
            made.execute(f"INSERT INTO main.StringIds SELECT * FROM whole.StringIds WHERE id IN ({ids})")
        made.execute("DETACH whole")
        return bytes(made.serialize())
