"""Which tests run which lines of the product: measured once by coverage, a context for each test."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Any, Final

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


def look(tree: Path, folder: Path, jobs: int, files: Sequence[str]) -> None:
    """Run test files in the copy `tree` and keep in `folder` what each test ran, and of which product."""
    folder.mkdir(parents=True)
    (folder / "product").mkdir()
    for name in PRODUCT:
        shutil.copytree(tree / name, folder / "product" / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "files").write_text(
        json.dumps({name: _text_of(tree / name) for name in files}), encoding="utf-8"
    )
    settings = folder / "coveragerc"
    sources = "\n    ".join(str(tree / name) for name in PRODUCT)
    settings.write_text(_SETTINGS.format(sources=sources, data=folder / "coverage"), encoding="utf-8")
    rc = f"--rcfile={settings}"
    run_tests(tree, folder, jobs, files, through=("coverage", "run", rc, "-m"))
    words = (_PYTHON, "-m", "coverage", "combine", "-q", rc)
    subprocess.run(words, cwd=tree, env=environment(tree), check=True)
    (folder / "tree").write_text(str(tree), encoding="utf-8")  # the last: this layer is whole


def run_tests(
    tree: Path, folder: Path, jobs: int, files: Sequence[str], *, through: Sequence[str] = ()
) -> None:
    """Run test files in a copy; each process leaves in `folder` what `told_in` reads."""
    words = (_PYTHON, "-m", *through, "pytest", "-q", "-p", "bench.mutate.witness")
    spread = ("--numprocesses", str(jobs), "--dist", "loadfile", "-p", "no:cacheprovider")
    told = environment(tree) | {"MUTATE_TOLD": str(folder)}
    # what they say is progress, beside the table
    subprocess.run((*words, *spread, *files), cwd=tree, env=told, check=False, stdout=sys.stderr)


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
    """What `look` kept of the tests that are still there, by pytest's node ids.

    Each folder below `folder` is a layer, a later one first: what it ran of a file is newer.
    """

    def __init__(self, folder: Path, there: set[str]) -> None:
        self._layers = (
            [_Layer(one) for one in sorted(folder.iterdir(), reverse=True)] if folder.exists() else []
        )
        self.took_s: dict[str, float] = {}
        self.failed, looked = set[str](), set[str]()
        for layer in self._layers:
            mine = {name: s for name, s in layer.took_s.items() if _file_of(name) not in looked}
            layer.tests = set(mine) & there
            self.took_s |= {name: s for name, s in mine.items() if name in there}
            self.failed |= layer.failed & layer.tests
            looked |= layer.files.keys()
        self.new = there - set(self.took_s)
        self.took_s |= dict.fromkeys(self.new, NEW_S)

    def of_lines(self, file: str, lines: Iterable[int] | None) -> set[str]:
        """The tests that ran any of the lines of a file, or the file at all for None."""
        wanted = None if lines is None else set(lines)
        found = {name for layer in self._layers for name in layer.of_lines(file, wanted)}
        return found - self.failed

    def changed(self, tree: Path) -> list[str]:
        """The test files of the product that no layer has as they are in the copy."""
        files = {_file_of(name) for name in self.took_s}
        known = {name: text for layer in reversed(self._layers) for name, text in layer.files.items()}
        return sorted(name for name in files if known.get(name) != _text_of(tree / name))


class _Layer:
    def __init__(self, folder: Path) -> None:
        self._product, self._data = folder / "product", folder / "coverage"
        self._tree = (folder / "tree").read_text(encoding="utf-8")
        told = told_in(folder)
        self.files: dict[str, str] = json.loads((folder / "files").read_text(encoding="utf-8"))
        self.took_s: dict[str, float] = {name: s for one in told for name, s in one["took_s"].items()}
        self.failed = {name for one in told for name in one["failed"]}
        self.tests: set[str] = set()

    def of_lines(self, file: str, wanted: set[int] | None) -> set[str]:
        then = None if wanted is None else self._then(file, wanted)
        with closing(sqlite3.connect(self._data)) as connection:
            rows = connection.execute(
                "SELECT context_id, numbits FROM line_bits WHERE file_id = ?", (self._files.get(file),)
            ).fetchall()
        found = {
            self._contexts[context]
            for context, bits in rows
            if then is None or then & set(numbits_to_nums(bits))
        }
        return found & self.tests

    def _then(self, file: str, lines: set[int]) -> set[int]:
        """Lines of today as they were counted when the layer was made; new ones as what they replace."""
        before, now = ((place / file) for place in (self._product, ROOT))
        if not before.exists():
            return set()
        old, new = (path.read_text(encoding="utf-8").splitlines() for path in (before, now))
        found: set[int] = set()
        for same, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            mine = {line - c + a for line in lines if c < line <= d}
            found |= mine if same == "equal" or not mine else set(range(a + 1, b + 2))
        return found

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


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _text_of(path: Path) -> str:
    """A short word for a file's text."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.exists() else ""


_TEST: Final = re.compile(r"(?:.*\|)?((?:tests|bench)/.*?)(?: \((?:call|setup|teardown)\))?", re.DOTALL)


def _test_of(context: str) -> str:
    """A process that a test started is named by pytest's variable, with the phase behind it."""
    found = _TEST.fullmatch(context)
    if found:
        return found[1]
    return context
