"""The same work on several things on a cluster of `dask.distributed`, with the results in order.

A task that is lost with its worker is done again by another one. Nothing is opened but the connection to the
scheduler that the user names: results come through it, not from the workers themselves.
"""

from __future__ import annotations

import logging
import math
import pickle
import re
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar
from uuid import uuid4

from diagnoser.elsewhere import Elsewhere, Gathered, Question, Questions, Task, tasks_of
from diagnoser.on_worker import Sent, answer, forget, make, versions
from diagnoser.processes import Workers
from traces.errors import ClusterUnavailable, ProcessEnded, UsageError
from traces.limits import Limit
from traces.progress import Progress
from traces.replay.changes.change import Joint

T = TypeVar("T")
R = TypeVar("R")

CONNECTS: Final = Limit(10, "seconds", "ours: a scheduler in the same network answers in milliseconds")
WORKERS_COME: Final = Limit(
    120, "seconds without a worker that takes work", "ours: job managers start workers within a minute or two"
)
_LOOK_S: Final = 2.0
"""How often is looked at the workers while nothing arrives."""


def workers_of(jobs: int | None, scheduler: str | None, progress: Progress) -> Elsewhere:
    """What does the work: processes of this machine, or the workers of a scheduler."""
    if scheduler is None:
        return Workers(jobs, progress)
    if jobs not in (None, 1):
        raise UsageError(
            "--jobs is for processes of this machine, and --scheduler for workers of a cluster. Give one."
        )
    return Cluster(scheduler, progress)


@dataclass(eq=False, slots=True)
class Cluster:
    """The workers of a scheduler, as a context manager that ends the connection to it, not the cluster."""

    address: str
    progress: Progress
    _until_exit: ExitStack = field(default_factory=ExitStack)
    _client: Any = None
    _made: dict[int, str] = field(default_factory=dict)

    def __enter__(self) -> Cluster:
        if find_spec("distributed") is None:
            raise ClusterUnavailable(
                "--scheduler needs the package distributed. Type pip install 'moe-diag[cluster]'"
            )
        with ExitStack() as begun:
            begun.enter_context(_quiet())
            self._client = _connected(self.address)
            begun.callback(self._client.close, timeout=CONNECTS.value)
            self._until_exit = begun.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._until_exit.close()

    def map(self, work: Callable[[T], R], tasks: Mapping[str, T]) -> list[R | ProcessEnded]:
        """The result of `work` for each task, as `Elsewhere` says."""
        several = tasks_of(work, tasks)
        self._until_exit.callback(self._forget, several)
        questions = Questions(lambda asked: self._answers(several, asked))
        ours = versions()
        found: list[R | ProcessEnded] = []
        for place, one in enumerate(self._run([_Call(task, make, (task, ours)) for task in several])):
            if isinstance(one, ProcessEnded):
                found.append(one)
                continue
            self._made[place], packed = one
            found.append(questions.unpacked(place, packed))
        return found

    def _answers(
        self, tasks: Sequence[Task], asked: Mapping[int, Sequence[Question]]
    ) -> list[list[Joint] | ProcessEnded]:
        calls = [
            _Call(tasks[place], answer, (tasks[place], tuple(several)), self._made.get(place))
            for place, several in asked.items()
        ]
        return self._run(calls)

    def _run(self, calls: Sequence[_Call]) -> list[Any]:
        """What each call gave, or `ProcessEnded`. No worker has a second one that it has not begun.

        So where one is ended by what it reads, nothing else is suspected.
        """
        gathered, left = Gathered(len(calls)), deque(enumerate(calls))
        running: dict[int, Any] = {}
        chosen: dict[int, str | None] = {}
        ended = SimpleQueue[tuple[int, Any]]()
        room = _Room(self._client, self.address)

        def submit(place: int, worker: str | None) -> None:
            chosen[place] = worker
            running[place] = self._submitted(calls[place], worker)
            running[place].add_done_callback(lambda future: ended.put((place, future)))

        while not gathered.is_whole:
            while left and left[0][0] < gathered.end and len(running) < room.threads():
                place, call = left.popleft()
                submit(place, call.worker if call.worker in room.workers else None)
            self._say(calls, gathered, running)
            try:
                place, future = ended.get(timeout=_LOOK_S)
                if running.get(place) is future:
                    _gather(gathered, place, calls[place].task, future, self.address)
                    del running[place]
            except Empty:
                room.check()
                for place in running:
                    if chosen[place] not in (None, *room.workers):  # dask waits for that one to come back
                        submit(place, None)
            except TimeoutError:  # its worker ended before it gave the result away: it is done again
                ended.put((place, future))
                room.check()
        return gathered.in_order()

    def _submitted(self, call: _Call, worker: str | None) -> Any:
        return self._client.submit(
            pickle.loads,
            pickle.dumps(Sent(call.function, *call.given)),
            key=f"moe-diag-{call.function.__name__}-{call.task.place}-{uuid4().hex}",
            workers=None if worker is None else [worker],
            pure=False,
        )

    def _say(self, calls: Sequence[_Call], gathered: Gathered, running: Mapping[int, object]) -> None:
        done = len(gathered.results)
        doing = calls[min(running)].task.name if running else "waiting for workers"
        self.progress(f"{done} of {len(calls)} done, {Path(doing).name}", done / len(calls), None)

    def _forget(self, tasks: Sequence[Task]) -> None:
        with suppress(Exception):  # a worker that cannot be reached keeps them until its next session
            self._client.run(forget, tasks[0].session, on_error="ignore")


