"""The progress display: what work says of itself, and what a terminal shows of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from diagnoser.demo import unpack
from diagnoser.output.progress import _Display, progress_display
from tests.read_back.terminal import Tty
from traces.formats.open import ReadOptions, read_trace
from traces.formats.readers import Reader
from traces.progress import silent

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "run.sqlite"
    unpack(path, "host_overhead")
    return path


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [100.0]
    monkeypatch.setattr("diagnoser.output.progress.time.monotonic", lambda: now_s[0])
    return now_s


@pytest.fixture
def display(clock: list[float]) -> Iterator[_Display]:
    made = _Display(Console(force_terminal=True, file=StringIO(), width=120))
    yield made
    made.close()


def shown(display: _Display) -> str:
    assert display._bars is not None
    console = Console(file=StringIO(), width=120)
    console.print(display._bars)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_the_rate_is_of_the_rows_read_since_the_table_began(display: _Display, clock: list[float]) -> None:
    display.show("reading a", 0.0, 1_000)
    clock[0] += 2
    display.show("reading a", 0.5, 5_000)
    assert "reading a" in shown(display)
    assert "2,000 rows/s" in shown(display)
    display.show("measuring a: steps", 0.0)
    assert "rows/s" not in shown(display)


def test_a_bar_fills_and_begins_again_where_something_new_begins(
    display: _Display, clock: list[float]
) -> None:
    clock[0] += 2
    display.show("reading a", 0.75)
    assert display._bars is not None
    assert display._bars.tasks[0].completed == 0.75
    display.show("reading b", 0.25)
    assert (display._bars.tasks[0].completed, display._bars.tasks[0].total) == (0.25, 1.0)
    display.show("replay 1")
    assert display._bars.tasks[0].total is None


@pytest.mark.parametrize(("term", "shows"), [("dumb", False), ("xterm", True)])
def test_a_terminal_that_moves_no_cursor_is_sent_no_bar(
    term: str, shows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", Tty())
    monkeypatch.setenv("TERM", term)
    with progress_display() as listener:
        assert (listener is not silent) is shows


@pytest.mark.parametrize("reader", [Reader.PAGES, Reader.SQLITE3])
def test_readers_say_how_many_rows_they_have_read(recording: Path, reader: Reader) -> None:
    said: list[tuple[float | None, int | None]] = []

    def listen(doing: str, fraction: float | None = None, rows: int | None = None) -> None:
        if doing == f"reading {KERNELS}":
            said.append((fraction, rows))

    read_trace(recording, ReadOptions(reader=reader), listen)
    with closing(sqlite3.connect(recording)) as database:
        (count,) = database.execute(f"SELECT count(*) FROM {KERNELS}").fetchone()
    assert said[-1] == (1.0, count)
