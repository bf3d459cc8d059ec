"""The history file: one row per result, kept whole.

Each addition is one transaction that waits for other writers, with SQLite's rollback journal: all
stays in one file, which can be read where nothing can be written. A file of a newer layout is
refused, and so is one that is not the user's own or holds more than our tables: what it holds is
never run.
"""

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import DecodeError, convert

from diagnoser.history.own_file import (
    JOURNAL,
    TABLES,
    UNIQUE,
    is_ours,
    make_private,
    why_not_opened,
    why_not_read,
    why_not_written,
)
from reports.content.history import Line
from reports.result.codec import Document
from reports.result.read import kept_as_ours, of_one_run
from reports.rows import known_of, those
from traces.errors import InputError, NothingToDiagnose, OutputNotWritable, reason_of
from traces.files.own_folder import make_own
from traces.files.plain_file import no_file
from traces.frozen import frozen
from traces.limits import Limit
from traces.missing import known
from traces.names.file_names import told_name

if TYPE_CHECKING:
    from sqlite_utils import Database

APPLICATION_ID: Final = 0x6D6F4844
"""In the header of every history file, so that no other SQLite file is taken for one: `moHD`."""
_APPLICATION_ID_AT: Final = 68  # https://www.sqlite.org/fileformat.html, the database header

LAYOUT: Final = 1
"""Raised when the tables change; a file has its own in `user_version`."""

LARGEST: Final = Limit(256 << 20, "bytes", "ours: the document of 100 ranks has about 20 MB")
_WAIT_S: Final = 60
_BUSY, _DAMAGED = {5, 6}, {11, 18, 26}
"""Codes of https://www.sqlite.org/rescode.html: BUSY, LOCKED; CORRUPT, TOOBIG, NOTADB."""
_MOST_OF_CELL: Final = LARGEST.whole
"""A packed document is smaller. A cell may say any size, and SQLite would make room for it
first."""


class NotAHistory(InputError):
    """The file is no history of ours, is damaged, or is of a newer moe-diag."""


def history_file(given: Path | None, environment: Mapping[str, str] = os.environ) -> Path:
    """The file given, else `$MOE_DIAG_HISTORY`, else the one in the user's data folder."""
    if given:
        return given
    if typed := environment.get("MOE_DIAG_HISTORY"):
        return Path(typed)
    data = Path(environment.get("XDG_DATA_HOME", ""))
    if not data.is_absolute():  # as the XDG base directories say: a relative one is to be ignored
        data = Path("~/.local/share").expanduser()
    return data / "moe-diag" / "history.sqlite"


def _is_there(path: Path) -> bool:
    """Whether there is a history at `path`; False where nothing is there, or an empty file.

    Looks at the first bytes only, so that a file of another kind is never opened as a database.
    Raises `NotAHistory` for one, and `OutputNotWritable` for what cannot be read.
    """
    if what := no_file(path):
        raise _unusable(path, f"it is {what}")
    try:
        if why := why_not_read(path):
            raise _unusable(path, why)
        with path.open("rb") as file:
            header = file.read(_APPLICATION_ID_AT + 4)
        ours = header.startswith(b"SQLite format 3\0") and header.endswith(
            APPLICATION_ID.to_bytes(4, "big")
        )
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(path, reason_of(error)) from None
    if header and not ours:
        raise NotAHistory(
            f"{path} is no history of moe-diag. It is left as it is; give another --store FILE."
        )
    return ours


def _unusable(path: Path, reason: str) -> OutputNotWritable:
    return OutputNotWritable(
        f"the history {path} cannot be used ({reason}). Give another with --store FILE."
    )


@frozen
class Added:
    """Where a result is kept; `is_new` is False where it was there already. `size_bytes`: its
    document's.
    """

    id: int
    is_new: bool
    size_bytes: int


