"""The history: kept whole, shared, and never mistaken for another file."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from diagnoser.history import store as layouts
from diagnoser.history.commands import history_app
from diagnoser.history.kept import baseline_document
from diagnoser.history.store import NotAHistory, Store, history_file
from tests.doubles.history import document
from tests.places import ROOT
from tests.recordings.inputs import changed
from traces.errors import NotAResult, NothingToDiagnose, OutputNotWritable, UsageError


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("MOE_DIAG_HISTORY", str(tmp_path / "h.sqlite"))
    return Store(tmp_path / "h.sqlite")


def result_file(folder: Path, step_ms: float = 40, name: str = "result.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document(step_ms)), encoding="utf-8")
    return path


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    history_app([str(word) for word in words], standalone_mode=False)
    return capsys.readouterr().out


def test_a_result_comes_back_whole_with_its_numbers(history: Store) -> None:
    given = document(40)
    added = history.add(given, "nightly")
    assert (added.id, added.is_new) == (1, True)
    assert history.document(1) == given
    (row,) = history.rows()
    assert (row.name, row.tag, row.wall, row.step_ns) == (
        "run.sqlite",
        "nightly",
        "communication",
        40_000_000,
    )


def test_the_same_result_is_kept_once(history: Store) -> None:
    history.add(document(40))
    again = history.add(dict(reversed(document(40).items())), "another tag")
    assert (again.id, again.is_new) == (1, False)
    assert [row.tag for row in history.rows()] == [""]


@pytest.mark.parametrize(("given", "error"), [
    ({"schema_version": "1.0"}, NotAResult), ({**document(), "schema_version": "2.0"}, NotAResult),
    ({**document(), "ranks": []}, NothingToDiagnose), ({**document(), "verdict": "regression"}, NotAResult),
])  # fmt: skip
def test_what_is_no_result_of_a_run_is_refused(
    history: Store, given: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        history.add(given)
    assert history.rows() == ()


def test_two_writers_at_once_lose_nothing(history: Store) -> None:
    program = (
        "import sys; from pathlib import Path; from diagnoser.history.store import Store\n"
        "from tests.doubles.history import document\n"
        "for n in range(50): Store(Path(sys.argv[1])).add(document(note=f'{sys.argv[2]} {n}'))"
    )
    paths = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    line = [sys.executable, "-c", paths + program, str(history.path)]
    writers = [subprocess.Popen([*line, name]) for name in ("first", "second")]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    rows = history.rows()
    assert len(rows) == 100
    assert [row.id for row in rows] == list(range(1, 101))


def test_an_addition_that_fails_leaves_the_file_as_it_was(
    history: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.add(document(40))
    before = history.path.read_bytes()

    def interrupted() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(layouts, "_now", interrupted)
    with pytest.raises(KeyboardInterrupt):
        history.add(document(41))
    assert history.path.read_bytes() == before


def test_an_addition_that_was_killed_is_undone_by_whoever_looks_next(history: Store, tmp_path: Path) -> None:
    history.add(document(40))
    with closing(sqlite3.connect(history.path)) as other:
        other.executescript("PRAGMA cache_size = 1; BEGIN IMMEDIATE; CREATE TABLE filler (bytes)")
        other.executemany("INSERT INTO filler VALUES (zeroblob(?))", [(9000,)] * 99)  # more than it keeps
        other.execute("DELETE FROM results")
        for path in tmp_path.glob("h.sqlite*"):  # as a killed writer leaves both
            (tmp_path / path.name.replace("h.", "left.")).write_bytes(path.read_bytes())
    left = Store(tmp_path / "left.sqlite")
    assert (tmp_path / "left.sqlite-journal").exists()
    assert [row.id for row in left.rows()] == [1]
    assert left.add(document(41)).id == 2
    assert not (tmp_path / "left.sqlite-journal").exists()


def test_a_newer_layout_is_refused_in_one_line_and_left_alone(history: Store) -> None:
    with pytest.MonkeyPatch.context() as later:
        later.setattr(layouts, "LAYOUT", 2)
        history.add(document(40))
    before = history.path.read_bytes()
    for action in (lambda: history.add(document(41)), history.rows):
        with pytest.raises(NotAHistory, match=r"has layout 2; .* knows up to 1\..* update moe-diag"):
            action()
    assert history.path.read_bytes() == before


def other_database(path: Path) -> None:
    changed(path, "create table results (id integer)")


def notes(path: Path) -> None:
    path.write_text("hello\n" * 50, encoding="utf-8")


@pytest.mark.parametrize("make", [other_database, notes])
def test_another_file_is_no_history_and_stays_as_it_is(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "other.sqlite"
    make(path)
    before, there = path.read_bytes(), sorted(tmp_path.iterdir())
    for action in (lambda: Store(path).add(document()), Store(path).rows, Store(path).baselines):
        with pytest.raises(NotAHistory, match=r"is no history of moe-diag\. .*--store FILE"):
            action()
    assert (path.read_bytes(), sorted(tmp_path.iterdir())) == (before, there)


def test_a_damaged_history_is_said_so(history: Store) -> None:
    history.add(document(40))
    whole = history.path.read_bytes()
    history.path.write_bytes(whole[:100] + b"\xa5" * (len(whole) - 100))
    with pytest.raises(NotAHistory, match="is damaged"):
        history.rows()


@pytest.mark.parametrize("place", ["/proc/self/h.sqlite", "no/such/folder/h.sqlite", "."])
def test_where_nothing_can_be_written_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputNotWritable, match=r"^the history .* cannot be used \(.*--store FILE\.$"):
        Store(Path(place)).add(document())
    assert list(tmp_path.iterdir()) == []


def test_the_place_is_the_option_then_the_variable_then_the_data_folder() -> None:
    home = {"MOE_DIAG_HISTORY": "/e/h.sqlite", "XDG_DATA_HOME": "/data"}
    assert history_file(Path("mine.sqlite"), home) == Path("mine.sqlite")
    assert history_file(None, home) == Path("/e/h.sqlite")
    assert history_file(None, {"XDG_DATA_HOME": "/data"}) == Path("/data/moe-diag/history.sqlite")
    usual = Path("~/.local/share/moe-diag/history.sqlite").expanduser()
    assert history_file(None, {}) == usual
    assert history_file(None, {"XDG_DATA_HOME": "relative"}) == usual


def test_neither_machine_nor_path_is_kept_unless_asked(
    history: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.node", lambda: "node-with-a-name")
    said(capsys, "add", result_file(tmp_path))
    kept = history.path.read_bytes()
    assert str(tmp_path).encode() not in kept
    assert b"node-with-a-name" not in kept
    said(capsys, "add", result_file(tmp_path, 41), "--keep-origin")
    assert f"node-with-a-name:{tmp_path}" in str(history.rows()[1].origin)
    assert "node-with-a-name" in said(capsys, "list")


def test_a_baseline_is_set_by_number_or_file_shown_and_read(
    history: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history.add(document(40))
    assert "Baseline main is result 1" in said(capsys, "baseline", "main", "1")
    assert "Baseline next is result 2" in said(capsys, "baseline", "next", result_file(tmp_path, 50))
    assert "main is result 1" in said(capsys, "baseline", "main")
    assert [*map(baseline_document, ("main", "next"))] == [document(40), document(50)]
    said(capsys, "baseline", "main", "2")
    assert baseline_document("main") == document(50)
    assert said(capsys, "list").splitlines()[-1].split(maxsplit=1)[1] == "main is 2, next is 2"


@pytest.mark.parametrize(("words", "reason"), [
    (("baseline", "other"), r"no baseline 'other'\. There are main; set one"),
    (("baseline", "main", "9"), r"no result 9\. It has 1 to 2"),
    (("baseline", "two words", "1"), "is no name for a baseline"),
])  # fmt: skip
def test_a_wrong_name_is_answered_with_what_there_is(
    history: Store, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reason: str
) -> None:
    history.add(document(40))
    history.add(document(41))
    history.set_baseline("main", 1)
    with pytest.raises(UsageError, match=reason) as raised:
        said(capsys, *words)
    assert "\n" not in str(raised.value)
