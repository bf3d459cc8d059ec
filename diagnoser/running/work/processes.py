"""The same work on several things at once, in processes of this machine, with the results in order.

What changes of a run save together is asked only once all ranks are judged, and the graphs that
answer are too large to travel. So a result stays in the process that made it, a copy without its
graphs comes back, and what is asked of it later goes to that process; where that has ended, the
result is made again.

On Linux processes are forked: they start at once, with everything imported, where starting anew
costs each half a second. Forking is safe while Python runs one thread (libraries guard the threads
of their own), so a program with several, and other systems, start anew. Ctrl-C and a terminal that
goes away are the parent's alone: it ends the others, and what they started.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, TypeVar, cast

from reports.rows import each, those
from traces.errors import ProcessEnded
from traces.frozen import frozen
from traces.limits import Limit
from traces.progress import Progress, listening

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")

PATIENCE: Final = Limit(
    10,
    "seconds",
    "ours: to remove a half-made export takes under one; a compiled loop hears no signal",
)
_RELAY_S: Final = 0.1
"""How often a process says how far it is."""


Results = dict[int, Any]
"""What work gave, by the place of its task."""


@frozen
class Job:
    """One of several things to do: `work`, or with a `question` its answer to what that gives."""

    place: int
    name: str
    work: Callable[[Any], Any]
    given: Any
    question: Callable[[Any], Any] | None = None

    def done(self, kept: Results) -> Any:
        """Do it. `kept`: results by place, to which this one is added where it is not there."""
        if self.place not in kept:
            kept[self.place] = self.work(self.given)
        result = kept[self.place]
        if self.question is None:
            return result
        return self.question(result)


@dataclass(slots=True)
class Gathered:
    """What jobs gave or raised, by place. From place `end` on none counts, as one before failed."""

    count: int
    results: Results = field(default_factory=dict)
    failed: dict[int, Exception] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return min(self.failed, default=self.count)

    @property
    def is_whole(self) -> bool:
        return {*range(self.end)} <= {*self.results}

    def add(self, place: int, result: object, error: Exception | None) -> None:
        if error is None:
            self.results[place] = result
        else:
            self.failed[place] = error

    def in_order(self) -> list[Any]:
        if self.failed:
            raise self.failed[self.end]
        return [self.results[place] for place in range(self.count)]


class Engine(AbstractContextManager["Engine"]):
    """Whatever does the same work on several things, as a context manager that ends all it
    began.
    """

    _jobs: Sequence[Job] = ()

    @abstractmethod
    def _run(self, jobs: Sequence[Job]) -> list[Any]:
        """What each job gave, or `ProcessEnded`."""

    def map(self, work: Callable[[T], R], tasks: Mapping[str, T]) -> list[R | ProcessEnded]:
        """The result of `work`, a function of a module, for each task, in order; tasks are given by
        name.

        What `work` raises is raised here: of several tasks that fail, the first by order. Where the
        process of a task is ended from outside, that is its result, and the others go on.
        """
        self._jobs = [
            Job(place, name, work, given) for place, (name, given) in enumerate(tasks.items())
        ]
        return self._run(self._jobs)

    def ask(self, questions: Mapping[int, Callable[[Any], A]]) -> list[A]:
        """Answers to questions about results of `map`, given by their place, each where its result
        stayed.

        Raises `ProcessEnded` where nobody could answer.
        """
        jobs = [
            replace(self._jobs[place], question=question) for place, question in questions.items()
        ]
        return all_of(self._run(jobs))


def all_of(results: Sequence[R | ProcessEnded]) -> list[R]:
    """Results; raises the first `ProcessEnded` among them."""
    for result in results:
        if isinstance(result, ProcessEnded):
            raise result
    return list(cast("Sequence[R]", results))


@frozen
class _Doing:
    what: str
    rows: int | None


@dataclass(eq=False, slots=True)
class _Worker:
    """A process, this side of the pipe to it, and the place of the job it has in what is run."""

    process: BaseProcess
    pipe: Connection
    busy_with: int | None = None


class Workers(Engine):
    """At most `jobs` processes; with one job, or one task, none but this. `jobs` None: as many as
    cores.
    """

    def __init__(self, jobs: int | None, progress: Progress) -> None:
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
        self._most, self._progress = jobs or cores, progress
        self._workers = list[_Worker]()
        self._made = dict[int, _Worker]()
        self._kept = Results()

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(PATIENCE.value)
            worker.process.kill()  # nothing to one that has ended
            worker.process.join()
            worker.pipe.close()

    def _run(self, jobs: Sequence[Job]) -> list[Any]:
        if min(self._most, len(self._jobs)) <= 1:
            with listening(self._progress):
                return [job.done(self._kept) for job in jobs]
        gathered, left = Gathered(len(jobs)), dict(enumerate(jobs))
        while not gathered.is_whole:
            self._start(min(self._most, len(jobs) - len(gathered.results)))
            self._hand_out(left, gathered.end)
            for worker, message in self._messages():
                assert worker.busy_with is not None
                place, job = worker.busy_with, jobs[worker.busy_with]
                if isinstance(message, _Doing):
                    done = len(gathered.results)
                    self._progress(
                        f"{done} of {len(jobs)} done, {message.what}",
                        done / len(jobs),
                        message.rows,
                    )
                    continue
                worker.busy_with = None
                if message is None:
                    ended = ProcessEnded(
                        f"the process that read {job.name} was ended from outside, perhaps because "
                        "memory ran out. Give --jobs 1: one trace at a time takes least."
                    )
                    gathered.add(place, ended, None)
                    self._bury(worker)
                else:
                    gathered.add(place, *message)
                    self._made[job.place] = worker
        return gathered.in_order()

    def _hand_out(self, left: dict[int, Job], end: int) -> None:
        """Give each idle process the first job whose result it made, or nobody that still runs."""
        for worker in those(self._workers, busy_with=None):
            if not worker.process.is_alive():
                self._bury(worker)
                continue
            for place, job in left.items():
                maker = self._made.get(job.place)
                if place < end and (maker is worker or maker not in self._workers):
                    worker.busy_with = place
                    del left[place]
                    # it has ended, which is seen where its messages are read
                    with suppress(OSError):
                        worker.pipe.send(job)
                    break

    def _bury(self, worker: _Worker) -> None:
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)

    def _start(self, count: int) -> None:
        forks = _forks()
        context: Any = multiprocessing.get_context("fork" if forks else "spawn")
        while len(self._workers) < count:
            ours, theirs = context.Pipe()
            inherited = [ours, *each(self._workers, "pipe")] if forks else []
            process = context.Process(target=_serve, args=(theirs, inherited), daemon=True)
            with warnings.catch_warnings():
                # of threads, which are not Python's
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            theirs.close()
            self._workers.append(_Worker(process, ours))

    def _messages(self) -> Iterator[tuple[_Worker, Any]]:
        """What the busy processes have said, once any has; None of one that has ended."""
        busy = {worker.pipe: worker for worker in self._workers if worker.busy_with is not None}
        for pipe in wait(list(busy)) if busy else ():
            assert isinstance(pipe, Connection)
            try:
                message = pipe.recv()
            except (EOFError, OSError):
                message = None
            yield busy[pipe], message


def _forks() -> bool:
    return sys.platform == "linux" and threading.active_count() == 1


def _serve(pipe: Connection, inherited: Sequence[Connection]) -> None:
    """All of a process: one job after the other, until its parent ends it or has ended.

    Ends of pipes that it inherits are closed: else none would see its parent end.
    """
    for other in inherited:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    kept = Results()
    said_s = 0.0

    def say(doing: str, fraction: float | None = None, rows: int | None = None) -> None:
        nonlocal said_s
        if (now := time.monotonic()) - said_s >= _RELAY_S:
            said_s = now
            pipe.send(_Doing(doing, rows))

    with suppress(EOFError, OSError, KeyboardInterrupt), listening(say):
        while True:
            job: Job = pipe.recv()
            # A job is ended by SIGTERM as by Ctrl-C, so that what it started is ended and its files
            # go.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            pipe.send(attempt(job, kept))
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def attempt(job: Job, kept: Results) -> tuple[Any, Exception | None]:
    """What a job gives, and what it raised, of which one is None."""
    try:
        return job.done(kept), None
    except Exception as error:
        error.add_note(traceback.format_exc())
        return None, error
