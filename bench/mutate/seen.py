"""Which tests run which lines of the product: measured once by coverage, a context for each test."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

from coverage.numbits import numbits_to_nums

from bench.mutate.tree import environment
from tests.places import ROOT

NEW_S = 0.05
"""What a test is thought to take that was written since."""
_PYTHON = str(ROOT / ".venv/bin/python")
PRODUCT = ("moe_diag", "diagnoser", "traces", "heuristics", "reports")
_SETTINGS = """
[run]
source =
    {sources}
data_file = {data}
parallel = true
core = ctrace
patch =
    subprocess
    _exit
context = ${{PYTEST_CURRENT_TEST-}}
"""


def product_tests() -> list[str]:
    """The words that make `pytest` run what `make test` runs."""
    long = (ROOT / "tests/data/long_files.txt").read_text(encoding="utf-8").split()
    return ["tests", *(f"--ignore={name}" for name in long)]


def look(tree: Path, folder: Path, jobs: int) -> None:
    """Run the tests of the product in the copy `tree` and keep in `folder` what each of them ran."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / "tree").write_text(str(tree), encoding="utf-8")
    settings = folder / "coveragerc"
    sources = "\n    ".join(str(tree / name) for name in PRODUCT)
    settings.write_text(_SETTINGS.format(sources=sources, data=folder / "coverage"), encoding="utf-8")
    rc = f"--rcfile={settings}"
    run_tests(tree, folder, jobs, through=("coverage", "run", rc, "-m"))
    words = (_PYTHON, "-m", "coverage", "combine", "-q", rc)
    subprocess.run(words, cwd=tree, env=environment(tree), check=True)


def run_tests(tree: Path, folder: Path, jobs: int, *, through: Sequence[str] = ()) -> None:
    """Run the tests of the product in a copy; each process leaves in `folder` what `told_in` reads."""
    words = (_PYTHON, "-m", *through, "pytest", "-q", "-p", "bench.mutate.witness")
    spread = ("--numprocesses", str(jobs), "--dist", "loadfile", "-p", "no:cacheprovider")
    told = environment(tree) | {"MUTATE_TOLD": str(folder)}
    # what they say is progress, beside the table
    subprocess.run((*words, *spread, *product_tests()), cwd=tree, env=told, check=False, stdout=sys.stderr)


def told_in(folder: Path) -> list[dict[str, Any]]:
    """How long tests took and which failed, of each process."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]


def collected(tree: Path) -> set[str]:
    """The tests of the product that the copy has."""
    words = (_PYTHON, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider")
    told = subprocess.run(
        (*words, *product_tests()),
        cwd=tree,
        env=environment(tree),
        check=True,
        capture_output=True,
        text=True,
    )
    return {line for line in told.stdout.splitlines() if "::" in line}


class Seen:
    """What `look` kept in a folder, of the tests that are still there, by pytest's node ids."""

    def __init__(self, folder: Path, there: set[str]) -> None:
        self._tree = (folder / "tree").read_text(encoding="utf-8")
        self._data = folder / "coverage"
        told = told_in(folder)
        self.took_s: dict[str, float] = {name: s for one in told for name, s in one["took_s"].items()}
        self.failed = {name for one in told for name in one["failed"]}
        self.new = there - set(self.took_s)
        self.took_s = {name: self.took_s.get(name, NEW_S) for name in there}

    def of_lines(self, file: str, lines: Iterable[int] | None) -> set[str]:
        """The tests that ran any of the lines of a file, or the file at all for None."""
        wanted = None if lines is None else set(lines)
        found = set()
        with closing(sqlite3.connect(self._data)) as connection:
            rows = connection.execute(
                "SELECT context_id, numbits FROM line_bits WHERE file_id = ?", (self._files.get(file),)
            ).fetchall()
        for context, bits in rows:
            if wanted is None or wanted & set(numbits_to_nums(bits)):
                found.add(self._contexts[context])
        return {name for name in found if name in self.took_s and name not in self.failed}

    @cached_property
    def _files(self) -> dict[str, int]:
        with closing(sqlite3.connect(self._data)) as connection:
            rows = connection.execute("SELECT id, path FROM file").fetchall()
        return {os.path.relpath(path, self._tree): number for number, path in rows}

    @cached_property
    def _contexts(self) -> dict[int, str]:
        with closing(sqlite3.connect(self._data)) as connection:
            rows = connection.execute("SELECT id, context FROM context").fetchall()
        return {number: _test_of(context) for number, context in rows}


def _test_of(context: str) -> str:
    """A process that a test started is named by pytest's variable, with the phase behind it."""
    last = context.rpartition("|")[2] or context
    return last.rpartition(" (")[0] if last.endswith(("(call)", "(setup)", "(teardown)")) else last
