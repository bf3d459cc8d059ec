"""What was written is told, with the answer in it: on stdout, or on stderr where stdout is data."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.simulate.export import write_export
from diagnoser.cli import run
from tests.doubles.document import DISPATCH, exposed
from tests.places import ROOT


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


def test_several_files_share_a_line(tmp_path: Path, trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", trace, "-f", "markdown", "-f", "json", "-o", "."]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert all(one in out for one in ("run_moe-diag.md", "run_moe-diag.json"))


def test_what_is_printed_is_told_nowhere_else(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", trace, "-f", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)
    assert err == ""


def test_beside_data_on_stdout_it_is_told_on_stderr(trace: str) -> None:
    words = [sys.executable, "-m", "diagnoser", "analyze", trace, "-f", "json", "-o", "/dev/stdout"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout)
    assert "SLOWED BY" in done.stderr


def test_a_judged_configuration_tells_its_answer_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.txt").write_text("model.num_layers=4\nmodel.hidden_size=64\n", encoding="utf-8")
    assert run(["check-config", str(tmp_path / "run.txt"), "-o", str(tmp_path / "c.md")]) == 0
    assert capsys.readouterr().out.startswith("Wrote c.md: LEGAL")
