"""An SQLite export with only what our reader reads: no host, user, path, environment, command line or date.

The reader itself says which columns those are, as it reads them. Of texts only those stay that are known to
be public; a recording's first moment becomes 0, and other ranks of its run stay as far from it as they were.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from traces.columns import PROCESS_BITS
from traces.errors import OutputNotWritable
from traces.formats import known_texts
from traces.formats import nsys_schema as schema
from traces.formats.nsys_sqlite import read_export
from traces.formats.sqlite_tables import EVERY_ROW, RowFilter, SqliteTables
from traces.formats.tables import Table
from traces.names.ranges import public_call, public_range
from traces.patterns import compiled

_Public = Callable[[str], str | None]
"""A text -> what of it may stay, None where nothing may."""


def _if_all(pattern: str) -> _Public:
    whole = compiled(pattern)
    return lambda text: text if whole.fullmatch(text) else None


_SESSION, _START = schema.SESSION_START, "utcEpochNs"
_PUBLIC_TEXTS: Final[Mapping[tuple[str, str], _Public]] = {
    (schema.NVTX, "text"): public_range,
    **{(table, "name"): known_texts.gpu_name for table in (schema.GPUS, schema.GPUS_2020)},
    **{(table, "name"): _if_all("EXPORT_(?:PRODUCT|SCHEMA)_VERSION") for table in schema.EXPORT_TABLES},
    **{(table, "value"): known_texts.version for table in schema.EXPORT_TABLES},
}
"""Column that holds texts -> those that stay; of any other column only numbers do."""

_PUBLIC_NAMES: Final[Mapping[tuple[str, str], _Public]] = {
    **{(schema.KERNELS, column): _if_all(r"[^/\\\n]+") for column in schema.NAME_COLUMNS},
    (schema.CALLS, "nameId"): lambda text: text if public_call(text) else None,
    (schema.NVTX, "textId"): public_range,
    (schema.OS_CALLS, "nameId"): _if_all(r"[a-z_][a-z0-9_]{1,40}"),
    (schema.OVERHEADS, "nameId"): _if_all(r"[A-Za-z ()]{1,60}"),
    (schema.THREAD_NAMES, "nameId"): _if_all(r"(?:python|pt_|cuda|nccl|gloo)\w{0,20}"),
}
"""Column that names a text of StringIds -> those that stay."""

_WITH_OWN_THREADS: Final = (schema.NVTX, schema.CALLS, schema.OS_CALLS)


def scrub_exports(exports: Sequence[Path], outs: Sequence[Path]) -> None:
    """Write each export of one run, scrubbed, to its new file.

    Raises what `read_export` raises, and `OutputNotWritable`.
    """
    asked = [_asked(export) for export in exports]
    first_ns = min((start for _, start in asked if start is not None), default=0)
    for export, out, (columns, _) in zip(exports, outs, asked, strict=True):
        try:
            _copy(export, out, columns, first_ns)
        except sqlite3.Error as error:
            raise OutputNotWritable(f"{out.name} cannot be written ({error}). Make room there.") from None


class _Asking(SqliteTables):
    """Tables that write down which columns are asked for."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked = defaultdict[str, dict[str, None]](dict)

    def read(
        self, table: str, integers: Sequence[str], texts: Sequence[str] = (), only: RowFilter = EVERY_ROW
    ) -> Table:
        self.asked[table] |= dict.fromkeys([*integers, *texts])
        return super().read(table, integers, texts, only)

    def rows(self, table: str, columns: Sequence[str]) -> list[Sequence[object]]:
        self.asked[table] |= dict.fromkeys(columns)
        return super().rows(table, columns)


def _asked(export: Path) -> tuple[Mapping[str, Iterable[str]], int | None]:
    """Table -> columns that the reader reads, and the recording's start in UNIX ns."""
    with _Asking(export) as tables:
        return tables.asked, read_export(tables).session_start_ns


def _copy(export: Path, out: Path, asked: Mapping[str, Iterable[str]], first_ns: int) -> None:
    with closing(sqlite3.connect(f"{out.absolute().as_uri()}?mode=rwc", uri=True)) as database:
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        database.execute("ATTACH ? AS source", (f"{export.absolute().as_uri()}?mode=ro&immutable=1",))
        database.create_function("kept", 3, _kept, deterministic=True)
        with database:
            for table, columns in sorted(asked.items()):
                values = (f"kept('{table}', '{name}', \"{name}\") AS \"{name}\"" for name in columns)
                database.execute(
                    f'CREATE TABLE "{table}" AS SELECT {", ".join(values)} FROM source."{table}"'
                )
            _only_own_threads(database, asked)
            if _START in asked.get(_SESSION, ()):
                database.execute(f"UPDATE {_SESSION} SET {_START} = {_START} - ?", (first_ns,))
            for table in schema.EXPORT_TABLES:
                if table in asked:
                    database.execute(f"DELETE FROM {table} WHERE name IS NULL")
            _copy_names(database, asked)


def _kept(table: str, column: str, value: Any) -> Any:
    if isinstance(value, str):
        public = _PUBLIC_TEXTS.get((table, column))
        return public(value) if public else None
    return value if isinstance(value, int | float) else None


def _only_own_threads(database: sqlite3.Connection, asked: Mapping[str, Iterable[str]]) -> None:
    """Without the threads of processes that were not recorded: nsys lists all of the machine."""
    if schema.THREAD_NAMES in asked:
        own = " UNION ".join(
            f"SELECT globalTid & {PROCESS_BITS} FROM {table}" for table in _WITH_OWN_THREADS if table in asked
        )
        database.execute(
            f"DELETE FROM {schema.THREAD_NAMES} WHERE globalTid & {PROCESS_BITS} NOT IN ({own or 'NULL'})"
        )


def _copy_names(database: sqlite3.Connection, asked: Mapping[str, Iterable[str]]) -> None:
    database.execute(f"CREATE TABLE {schema.STRINGS} (id INTEGER PRIMARY KEY, value TEXT)")
    for (table, column), public in _PUBLIC_NAMES.items():
        if column not in asked.get(table, ()):
            continue
        rows = database.execute(
            f"SELECT id, value FROM source.{schema.STRINGS} "
            f"WHERE id IN (SELECT {column} FROM {table}) AND typeof(value) = 'text'"
        )
        kept = [(key, text) for key, value in rows if (text := public(value)) is not None]
        database.executemany(f"INSERT OR IGNORE INTO {schema.STRINGS} VALUES (?, ?)", kept)
