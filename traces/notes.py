"""What a user should know although the work goes on, told without knowing who listens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]


def _nobody(text: str) -> None:
    """The default, for library use."""


_listener: ContextVar[Listener] = ContextVar("notes", default=_nobody)


@contextmanager
def noting(listener: Listener) -> Iterator[None]:
    """Let notes reach this listener, each once."""
    noted = set[str]()

    def once(text: str) -> None:
        if text not in noted:
            noted.add(text)
            listener(text)

    token = _listener.set(once)
    try:
        yield
    finally:
        _listener.reset(token)


def note(text: str) -> None:
    """Tell whoever listens, in one line."""
    _listener.get()(text)
