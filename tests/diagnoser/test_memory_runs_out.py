"""Memory that runs out ends a command with one clear line and exit code 3."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from diagnoser.cli import run
from diagnoser.running.work import measured
from tests.places import ROOT

LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="no other system bounds memory as numpy asks for it"
)


def shell(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which the system gives 256 MB."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "diagnoser", *map(str, words)]
    return subprocess.run(
        ["bash", "-c", 'ulimit -d 262144; exec "$@"', "bash", *command],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )


@pytest.fixture
def large(tmp_path: Path) -> list[Path]:
    """Two files of 24 MB that take some 400 as objects."""
    paths = [tmp_path / name for name in ("one.json", "two.json")]
    for path in paths:
        path.write_text(f'{{"traceEvents": [], "x": [{"0.5," * 6_000_000}0.5]}}', encoding="utf-8")
    return paths


@LINUX
def test_what_takes_more_memory_than_it_may_is_named_and_ends_with_3(large: list[Path]) -> None:
    for paths in (large[:1], large):  # in this process, and in one for each
        ended = shell("analyze", *paths, "--jobs", "2")
        assert ended.returncode == 3, ended.stderr
        assert "one.json needs more memory than the 256 MB allowed" in ended.stderr
        assert len(ended.stderr.splitlines()) == 1
        assert ended.stdout == ""


@pytest.mark.parametrize("words", [["analyze", "{}"], ["compare", "{}", "{}"]])
def test_memory_that_runs_out_is_no_bug_of_ours(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fills_memory(task: object) -> None:
        raise MemoryError

    monkeypatch.setattr(measured, "_measured_trace", fills_memory)
    path = tmp_path / "run.sqlite"
    path.write_bytes(b"x")
    assert run([word.format(path) for word in words]) == 3
    assert f"{path} needs more memory than" in capsys.readouterr().err


def test_memory_that_runs_out_anywhere_else_is_named_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fills_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("diagnoser.commands.results.saved_result", fills_memory)
    assert run(["report", "result.json"]) == 3
    assert "the command needs more memory than" in capsys.readouterr().err
