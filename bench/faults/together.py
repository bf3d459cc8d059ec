"""Eight runs at once on one report and one cache, with and without one that is killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.places import ROOT

_RUNS: Final = 8
_COUNTING: Final = """#!/bin/sh
for word in "$@"; do case $word in --type=sqlite) echo export >>'{calls}' ;; esac; done
exec '{nsys}' "$@"
"""


def together(folder: Path, reports: Path | None, rounds: int) -> int:
    """Print how many exports there were and what was wrong; every second round one run is killed."""
    nsys = shutil.which("nsys")
    if reports is None or nsys is None:
        print("No nsys or no reports: would have shown that eight runs at once export once.")
        return 0
    calls, counting = folder / "calls", folder / "nsys"
    counting.write_text(_COUNTING.format(calls=calls, nsys=nsys), encoding="utf-8")
    counting.chmod(0o755)
    report = reports / "rtx6000_2021.qdrep"
    wrong = 0
    print(
        "| Round | Killed | Exports | Wrong results | Left in the cache |\n|---|---|---|---|---|", flush=True
    )
    for number in range(rounds):
        cache = folder / f"cache{number}"
        calls.write_text("", encoding="utf-8")
        outs = [folder / f"{number}_{run}.json" for run in range(_RUNS)]
        runs = [_start(report, cache, counting, out) for out in outs]
        killed = number % 2
        if killed:
            time.sleep(0.4 + 0.1 * number % 0.6)
            runs[0].kill()
        codes = [run.wait() for run in runs]
        exports = len(calls.read_text(encoding="utf-8").split())
        results = {out.read_bytes() for out in outs[killed:] if out.exists()}
        bad = sum(code != 0 for code in codes[killed:]) + len(results) - 1
        _start(
            report, cache, counting, folder / f"{number}_last.json"
        ).wait()  # clears what the killed one left
        left = len(list(cache.iterdir())) - 2
        print(f"| {number} | {killed} | {exports} | {bad} | {left} |", flush=True)
        wrong += bad + left + (exports > 1 + killed)
    return 1 if wrong else 0


def _start(report: Path, cache: Path, nsys: Path, out: Path) -> subprocess.Popen[bytes]:
    words = ("analyze", report, "--cache-dir", cache, "--nsys", nsys, "-o", out, "-f", "json")
    return subprocess.Popen(
        [sys.executable, "-m", "diagnoser", *map(str, words)], cwd=ROOT, env=dict(os.environ)
    )
