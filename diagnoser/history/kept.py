"""What the history keeps: files as documents, names for results to compare with, numbers over time."""

import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from diagnoser.history.store import Added, Kept, Store, history_file
from diagnoser.options.requests import Analysis
from heuristics.comparison.difference.change_points import change_points
from reports.content.trend import LeftOut, Point, Trend
from reports.result.read import is_result, read_document
from traces.errors import NotAResult, NotATrace, UsageError
from traces.files.beneath import real_path
from traces.nearest import nearest_names
from traces.patterns import compiled


def add_file(store: Store, path: Path, asked: Analysis, tag: str = "", keep_origin: bool = False) -> Added:
    """Keep a result or a trace. Raises `InputError` and `NothingToDiagnose` for what cannot be used."""
    document = document_of(path, asked)
    try:
        return store.add(document, tag, (platform.node(), real_path(path)) if keep_origin else None)
    except NotAResult as error:
        raise NotAResult(f"{path}: {error}") from None


def document_of(path: Path, asked: Analysis) -> dict[str, Any]:
    """The document of an earlier result, yet to be checked, or of a trace, diagnosed as `analyze` does."""
    if path.is_file() and is_result(path):
        return read_document(path)
    from diagnoser.output.progress import progress_display
    from diagnoser.running.pipeline import diagnose

    try:
        with progress_display() as progress:
            return diagnose(replace(asked, progress=progress)).to_dict()
    except NotATrace:
        if not path.name.endswith((".json", ".json.gz")):
            raise
    return read_document(path)  # its keys were sorted


_NAME: Final = compiled(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


def baseline_document(name: str, store: Path | None = None) -> dict[str, Any]:
    """The document that a baseline stands for, from the file given or the usual one.

    Raises `UsageError` with the names there are, `InputError` for a file that is no history.
    """
    kept = Store(history_file(store))
    return kept.document(baseline_row(kept, name).id)


def baseline_row(store: Store, name: str) -> Kept:
    """The result that a baseline stands for. Raises `UsageError` with the names there are."""
    baselines = store.baselines()
    if name not in baselines:
        there = f"There are {', '.join(sorted(baselines))}" if baselines else "There is none yet"
        raise UsageError(f"no baseline {name!r}. {there}; set one: moe-diag history baseline NAME RESULT")
    return row_of(store, baselines[name])


def check_name(name: str) -> None:
    """Raise `UsageError` for a name that a command line or a table would not carry well."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a baseline. Give letters and digits, then also . _ + -; 64 at most."
        )


def row_of(store: Store, number: int) -> Kept:
    """The result of that number. Raises `UsageError`."""
    rows = store.rows()
    for row in rows:
        if row.id == number:
            return row
    there = f"It has {rows[0].id} to {rows[-1].id}" if rows else "It is empty"
    raise UsageError(f"the history has no result {number}. {there}: moe-diag history list")


def trend_of(rows: Sequence[Kept], metric: str, like: int | None = None) -> Trend:
    """The trend of the results that are alike to result `like`, by default to the newest.

    Raises `UsageError` for a metric that no result has, and for a number that none is.
    """
    _check_metric(rows, metric)
    chosen = next((row for row in rows if row.id == (rows[-1].id if like is None else like)), None)
    if chosen is None:
        raise UsageError(f"--like {like}: the history has no result {like}. See moe-diag history list")
    group = [row for row in rows if row.alike == chosen.alike]
    points = tuple(Point(row.id, row.added_at, row.tag, row.metrics.get(metric)) for row in group)
    changes = change_points([point.value for point in points])
    return Trend(metric, chosen.alike, points, changes, _left_out(rows, chosen))


def metric_names(rows: Sequence[Kept]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.metrics))


def _check_metric(rows: Sequence[Kept], metric: str) -> None:
    names = metric_names(rows)
    if not rows:
        raise UsageError("the history is empty. Add a result: moe-diag history add RESULT.json")
    if metric in names:
        return
    ends = [name for name in names if name.endswith(f".{metric}")]
    near = ends or nearest_names(metric, names, 3, 0.5)
    meant = f"Nearest: {', '.join(near[:3])}. " if near else ""
    raise UsageError(f"no result has a metric {metric!r}. {meant}All of them: moe-diag history trend")


def _left_out(rows: Sequence[Kept], chosen: Kept) -> tuple[LeftOut, ...]:
    groups: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        keys = dict.fromkeys([*chosen.alike, *row.alike])
        if differ := tuple(key for key in keys if row.alike.get(key) != chosen.alike.get(key)):
            groups.setdefault(differ, []).append(row.id)
    return tuple(LeftOut(len(numbers), differ, numbers[-1]) for differ, numbers in groups.items())
