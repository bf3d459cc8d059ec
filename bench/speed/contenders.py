"""What is run side by side, each as a command; other programs in environments of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.speed.cost import Failed
from tests.places import ROOT

Command = Callable[[Path], list[str]]
"""A file -> the command that reads it."""

_TOUCH: Final = """
import sys
buffer = bytearray(1 << 20)
with open(sys.argv[1], "rb", buffering=0) as file:
    while file.readinto(buffer):
        pass
"""
_READ: Final = """
import sys
from pathlib import Path
from traces.formats.open import ReadOptions, read_trace
from traces.formats.readers import reader_named
read_trace(Path(sys.argv[1]), ReadOptions(reader=reader_named(sys.argv[2])))
"""
_PANDAS: Final = """
import sqlite3, sys
import pandas
pandas.read_sql("SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL", sqlite3.connect(sys.argv[1]))
"""
_HTA: Final = """
import sys
from hta.trace_analysis import TraceAnalysis
trace = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
trace.get_temporal_breakdown(visualize=False)
trace.get_gpu_kernel_breakdown(visualize=False)
trace.get_idle_time_breakdown(ranks=[0], visualize=False)
trace.get_comm_comp_overlap(visualize=False)
"""


@dataclass(frozen=True, slots=True)
class Contender:
    """A program and its command. `of_copy`: it writes beside its input, so each run has a copy."""

    name: str
    command: Command
    of_copy: bool = False
    environment: dict[str, str] = field(default_factory=dict)


def ours(*words: str) -> Command:
    """`analyze` from a cold start to JSON."""
    return lambda path: [
        *(sys.executable, "-m", "diagnoser", "analyze", str(path)),
        *("-f", "json", "-o", "result.json", "--force-overwrite", *words),
    ]


def _ours_named(name: str, *words: str) -> Contender:
    return Contender(name, ours(*words), environment=_PATH)


_PATH: Final = {"PYTHONPATH": str(ROOT)}


def of_exports(cache: Path) -> Iterator[Contender | Failed]:
    """Those that read an SQLite export; `Failed` says why one is not run."""
    yield Contender("touching the pages", _python(_TOUCH))
    yield Contender("reading, table pages", _python(_READ, "pages"), environment=_PATH)
    yield Contender("reading, `sqlite3`", _python(_READ, "sqlite3"), environment=_PATH)
    yield Contender("`pandas.read_sql`, kernels alone", _python(_PANDAS))
    yield _nsys_stats()
    yield _installed(
        cache, "nsys-ai", "nsys-ai diagnose", lambda home, path: [f"{home}/nsys-ai", "diagnose", path]
    )
    yield _ours_named("**moe-diag analyze**")


def of_kineto(cache: Path) -> Iterator[Contender | Failed]:
    """Those that read the PyTorch profiler's JSON."""
    yield _installed(
        cache,
        "HolisticTraceAnalysis",
        "HolisticTraceAnalysis: load, four breakdowns",
        lambda home, path: [f"{home}/python", "-c", _HTA, path],
    )
    yield _ours_named("**moe-diag analyze**")


def of_start() -> Iterator[Contender]:
    """What a start costs; they read nothing."""
    yield Contender("a bare interpreter", lambda _: [sys.executable, "-c", "pass"])
    yield Contender(
        "`moe-diag --help`", lambda _: [sys.executable, "-m", "diagnoser", "--help"], environment=_PATH
    )


def of_many(jobs: int) -> Contender:
    """Ranks of one run, read in so many processes; the file given is a folder of them."""
    command = lambda folder: [  # noqa: E731
        *(sys.executable, "-m", "diagnoser", "analyze", *sorted(map(str, folder.glob("*.sqlite")))),
        *("-f", "json", "-o", "result.json", "--force-overwrite", "--jobs", str(jobs)),
    ]
    return Contender(f"eight ranks, `--jobs {jobs}`", command, environment=_PATH)


def of_ranks() -> Contender:
    """Summaries of many ranks put together; the file given is a folder of them."""
    command = lambda folder: [  # noqa: E731
        *(sys.executable, "-m", "diagnoser", "merge", str(folder), "-o", "run.json"),
    ]
    return Contender("moe-diag merge", command, environment=_PATH)


def _python(text: str, *words: str) -> Command:
    return lambda path: [sys.executable, "-c", text, str(path), *words]


def _nsys_stats() -> Contender | Failed:
    nsys = os.environ.get("NSYS") or shutil.which("nsys")
    if nsys is None:
        return Failed("`nsys stats` is left out: no nsys on this machine.")
    version = subprocess.run([nsys, "--version"], capture_output=True, text=True, check=True).stdout
    year = re.search(r"\b(20\d\d)\.", version)
    report = "gpukernsum" if year and int(year[1]) <= 2022 else "cuda_gpu_kern_sum"
    return Contender(
        f"`nsys stats`, {report}", lambda path: [nsys, "stats", "--report", report, str(path)], True
    )


def _installed(
    cache: Path, package: str, name: str, command: Callable[[Path, str], list[str]]
) -> Contender | Failed:
    """A program of the package index, in an environment of its own; it stays in the cache."""
    home = cache / "environments" / package
    marker = home / "installed"
    if not marker.exists():
        print(f"installing {package}", file=sys.stderr)
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", package]
        if subprocess.run(pip, check=False, stdout=sys.stderr).returncode:
            return Failed(f"{package} is left out: it cannot be installed here.")
        marker.touch()
    return Contender(name, lambda path: command(home / "bin", str(path)), of_copy=True)
