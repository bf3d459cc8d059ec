"""The same work on several things on a cluster of `dask.distributed`, with the results in order.

A job becomes a `Kept`, which stays with its worker, and what comes back are bytes of what that
gave: so the scheduler needs nothing of ours. A job that is lost with its worker is done again by
another one. Nothing is opened but the connection to the scheduler that the user names: results come
through it, not from the workers.
"""

import logging
import pickle
import sys
import time
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from operator import methodcaller
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Final, Self
from uuid import uuid4

from diagnoser.running.work.processes import Engine, Gathered, Job, Workers, attempt
from diagnoser.version import VERSION
from traces.errors import ClusterUnavailable, ProcessEnded, UsageError
from traces.frozen import frozen
from traces.limits import Limit
from traces.patterns import compiled
from traces.progress import Progress

CONNECTS: Final = Limit(
    10, "seconds", "ours: a scheduler in the same network answers in milliseconds"
)
WORKERS_COME: Final = Limit(
    120,
    "seconds without a worker that takes work",
    "ours: job managers start workers within a minute or two",
)
_LOOK_S: Final = 2.0
"""How often is looked at the workers while nothing arrives."""


def workers_of(jobs: int | None, scheduler: str | None, progress: Progress) -> Engine:
    if scheduler is None:
        return Workers(jobs, progress)
    if jobs not in (None, 1):
        raise UsageError(
            "--jobs is for processes of this machine, and --scheduler for workers of a cluster. "
            "Give one."
        )
    return Cluster(scheduler, progress)


@frozen
class SentJob:
    """A job that is done where `pickle.loads` takes its bytes, and leaves a `Kept` there."""

    job: Job
    versions: Mapping[str, str]

    def __reduce__(self) -> tuple[object, ...]:
        return _kept, (self.job, self.versions)


def _kept(job: Job, versions: Mapping[str, str]) -> "Kept":
    kept = Kept(job, versions)
    kept.packed(pickle.dumps(None))
    return kept


class Kept:
    """A job and its result on the worker that did it, for what is asked of it later.

    It travels without that result, which is too large, and makes it again where it is needed.
    """

    def __init__(self, job: Job, versions: Mapping[str, str]) -> None:
        self._job, self._versions = job, versions
        self._results = dict[int, Any]()

    def __reduce__(self) -> tuple[object, ...]:
        return Kept, (self._job, self._versions)

    def packed(self, question: bytes) -> bytes:
        """What the job gave with a question, pickled as that is, and what it raised, of which one
        is None.
        """
        for name, here in versions().items():
            if here != self._versions[name]:
                error = ClusterUnavailable(
                    f"a worker of the cluster has {name} {here}, and here is "
                    f"{self._versions[name]}. "
                    "Start the workers in the environment that moe-diag runs in."
                )
                return pickle.dumps((None, error))
        job = replace(self._job, question=pickle.loads(question))
        with _ALONE:
            return pickle.dumps(attempt(job, self._results))


_ALONE: Final = Lock()
"""A worker with several threads still does one job at a time, as our own processes do."""


@cache
def versions() -> dict[str, str]:
    """What must be the same here and at the workers, so that the document is."""
    return {
        "moe-diag": VERSION,
        "Python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "numpy": version("numpy"),
        "distributed": version("distributed"),
    }


