"""`--reader` chooses what reads an SQLite file; the document says what ran, and nothing else differs."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

import diagnoser
from diagnoser.cli import run
from diagnoser.demo import compressed
from traces.errors import UsageError


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "run.sqlite"
    path.write_bytes(lzma.decompress(compressed("healthy").read_bytes()))
    return path


def test_an_unknown_reader_is_an_error_of_use(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", str(trace), "--reader", "odbc"]) == 2
    assert "auto" in capsys.readouterr().err
    with pytest.raises(UsageError, match="one of auto, pages, sqlite3"):
        diagnoser.analyze(trace, reader="odbc")
