"""What is run and disturbed, and what its folder may hold afterwards."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.doubles.sides import run_of

CACHE: Final = "cache"
STORE: Final = "history.sqlite"
_ASIDE: Final = ".moe-diag-"


@dataclass(frozen=True, slots=True)
class Job:
    """A command line in a folder of its own.

    `inputs`: what is put there first, by its name. `prepared`: command lines that are run there before any
    is disturbed.
    """

    words: tuple[str, ...]
    inputs: Mapping[str, Path]
    prepared: tuple[tuple[str, ...], ...] = ()


def jobs(samples: Path, reports: Path | None) -> dict[str, Job]:
    """All jobs by name. `samples`: where inputs are put; `reports`: a folder of nsys reports."""
    one, other = samples / "one.sqlite", samples / "other.sqlite"
    for path, gemm_us in ((one, 700), (other, 500)):
        if not path.exists():
            run_of(path, gemm_us=gemm_us)
    run, two = {"run.sqlite": one}, {"run.sqlite": one, "older.sqlite": other}
    result, older = (("analyze", f"{name}.sqlite", "-o", f"{name}.json") for name in ("run", "older"))
    forms = [word for form in ("json", "text", "html", "markdown") for word in ("-f", form)]
    ticket = ("report", "run.json", "--ticket", "perf-1")
    found = {
        "files": Job(
            ("analyze", "run.sqlite", *forms, "-o", ".", "--summary", "ranks", "--force-overwrite"), run
        ),
        "ticket": Job(ticket, run, (result,)),
        "second ticket": Job(ticket, two, (result, older, ("report", "older.json", "--ticket", "perf-1"))),
        "ticket again": Job(
            (*ticket, "--force-overwrite"),
            run,
            (
                ("analyze", "run.sqlite", "--gpu-model", "H100", "-o", "run.json"),
                ticket,
                (*result, "--force-overwrite"),
            ),
        ),
        "first of a history": Job(("history", "add", "run.json", "--store", STORE), run, (result,)),
        "history": Job(
            ("history", "add", "run.sqlite", "--store", STORE),
            two,
            (older, ("history", "add", "older.json", "--store", STORE)),
        ),
    }
    if reports and shutil.which("nsys"):
        report = reports / "rtx6000_2021.qdrep"
        words = ("analyze", "run.qdrep", "--cache-dir", CACHE, "-o", "run.json", "--force-overwrite")
        found["export"] = Job(words, {"run.qdrep": report})
    return found


def put_inputs(job: Job, room: Path) -> None:
    """Make the folder and put the inputs there; their times are kept, as results may name them."""
    room.mkdir()
    for name, path in job.inputs.items():
        shutil.copy2(path, room / name)


def contents(room: Path) -> dict[str, object]:
    """What each file below a folder holds, as it compares with the same file of another run.

    What is aside is left out. Raises `ValueError` or `sqlite3.Error` for a file that is not whole.
    """
    found: dict[str, object] = {}
    for path in sorted(room.rglob("*")):
        name = str(path.relative_to(room))
        if path.is_file() and not any(part.startswith(_ASIDE) for part in path.parts):
            found[name] = _reader(path)(path)
    return found


def aside_in(room: Path) -> list[str]:
    """The names of what is aside."""
    return sorted(str(path.relative_to(room)) for path in room.rglob(f"{_ASIDE}*"))


def _reader(path: Path) -> Callable[[Path], object]:
    if path.name == STORE:
        return _history
    if path.name.endswith("-journal"):
        return lambda _: "a journal"
    if path.parent.name == CACHE:
        return {".sqlite": _export, ".json": _record}[path.suffix]
    return lambda path: hashlib.sha256(path.read_bytes()).hexdigest()


def _export(path: Path) -> str:
    """All rows but those that nsys writes of the time of the export."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        database.text_factory = lambda text: text.decode(errors="surrogateescape")
        lines = (line for line in database.iterdump() if "EXPORT" not in line)
        return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def _record(path: Path) -> list[str]:
    """Its keys: sizes and times are of one export."""
    return sorted(json.loads(path.read_text(encoding="utf-8")))


def _history(path: Path) -> list[tuple[object, ...]]:
    """Rows without the time of their addition, as SQLite finds them: what is unfinished is undone."""
    if path.stat().st_size == 0:
        return []
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return []
        return database.execute(
            "SELECT id, name, digest, metrics, document FROM results ORDER BY id"
        ).fetchall()