@dataclass(frozen=True, slots=True)
class _Call:
    """What is done for a task; `worker`: where what it needs was made, so that any other takes longer."""

    task: Task
    function: Callable[..., Any]
    given: tuple[Any, ...]
    worker: str | None = None


@dataclass(slots=True)
class _Room:
    """How much may run at once, asked of the scheduler now and then; `workers`: the addresses of all."""

    client: Any
    address: str
    workers: frozenset[str] = frozenset()
    _threads: int = 0
    _asked_s: float = -math.inf
    _seen_s: float = field(default_factory=time.monotonic)

    def threads(self) -> int:
        """Of all workers that take work."""
        if (now := time.monotonic()) - self._asked_s >= _LOOK_S:
            self.check()
            self._asked_s = now
        return self._threads

    def check(self) -> None:
        """Ask again. Raises `ClusterUnavailable` where there is no scheduler, or no worker for too long."""
        try:
            workers = self.client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, ValueError):  # ValueError: the client has noticed before
            raise _scheduler_ended(self.address) from None
        self.workers = frozenset(workers)
        self._threads = sum(one["nthreads"] for one in workers.values() if one["status"] == "running")
        now = time.monotonic()
        if self._threads:
            self._seen_s = now
        elif now - self._seen_s > WORKERS_COME.value:
            raise ClusterUnavailable(
                f"no worker of {self.address} has taken work for {WORKERS_COME.value} s. "
                f"Start one with dask worker {self.address}; if there is one, give it more --memory-limit."
            )


def _connected(address: str) -> Any:
    distributed: Any = import_module("distributed")
    _check(address)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions, which each task looks at itself
            return distributed.Client(
                address, timeout=CONNECTS.value, set_as_default=False, direct_to_workers=False
            )
    except OSError:
        raise ClusterUnavailable(
            f"no scheduler answers at {address}. Start one with dask scheduler; it prints its address."
        ) from None


def _check(address: str) -> None:
    """What a client would only end for after a long time, and not in one line."""
    known = re.fullmatch(r"(?:(tcp|tls)://)?[^\s/]+:\d+", address)
    if known is None:
        raise UsageError(f"{address!r} is no address of a scheduler. Give one as --scheduler tcp://HOST:8786")
    if known[1] == "tls":
        security: Any = import_module("distributed.security")
        if security.Security().get_connection_args("client").get("ssl_context") is None:
            raise UsageError(
                f"{address} needs certificates: name them in dask's configuration, distributed.comm.tls"
            )


def _gather(gathered: Gathered, place: int, task: Task, future: Any, address: str) -> None:
    """Take what a call gave. Raises `TimeoutError` where it is not there yet, after all."""
    from distributed import CancelledError
    from distributed.scheduler import KilledWorker

    try:
        result, ours = pickle.loads(future.result(timeout=CONNECTS.value))
    except TimeoutError:
        raise
    except (CancelledError, OSError):
        raise _scheduler_ended(address) from None
    except KilledWorker:
        result, ours = (
            ProcessEnded(
                f"every worker that read {task.name} was ended from outside, perhaps because memory ran out. "
                "Start workers with more memory: dask worker --memory-limit"
            ),
            None,
        )
    except Exception as error:  # ours would have been returned
        raise ClusterUnavailable(
            f"the scheduler or a worker of {address} cannot take work of moe-diag ({type(error).__name__}). "
            "Start them in the environment that moe-diag runs in."
        ) from None
    if ours:
        gathered.fail(place, ours)
    else:
        gathered.add(place, result)


def _scheduler_ended(address: str) -> ClusterUnavailable:
    return ClusterUnavailable(
        f"the scheduler at {address} ended before all was done. Start it and its workers again."
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what distributed logs: what matters of it becomes an error of ours, in one line."""
    import distributed  # noqa: F401 - sets the levels of its loggers

    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
    before = {name: logging.getLogger(name).level for name in ["distributed", *names]}
    for name in before:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
