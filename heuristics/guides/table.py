"""A guide's table: ordered rows over facts of which some are unknown; the first row that holds fires."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, get_args

from heuristics.run.given import Guidance
from traces.settings.settings import Value

Fact = str | bool | None
"""A fact of a run as a rule asks for it; None is unknown."""
Facts = Mapping[str, Fact]
When = Mapping[str, tuple[Fact, ...]]
"""Fact name -> the values under which a row holds; a row without any always holds."""
OTHER: Final[Mapping[Guidance, Guidance]] = {"seed": "main-2026-08", "main-2026-08": "seed"}
"""Edition of the guides -> the other one."""


class Rule(Protocol):
    """A row of a table."""

    @property
    def when(self) -> When:
        """What must hold for the row to fire."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `answer`: what to try, in this order; `winner`: whether its first is named as the best.

    `how`: in which way the answer is done, where there are several. `then`: what may be added, one at a time;
    `never`: what must not. `settings`: what the row asks for beside it; `sets`: knobs that belong to it.
    """

    id: str
    when: When
    answer: tuple[str, ...]
    reason: str
    source: str
    how: str = ""
    winner: bool = True
    then: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    sets: Mapping[str, Value] = field(default_factory=dict, hash=False)


@cache
def table(name: str) -> Mapping[Guidance, tuple[Row, ...]]:
    """The rows of each edition, from the table of that name beside this file."""
    read = tomllib.loads(files("heuristics.guides").joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    editions: tuple[Guidance, ...] = get_args(Guidance)
    return {
        edition: tuple(
            _row(row, read["source"][edition])
            for row in read["row"]
            if row.get("edition", edition) == edition
        )
        for edition in editions
    }


def _row(row: Mapping[str, Any], source: str) -> Row:
    return Row(
        id=row["id"],
        when={name: tuple(values) for name, values in row.get("when", {}).items()},
        answer=tuple(row.get("answer", ())),
        reason=row["reason"],
        source=row.get("source", source),
        how=row.get("how", ""),
        winner=row.get("winner", True),
        then=tuple(row.get("then", ())),
        settings=tuple(row.get("settings", ())),
        never=tuple(row.get("never", ())),
        sets=row.get("sets", {}),
    )


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
