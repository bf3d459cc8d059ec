"""The same work on several things at once, in processes, with the results in order.

Not `concurrent.futures`: what changes of a run save together is only asked once all ranks are judged, and the
graphs that answer stay in the processes that made them, where a pool would give no task to a chosen process.
So a result travels without them, and an answer is fetched when it is asked for.

On Linux processes are forked: they start at once, with everything imported, where starting anew costs each
half a second. Forking is safe while Python runs one thread (libraries guard the threads of their own), so a
program with several, and other systems, start anew. Ctrl-C is the parent's alone: it ends the others, and
what they started.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, TypeVar

from traces.errors import ProcessEnded
from traces.progress import Progress, listening
from traces.replay.changes.together import Joint, Together

T = TypeVar("T")
R = TypeVar("R")

_RELAY_S: Final = 0.1
"""How often a process says how far it is."""


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


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
    """A process, this side of the pipe to it, and the place of the task it has."""

    process: BaseProcess
    pipe: Connection
    place: int | None = None

    def receive(self) -> object:
        """Its next message. Raises `EOFError` or `OSError` where it has ended."""
        return _Unpickler(io.BytesIO(self.pipe.recv_bytes()), self).load()


@dataclass(eq=False, slots=True)
class Workers:
    """At most `jobs` processes, as a context manager at whose end they end; with one job, none but this.

    `jobs` None: as many as there are cores. What `map` returns is of use until then.
    """

    jobs: int | None
    progress: Progress
    _workers: list[_Worker] = field(default_factory=list)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()

    def map(self, work: Callable[[T], R], tasks: Mapping[str, T]) -> list[R]:
        """The result of `work`, a function of a module, for each task, in order; tasks are given by name.

        What `work` reports reaches `progress`. What it raises is raised here: of several tasks that fail, the
        first by order. Raises `ProcessEnded` where a process ends without a result.
        """
        jobs = min(self.jobs or _usable_cores(), len(tasks))
        if jobs <= 1:
            with listening(self.progress):
                return [work(task) for task in tasks.values()]
        self._start(jobs)
        results: dict[int, Any] = {}
        names, left = list(tasks), list(enumerate(tasks.values()))
        failed: _Failed | None = None
        end = len(tasks)  # only what stands before the first task that failed still counts
        while len(results) < end:
            for worker in self._workers:
                if worker.place is None and left and left[0][0] < end:
                    worker.place, task = left.pop(0)
                    self._hand(worker, (work, task), names[worker.place])
            for worker, message in self._messages(names):
                assert worker.place is not None
                if isinstance(message, _Doing):
                    done = len(results)
                    doing = f"{done} of {len(tasks)} done, {message.what}"
                    self.progress(doing, done / len(tasks), message.rows)
                    continue
                if isinstance(message, _Done):
                    results[worker.place] = message.result
                elif isinstance(message, _Failed) and worker.place < end:
                    failed, end = message, worker.place
                    results = {place: one for place, one in results.items() if place < end}
                worker.place = None
        if failed:
            raise failed.error
        return [results[place] for place in range(len(tasks))]

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

    def _hand(self, worker: _Worker, what: object, name: str) -> None:
        try:
            worker.pipe.send(what)
        except OSError:
            raise _ended(name) from None

    def _messages(self, names: list[str]) -> list[tuple[_Worker, object]]:
        """What the busy processes have said, once any has."""
        busy = {worker.pipe: worker for worker in self._workers if worker.place is not None}
        found: list[tuple[_Worker, object]] = []
        for pipe in wait(list(busy)):
            worker = next(one for one in busy.values() if one.pipe is pipe)
            try:
                found.append((worker, worker.receive()))
            except (EOFError, OSError):
                raise _ended(names[worker.place or 0]) from None
        return found


def _forks() -> bool:
    return sys.platform == "linux" and threading.active_count() == 1


def _ended(name: str) -> ProcessEnded:
    return ProcessEnded(
        f"the process that read {name} was ended from outside, perhaps because memory ran out. "
        "Give --jobs 1: one trace at a time takes least."
    )


class _Elsewhere(Together):
    """Changes of a rank that another process replays."""

    def __init__(self, worker: _Worker, number: int) -> None:
        self._worker, self._number = worker, number

    def joint(self, kinds: Collection[str]) -> Joint:
        """What the changes of some kinds save, as the process that has their graph finds."""
        try:
            self._worker.pipe.send((self._number, tuple(kinds)))
            while isinstance(answer := self._worker.receive(), _Doing):
                continue
        except (EOFError, OSError):
            raise _ended("a trace") from None
        if isinstance(answer, _Failed):
            raise answer.error
        assert isinstance(answer, _Done)
        assert isinstance(answer.result, Joint)
        return answer.result


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, worker: _Worker) -> None:
        super().__init__(file)
        self._worker = worker

    def persistent_load(self, number: int) -> _Elsewhere:
        return _Elsewhere(self._worker, number)


class _Pickler(pickle.Pickler):
    """Leaves out what stays here."""

    def __init__(self, file: io.BytesIO, kept: list[Together]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._kept = kept

    def persistent_id(self, one: object) -> int | None:
        if not isinstance(one, Together):
            return None
        self._kept.append(one)
        return len(self._kept) - 1


class _Server:
    """What a process does: one task, or one question, after the other, until its parent ends it."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._kept: list[Together] = []
        self._said_s = 0.0

    def serve(self) -> None:
        while True:
            first, second = self._pipe.recv()
            # A task is ended by SIGTERM as by Ctrl-C, so that what it started is ended and its files go.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            try:
                with listening(self._say):
                    answer: object = _Done(
                        self._kept[first].joint(second) if isinstance(first, int) else first(second)
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
        packed = io.BytesIO()
        _Pickler(packed, self._kept).dump(answer)
        self._pipe.send_bytes(packed.getbuffer())


def _serve(pipe: Connection, inherited: list[Connection]) -> None:
    """All of a process. Ends of pipes that it inherits are closed: else none would see its parent end."""
    for other in inherited:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        _Server(pipe).serve()
    except (EOFError, OSError, KeyboardInterrupt):
        return  # the parent has ended, or ends this
