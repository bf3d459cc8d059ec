"""What runs leave that are killed: real processes, which neither put back nor clear."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from traces.files.aside import aside
from traces.files.folder import Folder, open_folder


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("killed")


def killed(work: Callable[[], object]) -> None:
    """Do something in a process of its own, which must be killed in the midst of it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def left_by_a_killed_run(place: Path, fill: Callable[[Folder], object] = lambda own: None) -> Path:
    """The folder of a run that was killed after it had put something into it."""
    before = {*place.iterdir()}

    def work() -> None:
        with open_folder(place) as folder, aside(folder) as own:
            own.write_new("export.sqlite", b"half of it")
            fill(own)
            die()

    killed(work)
    (left,) = {*place.iterdir()} - before
    return left
