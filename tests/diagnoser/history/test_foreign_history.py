"""A history that somebody else made or changed: nothing of it is run, and nothing beside it is touched."""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from diagnoser.history.own_file import why_not_opened
from diagnoser.history.store import Store
from tests.doubles.history import document
from tests.hostile.attachments import given_away, looked_at
from tests.recordings.inputs import changed
from traces.errors import InputError, OutputNotWritable

MAGIC = bytes.fromhex("d9d505f920a163d7")


@pytest.fixture
def history(tmp_path: Path) -> Store:
    """Two results in an attachment, beside the user's own things."""
    for name in ("attachment", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "home" / "id_rsa").write_text("a key\n", encoding="utf-8")
    store = Store(tmp_path / "attachment" / "h.sqlite")
    store.add(document(40))
    store.set_baseline("main", 1)
    return store


@pytest.fixture
def _reached(tmp_path: Path) -> Iterator[None]:
    """Others may come to the folder of this test."""
    way = [path for path in (tmp_path, *tmp_path.parents) if path.is_relative_to(tempfile.gettempdir())]
    modes = [(path, stat.S_IMODE(path.stat().st_mode)) for path in way[:-1]]
    for path, mode in modes:
        path.chmod(mode | 0o711)
    yield
    for path, mode in modes:
        path.chmod(mode)


def key_of(history: Store) -> Path:
    return history.path.parent.parent / "home" / "id_rsa"


def beside(history: Store, ending: str) -> Path:
    return history.path.with_name(history.path.name + ending)


def refused(history: Store) -> str:
    """What is said of each thing that is done with it; all lies there as before."""
    before = looked_at(history.path.parent.parent)
    said = set()
    for action in (history.rows, history.baselines, lambda: history.add(document(41))):
        with pytest.raises(InputError, match=r"--store FILE\.$") as raised:
            action()
        said.add(str(raised.value))
    assert looked_at(history.path.parent.parent) == before
    assert all("\n" not in one for one in said)
    return " ".join(sorted(said))


