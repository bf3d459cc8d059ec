"""Explains what a log shows: rules by their own lines, and every row of the failure table that is there."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from heuristics.config.view import Config
from heuristics.result.configured import FailureState
from heuristics.rules.failures.failure import Failure
from heuristics.rules.failures.row import failures
from heuristics.rules.rule import Rule, verdict
from heuristics.rules.rules import rules
from heuristics.run.run import Run
from traces.training_log.known_lines import known_lines
from traces.training_log.log import TrainingLog

_STATES: Final[Mapping[str, FailureState]] = {
    "error": "rejected",
    "warning": "ineffective",
    "ignored": "skipped",
}


def explain_failures(run: Run) -> tuple[Failure, ...]:
    """Every failure that the run's log shows, or its configuration; those with a line first.

    Where rules share a line, the one that the configuration breaks caused it.
    """
    if run.log is None:
        return ()
    found = [
        *_of_rules(run.log, run.validated),
        *_of_table(run.log, run.validated),
    ]
    return tuple(sorted(found, key=lambda one: (one.line is None, one.line or 0)))


@cache
def rules_by_line() -> Mapping[str, tuple[Rule, ...]]:
    """The rules that a known line may come from."""
    lines = dict.fromkeys(line for rule in rules().values() for line in rule.lines)
    return {line: tuple(rule for rule in rules().values() if line in rule.lines) for line in lines}


def _of_rules(log: TrainingLog, config: Config) -> list[Failure]:
    found: dict[str, Failure] = {}
    for message in log.messages:
        if message.id in rules_by_line():
            rule = _cause(rules_by_line()[message.id], config)
            found.setdefault(rule.id, _caused(rule, config, message.id, message.line))
    return list(found.values())


def _cause(several: tuple[Rule, ...], config: Config) -> Rule:
    verdicts = {rule.id: verdict(rule, config) for rule in several}
    return min(several, key=lambda rule: (True, None, False).index(verdicts[rule.id]))


def _caused(rule: Rule, config: Config, line_id: str, line: int) -> Failure:
    return Failure(
        id=rule.id,
        text=rule.text,
        confirm=", ".join(rule.knobs),
        fix=rule.cure_of(config),
        fix_id=rule.fix,
        line=line,
        source=known_lines()[line_id].source,
        state=_STATES[rule.level],
        knobs=rule.set,
        rule=rule.id,
    )


def _of_table(log: TrainingLog, config: Config) -> list[Failure]:
    found = {row.id: at for row in failures().values() if (at := row.seen(log, config)) is not None}
    return [
        Failure(
            id=row.id,
            text=row.text,
            confirm=row.confirm,
            fix=row.cure,
            fix_id=row.fix,
            line=found[row.id][0],
            source=row.source,
            state=row.state,
            knobs=row.set,
            rule=row.rule,
        )
        for row in failures().values()
        if row.id in found and not {*row.unless} & {*found}
    ]
