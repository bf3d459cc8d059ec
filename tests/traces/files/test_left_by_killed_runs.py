"""What is left in a folder is removed or put back where a run of ours surely left it, else not touched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.attachments import OTHER_USER, looked_at
from tests.hostile.killed import TICKET, die, half_moved, killed, left_by_a_killed_run, older, ticket
from traces.files.aside import aside, sweep
from traces.files.folder import open_folder
from traces.notes import noting


@pytest.fixture(autouse=True)
def _own_notes(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def swept(folder: Path) -> list[str]:
    """What is noted as a folder is swept."""
    noted: list[str] = []
    with noting(noted.append):
        sweep(folder)
    return noted


def notes() -> list[Path]:
    return [*(Path(os.environ["XDG_CACHE_HOME"]) / "moe-diag" / "unfinished").iterdir()]


def test_a_run_notes_its_folder_and_takes_the_note_away(tmp_path: Path) -> None:
    with open_folder(tmp_path) as place, aside(place) as own:
        (note,) = notes()
        assert note.name == own.path.name
        assert note.stat().st_mode & 0o777 == 0o600
    assert notes() == []
    assert [*tmp_path.iterdir()] == []


def test_what_a_killed_run_left_goes_and_its_note_too(tmp_path: Path) -> None:
    left_by_a_killed_run(tmp_path)
    assert swept(tmp_path) == []
    assert ([*tmp_path.iterdir()], notes()) == ([], [])


def test_without_the_note_it_stays_and_one_line_says_so(tmp_path: Path) -> None:
    for _ in range(3):
        left_by_a_killed_run(tmp_path)
    for note in notes():
        note.unlink()
    before = looked_at(tmp_path)
    (line,) = swept(tmp_path)
    assert "and 2 more like it were left alone: not surely what a run of yours left there" in line
    assert looked_at(tmp_path) == before


def test_a_copy_of_a_left_over_is_none(tmp_path: Path) -> None:
    left = half_moved(older(tmp_path / "one"), 2)
    shutil.copytree(left, older(tmp_path / "two") / left.name)
    before = looked_at(tmp_path / "two")
    assert len(swept(tmp_path / "two")) == 1
    assert looked_at(tmp_path / "two") == before


def test_another_folder_under_the_name_of_a_left_over_is_none(tmp_path: Path) -> None:
    left = left_by_a_killed_run(tmp_path)
    left.rename(tmp_path / "taken away")
    (tmp_path / "work").mkdir(mode=0o700)
    (tmp_path / "work" / "thesis.txt").write_text("years", encoding="utf-8")
    (tmp_path / "work").rename(left)
    assert len(swept(tmp_path)) == 1
    assert (left / "thesis.txt").exists()


def test_where_no_notes_can_be_kept_files_are_written_and_nothing_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    ticket(older(tmp_path / "whole"))
    assert {path.read_text(encoding="utf-8")[:3] for path in (tmp_path / "whole").iterdir()} == {"new"}
    half_moved(older(tmp_path / "half"), 2)
    before = looked_at(tmp_path / "half")
    assert len(swept(tmp_path / "half")) == 1
    assert looked_at(tmp_path / "half") == before


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_notes_that_others_could_write_are_none(tmp_path: Path, mode: int) -> None:
    left = left_by_a_killed_run(tmp_path)
    folder = notes()[0].parent
    folder.chmod(mode)
    if mode == 0o770 and os.geteuid() == 0:
        os.chown(folder, 0, OTHER_USER)  # a group of others
    assert len(swept(tmp_path)) == 1
    assert left.exists()


def _edited(left: Path) -> None:
    """The user wrote into a file that was half moved."""
    with (left.parent / TICKET[0]).open("a", encoding="utf-8") as file:
        file.write("more")


def _one_more(left: Path) -> None:
    (left / "replaced" / "more").write_text("more", encoding="utf-8")


def _made_is_a_link(left: Path) -> None:
    (left / "made").rename(left.parent / "elsewhere")
    (left / "made").symlink_to("../elsewhere")


def _no_list(left: Path) -> None:
    (left / "moves").write_text("{", encoding="utf-8")


def _for_all(left: Path) -> None:
    left.chmod(0o777)


@pytest.mark.parametrize("change", [_edited, _one_more, _made_is_a_link, _no_list, _for_all])
def test_a_left_over_that_is_not_as_its_list_says_stays_whole(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    folder = older(tmp_path / "t")
    change(half_moved(folder, 2))
    before = looked_at(folder)
    assert len(swept(folder)) == 1
    assert looked_at(folder) == before


@pytest.mark.parametrize("step", range(1, 30))
def test_putting_back_may_be_killed_too(tmp_path: Path, step: int) -> None:
    folder = older(tmp_path / "t")
    half_moved(folder, 3)
    calls = 0

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object, **how: object) -> object:
            nonlocal calls
            calls += 1
            if calls == step:
                die()
            return real(*given, **how)

        return call

    def undo() -> None:
        for name in ("rename", "unlink", "rmdir", "link"):
            setattr(os, name, counted(getattr(os, name)))
        sweep(folder)
        die()

    killed(undo)
    assert swept(folder) == []
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == {
        name: f"old {name}" for name in TICKET
    }
