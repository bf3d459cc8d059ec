"""A copy of the repository in which a mutant may stand."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.mutate.mutant import Mutant
from tests.places import ROOT

_PREPARED = ("traces", "heuristics", "reports", "diagnoser", "moe_diag", "tests", "bench")


def copied(place: Path) -> Path:
    """Everything that git knows or does not ignore, with compiled modules, at `place`; an old copy goes."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    words = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    subprocess.run(("git", "init", "-q"), cwd=place, check=True)
    subprocess.run(("git", "add", "-A"), cwd=place, check=True)
    python = str(ROOT / ".venv/bin/python")
    subprocess.run((python, "-m", "compileall", "-q", *_PREPARED), cwd=place, check=False)
    return place


@contextmanager
def mutated(place: Path, mutants: Sequence[Mutant]) -> Iterator[None]:
    """Mutants that do not overlap stand in the copy; afterwards it is as before, to the time of each file."""
    kept: dict[Path, tuple[str, os.stat_result]] = {}
    for mutant in sorted(mutants, key=lambda one: (one.file, -one.start)):
        path = place / mutant.file
        text = path.read_text(encoding="utf-8")
        kept.setdefault(path, (text, path.stat()))
        path.write_text(mutant.applied(text), encoding="utf-8")
    try:
        yield
    finally:
        for path, (text, before) in kept.items():
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def environment(place: Path) -> dict[str, str]:
    """The copy's packages come first, in processes that tests start as well; nothing is compiled to disk."""
    outside = {name: text for name, text in os.environ.items() if not name.startswith("MOE_DIAG_")}
    return outside | {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
