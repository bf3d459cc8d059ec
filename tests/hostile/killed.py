"""What runs leave that are killed: real processes, which neither put back nor clear."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

import pytest

from traces.files import moved
from traces.files.aside import aside
from traces.files.folder import Folder, open_folder
from traces.files.moved import MADE, move_to_new, move_together


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


def left_by_a_killed_run(place: Path) -> Path:
    """The folder of a run that was killed after it had put something into it."""
    before = {*place.iterdir()}

    def work() -> None:
        with open_folder(place) as folder, aside(folder) as own:
            own.write_new("export.sqlite", b"half of it")
            die()

    killed(work)
    (left,) = {*place.iterdir()} - before
    return left


TICKET: Final = ("run_report.md", "run_report.png", "run_manifest.json")


def ticket(folder: Path, step: int = 0) -> None:
    """Move three files into a folder, over what is there; killed before the file of that number, if any."""
    moves = 0

    def move(made: str, source: Folder, place: Folder, name: str) -> None:
        nonlocal moves
        moves += 1
        if moves == step:
            die()
        move_to_new(made, source, place, name)

    with pytest.MonkeyPatch.context() as patched, open_folder(folder) as place, aside(place) as own:
        patched.setattr(moved, "move_to_new", move)
        own.new_folder(MADE, 0o700)
        with own.inner(MADE) as made:
            for name in TICKET:
                made.write_new(name, f"new {name}".encode())
        move_together(own, place, TICKET, force=True)


def half_moved(folder: Path, step: int) -> Path:
    before = {*folder.iterdir()}
    killed(lambda: ticket(folder, step))
    (left,) = {*folder.glob(".moe-diag-*")} - before
    return left


def older(folder: Path, names: tuple[str, ...] = TICKET) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_text(f"old {name}", encoding="utf-8")
    return folder
