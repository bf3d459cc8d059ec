"""Disks that are full, and disks that may only be read: real ones, of 256 kB, mounted for a test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from diagnoser.cli import run
from tests.doubles.sides import as_json, result_of_run
from tests.doubles.writers import marked
from tests.recordings.nsys import Desk, desk

_SIZE_BYTES: Final = 256 << 10
ROOMS: Final = (0, 4096, 8192, 12288, 20480, 40960, 65536)
"""Bytes that are left on the disk, by whole pages."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own. Only root may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE_BYTES},mode=0700", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(line, capture_output=True).returncode != 0:
        pytest.skip("nothing may be mounted here: would have shown a full disk and a read-only one")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    marked(monkeypatch)
    as_json(tmp_path / "run.json", result_of_run(tmp_path / "run.sqlite"))
    return desk(tmp_path / "nsys")


def filled(disk: Path, left_bytes: int) -> Path:
    """A file that leaves so many bytes on the disk."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    os.truncate(filler, filler.stat().st_size - left_bytes)
    return filler


def line_of(command: str, place: Path, nsys: Desk) -> list[str]:
    folder = nsys.report.parents[2]
    result, trace = str(folder / "run.json"), str(folder / "run.sqlite")
    return {
        "files": ["report", result, "-f", "json", "-o", f"{place}/"],
        "ticket": ["report", result, "--ticket", f"{place}/new"],
        "second ticket": ["report", result, "--ticket", str(place)],
        "summary": [
            "analyze",
            trace,
            "--no-megatron",
            "--summary",
            f"{place}/ranks",
            "-o",
            f"{folder}/of_it.txt",
        ],
        "history": ["history", "add", result, "--store", f"{place}/h.sqlite"],
        "demo": ["demo", "ranks", "--keep", f"{place}/ranks", "-o", f"{folder}/of_it.txt"],
        "cache": ["doctor", str(nsys.report), "--nsys", nsys.nsys.path, "--cache-dir", f"{place}/cache"],
    }[command]


COMMANDS: Final = ("files", "ticket", "second ticket", "summary", "history", "demo", "cache")


def names(disk: Path) -> set[str]:
    """All that is there, but a history without a row, and folders that stay as they are."""
    kept = [path for path in disk.rglob("*") if path.is_file() and path.stat().st_size]
    return {str(path.relative_to(disk)) for path in (*kept, *disk.rglob(".moe-diag-*"))}


@pytest.mark.parametrize("command", COMMANDS)
def test_on_a_full_disk_one_line_says_so_and_nothing_is_left(
    disk: Path, nsys: Desk, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (disk / "notes.txt").write_text("mine", encoding="utf-8")
    line = line_of(command, disk, nsys)
    codes = set()
    for left_bytes in ROOMS:
        filler = filled(disk, left_bytes)
        before = names(disk)
        codes.add(code := run(line))
        err = capsys.readouterr().err
        if code == 0:
            break
        assert (code, err.count("\n")) == (3, 1), err
        assert names(disk) == before
        filler.unlink()
    assert 3 in codes
    (disk / "filler").unlink(missing_ok=True)
    if codes == {3} and command != "demo":  # eight recordings are more than the disk
        assert run(line) == 0
    assert not [*disk.rglob(".moe-diag-*")]


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


@pytest.mark.parametrize("state", ["read-only", "full"])
@pytest.mark.parametrize("command", ["files", "ticket", "second ticket", "summary"])
def test_a_home_without_room_keeps_nothing_from_being_written_elsewhere(
    disk: Path, nsys: Desk, command: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(disk))
    ways: dict[str, Callable[[], object]] = {
        "full": lambda: filled(disk, 0),
        "read-only": lambda: remount(disk, "ro"),
    }
    ways[state]()
    place = tmp_path / "place"
    place.mkdir()
    assert run(line_of(command, place, nsys)) == 0
    assert not [*place.rglob(".moe-diag-*")]
