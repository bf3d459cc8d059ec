"""What was written is told, with the answer in it: on stdout, or on stderr where stdout is data."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.simulate.export import write_export
from diagnoser.cli import run
from tests.doubles.document import DISPATCH, exposed


@pytest.fixture
def trace(tmp_path: Path) -> str:
    write_export(tmp_path / "run.sqlite", exposed(comm=DISPATCH))
    return str(tmp_path / "run.sqlite")


@pytest.mark.parametrize("name", ["run.html", "run.json", "run.md", "run.png"])
def test_a_file_is_named_with_the_answer_in_it(
    tmp_path: Path, trace: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", trace, "-o", str(tmp_path / name)]) == 0
    out, err = capsys.readouterr()
    assert out == f"Wrote {name}: SLOWED BY expert all-to-all (30 %)\n"
    assert err == ""