def journal_that_names(victim: Path, pages: int) -> bytes:
    """A journal, as of a killed writer, that says it is one of several, of which the other file tells."""
    head = MAGIC + struct.pack(">IIIII", 0, 0, pages, 512, 4096)
    name = os.fsencode(victim)
    end = struct.pack(">I", 0x40000000 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + MAGIC
    return head.ljust(512, b"\0") + end


def test_a_journal_that_names_another_file_is_refused(history: Store) -> None:
    journal = journal_that_names(key_of(history), history.path.stat().st_size // 4096)
    beside(history, "-journal").write_bytes(journal)
    assert "h.sqlite-journal beside it is none of ours" in refused(history)


def test_a_journal_that_its_writer_removes_while_it_is_opened_is_no_others(
    history: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, opened = beside(history, "-journal"), os.open
    journal.write_bytes(b"\0" * 600)

    def removed(name: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        file = opened(name, flags, mode, dir_fd=dir_fd)
        if name == journal.name:
            journal.unlink()
        return file

    monkeypatch.setattr(os, "open", removed)
    assert why_not_opened(history.path) is None


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("what", ["link", "dangling link", "hard link", "pipe"])
def test_what_stands_in_place_of_a_side_file_is_not_followed(history: Store, what: str, ending: str) -> None:
    key, place = key_of(history), beside(history, ending)
    if what == "pipe":
        os.mkfifo(place)
    elif what == "hard link":
        os.link(key, place)
    else:
        place.symlink_to(key if what == "link" else key.with_name("made_by_us"))
    assert f"h.sqlite{ending} beside it is none of ours" in refused(history)


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
def test_beside_a_history_that_is_to_be_made_nothing_is_followed_either(history: Store, ending: str) -> None:
    new = Store(history.path.with_name("new.sqlite"))
    beside(new, ending).symlink_to(key_of(history))
    with pytest.raises(OutputNotWritable, match="beside it is none of ours"):
        new.add(document(40))
    assert key_of(history).read_text(encoding="utf-8") == "a key\n"


def test_a_write_ahead_log_is_no_way_of_ours(history: Store) -> None:
    changed(history.path, "PRAGMA journal_mode = WAL")
    assert "another way of SQLite" in refused(history)


SCHEMAS = {
    "trigger": "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END",
    "trigger on a name": "CREATE TRIGGER t AFTER INSERT ON baselines BEGIN UPDATE results SET tag = 'x'; END",
    "view": "CREATE VIEW more AS SELECT * FROM results",
    "table": "CREATE TABLE more (id)",
    "column": "ALTER TABLE results ADD COLUMN more TEXT",
    "computed column": "ALTER TABLE results ADD COLUMN more AS (hex(zeroblob(400000000)))",
    "index": "CREATE INDEX more ON results (abs(step_ns))",
    "no index": "DROP INDEX idx_results_digest",
    "view for a table": "ALTER TABLE results RENAME TO kept; CREATE VIEW results AS WITH RECURSIVE n(i) AS "
    "(VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n",
    "check": "DROP TABLE baselines; CREATE TABLE baselines (name TEXT PRIMARY KEY, result INTEGER, "
    "set_at TEXT CHECK (length(randomblob(100000000))))",
    "default": "DROP TABLE baselines; CREATE TABLE baselines (name TEXT PRIMARY KEY, result INTEGER, "
    "set_at TEXT DEFAULT (randomblob(100000000)))",
}


@pytest.mark.parametrize("sql", SCHEMAS.values(), ids=SCHEMAS)
def test_a_history_with_more_than_our_tables_is_refused(history: Store, sql: str) -> None:
    changed(history.path, sql)
    assert "holds more than moe-diag puts there" in refused(history)


@pytest.mark.parametrize("quotes", ["[]", '""', "``", "  "])
def test_a_history_of_another_sqlite_utils_is_one(history: Store, quotes: str) -> None:
    """Its versions quote names in other ways."""
    with closing(sqlite3.connect(history.path)) as database:
        rows = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        older = history.path.with_name("older.sqlite")
        with closing(sqlite3.connect(older)) as made:
            for (sql,) in rows:
                begins, ends = quotes[0], quotes[1]
                parts = sql.split('"')
                text = "".join(f"{begins}{one}{ends}" if at % 2 else one for at, one in enumerate(parts))
                made.execute(text)
            made.execute("PRAGMA application_id = 1836009540")
            made.execute("PRAGMA user_version = 1")
    assert Store(older).add(document(40)).is_new
    assert len(Store(older).rows()) == 1


VALUES = {
    "a text for a number": "UPDATE results SET step_ns = 'soon'",
    "bytes for a text": "UPDATE results SET tag = x'00ff'",
    "a text that is no UTF-8": "UPDATE results SET tag = CAST(x'ff' AS TEXT)",
    "a baseline of a text": "UPDATE baselines SET result = 'one'",
}


@pytest.mark.parametrize("sql", VALUES.values(), ids=VALUES)
def test_values_of_other_kinds_are_damage(history: Store, sql: str) -> None:
    changed(history.path, sql)

    def read() -> None:
        history.rows()
        history.baselines()

    with pytest.raises(InputError, match=r"is damaged\. Put a copy of it back"):
        read()


@pytest.mark.parametrize("what", ["link", "hard link", "of another user"])
def test_a_history_that_is_not_the_users_own_file_is_refused(history: Store, what: str) -> None:
    real = history.path.rename(history.path.parent.parent / "home" / "h.sqlite")
    match what:
        case "link":
            history.path.symlink_to(real)
        case "hard link":
            os.link(real, history.path)
        case _:
            real.rename(history.path)
            given_away(history.path)
    words = {"link": "it is a link", "hard link": "the same file has another name elsewhere"}
    assert words.get(what, "it belongs to another user") in refused(history)


@pytest.mark.parametrize("mode", [0o777, 0o1777])
@pytest.mark.usefixtures("_reached")
def test_where_others_can_put_files_a_history_is_read_but_nothing_is_written(
    history: Store, mode: int
) -> None:
    history.path.parent.chmod(mode)
    assert len(history.rows()) == 1
    with pytest.raises(OutputNotWritable, match=r"its folder is not yours alone: others can write into it"):
        history.add(document(41))
    beside(history, "-journal").write_bytes(b"\0" * 600)
    with pytest.raises(
        OutputNotWritable, match="journal beside it may be anybody's: others can write into it"
    ):
        history.rows()


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_only_its_user_may_read_a_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("MOE_DIAG_HISTORY", raising=False)
    before = os.umask(mask)
    try:
        stores = [Store(tmp_path / "named.sqlite"), Store(tmp_path / "data" / "moe-diag" / "history.sqlite")]
        for store in stores:
            store.add(document(40))
    finally:
        os.umask(before)
    assert {stat.S_IMODE(store.path.stat().st_mode) for store in stores} == {0o600}
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in stores[1].path.parents[:2]} == {0o700}


def test_a_history_that_others_could_read_is_closed_to_them_by_the_next_addition(history: Store) -> None:
    history.path.chmod(0o664)
    history.add(document(41))
    assert stat.S_IMODE(history.path.stat().st_mode) == 0o600


def test_a_cell_that_is_larger_than_any_of_ours_is_damage(
    history: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diagnoser.history.store._MOST_OF_CELL", 500)
    with pytest.raises(InputError, match=r"is damaged\. Put a copy of it back"):
        history.document(1)
