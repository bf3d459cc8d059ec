"""The progress display: on stderr, only on a terminal, and only for work that lasts over a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from traces.progress import Progress, silent

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

_PATIENCE_S: Final = 1.0


@contextmanager
def progress_display() -> Iterator[Progress]:
    """A listener for long work; it shows nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield silent
        return
    display = _Display()
    try:
        yield display.show
    finally:
        display.close()


class _Display:
    """One bar for whatever is being done now; rich is loaded only once it is shown."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._bars: Bars | None = None

    def show(self, doing: str, fraction: float | None) -> None:
        if time.monotonic() - self._started < _PATIENCE_S:
            return
        if self._bars is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            self._bars = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bars.add_task("", total=None)
            self._bars.start()
        task = self._bars.task_ids[0]
        self._bars.update(
            task, description=doing, total=None if fraction is None else 1.0, completed=fraction or 0.0
        )

    def close(self) -> None:
        if self._bars is not None:
            self._bars.stop()