class Cluster(Engine):
    """The workers of a scheduler; at its end the connection to it ends, not the cluster."""

    def __init__(self, address: str, progress: Progress) -> None:
        self._address, self._progress = address, progress
        self._until_exit = ExitStack()
        self._client: Any = None
        self._kept = dict[int, Any]()

    def __enter__(self) -> Self:
        if not find_spec("distributed"):
            raise ClusterUnavailable(
                "--scheduler needs the package distributed. Type pip install 'moe-diag[cluster]'"
            )
        with ExitStack() as begun:
            begun.enter_context(_quiet())
            self._client = _connected(self._address)
            begun.callback(self._client.close, timeout=CONNECTS.value)
            self._until_exit = begun.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.clear()
        self._until_exit.close()

    def _run(self, jobs: Sequence[Job]) -> list[Any]:
        """What each job gave, or `ProcessEnded`. No worker has a second one that it has not begun.

        So where one is ended by what it reads, nothing else is suspected.
        """
        gathered, waiting = Gathered(len(jobs)), deque(enumerate(jobs))
        running = dict[int, Any]()
        ended = SimpleQueue[int]()
        asked_s = seen_s = time.monotonic()
        threads = self._threads()
        while not gathered.is_whole:
            while waiting and waiting[0][0] < gathered.end and len(running) < threads:
                place, job = waiting.popleft()
                running[place] = self._submitted(job)
                running[place].add_done_callback(lambda _, place=place: ended.put(place))
            done = len(gathered.results)
            doing = jobs[min(running)].name if running else "waiting for workers"
            self._progress(
                f"{done} of {len(jobs)} done, {Path(doing).name}", done / len(jobs), None
            )
            with suppress(Empty):
                place = ended.get(timeout=_LOOK_S if threads else _LOOK_S / 10)
                try:
                    gathered.add(place, *self._outcome(running[place], jobs[place].name))
                    del running[place]
                # its worker ended before it gave the result away: it is done again
                except TimeoutError:
                    ended.put(place)
            now = time.monotonic()
            if now - asked_s >= _LOOK_S or not threads:
                threads, asked_s = self._threads(), now
            if threads:
                seen_s = now
            elif now - seen_s > WORKERS_COME.value:
                raise ClusterUnavailable(
                    f"no worker of {self._address} has taken work for {WORKERS_COME.value} s. "
                    f"Start one with dask worker {self._address}; if there is one, give it more "
                    "--memory-limit."
                )
        return gathered.in_order()

    def _submitted(self, job: Job) -> Any:
        if job.place not in self._kept:
            sent = pickle.dumps(SentJob(replace(job, question=None), versions()))
            self._kept[job.place] = self._client.submit(
                pickle.loads, sent, key=f"moe-diag-kept-{uuid4().hex}", pure=False
            )
        call = methodcaller("packed", pickle.dumps(job.question))
        return self._client.submit(
            call, self._kept[job.place], key=f"moe-diag-job-{uuid4().hex}", pure=False
        )

    def _outcome(self, future: Any, name: str) -> tuple[object, Exception | None]:
        """What a job gave and what it raised. Raises `TimeoutError` where it is not there yet,
        after all.
        """
        from distributed import CancelledError, KilledWorker

        try:
            outcome: tuple[object, Exception | None] = pickle.loads(
                future.result(timeout=CONNECTS.value)
            )
            return outcome
        except TimeoutError:
            raise
        except KilledWorker:
            return ProcessEnded(
                f"every worker that read {name} was ended from outside, perhaps because memory ran "
                "out. Start workers with more memory: dask worker --memory-limit"
            ), None
        except (CancelledError, OSError):
            raise self._scheduler_ended() from None
        except Exception as error:  # ours would have been returned
            raise ClusterUnavailable(
                f"the scheduler or a worker of {self._address} cannot take work of moe-diag "
                f"({type(error).__name__}). Start them in the environment that moe-diag runs in."
            ) from None

    def _threads(self) -> int:
        """Of all workers that take work. Raises `ClusterUnavailable` where there is no
        scheduler.
        """
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, ValueError):  # ValueError: the client has noticed before
            raise self._scheduler_ended() from None
        return sum(
            worker["nthreads"] for worker in workers.values() if worker["status"] == "running"
        )

    def _scheduler_ended(self) -> ClusterUnavailable:
        return ClusterUnavailable(
            f"the scheduler at {self._address} ended before all was done. Start it and its workers "
            f"again."
        )


def _connected(address: str) -> Any:
    distributed: Any = import_module("distributed")
    # what a client would only end for after a long time, and not in one line
    known = compiled(r"(?:(tcp|tls)://)?[^\s/]+:\d+").fullmatch(address)
    if not known:
        raise UsageError(
            f"{address!r} is no address of a scheduler. Give one as --scheduler tcp://HOST:8786"
        )
    if known[1] == "tls":
        security: Any = import_module("distributed.security")
        if security.Security().get_connection_args("client").get("ssl_context") is None:
            raise UsageError(
                f"{address} needs certificates: name them in dask's configuration, "
                f"distributed.comm.tls"
            )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions, which each job looks at itself
            return distributed.Client(
                address, timeout=CONNECTS.value, set_as_default=False, direct_to_workers=False
            )
    except OSError:
        raise ClusterUnavailable(
            f"no scheduler answers at {address}. Start one with dask scheduler; it prints its "
            f"address."
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what distributed logs: what matters of it becomes an error of ours, in one line."""
    import distributed  # noqa: F401 - sets the levels of its loggers

    names = [
        name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"
    ]
    before = {name: logging.getLogger(name).level for name in ["distributed", *names]}
    for name in before:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
