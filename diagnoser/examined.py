"""A recording as `moe-diag doctor` shows it."""

from pathlib import Path

from diagnoser.pipeline import diagnose
from heuristics.result.result import Result
from reports.content.blocks import Page
from reports.content.doctor import page
from traces.errors import InputError, NothingToDiagnose
from traces.formats.open import ReadOptions, read_and_examine
from traces.measure.capture import measure_capture
from traces.progress import Progress, silent
from traces.timeline import build


def examined(trace: Path, options: ReadOptions | None = None, progress: Progress = silent) -> Page:
    """What is in a recording, how it went wrong, and what it is good enough for. Raises `InputError`."""
    how = options or ReadOptions()
    columns, traps = read_and_examine(trace, how, progress)
    capture = measure_capture(columns, build(columns))
    return page(columns.info, capture, traps, _diagnosed(trace, how, progress))


def _diagnosed(trace: Path, options: ReadOptions, progress: Progress) -> Result | None:
    """What a diagnosis makes of it; None where there is nothing to diagnose."""
    try:
        return diagnose((trace,), options=options, progress=progress).result
    except (InputError, NothingToDiagnose):
        return None
