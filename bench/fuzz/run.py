"""Inputs by the hundred thousand, in processes of their own: what one does cannot end the run.

A process works in numbers that its parent sees, so that an input that crashes or never ends is known, and
made again.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.context import ForkProcess
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.fuzz.target import BYTES, AnyTarget, Case, alike, case, fewest_steps, problem, shortest

MEMORY_BYTES: Final = 2 << 30
"""What an input may take beside what the program takes itself."""
HANG_S: Final = 10.0
_LOOK_S: Final = 0.05
_SMALLER_S: Final = 20.0
"""So long a failing input is made smaller."""
_FORK: Final = multiprocessing.get_context("fork")
_KINDS_KEPT: Final = 20
"""Of so many kinds of problems one input each is kept."""


@dataclass(slots=True)
class Found:
    """What a run of a target found: how many inputs, and of each kind of problem one input and how often."""

    target: str
    seed: int
    inputs: int = 0
    seconds: float = 0.0
    problems: dict[str, int] = field(default_factory=dict)
    """What was wrong -> the number of the first such input."""
    count: int = 0

    def add(self, number: int, said: str) -> None:
        """Note a problem, once of each kind."""
        self.count += 1
        if len(self.problems) < _KINDS_KEPT and not any(alike(said, other) for other in self.problems):
            self.problems[said] = number


def attack(
    target: AnyTarget, seed: int, inputs: int, seconds: float, jobs: int, hang_s: float = HANG_S
) -> Found:
    """Read so many inputs, or as many as the time allows, in so many processes."""
    target.ready()
    case(target, seed, 0).made()  # seeds are made once, before the processes part
    found, begun = Found(target.name, seed), time.monotonic()
    queue: SimpleQueue[tuple[int, str]] = _FORK.SimpleQueue()
    workers = [_Worker(target, seed, range(first, inputs, jobs), queue, hang_s) for first in range(jobs)]
    while sum(worker.goes_on() for worker in workers):  # each of them is asked
        _take(queue, found)
        if time.monotonic() - begun > seconds:
            for worker in workers:
                worker.stop()
            break
        time.sleep(_LOOK_S)
    _take(queue, found)
    found.inputs = sum(worker.done for worker in workers)
    found.seconds = time.monotonic() - begun
    return found


def _take(queue: SimpleQueue[tuple[int, str]], found: Found) -> None:
    while not queue.empty():
        found.add(*queue.get())


class _Worker:
    """One process, begun again behind an input that ended it."""

    def __init__(
        self, target: AnyTarget, seed: int, numbers: range, queue: SimpleQueue[tuple[int, str]], hang_s: float
    ) -> None:
        self._target, self._seed, self._numbers, self._queue = target, seed, numbers, queue
        self._hang_s = hang_s
        self._place: Any = _FORK.Value("q", 0, lock=False)
        self._seen = 0, time.monotonic()
        self._begin()

    @property
    def done(self) -> int:
        """How many inputs it has read."""
        return int(self._place.value)

    def goes_on(self) -> bool:
        """Whether inputs are left; a process that crashed or hangs is noted, and begun again behind it."""
        place, now = self.done, time.monotonic()
        if place != self._seen[0]:
            self._seen = place, now
        ended, hangs = not self._process.is_alive(), now - self._seen[1] > self._hang_s
        if not ended and not hangs:
            return True
        self.stop()
        if place >= len(self._numbers):
            return False
        said = f"no end within {self._hang_s:g} s" if hangs else f"ended by {self._process.exitcode}"
        self._queue.put((self._numbers[place], said))
        self._place.value = place + 1
        self._begin()
        return True

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()

    def _begin(self) -> None:
        self._seen = self.done, time.monotonic()
        self._process: ForkProcess = _FORK.Process(target=self._work, daemon=True)
        self._process.start()

    def _work(self) -> None:
        _limit_memory()
        warnings.simplefilter("error")  # as the tests have it: a number that overflows is a wrong one
        with TemporaryDirectory(dir=_fast_folder()) as folder:
            for number in self._numbers[self.done :]:
                if said := outcome(case(self._target, self._seed, number), Path(folder)):
                    self._queue.put((number, said))
                self._place.value += 1


def outcome(one: Case, folder: Path) -> str | None:
    """What is wrong with a case, None where nothing is. The folder is empty before and after."""
    name, content = one.made()
    return read_as(one.target, name, content, folder, one.is_deep)


def read_as(target: AnyTarget, name: str, content: bytes, folder: Path, deep: bool) -> str | None:
    """The same of bytes."""
    path = folder / name
    try:
        return problem(target, path, content, deep)
    finally:
        for left in folder.iterdir():
            left.unlink()


def _fast_folder() -> Path | None:
    """A folder in memory, where there is one."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() else None


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    most = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def smallest(target: AnyTarget, seed: int, number: int, said: str) -> tuple[str, bytes]:
    """File name and bytes of the failing input with as little changed as still fails in the same way."""
    with TemporaryDirectory(dir=_fast_folder()) as name:
        folder = Path(name)

        def still(file_name: str, content: bytes) -> bool:
            in_time = time.monotonic() < end
            return in_time and alike(_alone(target, file_name, content, folder, one.is_deep), said)

        one = case(target, seed, number)
        if said.startswith("no end"):  # each try would take that long
            return one.made()
        end = time.monotonic() + _SMALLER_S
        one = fewest_steps(one, lambda less: still(*less.made()))
        file_name, content = one.made()
        if BYTES in one.steps or not content.startswith((b"SQLite", b"\x1f\x8b", b"moe-diag")):
            content = shortest(content, lambda less: still(file_name, less))
        return file_name, content


def _alone(target: AnyTarget, name: str, content: bytes, folder: Path, deep: bool) -> str | None:
    """What is wrong with an input, read by a process of its own."""
    queue: SimpleQueue[str | None] = _FORK.SimpleQueue()
    process = _FORK.Process(
        target=lambda: queue.put(read_as(target, name, content, folder, deep)), daemon=True
    )
    process.start()
    process.join(HANG_S)
    if process.is_alive():
        process.kill()
        process.join()
        return f"no end within {HANG_S:g} s"
    return f"ended by {process.exitcode}" if process.exitcode else queue.get()


@contextmanager
def a_folder() -> Iterator[Path]:
    """An empty folder, in memory where that can be."""
    with TemporaryDirectory(dir=_fast_folder()) as name:
        yield Path(name)
