"""The progress display: on stderr, only on a terminal, and only for work that lasts over a
second.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from traces.progress import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars

_PATIENCE_S: Final = 1.0


@contextmanager
def progress_display() -> Iterator[Progress]:
    """A listener for long work; it shows nothing where stderr is no terminal, or one that moves no
    cursor.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield silent
        return
    display = _Display()
    try:
        yield display.show
    finally:
        display.close()


class _Display:
    """One bar for whatever is being done now, its rate and the time left of it; rich is loaded once
    shown.

    Where the fraction falls, something new has begun: its time left is reckoned anew. The rate is
    of what is being read now.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._started = self._since = time.monotonic()
        self._bars: Bars | None = None
        self._doing, self._rows_before = "", 0

    def show(self, doing: str, fraction: float | None = None, rows: int | None = None) -> None:
        now = time.monotonic()
        if doing != self._doing:
            self._doing, self._since, self._rows_before = doing, now, rows or 0
        if now - self._started < _PATIENCE_S:
            return
        read, took_s = (rows or 0) - self._rows_before, now - self._since
        total = None if fraction is None else 1.0
        with suppress(OSError):  # the terminal went away
            bars = self._bars = self._bars or self._begun()
            task = bars.tasks[0]
            if fraction is None or fraction < task.completed:
                bars.reset(task.id)
                task.total = total  # rich takes None for no change
            bars.update(
                task.id,
                description=doing,
                total=total,
                completed=fraction or 0.0,
                rate=f"{read / took_s:,.0f} rows/s" if read > 0 and took_s > 0 else "",
            )

    def close(self) -> None:
        if self._bars:
            with suppress(OSError):
                self._bars.stop()

    def _begun(self) -> Bars:
        from rich import progress as columns
        from rich.console import Console
        from rich.text import Text

        class Left(columns.TimeRemainingColumn):
            """The time left with its word, and neither where nothing tells it."""

            def render(self, task: columns.Task) -> Text:
                text = super().render(task)
                if text.plain:
                    return text.append(" left")
                return text

        bars = columns.Progress(
            columns.SpinnerColumn(),
            columns.TextColumn("{task.description}", markup=False),
            columns.BarColumn(),
            columns.TextColumn("{task.fields[rate]}", markup=False),
            columns.TimeElapsedColumn(),
            columns.TextColumn("so far"),
            Left(),
            console=self._console or Console(stderr=True),
            transient=True,
            get_time=time.monotonic,
        )
        bars.add_task("", total=None, rate="")
        bars.start()
        return bars
