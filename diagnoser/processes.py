"""The same work on several things at once, in processes of this machine, with the results in order.

Not `concurrent.futures`: a task goes to a chosen process, where what it needs was made.

On Linux processes are forked: they start at once, with everything imported, where starting anew costs each
half a second. Forking is safe while Python runs one thread (libraries guard the threads of their own), so a
program with several, and other systems, start anew. Ctrl-C and a terminal that goes away are the parent's
alone: it ends the others, and what they started.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, TypeVar

from diagnoser.elsewhere import Gathered, Maker, Question, Questions, Task, tasks_of
from traces.errors import ProcessEnded
from traces.limits import Limit
from traces.progress import Progress, listening
from traces.replay.changes.change import Joint

T = TypeVar("T")
R = TypeVar("R")

PATIENCE: Final = Limit(
    10, "seconds", "ours: to remove a half-made export takes under one; a compiled loop hears no signal"
)
_RELAY_S: Final = 0.1
"""How often a process says how far it is."""


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class _Job:
    """A task, or with `asked` questions about what it made; `pipe` leads to the process that made it."""

    task: Task
    asked: tuple[Question, ...] | None = None
    pipe: Connection | None = None


@dataclass(frozen=True, slots=True)
class _Doing:
    what: str
    rows: int | None


@dataclass(frozen=True, slots=True)
class _Done:
    result: Any


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


@dataclass(eq=False, slots=True)
class _Worker:
    """A process, this side of the pipe to it, and the place of the job it has."""

    process: BaseProcess
    pipe: Connection
    place: int | None = None


@dataclass(eq=False, slots=True)
class Workers:
    """At most `jobs` processes, as a context manager at whose end they end; with one job, none but this.

    `jobs` None: as many as there are cores.
    """

    jobs: int | None
    progress: Progress
    _workers: list[_Worker] = field(default_factory=list)
    _made: dict[int, Connection] = field(default_factory=dict)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(PATIENCE.value)
            worker.process.kill()  # nothing to one that has ended
            worker.process.join()
            worker.pipe.close()

    def map(self, work: Callable[[T], R], tasks: Mapping[str, T]) -> list[R | ProcessEnded]:
        """The result of `work` for each task, as `Elsewhere` says; what it reports reaches `progress`."""
        if min(self.jobs or _usable_cores(), len(tasks)) <= 1:
            with listening(self.progress):
                return [work(task) for task in tasks.values()]
        several = tasks_of(work, tasks)
        questions = Questions(lambda asked: self._answers(several, asked))
        found = self._run([_Job(task) for task in several])
        return [
            one if isinstance(one, ProcessEnded) else questions.unpacked(place, one)
            for place, one in enumerate(found)
        ]

    def _answers(
        self, tasks: Sequence[Task], asked: Mapping[int, Sequence[Question]]
    ) -> list[list[Joint] | ProcessEnded]:
        here = {worker.pipe for worker in self._workers}
        jobs = [
            _Job(tasks[place], tuple(several), pipe if (pipe := self._made.get(place)) in here else None)
            for place, several in asked.items()
        ]
        return self._run(jobs)

    def _run(self, jobs: Sequence[_Job]) -> list[Any]:
        """What each job gave, or `ProcessEnded`."""
        gathered, left = Gathered(len(jobs)), dict(enumerate(jobs))
        while not gathered.is_whole:
            self._start(min(self.jobs or _usable_cores(), len(jobs) - len(gathered.results)))
            self._hand_out(left, gathered)
            for worker, message in self._messages():
                assert worker.place is not None
                job = jobs[worker.place]
                if isinstance(message, _Doing):
                    done = len(gathered.results)
                    doing = f"{done} of {len(jobs)} done, {message.what}"
                    self.progress(doing, done / len(jobs), message.rows)
                    continue
                if isinstance(message, _Failed):
                    gathered.fail(worker.place, message.error)
                elif isinstance(message, _Done):
                    gathered.add(worker.place, message.result)
                    if job.asked is None:
                        self._made[job.task.place] = worker.pipe
                else:
                    gathered.add(worker.place, _ended(job.task.name))
                    left |= self._lost(worker, left)
                worker.place = None
        return gathered.in_order()

    def _hand_out(self, left: dict[int, _Job], gathered: Gathered) -> None:
        """Give each idle process the first job that it may have."""
        for worker in list(self._workers):
            if worker.place is not None:
                continue
            if not worker.process.is_alive():
                left |= self._lost(worker, left)
                continue
            for place, job in left.items():
                if place < gathered.end and job.pipe in (None, worker.pipe):
                    worker.place = place
                    del left[place]
                    with suppress(OSError):  # it has ended, which is seen where its messages are read
                        worker.pipe.send((job.task, job.asked))
                    break

    def _lost(self, worker: _Worker, left: Mapping[int, _Job]) -> dict[int, _Job]:
        """Put away a process that has ended: the jobs that only it was to have, for any."""
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        return {place: replace(job, pipe=None) for place, job in left.items() if job.pipe is worker.pipe}

    def _start(self, count: int) -> None:
        forks = _forks()
        context = multiprocessing.get_context("fork") if forks else multiprocessing.get_context("spawn")
        while len(self._workers) < count:
            ours, theirs = context.Pipe()
            inherited = [ours, *(worker.pipe for worker in self._workers)] if forks else []
            process = context.Process(target=_serve, args=(theirs, inherited), daemon=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which are not Python's
                process.start()
            theirs.close()
            self._workers.append(_Worker(process, ours))

    def _messages(self) -> list[tuple[_Worker, object]]:
        """What the busy processes have said, once any has; None of one that has ended."""
        busy = {worker.pipe: worker for worker in self._workers if worker.place is not None}
        found: list[tuple[_Worker, object]] = []
        for pipe in wait(list(busy)) if busy else ():
            worker = next(one for one in busy.values() if one.pipe is pipe)
            try:
                found.append((worker, worker.pipe.recv()))
            except (EOFError, OSError):
                found.append((worker, None))
        return found


def _forks() -> bool:
    return sys.platform == "linux" and threading.active_count() == 1


def _ended(name: str) -> ProcessEnded:
    return ProcessEnded(
        f"the process that read {name} was ended from outside, perhaps because memory ran out. "
        "Give --jobs 1: one trace at a time takes least."
    )


class _Server:
    """What a process does: one task, or one question, after the other, until its parent ends it."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._maker = Maker()
        self._said_s = 0.0

    def serve(self) -> None:
        while True:
            task, asked = self._pipe.recv()
            # A task is ended by SIGTERM as by Ctrl-C, so that what it started is ended and its files go.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            try:
                with listening(self._say):
                    answer: object = _Done(
                        self._maker.make(task) if asked is None else self._maker.answer(task, asked)
                    )
            except Exception as error:
                error.add_note(traceback.format_exc())
                answer = _Failed(error)
            self._send(answer)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _say(self, doing: str, fraction: float | None = None, rows: int | None = None) -> None:
        if (now := time.monotonic()) - self._said_s >= _RELAY_S:
            self._said_s = now
            self._send(_Doing(doing, rows))

    def _send(self, answer: object) -> None:
        self._pipe.send(answer)


def _serve(pipe: Connection, inherited: list[Connection]) -> None:
    """All of a process. Ends of pipes that it inherits are closed: else none would see its parent end."""
    for other in inherited:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        _Server(pipe).serve()
    except (EOFError, OSError, KeyboardInterrupt):
        return  # the parent has ended, or ends this
