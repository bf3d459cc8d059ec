"""python -m bench.speed: everything side by side in one run, as tables of markdown.

BENCH_LARGE=1: exports of 5 and 20 million kernels as well.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from bench.speed.contenders import Contender, of_exports, of_kineto, of_many, of_ranks, of_start, ours
from bench.speed.cost import Cost, Failed, cost_of, median_of
from bench.speed.table import machine, table
from tests.places import ROOT
from traces.ranks.summaries.codec import VERSION

_SIZES: Final = (5_000, 300_000, 1_000_000)
_LARGE: Final = (5_000_000, 20_000_000)
_MANY: Final = 300_000
_KINETO: Final = (5_000, 300_000)
_RANKS: Final = 4_096
_PARTS: Final = ("start", "exports", "kineto", "many", "ranks")


def main(words: Sequence[str] | None = None) -> None:
    """Measure as the command line says; what is being done goes to stderr."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description=__doc__)
    large = _LARGE if os.environ.get("BENCH_LARGE") == "1" else ()
    parser.add_argument("--rounds", type=int, default=5, help="each figure is the median of so many runs")
    parser.add_argument(
        "--kernels", type=int, nargs="+", default=[*_SIZES, *large], help="sizes of the exports"
    )
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which a command is ended")
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=_PARTS)
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moe-diag-bench"
    parser.add_argument("--cache", type=Path, default=default, help="files and environments that are kept")
    options = parser.parse_args(words)
    options.cache.mkdir(parents=True, exist_ok=True)
    bench = _Bench(options.cache.resolve(), options.rounds, options.limit)
    print(f"Medians of {options.rounds}; {machine()}.\n")
    if "start" in options.only:
        print(table("Start", bench.costs(of_start(), bench.cache), "a bare interpreter"), flush=True)
    for kernels in options.kernels if "exports" in options.only else ():
        costs = bench.costs(of_exports(bench.cache), bench.export(kernels))
        print(table(f"{kernels:,} kernels, SQLite", costs, "`nsys stats`", kernels), flush=True)
    for kernels in _KINETO if "kineto" in options.only else ():
        costs = bench.costs(of_kineto(bench.cache), bench.kineto(kernels))
        print(table(f"{kernels:,} kernels, JSON", costs, "HolisticTraceAnalysis", kernels), flush=True)
    if "many" in options.only:
        costs = bench.costs([of_many(1), of_many(2)], bench.ranks_of(_MANY, 8))
        print(table(f"Eight ranks of {_MANY:,} kernels each", costs, "--jobs 1", 8 * _MANY), flush=True)
    if "ranks" in options.only:
        costs = bench.costs([of_ranks()], bench.ranks(_RANKS))
        print(table(f"{_RANKS:,} summaries of ranks", costs, "moe-diag merge"), flush=True)


class _Bench:
    """Files that are made once and kept, and rounds over the contenders."""

    def __init__(self, cache: Path, rounds: int, limit_s: float) -> None:
        self.cache, self._rounds, self._limit_s = cache, rounds, limit_s

    def export(self, kernels: int) -> Path:
        """An export of so many kernels."""
        path = self.cache / f"made_up_{kernels}.sqlite"
        if not path.exists():
            _write(path, "million", str(kernels))
        return path

    def kineto(self, kernels: int) -> Path:
        """The same as the PyTorch profiler's JSON."""
        path = self.cache / f"made_up_{kernels}.json.gz"
        if not path.exists():
            _write(path, "kineto", str(self.export(kernels)))
        return path

    def ranks_of(self, kernels: int, count: int) -> Path:
        """A folder with the exports of several ranks."""
        folder = self.cache / f"made_up_{count}_ranks_of_{kernels}"
        folder.mkdir(exist_ok=True)
        for rank in range(count):
            if not (copy := folder / f"rank{rank}.sqlite").exists():
                _write(copy, "replica", str(self.export(kernels)), str(rank))
        return folder

    def ranks(self, count: int) -> Path:
        """A folder with the summaries of a run of so many ranks."""
        path = self.cache / f"made_up_{count}_ranks_{VERSION}"
        if not path.exists():
            _write(path, "ranks", str(count))
        return path

    def costs(self, contenders: Iterable[Contender | Failed], path: Path) -> dict[str, Cost | Failed]:
        """The medians of each, which take turns; one that fails is not run again."""
        found: dict[str, list[Cost] | Failed] = {}
        taking_part: list[Contender] = []
        for one in contenders:
            if isinstance(one, Failed):
                print(one.reason + "\n")
            else:
                taking_part.append(one)
        if path.is_file():
            self._run(Contender("warm-up", ours(), environment=taking_part[-1].environment), path)
        for number in range(self._rounds):
            for one in taking_part:
                before = found.setdefault(one.name, [])
                if isinstance(before, Failed):
                    continue
                print(f"{path.name}, round {number + 1}: {one.name}", file=sys.stderr)
                cost = self._run(one, path)
                if isinstance(cost, Failed):
                    found[one.name] = cost
                else:
                    before.append(cost)
        return {name: one if isinstance(one, Failed) else median_of(one) for name, one in found.items()}

    def _run(self, contender: Contender, path: Path) -> Cost | Failed:
        with tempfile.TemporaryDirectory(dir=self.cache) as scratch:
            if contender.of_copy:
                path = Path(shutil.copy(path, scratch))
            return cost_of(contender.command(path), Path(scratch), self._limit_s, contender.environment)


def _write(path: Path, writer: str, *what: str) -> None:
    """Write a file in a process of its own: what this one takes would count as what it starts takes."""
    print(f"writing {path.name}", file=sys.stderr)
    part = path.with_suffix(".part")
    subprocess.run([sys.executable, "-m", f"bench.speed.{writer}", str(part), *what], cwd=ROOT, check=True)
    part.rename(path)


if __name__ == "__main__":
    main()
