"""Whose the file of a history is, what stands beside it, what it holds: asked before SQLite does as
it says.

SQLite finds its side files by their names. A journal that somebody else made rewrites the history,
and can name any other file, which SQLite then removes; so where others can put files, nothing is
written.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from traces.files.folder import Folder, is_own_file, open_folder
from traces.files.own_folder import way_beside

Schema = Iterable[tuple[str, str, str, str | None]]
"""Rows of sqlite_master: type, name, table, SQL."""

JOURNAL: Final = "-journal"
_OF_OTHER_WAYS: Final = ("-wal", "-shm")
"""Side files of a way of writing that no history of ours is kept in."""
_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
"""At the end of a journal that names another file
(https://www.sqlite.org/fileformat.html#the_rollback_journal)."""
_WRITE_VERSION_AT: Final = 18
_ROLLBACK: Final = b"\1\1"
_TYPES: Final = {int: "INTEGER", str: "TEXT", bytes: "BLOB"}
_TEXTS: Final = (
    "added_at",
    "name",
    "tag",
    "digest",
    "tool_version",
    "schema_version",
    "gpu",
    "wall",
)
TABLES: Final = {
    "results": {"id": int, **dict.fromkeys(_TEXTS, str), "step_ns": int}
    | {"host": str, "path": str, "document": bytes},
    "baselines": {"name": str, "result": int, "set_at": str},
}
"""Columns by table, the key first; `document` is JSON under zlib."""
UNIQUE: Final = ("results", "digest")
"""A table and its column that has no value twice."""


def why_not_read(path: Path) -> str | None:
    """Why what stands at a path is not opened; None for a plain file of the user's own, and for
    nothing.

    Raises `OSError` where its folder cannot be looked into.
    """
    with open_folder(path.parent) as folder:
        status = folder.found(path.name)
    if status is None:
        return None
    if stat.S_ISLNK(status.st_mode):
        return "it is a link"
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    if is_own_file(status):
        return None
    return "the same file has another name elsewhere"


def why_not_opened(path: Path) -> str | None:
    """Why SQLite is not given a history, for what stands beside it. Raises `OSError`."""
    with open_folder(path.parent) as folder:
        return next(_beside(folder, path), None)


def why_not_written(path: Path) -> str | None:
    """Why nothing is put into a history, which may be absent yet. Raises `OSError`."""
    others = way_beside(path)
    if others:
        return f"its folder is not yours alone: {others}"
    return None


def make_private(path: Path) -> None:
    """Make the file where it is absent; in either case only its user may read it. Raises
    `OSError`.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    try:
        if is_own_file(os.fstat(file)):
            os.fchmod(file, 0o600)
    finally:
        os.close(file)


def is_ours(schema: Schema) -> bool:
    """Whether a schema has our tables, the index of one column, and nothing else: no trigger, no
    view.
    """
    table, column = UNIQUE
    index = f"idx_{table}_{column}"
    wanted = set[tuple[str, str, str, str | None]]()
    for name, columns in TABLES.items():
        first, *others = (f"{field} {_TYPES[kind]}" for field, kind in columns.items())
        created = f"CREATE TABLE {name} ({', '.join((f'{first} PRIMARY KEY', *others))})"
        wanted.add(("table", name, name, _plain(created)))
        # SQLite makes an index of its own for a primary key that is no integer
        if next(iter(columns.values())) is not int:
            wanted.add(("index", f"sqlite_autoindex_{name}_1", name, None))
    wanted.add(
        ("index", index, table, _plain(f"CREATE UNIQUE INDEX {index} ON {table} ({column})"))
    )
    return {(kind, name, of, sql and _plain(sql)) for kind, name, of, sql in schema} == wanted


def _beside(folder: Folder, path: Path) -> Iterator[str]:
    head = folder.read_own(path.name, _WRITE_VERSION_AT + len(_ROLLBACK))
    if head and not head.endswith(_ROLLBACK):
        yield "it is kept in another way of SQLite (write-ahead log)"
    for ending in _OF_OTHER_WAYS:
        if folder.found(path.name + ending) is not None:
            yield f"{path.name}{ending} beside it is none of ours"
    journal = path.name + JOURNAL
    if folder.found(journal) is None:
        return
    if _is_foreign(folder, journal):
        yield f"{journal} beside it is none of ours"
    elif others := way_beside(path):
        yield f"{journal} beside it may be anybody's: {others}"


def _is_foreign(folder: Folder, journal: str) -> bool:
    try:
        with folder.open_own(journal) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - len(_JOURNAL_MAGIC)))
            return file.read() == _JOURNAL_MAGIC
    except FileNotFoundError:  # its run is done with it
        return False
    except OSError:
        return True


def _plain(sql: str) -> str:
    """SQL without its quotes and blanks, of which versions of sqlite-utils have different ones."""
    return "".join(char for char in sql if not char.isspace() and char not in '"[]`')
