"""`doctor` of a folder: each recording in a line, one that cannot be read as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.simulate.export import write_export
from diagnoser.cli import run
from tests.recordings.moe_pattern import moe_recording


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("rank0", "rank1"):
        write_export(tmp_path / f"{name}.sqlite", moe_recording())
    return tmp_path


def said(path: Path | str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert run(["doctor", str(path)]) == code
    out, err = capsys.readouterr()
    return " ".join((out or err).split())


def test_a_folder_has_a_line_for_each_recording(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "rank2.sqlite").write_bytes((folder / "rank0.sqlite").read_bytes()[:3000])
    text = said(folder, capsys)
    assert "3 RECORDINGS" in text
    assert "1 unreadable" in text
    assert all(f"rank{one}.sqlite" in text for one in range(3))
    assert str(folder) not in text
