"""Run the user's nsys on a report, watched: it ends with us, shows nothing, and leaves nothing elsewhere.

The options were tried with 2022.4.2 and are documented alike up to 2026.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from traces.errors import NsysUnavailable
from traces.formats.nsys_tool import Nsys
from traces.progress import Progress

_POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Ended:
    """How nsys ended: its exit code (negative: the signal that killed it) and what it wrote to stderr."""

    code: int
    words: str


def run_export(nsys: Nsys, report: Path, output: Path, progress: Progress) -> Ended:
    """Export a report to the SQLite file `output` and say how nsys ended; what it left is not judged here.

    `output` must not exist, and its folder must be the caller's own: nsys runs in it. `progress` is called
    about every 0.2 s. On any exception, Ctrl-C included, nsys and all it started are killed first. Raises
    `NsysUnavailable` where nsys does not start.
    """
    doing = f"exporting {report.name} with nsys {nsys.release}"
    options = ("--type=sqlite", f"--output={output.name}", "--quiet=true")
    return _run(nsys, options, report, output.parent, lambda: progress(doing, None))


def session_start_ns(nsys: Nsys, report: Path, scratch_dir: Path) -> int | None:
    """Start of the recording in UNIX ns as the report tells it, None where nsys cannot say.

    `scratch_dir` must be the caller's own; small files stay in it. Ends and raises as `run_export` does.
    """
    output = scratch_dir / "info.json"
    output.unlink(missing_ok=True)
    options = ("--type=info", f"--output={output.name}", "--quiet=true")
    ended = _run(nsys, options, report, scratch_dir, lambda: None)
    if ended.code != 0:
        return None
    try:
        info = json.loads(output.read_text(encoding="utf-8", errors="replace"))
        return int(info["SessionStartTime"]["Nanoseconds since epoch"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _run(nsys: Nsys, options: Sequence[str], report: Path, folder: Path, tick: Callable[[], None]) -> Ended:
    """Run `nsys export` in `folder`, calling `tick` at every poll."""
    command = [str(nsys.path), "export", *options, _plain_name(report, folder)]
    try:
        # A session of its own, so that all it starts can be killed at once.
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise NsysUnavailable(
            f"{nsys.path} does not start ({error.strerror}). Try: {nsys.path} --version"
        ) from None
    with process:
        try:
            words = _wait(process, tick)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    return Ended(process.returncode, words)


def _wait(process: subprocess.Popen[str], tick: Callable[[], None]) -> str:
    while True:
        tick()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_POLL_S)[1]


def _plain_name(report: Path, folder: Path) -> str:
    """A link to the report in `folder`: nsys then sees no odd characters, and has no way to its folder."""
    link = folder / f"report{'.qdrep' if report.suffix == '.qdrep' else '.nsys-rep'}"
    target = report.resolve()
    try:
        if not link.is_symlink():
            link.symlink_to(target)
    except OSError:  # a file system without links
        return str(target)
    return link.name
