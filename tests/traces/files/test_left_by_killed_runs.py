"""What is left in a folder is removed or put back where a run of ours surely left it, else not touched."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.hostile.attachments import OTHER_USER, Seen, forged, looked_at, name_of_ours
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


def test_an_empty_folder_of_such_a_name_goes_as_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / name_of_ours()).mkdir(mode=0o700)
    assert swept(tmp_path) == []
    assert [*tmp_path.iterdir()] == []


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


def test_the_note_goes_though_somebody_took_the_folder_away(tmp_path: Path) -> None:
    with open_folder(tmp_path) as place, aside(place) as own:
        own.write_new("x", b"x")
        own.path.rename(tmp_path / "taken")
    assert notes() == []
    assert [*(tmp_path / "taken").iterdir()] == []


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


def test_a_half_ticket_is_put_back_by_whatever_is_written_there_next(tmp_path: Path) -> None:
    folder = older(tmp_path / "t", (*TICKET, "notes.txt"))
    before = {path: content for path, (*_, content) in looked_at(folder).items()}
    half_moved(folder, 3)
    assert swept(folder) == []
    assert {path: content for path, (*_, content) in looked_at(folder).items()} == before


def _edited(left: Path) -> None:
    """The user wrote into a file that was half moved."""
    with (left.parent / TICKET[0]).open("a", encoding="utf-8") as file:
        file.write("more")


def _taken(left: Path) -> None:
    """The user put another file in its place."""
    (left.parent / TICKET[0]).unlink()
    (left.parent / TICKET[0]).write_text("another", encoding="utf-8")


def _one_more(left: Path) -> None:
    (left / "replaced" / "more").write_text("more", encoding="utf-8")


def _another_in_its_place(left: Path) -> None:
    (left / "replaced" / TICKET[0]).unlink()
    (left / "replaced" / TICKET[0]).write_text("another", encoding="utf-8")


def _made_is_a_link(left: Path) -> None:
    (left / "made").rename(left.parent / "elsewhere")
    (left / "made").symlink_to("../elsewhere")


def _replaced_is_a_link(left: Path) -> None:
    (left / "replaced").rename(left.parent / "elsewhere")
    (left / "replaced").symlink_to(left.parent / "elsewhere")


def _no_list(left: Path) -> None:
    (left / "moves").write_text("{", encoding="utf-8")


def _for_all(left: Path) -> None:
    left.chmod(0o777)


@pytest.mark.parametrize(
    "change",
    [
        _edited,
        _taken,
        _one_more,
        _another_in_its_place,
        _made_is_a_link,
        _replaced_is_a_link,
        _no_list,
        _for_all,
    ],
)
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


PARTS: Final = ("made", "replaced", "moves", "moves.part", *TICKET, "a b", "two\nlines", "..data", "-rf")
KINDS: Final = ("file", "folder", "link", "relative link", "dangling", "hard link", "pipe", "list")
MODES: Final = (0o700, 0o755, 0o777, 0o1777, 0o2700, 0o600, 0o000)


@contextmanager
def world() -> Iterator[tuple[Path, Path]]:
    """A home with things of the user's, and an attachment beside it."""
    with tempfile.TemporaryDirectory() as place:
        home, attachment = Path(place) / "home", Path(place) / "attachment"
        for folder in (home, home / ".ssh", attachment):
            folder.mkdir()
        for path in (
            home / ".ssh" / "id_rsa",
            *(folder / name for folder in (home, attachment) for name in TICKET),
        ):
            path.write_text(str(path), encoding="utf-8")
        os.mkfifo(home / "pipe")
        yield home, attachment


def grow(folder: Path, generator: random.Random, home: Path, depth: int) -> None:
    """A random tree of files, links and folders."""
    own = [path for path in home.rglob("*") if path.is_file()]
    for name in generator.sample(PARTS, generator.randint(0, 6)):
        path, kind = folder / name, generator.choice(KINDS)
        target = generator.choice([*home.rglob("*"), home, folder.parent])
        match kind:
            case "folder":
                path.mkdir()
                grow(path, generator, home, depth - 1) if depth else None
            case "link":
                path.symlink_to(target)
            case "relative link":
                path.symlink_to(os.path.relpath(target, folder))
            case "dangling":
                path.symlink_to("nowhere")
            case "hard link":
                os.link(generator.choice(own), path)
            case "pipe":
                os.mkfifo(path)
            case "list":
                some = {generator.choice([*TICKET, "../home/pipe", str(one)]): one for one in own}
                path.write_bytes(forged(some, some, generator.choice([*some, "none"])))
            case _:
                path.write_text("of the sender", encoding="utf-8")
        if kind in ("file", "folder", "list"):
            path.chmod(generator.choice(MODES))
            if os.geteuid() == 0:
                os.chown(path, generator.choice([0, 0, OTHER_USER]), 0)


def gone(before: Seen, after: Seen) -> set[str]:
    return {path for path in before if before[path] != after.get(path)}
