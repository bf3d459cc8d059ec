"""A reader under attack: how its inputs are made, step by step, and what must hold of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, Generic, TypeVar

from bench.fuzz.mutations import flipped
from traces.errors import MoeDiagError

T = TypeVar("T")
STEPS: Final = (0, 1, 1, 1, 2, 2, 3, 5, 8)
BYTES_TOO: Final = 4
"""One in so many inputs has its bytes changed as well."""


@dataclass(frozen=True, slots=True)
class Target(Generic[T]):
    """`begin` gives a whole input, `spoil` changes one thing of it, `written` gives file name and bytes.

    `check` reads the file, and goes the whole way where `deep`; it raises `MoeDiagError` for an input that is
    refused, and anything else where the reader is wrong.
    """

    name: str
    begin: Callable[[Random], T]
    spoil: Callable[[Random, T], T]
    written: Callable[[Random, T], tuple[str, bytes]]
    check: Callable[[Path, bool], None]
    deep: int = 100
    """One in so many inputs goes the whole way, to a report."""
    ready: Callable[[], None] = lambda: None
    """What a long run does first."""


AnyTarget = Target[Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One input of a target. `steps`: those of its changes that are made, the last of its bytes."""

    target: AnyTarget
    seed: int
    number: int
    steps: tuple[int, ...]

    @property
    def is_deep(self) -> bool:
        """Whether it goes the whole way."""
        return self.number % self.target.deep == 0

    def made(self) -> tuple[str, bytes]:
        """File name and bytes; each step draws for itself, so that any of them can be left out."""
        input_ = self.target.begin(self._drawn("begin"))
        for step in self.steps[:-1] if BYTES in self.steps else self.steps:
            input_ = self.target.spoil(self._drawn(step), input_)
        name, content = self.target.written(self._drawn("written"), input_)
        return name, flipped(self._drawn("bytes"), content) if BYTES in self.steps else content

    def _drawn(self, part: object) -> Random:
        return Random(f"{self.target.name} {self.seed} {self.number} {part}")


BYTES: Final = -1
"""The step that changes bytes, after all others."""


def case(target: AnyTarget, seed: int, number: int) -> Case:
    """The input of a number, with all of its steps."""
    drawn = Random(f"{target.name} {seed} {number}")
    count = drawn.choice(STEPS)
    changes_bytes = not count or drawn.randrange(BYTES_TOO) == 0
    return Case(target, seed, number, (*range(count), *([BYTES] if changes_bytes else ())))


def problem(target: AnyTarget, path: Path, content: bytes, deep: bool) -> str | None:
    """Write an input, read it, and name what is wrong: an exception, a changed file, or one left behind."""
    path.write_bytes(content)
    found = None
    try:
        target.check(path, deep)
    except MoeDiagError as error:
        lines = str(error).count("\n")
        found = f"{type(error).__name__} of {lines + 1} lines" if lines else None
    except Exception as error:
        found = signature(error)
    if path.read_bytes() != content:
        return "the input was changed"
    if [one.name for one in path.parent.iterdir()] != [path.name]:
        return "a file was left beside the input"
    return found


def signature(error: BaseException) -> str:
    """What tells one bug from another: the exception, and where it was raised."""
    at = error.__traceback__
    places: list[str] = []
    while at is not None:
        places.append(f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}")
        at = at.tb_next
    said = " ".join(str(error).split())[:80]
    return f"{type(error).__name__} at {' < '.join(reversed(places[-3:]))}: {said}"


def alike(first: str | None, second: str | None) -> bool:
    """Whether two problems are of one cause; what the messages hold may differ."""
    return first is not None and second is not None and first.partition(": ")[0] == second.partition(": ")[0]


def fewest_steps(one: Case, fails: Callable[[Case], bool]) -> Case:
    """The case with no step left out of which it would still fail."""
    for step in one.steps:
        less = Case(one.target, one.seed, one.number, tuple(each for each in one.steps if each != step))
        one = less if fails(less) else one
    return one


def shortest(content: bytes, fails: Callable[[bytes], bool], tries: int = 300) -> bytes:
    """Bytes of which no piece can be left out, as far as some tries find it."""
    size = max(len(content) // 2, 1)
    while size and tries > 0:
        at = 0
        while at < len(content) and tries > 0:
            less = content[:at] + content[at + size :]
            tries -= 1
            if fails(less):
                content = less
            else:
                at += size
        size //= 2
    return content


def one_of(rng: Random, several: Sequence[T]) -> T:
    """One of several, drawn."""
    return several[rng.randrange(len(several))]
