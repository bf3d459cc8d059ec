"""A job, disturbed once, and all that is wrong afterwards: nothing may be."""

from __future__ import annotations

import math
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.faults.disturbed import Ended, Kill, run_in
from bench.faults.jobs import Job, aside_in, contents, put_inputs

_CODES = {0, 3, 130}
"""Of a run that was disturbed and had time to answer."""


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What a folder holds before and after the job, and how long it took."""

    before: dict[str, object]
    after: dict[str, object]
    took_s: float


@dataclass(frozen=True, slots=True)
class Trial:
    """How a disturbed run ended, how much it left aside, and what was wrong then or after the next run."""

    ended: Ended
    left: int
    wrong: list[str]


class Bench:
    """Runs one job again and again, each time in a new folder."""

    def __init__(self, job: Job, folder: Path) -> None:
        self._job, self._room, self._made = job, folder / "room", folder / "made"
        put_inputs(job, self._made)
        for words in job.prepared:
            assert run_in(self._made, words).code == 0
        self.undisturbed = self._undisturbed()

    def _undisturbed(self) -> Undisturbed:
        """The quickest of three: on a busy machine most kills then hit a run that still runs."""
        took_s = math.inf
        for _ in range(3):
            before = contents(self._fresh())
            ended = run_in(self._room, self._job.words)
            assert (ended.code, ended.words, aside_in(self._room)) == (0, "", []), ended
            took_s = min(took_s, ended.took_s)
        return Undisturbed(before, contents(self._room), took_s)

    def _fresh(self) -> Path:
        shutil.rmtree(self._room, ignore_errors=True)
        shutil.copytree(self._made, self._room)
        return self._room

    def trial(self, before: Callable[[], None] = lambda: None, *kills: Kill) -> Trial:
        """Disturb the job in a new folder, then run it again there."""
        ended = run_in(self._fresh(), self._job.words, before, *kills)
        wrong = self._wrong_answer(ended)
        left = len(aside_in(self._room))
        try:
            held = contents(self._room)
        except (ValueError, sqlite3.Error, AssertionError) as error:
            return Trial(ended, left, [*wrong, f"not whole: {error!r}"])
        wrong += [f"half or wrong: {name}" for name in held if not self._may_hold(name, held[name])]
        again = run_in(self._room, self._job.words)
        complete = held.items() >= self.undisturbed.after.items()
        if again.code != 0 and not (again.code == 2 and complete and "exists" in again.words):
            wrong.append(f"the next run: {again.code} {again.words}")
        try:
            if (found := contents(self._room)) != self.undisturbed.after:
                names = {name for name, _ in found.items() ^ self.undisturbed.after.items()}
                wrong.append(f"not as undisturbed: {sorted(names)}")
        except (ValueError, sqlite3.Error, AssertionError) as error:
            wrong.append(f"not whole after the next run: {error!r}")
        wrong += [f"left by both: {name}" for name in aside_in(self._room)]
        return Trial(ended, left, wrong)

    def _wrong_answer(self, ended: Ended) -> list[str]:
        if ended.code < 0 and not ended.words:
            return []
        lines = ended.words.splitlines()
        one_line = len(lines) <= 1 and all(line.startswith("moe-diag: ") for line in lines)
        if ended.code in _CODES and one_line and "a bug of ours" not in ended.words:
            return []
        return [f"answered {ended.code} {ended.words!r}"]

    def _may_hold(self, name: str, held: object) -> bool:
        """Whether a file is as before the job or as after it, or is what SQLite undoes."""
        if name.endswith("-journal"):
            return True
        sides = (self.undisturbed.before.get(name), self.undisturbed.after.get(name))
        return held in sides or held == []  # a history without a row
