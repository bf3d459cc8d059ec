"""What a worker of a cluster does for `diagnoser.cluster`: a task, and answers about what it found."""

import pickle
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from threading import Lock
from typing import Final

from diagnoser.elsewhere import Maker, Question, Task
from diagnoser.version import VERSION
from traces.errors import ClusterUnavailable
from traces.limits import Limit
from traces.replay.changes.change import Joint

KEEPS: Final = Limit(
    0.5,
    "of a worker's memory, up to which graphs stay with it",
    "ours: dask pauses a worker at 0.8, so that a trace still finds room to be read",
)


class Sent:
    """A call, done where `pickle.loads` takes its bytes, so that the scheduler needs nothing of ours.

    What comes back are bytes too: what the call gave, and what it raised, of which one is None.
    """

    def __init__(self, function: Callable[..., object], *given: object) -> None:
        self._call = (function, *given)

    def __reduce__(self) -> tuple[Callable[..., bytes], tuple[object, ...]]:
        return _attempt, self._call


def _attempt(function: Callable[..., object], *given: object) -> bytes:
    try:
        return pickle.dumps((function(*given), None))
    except Exception as error:
        error.add_note(traceback.format_exc())
        return pickle.dumps((None, error))


@cache
def versions() -> dict[str, str]:
    """What must be the same here and at the workers, so that the document is."""
    return {
        "moe-diag": VERSION,
        "Python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "numpy": version("numpy"),
        "distributed": version("distributed"),
    }


def make(task: Task, theirs: Mapping[str, str]) -> tuple[str, bytes]:
    """Do a task, on a worker: its address, and the result without what stays there."""
    from distributed import get_worker

    for name, here in versions().items():
        if here != theirs[name]:
            raise ClusterUnavailable(
                f"a worker of the cluster has {name} {here}, and here is {theirs[name]}. "
                "Start the workers in the environment that moe-diag runs in."
            )
    with _ALONE:
        return get_worker().address, _MAKER.make(task)


def answer(task: Task, asked: Sequence[Question]) -> list[Joint]:
    """What changes save that a task found, on a worker."""
    with _ALONE:
        return _MAKER.answer(task, asked)


def forget(session: str) -> None:
    """Give the memory of a session back, on a worker."""
    _MAKER.forget(session)


def _has_room() -> bool:
    from distributed import get_worker

    worker = get_worker()
    limit_bytes = worker.memory_manager.memory_limit
    return not limit_bytes or worker.monitor.get_process_memory() < KEEPS.value * limit_bytes


_MAKER: Final = Maker(_has_room)
"""Of this process, where it is a worker."""

_ALONE: Final = Lock()
"""A worker with several threads still does one task at a time, as our own processes do."""
