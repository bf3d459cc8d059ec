"""Start a program of the user's, nsys, and wait for it: watched, alone, and never longer than a limit.

It gets a list of words, no shell, and of our environment only what a program needs to be found and to run:
no library to load first, no key, no token. It is the leader of a session, so that all it starts ends with it.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_POLL_S: Final = 0.2
_NEEDED: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR"),
    *("LANG", "LC_ALL", "LC_CTYPE"),  # how bytes of a path are read
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: its exit code (negative: the signal that killed it), and its words."""

    code: int
    output: str
    words: str


class TookTooLong(Exception):
    """It did not end in time, and was killed with all that it started."""


def run_watched(
    command: Sequence[str], limit_s: float, tick: Callable[[], None], folder: Path | None = None
) -> Ended:
    """Run a program in `folder`, calling `tick` about every 0.2 s; `output` and `words`: stdout and stderr.

    On any exception, Ctrl-C included, it and all it started are killed first. Raises `TookTooLong`, and
    OSError where it does not start.
    """
    process = subprocess.Popen(
        list(command),
        cwd=folder,
        env=clean_environment(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            output, words = _wait(process, time.monotonic() + limit_s, tick)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    return Ended(process.returncode, output, words)


def clean_environment(given: Mapping[str, str]) -> dict[str, str]:
    """What of an environment a program needs to run."""
    return {name: given[name] for name in _NEEDED if name in given}


def _wait(process: subprocess.Popen[str], end_s: float, tick: Callable[[], None]) -> tuple[str, str]:
    while True:
        tick()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_POLL_S)
        if time.monotonic() > end_s:
            raise TookTooLong
