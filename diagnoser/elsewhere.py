"""Work that is done elsewhere, in other processes or on a cluster: tasks, results, and what stays there.

What changes of a run save together is asked only once all ranks are judged, and the graphs that answer are
too large to travel. So a result travels without them, and what is asked of them goes to where they are: all
questions are collected, then each result is asked once. Where graphs were lost with their process, the task
is done again.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from traces.errors import ProcessEnded
from traces.replay.changes.change import Joint, Together

T = TypeVar("T")
R = TypeVar("R")

Question = tuple[int, tuple[str, ...]]
"""Which of the `Together` of a result, by its place in it, and the kinds of change."""


class Elsewhere(Protocol):
    """Whatever does the same work on several things, as a context manager."""

    def __enter__(self) -> Elsewhere:
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """End all that was begun; results are of use until then."""

    def map(self, work: Callable[[T], R], tasks: Mapping[str, T]) -> list[R | ProcessEnded]:
        """The result of `work`, a function of a module, for each task, in order; tasks are given by name.

        What `work` raises is raised here: of several tasks that fail, the first by order. Where the process
        of a task is ended from outside, that is its result, and the others go on.
        """


@dataclass(frozen=True, slots=True)
class Task:
    """One of several things to do; `session` is the same for all of them and for no others."""

    session: str
    place: int
    name: str
    work: Callable[[Any], Any]
    given: Any


def tasks_of(work: Callable[[T], R], tasks: Mapping[str, T]) -> list[Task]:
    """The tasks of one session."""
    session = uuid4().hex
    return [Task(session, place, name, work, given) for place, (name, given) in enumerate(tasks.items())]


def _always() -> bool:
    return True


class Maker:
    """What a process did, and of each result what stays with it; only of the newest session.

    `has_room`: whether more may stay; asked each time something could.
    """

    def __init__(self, has_room: Callable[[], bool] = _always) -> None:
        self._has_room = has_room
        self._session = ""
        self._kept: dict[int, list[Together]] = {}

    def make(self, task: Task) -> bytes:
        """The result of a task, packed without what stays here."""
        packed, kept = _packed(task)
        if task.session != self._session:
            self._session, self._kept = task.session, {}
        if self._has_room():
            self._kept[task.place] = kept
        return packed

    def answer(self, task: Task, asked: Collection[Question]) -> list[Joint]:
        """What changes save, as the task found them; it is done again where nothing stayed of it."""
        kept = self._kept.get(task.place) if task.session == self._session else None
        if kept is None:
            kept = _packed(task)[1]
        return [kept[number].joint(kinds) for number, kinds in asked]

    def forget(self, session: str) -> None:
        """Give back what stayed of a session that has ended."""
        if session == self._session:
            self._kept = {}


def _packed(task: Task) -> tuple[bytes, list[Together]]:
    packed, kept = io.BytesIO(), list[Together]()
    _Pickler(packed, kept).dump(task.work(task.given))
    return packed.getvalue(), kept


class Questions:
    """What is asked of results that were made elsewhere.

    `send` asks: the questions by the place of their result, and in the same order the answers to those of
    each, or that the process which was to answer has ended.
    """

    def __init__(
        self, send: Callable[[Mapping[int, list[Question]]], Sequence[list[Joint] | ProcessEnded]]
    ) -> None:
        self._send = send
        self._waiting: dict[int, list[Question]] = {}
        self._answers: dict[tuple[int, Question], Joint] = {}

    def unpacked(self, place: int, packed: bytes) -> Any:
        """The result at a place, as it was packed."""
        return _Unpickler(io.BytesIO(packed), self, place).load()

    def expect(self, place: int, question: Question) -> None:
        """Collect a question, to be sent with the others."""
        waiting = self._waiting.setdefault(place, [])
        if (place, question) not in self._answers and question not in waiting:
            waiting.append(question)

    def joint(self, place: int, question: Question) -> Joint:
        """The answer to a question. Raises `ProcessEnded` where nobody could give it."""
        if (place, question) not in self._answers:
            self.expect(place, question)
            waiting, self._waiting = {at: asked for at, asked in self._waiting.items() if asked}, {}
            for (at, asked), joints in zip(waiting.items(), self._send(waiting), strict=True):
                if isinstance(joints, ProcessEnded):
                    raise joints
                self._answers |= {(at, one): joint for one, joint in zip(asked, joints, strict=True)}
        return self._answers[place, question]


class _Far(Together):
    """Changes of a rank that are replayed where they were found."""

    def __init__(self, questions: Questions, place: int, number: int) -> None:
        self._questions, self._place, self._number = questions, place, number

    def expect(self, kinds: Collection[str]) -> None:
        """Ask with the others."""
        self._questions.expect(self._place, (self._number, tuple(kinds)))

    def joint(self, kinds: Collection[str]) -> Joint:
        """What the changes of some kinds save, as is found where their graph is."""
        return self._questions.joint(self._place, (self._number, tuple(kinds)))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, questions: Questions, place: int) -> None:
        super().__init__(file)
        self._questions, self._place = questions, place

    def persistent_load(self, number: int) -> _Far:
        return _Far(self._questions, self._place, number)


class _Pickler(pickle.Pickler):
    """Leaves out what stays."""

    def __init__(self, file: io.BytesIO, kept: list[Together]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._kept = kept

    def persistent_id(self, one: object) -> int | None:
        if not isinstance(one, Together):
            return None
        self._kept.append(one)
        return len(self._kept) - 1


@dataclass(slots=True)
class Gathered:
    """Results as they come. From place `end` on none counts, as one before failed."""

    count: int
    results: dict[int, Any] = field(default_factory=dict)
    failed: Exception | None = None
    end: int = -1

    def __post_init__(self) -> None:
        self.end = self.count

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to wait for."""
        return len(self.results) >= self.end

    def add(self, place: int, result: object) -> None:
        """What the task at a place gave."""
        if place < self.end:
            self.results[place] = result

    def fail(self, place: int, error: Exception) -> None:
        """What the task at a place raised."""
        if place < self.end:
            self.failed, self.end = error, place
            self.results = {at: one for at, one in self.results.items() if at < place}

    def in_order(self) -> list[Any]:
        """The results; raises what the first task that failed raised."""
        if self.failed:
            raise self.failed
        return [self.results[place] for place in range(self.count)]
