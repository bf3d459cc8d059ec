"""The history file: one row per result, written and evolved in place through sqlite-utils.

Each addition is one transaction that waits for other writers, with SQLite's rollback journal: all stays in
one file, which can be read where nothing can be written. A file of an older layout gains the columns it lacks
when it is next written, and keeps its rows; one of a newer layout is refused.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from diagnoser.history.metrics import alike, metrics
from reports.content.trend import Kept
from reports.result.read import of_one_run, typed
from traces.errors import NothingToDiagnose
from traces.limits import Limit
from traces.missing import known

if TYPE_CHECKING:
    from sqlite_utils import Database
    from sqlite_utils.db import Table

import os

from traces.errors import InputError, OutputNotWritable
from traces.files.plain_file import no_file

APPLICATION_ID: Final = 0x6D6F4844
"""In the header of every history file, so that no other SQLite file is taken for one: `moHD`."""

_MAGIC: Final = b"SQLite format 3\0"
_APPLICATION_ID_AT: Final = 68  # https://www.sqlite.org/fileformat.html, the database header
_HEADER_BYTES: Final = 100


class NotAHistory(InputError):
    """The file is no history of ours, is damaged, or is of a newer moe-diag."""


def history_file(given: Path | None, environment: Mapping[str, str] = os.environ) -> Path:
    """The file given, else `$MOE_DIAG_HISTORY`, else the one in the user's data folder."""
    if given is not None:
        return given
    if named := environment.get("MOE_DIAG_HISTORY"):
        return Path(named)
    data = Path(environment.get("XDG_DATA_HOME") or "~/.local/share")
    if not data.is_absolute():  # as the XDG base directories say: a relative one is to be ignored
        data = Path("~/.local/share").expanduser()
    return data / "moe-diag" / "history.sqlite"


def make_folder(path: Path) -> None:
    """Make the folder of the history where it is our own; one that a user names has to be there."""
    if path != history_file(None):
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(path, os.strerror(error.errno or 0)) from None


def check_is_history(path: Path) -> bool:
    """Whether there is a history at `path`; False where nothing is there, or an empty file.

    Looks at the first bytes only, so that a file of another kind is never opened as a database. Raises
    `NotAHistory` for one, and `OutputNotWritable` for what cannot be read.
    """
    if what := no_file(path):
        raise unusable(path, f"it is {what}")
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unusable(path, os.strerror(error.errno or 0)) from None
    if not header:
        return False
    told = header[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]
    if not header.startswith(_MAGIC) or told != APPLICATION_ID.to_bytes(4, "big"):
        raise NotAHistory(
            f"{path} is no history of moe-diag. It is left as it is; give another --store FILE."
        )
    return True


def unusable(path: Path, reason: str) -> OutputNotWritable:
    """The error for a history that cannot be opened or written."""
    return OutputNotWritable(f"the history {path} cannot be used ({reason}). Give another with --store FILE.")


LAYOUT: Final = 1
"""Raised with every new column; a file says its own in `user_version`."""

TABLES: Final[Mapping[str, Mapping[str, type]]] = {
    "results": {
        "id": int,
        "added_at": str,
        "name": str,
        "tag": str,
        "digest": str,
        "tool_version": str,
        "schema_version": str,
        "gpu": str,
        "wall": str,
        "step_ns": int,
        "alike": str,
        "metrics": str,
        "host": str,
        "path": str,
        "document": bytes,
    },
    "baselines": {"name": str, "result": int, "set_at": str},
}
"""Columns by table, the key first. `alike` and `metrics` are JSON, `document` is JSON under zlib."""

LARGEST: Final = Limit(256 << 20, "bytes", "ours: the document of 100 ranks has about 20 MB")
_WAIT_S: Final = 60
_BUSY, _DAMAGED = {5, 6}, {11, 26}  # https://www.sqlite.org/rescode.html: BUSY, LOCKED; CORRUPT, NOTADB


