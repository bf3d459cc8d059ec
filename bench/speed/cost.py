"""What a command costs: CPU time of it and all it started, wall time, and memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Timer


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one command. `peak_bytes`: resident, of its largest process."""

    cpu_s: float
    wall_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a command has no cost."""

    reason: str


def cost_of(
    command: Sequence[str], folder: Path, limit_s: float, environment: Mapping[str, str]
) -> Cost | Failed:
    """Run a command in a folder, and end it after `limit_s`."""
    started = time.monotonic()
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=os.environ | environment,
            start_new_session=True,  # so that all it starts ends with it
        )
        timer = Timer(limit_s, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        timer.cancel()
    wall_s = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode == -signal.SIGKILL and wall_s >= limit_s:
        return Failed(f"not done after {limit_s:.0f} s")
    if process.returncode:
        print((folder / "said.txt").read_text(errors="replace")[-2000:], file=sys.stderr)
        return Failed(f"ended with {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss * unit)


def median_of(costs: Sequence[Cost]) -> Cost:
    """The median of each figure."""
    return Cost(
        median(one.cpu_s for one in costs),
        median(one.wall_s for one in costs),
        round(median(one.peak_bytes for one in costs)),
    )
