"""Explains what a log shows: every row of the failure table whose symptom is there."""

from __future__ import annotations

from heuristics.rules.failures.failure import Failure, Row, Seen
from heuristics.rules.failures.table import ROWS
from traces.settings.settings import Settings
from traces.training_log.known_lines import known_lines
from traces.training_log.log import TrainingLog


def explain_failures(log: TrainingLog, settings: Settings) -> tuple[Failure, ...]:
    """Every failure of the table that this log shows, or its configuration; those with a line first.

    `settings`: the run's, of all that is given; where a symptom alone is ambiguous they decide.
    """
    found = [(row, seen) for row in ROWS if (seen := row.seen(log, settings)) is not None]
    found.sort(key=lambda one: (one[1].line is None, one[1].line or 0))
    return tuple(_explained(row, seen) for row, seen in found)


def _explained(row: Row, seen: Seen) -> Failure:
    return Failure(
        id=row.id,
        text=row.text,
        confirm=row.confirm,
        fix=row.fix,
        fix_id=row.fix_id,
        line=seen.line,
        source=row.source or known_lines()[row.id].source,
        feature=row.feature,
        state=row.state,
        knobs=row.knobs,
    )
