"""A recording as `moe-diag doctor` shows it."""

from __future__ import annotations

from pathlib import Path

from reports.content.blocks import Page
from reports.content.doctor import page
from traces.formats.open import ReadOptions, read_and_examine
from traces.measure.capture import measure_capture
from traces.progress import Progress, silent
from traces.timeline import build


def examined(trace: Path, options: ReadOptions | None = None, progress: Progress = silent) -> Page:
    """What is in a recording, how it went wrong, and what it is good enough for. Raises `InputError`."""
    columns, traps = read_and_examine(trace, options or ReadOptions(), progress)
    return page(columns.info, measure_capture(columns, build(columns)), traps)
