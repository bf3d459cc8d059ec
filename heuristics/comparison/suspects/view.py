"""A difference as a rule sees it: always from the side without a cause to the side with it.

Each rule is asked twice, of the difference as it is and of the same difference turned round. So a rule is
written for one direction only, and swapped sides give the same suspects, mirrored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Final, Literal

from msgspec import structs

from heuristics.comparison.configured import Value, given_of, settings_of
from heuristics.comparison.difference.changed import Changed
from heuristics.comparison.difference.rows import NOISE, RowDelta
from heuristics.comparison.facts import Facts
from heuristics.result.compared import Change, KernelDelta
from traces.missing import known
from traces.sections.rank import Rank

Sign = Literal[1, -1]

_TURNED: Final[dict[Change, Change]] = {
    "slower": "faster",
    "faster": "slower",
    "more": "fewer",
    "fewer": "more",
    "new": "gone",
    "gone": "new",
    "grid": "grid",
}


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of some patterns, in which `*` stands for anything."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True)
class View:
    """What differs from `before` to `after`; `sign` is -1 where before is the new side of the comparison."""

    facts: Facts
    sign: Sign = 1

    @property
    def before(self) -> Rank:
        """The rank that may lack the cause."""
        return self.facts.base_rank

    @property
    def after(self) -> Rank:
        """The rank that may have it."""
        return self.facts.new_rank

    @cached_property
    def rows(self) -> dict[str, RowDelta]:
        """Rows that moved, by name, the largest first; noise is none."""
        rows = self.facts.attribution.rows
        return {row.row: row for row in rows if row.delta_ns and row.row != NOISE}

    @cached_property
    def moved_ns(self) -> int:
        """All that moved, up and down, noise included."""
        return sum(abs(row.delta_ns) for row in self.facts.attribution.rows)

    def other(self) -> View:
        """The same difference from the other side."""
        return View(turned(self.facts), 1 if self.sign == -1 else -1)

    def matching(self, *patterns: str) -> tuple[RowDelta, ...]:
        """Rows that moved, by pattern of their names."""
        return tuple(row for name, row in self.rows.items() if matches(name, patterns))

    def delta_ns(self, *patterns: str) -> int:
        """What rows grew by per step, added up."""
        return sum(row.delta_ns for row in self.matching(*patterns))

    @cached_property
    def counts(self) -> dict[str, tuple[float, float]]:
        """Activities per step of each row of compute and communication, before and after, moved or not."""
        before, after = _counts(self.before), _counts(self.after)
        return {name: (before.get(name, 0.0), after.get(name, 0.0)) for name in before | after}

    def kernels(self, key: str) -> tuple[KernelDelta, ...]:
        """Kernels of one key that differ; none where a document lists none."""
        return tuple(kernel for kernel in self.facts.kernels if kernel.key == key)

    def changes(self, *patterns: str) -> tuple[Changed, ...]:
        """What changed, by pattern of its name."""
        return tuple(change for change in self.facts.changed if matches(change.what, patterns))

    def known(self, *knobs: str) -> tuple[Value, Value]:
        """What is known of a knob or a given fact, before and after; the first of some names that is set."""
        return _known(self, True, knobs), _known(self, False, knobs)

    def arrow(self, label: str, before: object, after: object) -> str:
        """A figure of both sides, always from base to new."""
        base, new = (before, after) if self.sign == 1 else (after, before)
        return f"{label}: {base} -> {new}"


def turned(facts: Facts) -> Facts:
    """The same difference seen from the other side."""
    attribution = facts.attribution
    return replace(
        facts,
        **_swapped(facts, ("base", "new", "base_rank", "new_rank")),
        attribution=replace(
            attribution,
            step_delta_ns=-attribution.step_delta_ns,
            rows=tuple(_turned_row(row) for row in attribution.rows),
        ),
        kernels=tuple(_turned_kernel(one) for one in facts.kernels),
        changed=tuple(
            replace(one, **_swapped(one, ("base", "new", "said_base", "said_new"))) for one in facts.changed
        ),
    )


def _swapped(one: object, names: Sequence[str]) -> dict[str, Any]:
    """Fields in pairs, each with the value of its other."""
    pairs = zip(names[::2], names[1::2], strict=True)
    return {name: getattr(one, other) for pair in pairs for name, other in (pair, pair[::-1])}


def _turned_row(row: RowDelta) -> RowDelta:
    parts = ("delta_ns", "count_ns", "duration_ns", "overlap_ns")
    less: dict[str, Any] = {name: _less(getattr(row, name)) for name in parts}
    return replace(
        row,
        **_swapped(row, ("base_ns", "new_ns", "base_count", "new_count")),
        **less,
        low_ns=_less(row.high_ns),
        high_ns=_less(row.low_ns),
    )


def _turned_kernel(kernel: KernelDelta) -> KernelDelta:
    pairs = ("base_grid", "new_grid", "base_count", "new_count", "base_each_ns", "new_each_ns")
    return structs.replace(
        kernel, change=_TURNED[kernel.change], delta_ns=-kernel.delta_ns, **_swapped(kernel, pairs)
    )


def _less(ns: int | None) -> int | None:
    return None if ns is None else -ns


def _counts(rank: Rank) -> dict[str, float]:
    steps = len(rank.lengths_ns)
    rows = [row for row in known(rank.ledger) or () if row.row.startswith(("compute.", "exposed_comm."))]
    return {row.row: row.count / steps for row in rows if row.group == "budget"}


def _known(view: View, is_before: bool, names: Iterable[str]) -> Any:
    result = view.facts.base if is_before else view.facts.new
    sources = settings_of(result).values, given_of(result)
    values = (source.get(name) for name in names for source in sources)
    return next((value for value in values if value is not None), None)
