"""An ordered table of rules over facts of which some are unknown: the first row that holds fires."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

Fact = str | bool | None
"""A fact of a run as a rule asks for it; None is unknown."""
Facts = Mapping[str, Fact]
When = Mapping[str, tuple[Fact, ...]]
"""Fact name -> the values under which a row holds; a row without any always holds."""


class Rule(Protocol):
    """A row of a table."""

    @property
    def when(self) -> When:
        """What must hold for the row to fire."""


class Refusal(NamedTuple):
    """What must not be chosen, why, and who says so."""

    what: str
    reason: str
    source: str


RuleT = TypeVar("RuleT", bound=Rule)


@dataclass(frozen=True, slots=True)
class Fired(Generic[RuleT]):
    """The row that fires. `open_facts`: unknown facts that might have made an earlier, different row fire."""

    rule: RuleT
    open_facts: tuple[str, ...]


def fire(rules: Sequence[RuleT], facts: Facts, outcome: Callable[[RuleT], object]) -> Fired[RuleT]:
    """First row that holds; rows that only might hold are passed over, and their unknown facts named.

    One fact per such row is named, the first of its conditions: the next question may not be needed any more.
    `outcome` tells whether two rows say the same. The last row of a table has no conditions.
    """
    passed: list[tuple[RuleT, str]] = []
    for rule in rules:
        unknown = [name for name in rule.when if facts[name] is None]
        if any(facts[name] not in allowed for name, allowed in rule.when.items() if facts[name] is not None):
            continue
        if unknown:
            passed.append((rule, unknown[0]))
            continue
        asked = [name for other, name in passed if outcome(other) != outcome(rule)]
        return Fired(rule, tuple(dict.fromkeys(asked)))
    raise ValueError("the last row of a table must hold always")
