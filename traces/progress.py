"""How long work says how far it is, without knowing who listens."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Progress(Protocol):
    """Called with what is being done, the fraction of it that is (0 to 1), and how many rows were
    read.

    Either is None where it is unknown, or no rows are read.
    """

    def __call__(
        self, doing: str, fraction: float | None = None, rows: int | None = None, /
    ) -> None:
        """Say how far it is."""


def silent(doing: str, fraction: float | None = None, rows: int | None = None) -> None:
    """Listen to nothing: the default for library use."""


_listener: ContextVar[Progress] = ContextVar("listener", default=silent)


@contextmanager
def listening(progress: Progress) -> Iterator[None]:
    """Let `report` reach this listener, for work too deep to be handed one."""
    token = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(token)


def listener() -> Progress:
    """Who listens now, for a listener of one's own to pass on to."""
    return _listener.get()


def report(doing: str, fraction: float | None = None, rows: int | None = None) -> None:
    """Tell whoever listens what is being done, the fraction of it that is, and how many rows were
    read.
    """
    _listener.get()(doing, fraction, rows)
