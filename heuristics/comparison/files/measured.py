"""Causes that configurations show: what a known change did to steps and memory elsewhere.

A measurement that is a gain of a fix is read out of the gain's own words, so that a figure stands
once.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal

from msgspec import field, structs

from heuristics.comparison.causes.table import PLACE, Cause, shown_by
from heuristics.config.logic import each_once
from heuristics.facts.dictionary import DICTIONARY
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.rules.condition import CONFIGURED, Condition
from traces.patterns import Pattern
from traces.texts import Texts
from traces.toml_tables import TableRow, WrongRow, read_rows

_QUESTIONS: Final = {"config.dispatcher": DICTIONARY["flex"].knobs}
"""What answers a question that is no setting."""
Pair = tuple[float, float]
Moves = Literal["drift", "out_of_memory"]


class FromGain(TableRow):
    """Where a fix's gain has the figures: `read` finds them by named groups, as the table says."""

    fix: str
    place: int
    read: Pattern
    kind: Literal["step", "rate"] = field(default="rate", name="as")


class MeasuredChange(TableRow):
    """One measurement. `is_turned`: of the change the other way round."""

    of: str = ""
    source: str = ""
    gpu: Texts = ()
    when: Condition | None = None
    step: Pair | None = None
    rate: Pair = (0.0, 0.0)
    memory: Pair | None = None
    gain: FromGain | None = None
    is_turned: bool = False

    @property
    def times(self) -> float:
        """How many times as long the step is."""
        if self.step:
            return self._way(self.step[1] / self.step[0])
        return self._way(self.rate[0] / self.rate[1])

    @property
    def memory_times(self) -> float | None:
        """How many times as large the memory is; None where that was not measured."""
        if self.memory:
            return self._way(self.memory[1] / self.memory[0])
        return None

    def _way(self, times: float) -> float:
        if self.is_turned:
            return 1 / times
        return times


class Known(Cause, kw_only=True):
    """One known change; its fields are described in the table."""

    measured: tuple[MeasuredChange, ...]
    before: Condition | None = None
    after: Condition | None = None
    more: str = ""
    moves: tuple[Moves, ...] = ()

    @property
    def knobs(self) -> Texts:
        """Settings that its conditions speak of."""
        conditions = [*filter(None, (self.before, self.after))]
        if self.more:
            conditions.append(CONFIGURED.condition(f"known({self.more})"))
        named = list[str]()
        for condition in conditions:
            for knob in condition.knobs:
                named += _QUESTIONS.get(knob, (knob,))
        return each_once(named)


@cache
def known_changes() -> dict[str, Known]:
    """All rows by id, in order. Raises `WrongRow`."""
    rows = {row["id"]: row for row in shown_by("files")}
    return read_rows(rows, dict[str, Known], PLACE, CONFIGURED.readers)


@cache
def measurements(id: str) -> tuple[MeasuredChange, ...]:
    """Those of a row. Raises `WrongRow` where a gain does not hold its figures any more."""
    complete = []
    for row in known_changes()[id].measured:
        measured = _with_gain(id, row)
        if not (measured.of and measured.source and (measured.step or any(measured.rate))):
            raise WrongRow(f"{PLACE}, {id}: a measurement lacks its shape, source or figures")
        complete.append(measured)
    return tuple(complete)


def _with_gain(id: str, row: MeasuredChange) -> MeasuredChange:
    """The row; of one that is a gain with the figures that the gain's words tell."""
    if row.gain is None:
        return row
    gain = CATALOGUE[row.gain.fix].gains[row.gain.place]
    match = row.gain.read.search(gain.text)
    if match is None:
        raise WrongRow(f"{PLACE}, {id}: the gain of {row.gain.fix} has no such figures")
    numbers = {name: float(number) for name, number in match.groupdict().items()}
    figures: dict[str, Any] = {
        name: (1.0, 1 + numbers[name] / 100) for name in ("step", "rate") if name in numbers
    }
    if "base" in numbers:
        figures[row.gain.kind] = numbers["base"], numbers["new"]
    if "times" in numbers:
        figures["step"] = 1.0, numbers["times"]
    if "less" in numbers:
        figures["memory"] = 1.0, 1 - numbers["less"] / 100
    return structs.replace(row, of=row.of or gain.text, source=gain.source, **figures)