@dataclass(frozen=True, slots=True)
class Added:
    """Where a result is kept; `is_new` is False where it was there already. `size_bytes`: its document's."""

    id: int
    is_new: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Store:
    """The history in one file, which need not exist before the first addition."""

    path: Path

    def add(self, document: Mapping[str, Any], tag: str = "", origin: tuple[str, str] | None = None) -> Added:
        """Keep a result, unless the same is kept already. `origin`: machine and path, where asked for.

        Raises `NotAResult`, `NothingToDiagnose` for one without a trace, `NotAHistory`, `OutputNotWritable`.
        """
        record = _record(document)
        host, path = origin or (None, None)
        with self._writing() as database:
            results = _table(database, "results")
            for row in results.rows_where("digest = ?", [record["digest"]], select="id"):
                return Added(int(row["id"]), False, len(record["document"]))
            results.insert({**record, "added_at": _now(), "tag": tag, "host": host, "path": path}, pk="id")
            (newest,) = database.query("select max(id) as id from results")
        return Added(int(newest["id"]), True, len(record["document"]))

    def rows(self) -> tuple[Kept, ...]:
        """All results in the order they were added; none where there is no history."""
        with self._reading() as database:
            return tuple(map(_kept, _rows(database, "results"))) if database else ()

    def document(self, number: int) -> dict[str, Any] | None:
        """The whole document of a result; None where there is no such number. Raises `NotAHistory`."""
        with self._reading() as database:
            found = database.query("select document from results where id = ?", [number]) if database else ()
            for row in found:
                try:
                    document: dict[str, Any] = json.loads(_unpacked(row["document"]))
                except (zlib.error, ValueError):
                    raise _damaged(self.path) from None
                return document
        return None

    def baselines(self) -> dict[str, int]:
        """Number of the result that each baseline is, by name."""
        with self._reading() as database:
            rows = _rows(database, "baselines") if database else ()
            return {str(row["name"]): int(row["result"]) for row in rows}

    def set_baseline(self, name: str, number: int) -> None:
        """Let `name` be the result of that number from now on."""
        with self._writing() as database:
            row = {"name": name, "result": number, "set_at": _now()}
            _table(database, "baselines").insert(row, pk="name", replace=True)

    @contextmanager
    def _writing(self) -> Iterator[Database]:
        """One transaction, which no other writer is in; undone where it fails."""
        from sqlite_utils import Database  # here, because no other command is to pay for its import

        check_is_history(self.path)
        make_folder(self.path)
        with _explained(self.path), closing(sqlite3.connect(self.path, timeout=_WAIT_S)) as connection:
            connection.execute("PRAGMA cache_spill = OFF")  # nothing is written before all of it is
            connection.execute("BEGIN IMMEDIATE")
            database = Database(connection, recursive_triggers=False)
            _evolve(database, self.path)
            yield database
            connection.commit()

    @contextmanager
    def _reading(self) -> Iterator[Database | None]:
        """The file as it is, never changed; None where there is none yet."""
        if not check_is_history(self.path):
            yield None
            return
        from sqlite_utils import Database

        # The journal of an addition that was killed: SQLite undoes what it had written, which is a write.
        mode = "rw" if self.path.with_name(f"{self.path.name}-journal").exists() else "ro"
        address = f"{self.path.resolve().as_uri()}?mode={mode}"
        with (
            _explained(self.path),
            closing(sqlite3.connect(address, uri=True, timeout=_WAIT_S)) as connection,
        ):
            database = Database(connection, recursive_triggers=False)
            _check_layout(database, self.path)
            yield database


def _record(document: Mapping[str, Any]) -> dict[str, Any]:
    result = of_one_run(typed(document))
    if not result.ranks:
        raise NothingToDiagnose("this result has no trace in it. Add what moe-diag analyze made of one.")
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    measured, same = metrics(result), alike(result)
    return {
        "name": result.traces[0].name if result.traces else result.ranks[0].trace,
        "digest": hashlib.sha256(text).hexdigest(),
        "tool_version": result.tool.version,
        "schema_version": document["schema_version"],
        "gpu": same["gpu"],
        "wall": known(result.verdict.wall),
        "step_ns": measured.get("step_ns"),
        "alike": json.dumps(same, sort_keys=True),
        "metrics": json.dumps(measured),
        "document": zlib.compress(text, 9),
    }


def _unpacked(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(packed, int(LARGEST.value))
    if not unpacker.eof:
        raise ValueError("cut off, or larger than any result")
    return text


def _evolve(database: Database, path: Path) -> None:
    """Make the tables, or add the columns that an older layout lacks."""
    if _check_layout(database, path) == LAYOUT:
        return
    for name, columns in TABLES.items():
        table = _table(database, name)
        if not table.exists():
            table.create(dict(columns), pk=next(iter(columns)))
        for column in columns.keys() - table.columns_dict.keys():
            table.add_column(column, columns[column])
    _table(database, "results").create_index(["digest"], unique=True, if_not_exists=True)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {LAYOUT}")


def _check_layout(database: Database, path: Path) -> int:
    ((layout,),) = database.execute("PRAGMA user_version").fetchall()
    if layout > LAYOUT:
        raise NotAHistory(
            f"the history {path} has layout {layout}; this moe-diag knows up to {LAYOUT}. It is left alone: "
            "update moe-diag (pip install --upgrade moe-diag), or give another --store FILE."
        )
    return int(layout)


def _table(database: Database, name: str) -> Table:
    return database.table(name)


def _rows(database: Database, name: str) -> list[dict[str, Any]]:
    """Rows in order of the key, without documents; a column that an older layout lacks is None."""
    table = _table(database, name)
    there = [column for column in TABLES[name] if column in table.columns_dict and column != "document"]
    found = table.rows_where(select=", ".join(there), order_by=next(iter(TABLES[name])))
    return [dict.fromkeys(TABLES[name]) | row for row in found]


def _kept(row: Mapping[str, Any]) -> Kept:
    return Kept(
        id=row["id"],
        added_at=row["added_at"],
        name=row["name"],
        tag=row["tag"] or "",
        gpu=row["gpu"],
        wall=row["wall"],
        step_ns=row["step_ns"],
        metrics=json.loads(row["metrics"] or "{}"),
        alike=json.loads(row["alike"] or "{}"),
        origin=f"{row['host']}:{row['path']}" if row["path"] else None,
    )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """What SQLite raises as one line that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGED:
            raise _damaged(path) from None
        if code in _BUSY:
            raise unusable(path, f"another program has kept it locked for {_WAIT_S} s") from None
        raise unusable(path, str(error)) from None


def _damaged(path: Path) -> NotAHistory:
    return NotAHistory(f"the history {path} is damaged. Put a copy of it back, or give another --store FILE.")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
