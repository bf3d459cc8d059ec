"""Lines that trainers print of a step, beside Megatron's: its number and length, its rates, its
memory, and how long it waited for data. How each trainer writes them is a row of step_lines.toml.

A trainer that prints no length prints a clock: two lines of one rank then tell it.
"""

from collections import defaultdict
from datetime import datetime
from functools import cache
from typing import Final

from traces.patterns import Pattern, compiled
from traces.toml_tables import TableRow, read_keyed
from traces.training_log.log import Iteration, LoggedMemory
from traces.training_log.memory import rank_of

_TIME: Final = compiled(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3}\b")

_GIB: Final = 1 << 30


class _Form(TableRow):
    """A row, whose head says what its fields are."""

    id: str
    mark: str
    step: Pattern
    figures: dict[str, Pattern]
    source: str


@cache
def _forms() -> tuple[_Form, ...]:
    return tuple(read_keyed("traces.training_log", "step_lines.toml", _Form).values())


def words() -> tuple[bytes, ...]:
    """What stands in each such line."""
    return tuple(form.mark.encode() for form in _forms())


StepLine = tuple[Iteration | None, LoggedMemory | None, float]
"""What one line says. No iteration where nothing tells its length; last the part of the step that
waits for data, 0 where it is not said."""


class StepLines:
    """Reads the lines of one log. `figures`: the first and the last of each figure."""

    def __init__(self) -> None:
        self.figures = dict[str, tuple[float, float]]()
        self._last = 0, 0.0

    def take(self, number: int, text: str) -> StepLine | None:
        form = next((form for form in _forms() if form.mark in text), None)
        match = form.step.search(text) if form else None
        if not form or not match:
            return None
        found = defaultdict[str, float](float)
        for key, pattern in form.figures.items():
            if figure := pattern.search(text):
                found[key] = value = float(figure[1].replace(",", ""))
                self.figures[key] = self.figures.get(key, (value,))[0], value
        index, at, (before, then) = int(match[1]), _seconds(text), self._last
        if at and then and index > before:
            found.setdefault("step_s", (at - then) / (index - before))
        self._last = index, at
        iteration = Iteration(
            index=index,
            length_ns=round(found["step_s"] * 1e9),
            line=number,
            tflops_per_gpu=found["tflops_per_gpu"] or None,
            tokens_per_s_per_gpu=found["tokens_per_s_per_gpu"] or None,
        )
        memory = LoggedMemory(
            number,
            rank_of(text),
            peak_allocated_bytes=round(found["allocated_gib"] * _GIB) or None,
            peak_reserved_bytes=round(found["reserved_gib"] * _GIB) or None,
        )
        return iteration if found["step_s"] > 0 else None, memory, found["loading_percent"] / 100


def _seconds(text: str) -> float:
    """By the clock of a line; 0 without one."""
    match = _TIME.search(text)
    try:
        return datetime.fromisoformat(match[0]).timestamp() if match else 0.0
    except ValueError:  # no such day or hour
        return 0.0
