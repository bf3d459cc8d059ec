"""Runs that are disturbed: killed, without a terminal, without room. `python -m bench.faults` draws more."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest

from tests.doubles.sides import run_of
from tests.places import ROOT
from tests.recordings.nsys import EXPORTS_WELL, desk

PROGRAM = f"{sys.executable} -m diagnoser"


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Programs started here hear Ctrl-C and the end of a terminal, also where the tests themselves do not."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(line, shell=True, executable="/bin/bash", cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("words", "code", "lines"),
    [
        ("explain COM-2 >&-", 3, 1), ("--help >&-", 3, 1), ("--version >&-", 3, 1),
        ("explain COM-2 >&- 2>&- <&-", 3, 0), ("nonsense 2>&-", 2, 0),
        ("explain COM-2 2>&- >/dev/null", 0, 0),
    ],
)  # fmt: skip
def test_a_closed_stream_is_no_bug_of_ours(words: str, code: int, lines: int) -> None:
    done = shell(f"{PROGRAM} {words}")
    assert (done.returncode, done.stderr.count("\n")) == (code, lines), done.stderr
    assert "bug" not in done.stderr


def test_no_file_of_ours_takes_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    trace, result = run_of(tmp_path / "run.sqlite"), tmp_path / "result.json"
    done = shell(f"{PROGRAM} analyze {trace} {tmp_path}/none.sqlite -o {result} <&- >&- 2>&-")
    assert done.returncode == 0
    assert result.read_bytes().startswith(b"{")
    assert result.read_bytes().endswith(b"}\n")


@pytest.mark.parametrize("name", ["HUP", "TERM", "INT"])
def test_whatever_ends_a_run_from_outside_nothing_is_left(tmp_path: Path, name: str) -> None:
    here = desk(tmp_path, export=f"kill -{name} $PPID; sleep 60")
    done = shell(f"{PROGRAM} analyze {here.report} --nsys '{here.nsys.path}' --cache-dir {here.cache}")
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "moe-diag: interrupted; nothing was left behind.\n"
    assert list(here.cache.iterdir()) == []


_DROPPED = """
import os, signal, time, weakref
from diagnoser import cli

def run(_):
    class Thing: pass
    thing = Thing()
    weak = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del thing  # the interrupt is raised in the callback, where Python drops it
    time.sleep(60)

cli.run = run
cli.main()
"""


def test_an_interrupt_that_python_drops_comes_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _DROPPED], cwd=ROOT, capture_output=True, text=True, timeout=50
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    here = desk(tmp_path, export=f"kill -HUP $PPID; sleep 0.2; {EXPORTS_WELL}")
    line = f"{PROGRAM} analyze {here.report} --nsys '{here.nsys.path}' --cache-dir {here.cache}"
    assert "interrupted" not in shell(f"trap '' HUP; {line}").stderr
    assert len(list(here.cache.iterdir())) == 2


def test_after_a_run_that_was_killed_the_next_one_works_and_clears(tmp_path: Path) -> None:
    here = desk(tmp_path, export="kill -KILL $PPID; echo half >$out; exit 1")
    line = f"exec {PROGRAM} analyze {here.report} --nsys '{here.nsys.path}' --cache-dir {here.cache}"
    assert shell(line).returncode == -signal.SIGKILL
    assert len(list(here.cache.iterdir())) == 2  # its folder and its lock
    sleep(0.5)  # the export that it started outlives it for a moment, and holds the lock so long
    here.nsys.write()
    here.export()
    assert sorted(path.suffix for path in here.cache.iterdir()) == [".json", ".sqlite"]


def test_without_room_one_line_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    trace = run_of(tmp_path / "run.sqlite")
    done = shell(f"ulimit -f 0; {PROGRAM} analyze {trace} -f json -f text -o .")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert list(tmp_path.iterdir()) == [trace]
