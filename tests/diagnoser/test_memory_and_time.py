"""`--max-memory` and `--timeout` end a command with one clear line, exit code 3, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from diagnoser.cli import run
from diagnoser.running import measured
from tests.places import ROOT
from tests.recordings.nsys import desk, write_report

HANGS = 'while :; do echo beat >>"$here/beats"; sleep 0.02; done & echo junk >"$out"; wait'
"""An nsys that does not end, and neither does what it started."""
LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="no other system bounds memory as numpy asks for it"
)


def shell(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which may be bounded."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "diagnoser", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.fixture
def large(tmp_path: Path) -> list[Path]:
    """Two files of 24 MB that take some 400 as objects."""
    paths = [tmp_path / name for name in ("one.json", "two.json")]
    for path in paths:
        path.write_text(f"[{'0.5,' * 6_000_000}0.5]", encoding="utf-8")
    return paths


@LINUX
def test_what_takes_more_memory_than_it_may_is_named_and_ends_with_3(large: list[Path]) -> None:
    for paths in (large[:1], large):  # in this process, and in one for each
        ended = shell("analyze", *paths, "--jobs", "2", "--max-memory", "256M")
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
    for options in ([], ["--max-memory", "64G"]):
        assert run(["report", "result.json", *options]) == 3
        assert "needs more memory than" in capsys.readouterr().err


def test_a_time_that_is_up_ends_workers_nsys_and_all_it_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = desk(tmp_path, export=HANGS)
    write_report(here.report.parent / "other.nsys-rep")
    out, beats = tmp_path / "out", here.nsys.folder / "beats"
    out.mkdir()
    words = [str(here.report.parent), "--nsys", here.nsys.path, "--cache-dir", str(here.cache)]
    for jobs in ("1", "2"):
        code = run(["analyze", *words, "--jobs", jobs, "-o", f"{out}/", "--timeout", "1.5s"])
        assert code == 3
        told = capsys.readouterr()
        assert "not finished within --timeout 1.5s" in told.err
        assert (told.out, len(told.err.splitlines())) == ("", 1)
        heard = beats.stat().st_size
        time.sleep(0.2)
        assert beats.stat().st_size == heard
        assert list(here.cache.iterdir()) == list(out.iterdir()) == []
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.parametrize(
    ("option", "value", "cure"),
    [
        ("--max-memory", "8", "8G or 512M"),
        ("--max-memory", "-1G", "8G or 512M"),
        ("--max-memory", "1e9G", "8G or 512M"),
        ("--max-memory", "255M", "256M or more"),
        ("--timeout", "0", "90, 90s, 5m or 2h"),
        ("--timeout", "-5", "90, 90s, 5m or 2h"),
        ("--timeout", "5 days", "90, 90s, 5m or 2h"),
        ("--timeout", "99999999h", "90, 90s, 5m or 2h"),
    ],
)
def test_what_is_no_bound_is_refused_with_one_that_is(
    option: str, value: str, cure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", "none.sqlite", f"{option}={value}"]) == 2
    assert cure in capsys.readouterr().err
