"""The table of failures: its rows, and their reader."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from heuristics.config.view import Config
from heuristics.result.configured import FailureState
from heuristics.rules.condition import Condition, condition
from heuristics.rules.failures.signs import SIGNS
from heuristics.rules.rules import written_value
from traces.settings.settings import Value
from traces.training_log.known_lines import known_lines
from traces.training_log.log import TrainingLog


@dataclass(frozen=True, slots=True)
class Row:
    """A row of `failures.toml`, which says what its fields are."""

    id: str
    state: FailureState
    text: str
    confirm: str
    cure: str
    fix: str
    source: str
    set: Mapping[str, Value] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    when: Condition | None = None
    unless: tuple[str, ...] = ()
    rule: str = ""

    def seen(self, log: TrainingLog, config: Config) -> tuple[int | None] | None:
        """The line where a log shows it; None as a whole where it does not, or `when` does not hold."""
        if self.when is not None and not self.when.holds(config):
            return None
        message = log.first(*self.lines)
        if message is not None:
            return (message.line,)
        error = next((one for one in log.out_of_memory if one.stage in self.stages), None)
        if error is not None:
            return (error.line,)
        return next((found for name in self.signs if (found := SIGNS[name](log, config))), None)


@cache
def failures() -> Mapping[str, Row]:
    """Every row by its id."""
    text = files("heuristics.rules.failures").joinpath("failures.toml").read_text(encoding="utf-8")
    return {row["id"]: _row(row) for row in tomllib.loads(text)["failure"]}


def _row(row: dict[str, Any]) -> Row:
    when, lines = row.get("when"), tuple(row.get("lines", ()))
    return Row(
        id=row["id"],
        state=row["state"],
        text=row["text"],
        confirm=row["confirm"],
        cure=row["cure"],
        fix=row["fix"],
        source=row["source"] if "source" in row else known_lines()[lines[0]].source,
        set={knob: written_value(value) for knob, value in row.get("set", {}).items()},
        lines=lines,
        signs=tuple(row.get("signs", ())),
        stages=tuple(row.get("stages", ())),
        when=condition(when) if when else None,
        unless=tuple(row.get("unless", ())),
        rule=row.get("rule", ""),
    )
