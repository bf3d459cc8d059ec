"""`Tables` of an SQLite file through Python's own sqlite3. The only file with SQL for reading
traces.

The file is opened read-only and as immutable: SQLite then takes no lock and makes no side file, so
a read-only file in a read-only folder works and nothing appears beside it. What that would hide is
refused: `check_whole` looks for unfinished changes, and `close` for a change while we read.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self
from urllib.parse import quote

import numpy as np

from traces.arrays import NOWHERE, IntArray, distinct, ints
from traces.columns import NULL
from traces.errors import DamagedTrace, TraceNotFound
from traces.files.beneath import opened, opens_only
from traces.files.plain_file import MOST_TEXT
from traces.formats.tables import Table, Texts, names
from traces.frozen import frozen
from traces.limits import Limit
from traces.names.foreign import cut_name
from traces.progress import Progress, silent

RowFilter = Mapping[str, Sequence[int] | None]
"""Which rows are wanted: those whose column has one of the numbers; for None, those where it is not
NULL."""

EVERY_ROW: Final[RowFilter] = MappingProxyType({})


def empty_columns(integers: Sequence[str], texts: Sequence[str]) -> Table:
    """Columns of no row."""
    return Table(dict.fromkeys(integers, NOWHERE), dict.fromkeys(texts, Texts(NOWHERE, ())))


MAGIC: Final = b"SQLite format 3\0"

_SIDE_FILES: Final = {"-wal": "changes not yet merged into it", "-journal": "an unfinished change"}


def check_whole(path: Path) -> None:
    """Raise `DamagedTrace` where the file is shorter than its header says, or is being written.

    The header fields are those of the SQLite file format: page size at byte 16 (1 means 65536),
    change counter at 24, page count at 28, valid where the counter at 92 agrees.
    """
    with opened(path) as file:
        header = file.read(100)
        size = os.fstat(file.fileno()).st_size
    if len(header) < 100:
        raise DamagedTrace(
            f"{path} is truncated: {size} bytes of an SQLite file. Export the report again."
        )
    page_size = int.from_bytes(header[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    page_count = int.from_bytes(header[28:32], "big")
    if header[24:28] == header[92:96] and size < page_size * page_count:
        raise DamagedTrace(
            f"{path} is truncated: {size} of {page_size * page_count} bytes. "
            "Copy it again, or export the report again."
        )
    for suffix, what in _SIDE_FILES.items():
        target = path.resolve()  # SQLite keeps them beside the file itself, not beside a link to it
        side = target.with_name(target.name + suffix)
        if side.is_file() and side.stat().st_size:
            raise DamagedTrace(
                f"{path} has {what} in {side.name} beside it. "
                "Let the program that writes it finish, or export the report again."
            )


_CHUNK_ROWS: Final = 65_536
_IDS_PER_QUERY: Final = 500  # SQLite takes at least 999 variables
_FAILED: Final = (sqlite3.Error, UnicodeDecodeError)
"""What sqlite3 raises of a damaged file: its message can be no UTF-8."""

STEPS: Final = Limit(
    100,
    "steps of SQLite's machine for a byte of the file",
    "ours: a row takes some 4 a column and has at least 6 bytes; what takes more is a view, or "
    "pages that stand in several places, and may have no end",
)
_STEPS_AT_ONCE: Final = 100_000
"""Some ms, after which Python counts, and may take a signal."""
_ALWAYS: Final = 20
"""So many times these any file has."""
_LONGEST_REASON: Final = 100
"""Characters of what sqlite3 says."""
_HIDDEN: Final = 1
"""What PRAGMA table_xinfo notes of what looks like a column of a virtual table; computed ones are
others."""
_LONGEST: Final = 1_000_000
"""No text or blob is longer than its file, or this."""


@frozen
class StoredColumn:
    """A column as declared: its name and type, and whether it may be computed or stand for the
    rowid.
    """

    name: str
    type: str
    is_key: bool
    is_hidden: bool


class SqliteTables:
    """Tables of one SQLite file, read with sqlite3, as a context manager.

    `shown` is the path errors name, where that is not the file's own: an export names its report.
    """

    def __init__(self, path: Path, progress: Progress = silent, shown: Path | None = None) -> None:
        self.path = shown or path
        self._file = path
        self._progress = progress
        self._columns = dict[str, frozenset[str]]()
        check_whole(path)
        self._stamp = _stamp(path)
        address = "file:" + quote(os.fsencode(path.absolute()), safe="/") + "?mode=ro&immutable=1"
        try:
            with opens_only(path):
                self._db = sqlite3.connect(address, uri=True, check_same_thread=False)
        except sqlite3.Error as error:
            raise TraceNotFound(
                f"{path} cannot be opened ({error}). Check its permissions."
            ) from None
        self._db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        size = path.stat().st_size
        self._longest = min(max(size, _LONGEST), MOST_TEXT.whole)
        self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._longest)
        self._db.execute("PRAGMA trusted_schema = OFF")  # a view calls only what can do no harm
        self._rounds, self._most_rounds = 0, _ALWAYS + STEPS.value * size / _STEPS_AT_ONCE
        self._db.set_progress_handler(self._goes_too_far, _STEPS_AT_ONCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._db.close()
        if kind is None and _stamp(self._file) != self._stamp:
            raise DamagedTrace(
                f"{self.path} changed while it was read. Let its writer finish, and run again."
            )

    @property
    def reader(self) -> str:
        return "sqlite3"

    def columns_of(self, table: str) -> frozenset[str]:
        """Column names of a table; empty where the table is absent."""
        if table not in self._columns:
            with self._reading(table):
                rows = self._db.execute(f"PRAGMA table_xinfo({_quoted(table)})")
                self._columns[table] = frozenset(row[1] for row in rows if row[6] != _HIDDEN)
        return self._columns[table]

    def having(self, table: str, columns: Iterable[str]) -> list[str]:
        """Those of some columns that a table has."""
        return [column for column in columns if column in self.columns_of(table)]

    def read(
        self,
        table: str,
        integers: Sequence[str],
        texts: Sequence[str] = (),
        only: RowFilter = EVERY_ROW,
    ) -> Table:
        """Columns of a table that has them, in one pass and the table's own row order: no index is
        used.
        """
        known: list[dict[str | None, int]] = [{None: -1} for _ in texts]
        chunks = list[list[IntArray]]()
        done, most, count = 0, self._most_rows(table), len(integers)
        with self._reading(table):
            source = f"{_quoted(table)} NOT INDEXED WHERE {_condition(only)}"
            cursor = self._db.execute(f"SELECT {_selected(integers, texts)} FROM {source}")
            while rows := cursor.fetchmany(_CHUNK_ROWS):
                columns = list(zip(*rows, strict=True))
                numbers = map(partial(self._whole, table), integers, columns)
                chunks.append([*numbers, *map(_encoded, columns[count:], known)])
                done += len(rows)
                self._progress(f"reading {table}", min(1.0, done / most) if most else None, done)
        if not chunks:
            return empty_columns(integers, texts)
        whole = [*map(np.concatenate, zip(*chunks, strict=True))]
        coded = map(names, whole[count:], map(_without_null, known))
        return Table(dict(zip(integers, whole, strict=False)), dict(zip(texts, coded, strict=True)))

    def _most_rows(self, table: str) -> int | None:
        """About how many rows a table has, by its last rowid: counting would read it. None without
        one.
        """
        try:
            row = self._db.execute(f"SELECT max(_rowid_) FROM {_quoted(table)}").fetchone()
        except (*_FAILED, MemoryError):  # of damaged pages too; what reads them answers
            return None
        if row and isinstance(row[0], int) and row[0] > 0:
            return row[0]
        return None

    def strings(self, ids: IntArray) -> Mapping[int, str]:
        """Texts of `StringIds` for the distinct ids given; ids that are not there are left out."""
        if not self.columns_of("StringIds") >= {"id", "value"}:
            return {}
        wanted = distinct(ids[ids != NULL]).tolist()
        texts = {}
        for first in range(0, len(wanted), _IDS_PER_QUERY):
            some_ids = wanted[first : first + _IDS_PER_QUERY]
            marks = ", ".join("?" * len(some_ids))
            with self._reading("StringIds"):
                for key, value in self._db.execute(
                    f"SELECT id, value FROM StringIds WHERE id IN ({marks})", some_ids
                ):
                    if value is not None and isinstance(key, int):
                        texts[key] = cut_name(str(value))
        return texts

    def blobs(self, table: str, integers: Sequence[str], blob: str) -> tuple[IntArray, list[bytes]]:
        """Rows where `blob` is not NULL; nsys declares the column TEXT and stores blobs in it."""
        with self._reading(table):
            rows = self._db.execute(
                f"SELECT {_selected(integers, ())}, CAST({_quoted(blob)} AS BLOB) FROM "
                f"{_quoted(table)} WHERE {_quoted(blob)} IS NOT NULL"
            ).fetchall()
        numbers = ints([row[:-1] for row in rows]).reshape(-1, len(integers))
        return numbers, [row[-1] for row in rows]

    def rows(self, table: str, columns: Sequence[str]) -> list[Sequence[object]]:
        """Rows of a small table, with NULL as None."""
        with self._reading(table):
            return self._db.execute(
                f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(table)}"
            ).fetchall()

    def typed(self, table: str, kinds: Mapping[str, type]) -> list[Sequence[Any]]:
        """Rows of a small table in which each column has a value of its type; no rows where the
        table lacks one of the columns.
        """
        if not self.columns_of(table) >= kinds.keys():
            return []
        types = kinds.values()
        return [row for row in self.rows(table, [*kinds]) if all(map(isinstance, row, types))]

    def stored(self, table: str) -> tuple[int, list[StoredColumn]] | None:
        """Page where the rows are, and the columns in the order of records; None where there are
        none.
        """
        with self._reading(table):
            root = self._db.execute(
                "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
            ).fetchone()
            rows = self._db.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
        if root is None or not isinstance(root[0], int):
            return None
        return root[0], [
            StoredColumn(str(name), str(kind), bool(key), bool(hidden))
            for _, name, kind, _, _, key, hidden in rows
        ]

    def row_at(
        self, table: str, rowid: int, integers: Sequence[str], texts: Sequence[str], only: RowFilter
    ) -> tuple[bool, tuple[object, ...]] | None:
        """Whether the row of a rowid is wanted, and its values; None where there is no such row."""
        with self._reading(table):
            selected = f"{_condition(only)}, {_selected(integers, texts)}"
            cursor = self._db.execute(
                f"SELECT {selected} FROM {_quoted(table)} WHERE _rowid_ = ?", (rowid,)
            )
            row = cursor.fetchone()
        if row is None:
            return None
        return bool(row[0]), row[1:]

    def _whole(self, table: str, column: str, values: tuple[Any, ...]) -> IntArray:
        try:
            array = np.array(values)
        except (ValueError, TypeError):
            array = np.array("")
        if array.dtype != np.int64:
            raise DamagedTrace(
                f"{self.path} holds values in {table}.{column} that are no whole numbers. "
                "Export the report again."
            )
        return array

    def _goes_too_far(self) -> bool:
        """Called after each round of steps; True ends the statement."""
        self._rounds += 1
        return self._rounds > self._most_rounds

    @contextmanager
    def _reading(self, table: str) -> Iterator[None]:
        self._rounds = 0
        try:
            yield
        except _FAILED as error:
            quoted = " ".join(str(error).split())[:_LONGEST_REASON]  # of the file
            reason = "unreadable" if isinstance(error, UnicodeError) else quoted
            if self._rounds > self._most_rounds:
                reason = "a view or a table that does not end"
            elif getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                raise KeyboardInterrupt from None
            raise self._damaged(reason, table) from None
        except MemoryError:
            bytearray(2 * self._longest)  # raised once more where memory is short
            raise self._damaged("a size that no value has", table) from None

    def _damaged(self, reason: str, table: str) -> DamagedTrace:
        return DamagedTrace(
            f"{self.path} is damaged ({reason}, in {table}). Copy it again, or export the report "
            f"again."
        )


def _encoded(texts: Sequence[Any], known: dict[str | None, int]) -> IntArray:
    """A code per row; distinct texts are added to those that are known, in order of first sight."""
    for text in texts:
        if text not in known:
            known[text] = len(known) - 1
    return np.fromiter((known[text] for text in texts), dtype=np.int64, count=len(texts))


def _without_null(known: Iterable[str | None]) -> list[str]:
    return [str(text) for text in known if text is not None]


def _selected(integers: Sequence[str], texts: Sequence[str]) -> str:
    numbers = [f"ifnull({_quoted(name)}, {NULL})" for name in integers]
    return ", ".join([*numbers, *map(_quoted, texts)])


def _condition(only: RowFilter) -> str:
    parts = []
    for name, values in only.items():
        condition = f"> {NULL}"  # a number that reads as NULL is none
        if values is not None:
            condition = f"IN ({', '.join(str(value) for value in values if value != NULL)})"
        parts.append(f"{_quoted(name)} {condition}")
    return " AND ".join(parts) or "1"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
