"""A difference as a rule sees it: always from the side without a cause to the side with it.

Each rule is asked twice, of the difference as it is and of the same difference turned round. So a
rule is written for one direction only, and swapped sides give the same suspects, mirrored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from heuristics.comparison.causes.table import table
from heuristics.comparison.difference.rows import NOISE, ComparedRows, Facts, delta_ns, gross_ns
from heuristics.comparison.difference.subject import Subject
from heuristics.facts.dictionary import Remembering
from heuristics.result.compared import ComparedChange, ComparedRow
from heuristics.result.texts import AnyStruct
from traces.missing import Missing
from traces.patterns import starred
from traces.spelling import signed_ms

Patterns = Iterable[str]
"""Of names; `*` stands for any text."""
_SIGNED: Final = ("delta_ns", "count_ns", "duration_ns", "overlap_ns", "share_frac")
"""How names of fields end that are new less base."""


def matches(name: str, patterns: Patterns) -> bool:
    return any(starred(pattern).fullmatch(name) for pattern in patterns)


@dataclass(frozen=True)
class View(Remembering):
    """What differs from `before` to `after`; `sign` is -1 where before is the new side of the
    comparison.
    """

    facts: Facts
    sign: Literal[1, -1] = 1

    @property
    def before(self) -> Subject:
        return self.facts.base

    @property
    def after(self) -> Subject:
        return self.facts.new

    @cached_property
    def rows(self) -> dict[str, ComparedRow]:
        """Rows that moved, by name, the largest first; noise is none."""
        rows = self.facts.attribution.rows
        return {row.row: row for row in rows if row.delta_ns and row.row != NOISE}

    @cached_property
    def moved_ns(self) -> int:
        """All that moved, up and down, noise included."""
        return gross_ns(self.facts.attribution.rows)

    def other(self) -> View:
        return View(turned(self.facts), 1 if self.sign == -1 else -1)

    def matching(self, patterns: Patterns) -> ComparedRows:
        return tuple(row for name, row in self.rows.items() if matches(name, patterns))

    def grew(self, patterns: Patterns) -> ComparedRows:
        return tuple(row for row in self.matching(patterns) if row.delta_ns > 0)

    def delta_ns(self, patterns: Patterns) -> int:
        return delta_ns(self.matching(patterns))

    def changes(self, patterns: Patterns) -> tuple[ComparedChange, ...]:
        return tuple(change for change in self.facts.changed if matches(change.what, patterns))

    def signed(self, delta_ns: int) -> str:
        """What moved in this view, always from base to new."""
        return signed_ms(self.sign * delta_ns)

    def arrow(self, before: str, after: str) -> str:
        """A figure of both sides, always from base to new."""
        if self.sign == 1:
            return f"{before} -> {after}"
        return f"{after} -> {before}"


def turned(old: AnyStruct) -> AnyStruct:
    """The same difference seen from the other side: base is new, and what has a sign has the
    other.
    """
    return replace(
        old, **{name: _turned(name, getattr(old, _swapped(name))) for name in old.__struct_fields__}
    )


def _swapped(name: str) -> str:
    if "base" in name:
        return name.replace("base", "new")
    return name.replace("new", "base")


def _turned(name: str, value: Any) -> Any:
    match value:
        case None | Missing():
            return value
        case Struct():
            return turned(value)
        case (Struct(), *_):
            return tuple(map(turned, value))
        case (low, high) if name == "ci95_ns":
            return -high, -low
        case str() if name == "change":
            return table()["turned"][value]
    if name.endswith(_SIGNED):
        return -value
    return value
