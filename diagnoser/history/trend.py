"""Rows of the history -> one metric over time, of results that may stand in one line."""

import difflib
from collections import Counter
from collections.abc import Sequence

from diagnoser.history.store import Kept
from heuristics.comparison.difference.change_points import change_points
from reports.content.trend import LeftOut, Point, Trend
from traces.errors import UsageError


def trend_of(rows: Sequence[Kept], metric: str, like: int | None = None) -> Trend:
    """The trend of the results that are alike to result `like`, by default to the newest.

    Raises `UsageError` for a metric that no result has, and for a number that none is.
    """
    check_metric(rows, metric)
    chosen = next((row for row in rows if row.id == (rows[-1].id if like is None else like)), None)
    if chosen is None:
        raise UsageError(f"--like {like}: the history has no result {like}. See moe-diag history list")
    group = [row for row in rows if row.alike == chosen.alike]
    points = tuple(Point(row.id, row.added_at, row.tag, row.metrics.get(metric)) for row in group)
    return Trend(
        metric=metric,
        alike=chosen.alike,
        points=points,
        changes=change_points([point.value for point in points]),
        left_out=_left_out(rows, chosen),
    )


def metric_names(rows: Sequence[Kept]) -> list[str]:
    """Every metric that some result has, in the order of the results."""
    return list(dict.fromkeys(name for row in rows for name in row.metrics))


def check_metric(rows: Sequence[Kept], metric: str) -> None:
    """Raise `UsageError` with the nearest names where no result has that metric."""
    names = metric_names(rows)
    if not rows:
        raise UsageError("the history is empty. Add a result: moe-diag history add RESULT.json")
    if metric in names:
        return
    ends = [name for name in names if name.endswith(f".{metric}")]
    near = ends or difflib.get_close_matches(metric, names, 3, 0.5)
    meant = f"Nearest: {', '.join(near[:3])}. " if near else ""
    raise UsageError(f"no result has a metric {metric!r}. {meant}All of them: moe-diag history trend")


def _left_out(rows: Sequence[Kept], chosen: Kept) -> tuple[LeftOut, ...]:
    """Results of other groups, counted by what they differ in."""
    counts: Counter[tuple[str, ...]] = Counter()
    newest: dict[tuple[str, ...], int] = {}
    for row in rows:
        if row.alike != chosen.alike:
            keys = dict.fromkeys([*chosen.alike, *row.alike])
            differ = tuple(key for key in keys if row.alike.get(key) != chosen.alike.get(key))
            counts[differ] += 1
            newest[differ] = row.id
    return tuple(LeftOut(count, differ, newest[differ]) for differ, count in counts.items())