@frozen
class Store:
    """The history in one file, which need not exist before the first addition."""

    path: Path

    def add(
        self, document: Mapping[str, Any], tag: str = "", origin: tuple[str, str] | None = None
    ) -> Added:
        """Keep a result, unless the same is kept already. `origin`: machine and path, where asked
        for.

        Raises `NotAResult`, `NothingToDiagnose` for one without a trace, `NotAHistory`,
        `OutputNotWritable`.
        """
        record = _record(document)
        host, path = origin or (None, None)
        size_bytes = len(record["document"])
        with self._writing() as database:
            results = database.table("results")
            for same in results.rows_where("digest = ?", [record["digest"]], select="id"):
                return Added(same["id"], False, size_bytes)
            results.insert(
                {**record, "added_at": _now(), "tag": tag, "host": host, "path": path}, pk="id"
            )
            (newest,) = database.query("SELECT max(id) AS id FROM results")
        return Added(newest["id"], True, size_bytes)

    def rows(self) -> tuple[Line, ...]:
        """All results in the order they were added; none where there is no history."""
        with self._reading() as database:
            if database:
                return tuple(map(_listed, database.query(_LISTED)))
            return ()

    def document(self, number: int) -> Document:
        """The whole document of a result that is there. Raises `NotAHistory` for one that is
        damaged.
        """
        with self._reading() as database:
            assert database is not None
            (row,) = database.query("SELECT document FROM results WHERE id = ?", [number])
        try:
            document: Document = json.loads(_unpacked(row["document"]))
        except (zlib.error, ValueError, RecursionError):
            raise _damaged(self.path) from None
        return document

    def baselines(self) -> dict[str, int]:
        with self._reading() as database:
            listed = database.table("baselines").rows_where(order_by="name") if database else ()
            return convert({row["name"]: row["result"] for row in listed}, dict[str, int])

    def set_baseline(self, name: str, number: int) -> None:
        with self._writing() as database:
            row = {"name": name, "result": number, "set_at": _now()}
            database.table("baselines").insert(row, pk="name", replace=True)

    @contextmanager
    def _writing(self) -> "Iterator[Database]":
        """One transaction, which no other writer is in; undone where it fails."""
        _is_there(self.path)
        try:
            # our own folder; one that a user names has to be there
            if self.path == history_file(None):
                make_own(self.path.parent)
            if why := why_not_written(self.path):
                raise _unusable(self.path, why)
            make_private(self.path)
        except OSError as error:
            raise _unusable(self.path, reason_of(error)) from None
        with self._open("rw") as database:
            database.execute("PRAGMA cache_spill = OFF")  # nothing is written before all of it is
            database.execute("BEGIN IMMEDIATE")
            if self._layout(database) != LAYOUT:
                for name, columns in TABLES.items():
                    database.table(name).create(dict(columns), pk=next(iter(columns)))
                table, column = UNIQUE
                database.table(table).create_index([column], unique=True)
                database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                database.execute(f"PRAGMA user_version = {LAYOUT}")
            yield database
            database.conn.commit()

    @contextmanager
    def _reading(self) -> "Iterator[Database | None]":
        """The file as it is, never changed; None where there is none yet."""
        if not _is_there(self.path):
            yield None
            return
        # The journal of an addition that was killed: SQLite undoes what it had written, which is a
        # write.
        mode = "rw" if self.path.with_name(self.path.name + JOURNAL).exists() else "ro"
        with self._open(mode) as database:
            self._layout(database)
            yield database

    @contextmanager
    def _open(self, mode: str) -> "Iterator[Database]":
        """The database; what SQLite raises, and rows that are none of ours, become one line that
        says what to do.
        """
        from sqlite_utils import Database  # here, because no other command is to pay for its import

        address = f"{self.path.resolve().as_uri()}?mode={mode}"
        try:
            if why := why_not_opened(self.path):
                raise _unusable(self.path, why)
            with closing(sqlite3.connect(address, uri=True, timeout=_WAIT_S)) as connection:
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_OF_CELL)
                connection.execute("PRAGMA trusted_schema = OFF")
                yield Database(connection, recursive_triggers=False)
        except DecodeError:
            raise _damaged(self.path) from None
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in _DAMAGED or not code:  # without one: a text that is no UTF-8
                raise _damaged(self.path) from None
            locked = f"another program has kept it locked for {_WAIT_S} s"
            raise _unusable(self.path, locked if code in _BUSY else str(error)) from None
        except OSError as error:
            raise _unusable(self.path, reason_of(error)) from None

    def _layout(self, database: "Database") -> int:
        """The number of its layout, 0 where it is empty yet. Nothing but its schema is read
        before.
        """
        layout = int(database.execute("PRAGMA user_version").fetchone()[0])
        if layout > LAYOUT:
            raise NotAHistory(
                f"the history {self.path} has layout {layout}; this moe-diag knows up to {LAYOUT}. "
                "It is left alone: update moe-diag (pip install --upgrade moe-diag), or give "
                "another --store FILE."
            )
        schema = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        if schema and not is_ours(schema):
            raise NotAHistory(
                f"the history {self.path} holds more than moe-diag puts there, such as a trigger "
                "or a view, which would be run. It is left as it is; give another --store FILE."
            )
        if schema:
            return layout
        return 0


def _record(document: Mapping[str, Any]) -> dict[str, Any]:
    result = of_one_run(kept_as_ours(document))
    if not result.ranks:
        raise NothingToDiagnose(
            "this result has no trace in it. Add what moe-diag analyze made of one."
        )
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    # of several ranks the one that `compare` would take: the lowest number, else the first
    least = min(known_of(result.ranks, "rank"), default=None)
    rank = next(iter(those(result.ranks, rank=least)), result.ranks[0])
    return {
        "name": result.traces[0].name if result.traces else result.ranks[0].trace,
        "digest": hashlib.sha256(text).hexdigest(),
        "tool_version": result.tool.version,
        "schema_version": document["schema_version"],
        "gpu": known(rank.gpu),
        "wall": known(result.verdict.wall),
        "step_ns": round(Fraction(sum(rank.lengths_ns), len(rank.lengths_ns)))
        if rank.steps.found
        else None,
        "document": zlib.compress(text, 9),
    }


def _unpacked(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(packed, LARGEST.whole)
    if not unpacker.eof:
        raise ValueError("cut off, or larger than any result")
    return text


_LISTED: Final = (
    "SELECT id, added_at, name, tag, gpu, step_ns, wall, host || ':' || path AS origin "
    "FROM results ORDER BY id"
)


def _listed(row: Mapping[str, Any]) -> Line:
    """Raises `DecodeError` for values of other kinds, which SQLite keeps in any column."""
    return convert({**row, "name": told_name(convert(row["name"], str))}, Line)


def _damaged(path: Path) -> NotAHistory:
    return NotAHistory(
        f"the history {path} is damaged. Put a copy of it back, or give another --store FILE."
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
