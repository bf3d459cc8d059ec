"""Recordings of a run of four ranks, and what the command writes of a set of recordings."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from bench.simulate.knobs import Knobs
from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause, RanksRun
from bench.simulate.ranks.happened import RanksDone
from bench.simulate.ranks.layout import Layout
from bench.simulate.ranks.recorded import Capture, write_ranks
from diagnoser.cli import run as cli

RUN: Final = RanksRun(
    3,
    Layout(expert=4, data=4, ranks_per_host=2),
    Knobs(step_count=4, layer_count=1),
    Cause.SLOW_DEVICE,
    rank=1,
    strength=1.5,
)
"""Rank 1 of four, on two hosts, has a slow device, and all wait for it."""
_TIMED: Final = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")


def written(done: RanksDone, folder: Path, capture: Capture) -> list[Path]:
    """The files of a run, in order of rank."""
    folder.mkdir(exist_ok=True)
    return [one.path for one in write_ranks(done, folder, draw_clocks(done.run), capture)]


def analyzed(paths: Iterable[Path], out: Path, *options: str, code: int = 0) -> dict[str, Any]:
    """The document that the command writes."""
    out.unlink(missing_ok=True)
    words = ["analyze", *map(str, paths), "--jobs", "1", "--output", str(out), *options]
    assert cli(words) == code
    document: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return document


def problems(document: dict[str, Any]) -> list[tuple[str, tuple[str, ...], bool, tuple[int, ...]]]:
    """Kind, recordings, whether they are left out, ranks that nobody recorded."""
    found = document["run"]["problems"]
    return [(one["kind"], tuple(one["traces"]), one["left_out"], tuple(one["ranks"])) for one in found]


def late(document: dict[str, Any]) -> tuple[str, int | None] | str:
    """Cause and rank; where nobody can be named, why."""
    if found := document["run"]["late"]:
        return found["cause"], found["rank"]
    reasons: list[str] = [gap["reason"] for gap in document["missing"] if gap["path"] == "run.late"]
    return reasons[0]


def cut(trace: Path, folder: Path, begin: float = 0.0, end: float = 1.0) -> Path:
    """A copy with what begins in a part of the time of its kernels."""
    copy = Path(shutil.copy(trace, folder / trace.name))
    with closing(sqlite3.connect(copy)) as database, database:
        ((first, last),) = database.execute("SELECT min(start), max(end) FROM CUPTI_ACTIVITY_KIND_KERNEL")
        lasts = last - first
        limits = (first + round(begin * lasts), first + round(end * lasts))
        for table in _TIMED:
            database.execute(f"DELETE FROM {table} WHERE start < ? OR start > ?", limits)
    return copy


def without_kernels(trace: Path, folder: Path) -> Path:
    """A copy that has only the host's calls."""
    copy = Path(shutil.copy(trace, folder / trace.name))
    with closing(sqlite3.connect(copy)) as database, database:
        database.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")
    return copy
