"""A result is written at its place; what a link there leads to is never changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from diagnoser.cli import run
from diagnoser.demo import unpack

WRITES = {
    "a file": ["-o", "out/r.txt"],
    "files": ["-f", "json", "-f", "markdown", "-o", "out/"],
    "a summary": ["--summary", "out"],
    "a ticket": ["--ticket", "out"],
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    unpack(tmp_path / "run.sqlite", "communication")
    (tmp_path / "out").mkdir()
    (tmp_path / "other").write_text("theirs", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    yield tmp_path
    assert (tmp_path / "other").read_text(encoding="utf-8") == "theirs"
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize("target", ["other", "absent", "pipe"])
@pytest.mark.parametrize("words", WRITES.values(), ids=WRITES)
def test_what_a_link_leads_to_stays_as_it_is(
    words: list[str], target: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["analyze", "run.sqlite", "--no-megatron", *words]
    assert run(command) == 0
    names = [path.name for path in (place / "out").iterdir()]
    for name in names:
        (place / "out" / name).unlink()
        (place / "out" / name).symlink_to(place / target)
    assert run(command) == 2
    assert "--force-overwrite" in capsys.readouterr().err
    assert all((place / "out" / name).is_symlink() for name in names)
    assert run([*command, "--force-overwrite"]) == 0
    assert not any((place / "out" / name).is_symlink() for name in names)
