"""One command line as a real process: forked, with everything imported, and disturbed."""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

STEPS: Final = ("os.", "shutil.", "tempfile.", "sqlite3.connect", "subprocess.Popen", "fcntl.flock")
"""Audit events that stand for a step on the disk; `open` for writing is one too."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended (negative: by that signal), what it wrote on stderr, and how long it ran."""

    code: int
    words: str
    took_s: float


@dataclass(frozen=True, slots=True)
class Kill:
    """A signal, and after how many seconds."""

    after_s: float
    by: signal.Signals


def run_in(
    room: Path, words: tuple[str, ...], before: Callable[[], None] = lambda: None, *kills: Kill
) -> Ended:
    """Run a command line in a folder. `before` is called in the process before anything else."""
    errors, theirs = os.pipe()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(errors)
        _run(room, words, theirs, before)
    os.close(theirs)
    killers = [threading.Timer(one.after_s, _kill, (child, one.by)) for one in kills]
    for killer in killers:
        killer.start()
    said = b""
    while part := os.read(errors, 65536):
        said += part
    os.close(errors)
    for killer in killers:
        killer.cancel()
        killer.join()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Ended(code, said.decode(errors="replace"), time.monotonic() - started)


def drawn(generator: random.Random, took_s: float) -> tuple[Kill, ...]:
    """When and by what a run of that length is killed; one in eight is told a second time, soon after."""
    by = generator.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    first = Kill(generator.uniform(0, took_s), by)
    again = Kill(first.after_s + generator.uniform(0, 0.01), by)
    return (first, again) if generator.random() < 1 / 8 else (first,)


def killed_at(step: int) -> Callable[[], None]:
    """Let the process kill itself just before its `step`-th step on the disk."""
    left = step

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event.startswith(STEPS) or (event == "open" and _writes(arguments[1:])):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return lambda: sys.addaudithook(hook)


def with_room_for(size_bytes: int) -> Callable[[], None]:
    """Let no file of the process grow larger: how a full disk looks to it."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))


def _writes(given: tuple[object, ...]) -> bool:
    mode, flags = given
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR)) and mode != "r"


def _kill(child: int, by: signal.Signals) -> None:
    try:
        os.kill(child, by)
    except ProcessLookupError:
        return


def _run(room: Path, words: tuple[str, ...], errors: int, before: Callable[[], None]) -> NoReturn:
    from diagnoser.cli import main

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as diagnoser.__main__ leaves it
    try:
        os.dup2(errors, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.close(errors)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        os.chdir(room)
        sys.argv = ["moe-diag", *words]
        before()
        main()
    finally:
        os._exit(99)  # not reached
