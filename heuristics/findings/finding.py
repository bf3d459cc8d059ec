"""What a detector of contradictions between configuration, log and trace looks at."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from heuristics.result.configured import ConfigFinding
from heuristics.run.run import Run


class Recognised(Protocol):
    """A failure that was recognised; only what it is counts here."""

    @property
    def id(self) -> str:
        """The known line's id."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run, the ids of the lines that are known in its log, and its settings as the framework has them.

    `told`, `held`: facts and conditions that were asked before.
    """

    run: Run
    lines: frozenset[str] = field(default_factory=frozenset)
    told: dict[str, object] = field(default_factory=dict, compare=False)
    held: dict[str, bool | None] = field(default_factory=dict, compare=False)

    def line_of(self, line: str) -> str:
        """Where the log says it, for sentences."""
        messages = self.run.log.messages if self.run.log else ()
        number = next((one.line for one in messages if one.id == line), None)
        return "the log" if number is None else f"line {number} of the log"

    def backend_of(self, line: str) -> str | None:
        """Backend that a line of the log names, deepep or hybridep."""
        messages = self.run.log.messages if self.run.log else ()
        named = (one.said.get("backend", "").lower() for one in messages if one.id == line)
        return next((one for one in named if one in ("deepep", "hybridep")), None)


Detector = Callable[[Case], ConfigFinding | None]
"""Looks for one contradiction; None where there is none, or where nothing tells."""


def case_of(run: Run, failures: Iterable[Recognised]) -> Case:
    """A run with every line that its log or its failures name."""
    messages = run.log.messages if run.log else ()
    lines = frozenset((*(one.id for one in messages), *(one.id for one in failures)))
    return Case(run, lines)
