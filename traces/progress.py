"""How long work says how far it is, without knowing who listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Progress = Callable[[str, float | None], None]
"""Called with what is being done and the fraction done (0 to 1, None where unknown)."""


def silent(doing: str, fraction: float | None) -> None:
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


def report(doing: str, fraction: float | None = None) -> None:
    """Tell whoever listens what is being done, and the fraction of it that is."""
    _listener.get()(doing, fraction)
