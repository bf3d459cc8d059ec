"""A difference as a rule sees it: always from the side without a cause to the side with it.

Each rule is asked twice, of the difference as it is and of the same difference turned round. So a rule is
written for one direction only, and swapped sides give the same suspects, mirrored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from heuristics.comparison.difference.changed import Value, given_of, settings_of
from heuristics.comparison.difference.rows import NOISE, Facts
from heuristics.result.compared import Change, ComparedChange, ComparedRow, KernelDelta
from traces.limits import Limit
from traces.missing import Missing, known
from traces.names.kernels import compute_classes
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
_SIGNED: Final = frozenset(
    {
        *("delta_ns", "count_ns", "duration_ns", "overlap_ns", "share_frac"),
        *("step_delta_ns", "module_delta_ns"),
    }
)
"""Fields that are new less base."""
_OF_BOTH: Final = frozenset({"attribution", "rows", "reasons", "modules", "layers", "kernels", "changed"})
"""Fields that hold what differs; all others hold what is of one side, or of neither."""
T = TypeVar("T", bound=Struct)


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
    def rows(self) -> dict[str, ComparedRow]:
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

    def matching(self, *patterns: str) -> tuple[ComparedRow, ...]:
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

    def changes(self, *patterns: str) -> tuple[ComparedChange, ...]:
        """What changed, by pattern of its name."""
        return tuple(change for change in self.facts.changed if matches(change.what, patterns))

    def known(self, *knobs: str) -> tuple[Value, Value]:
        """What is known of a knob or a given fact, before and after; the first of some names that is set."""
        return _known(self, True, knobs), _known(self, False, knobs)

    def arrow(self, label: str, before: object, after: object) -> str:
        """A figure of both sides, always from base to new."""
        base, new = (before, after) if self.sign == 1 else (after, before)
        return f"{label}: {base} -> {new}"


def turned(one: T) -> T:
    """The same difference seen from the other side: base is new, and what has a sign has the other."""
    return replace(one, **{name: _turned(name, getattr(one, _other(name))) for name in one.__struct_fields__})


def _other(name: str) -> str:
    return name.replace("base", "new") if "base" in name else name.replace("new", "base")


def _turned(name: str, value: Any) -> Any:
    if isinstance(value, Missing) or value is None:
        return value
    if name in _SIGNED:
        return -value
    if name == "ci95_ns":
        return tuple(-end for end in reversed(value))
    if name == "change":
        return _TURNED[value]
    if name in _OF_BOTH:
        return tuple(map(turned, value)) if isinstance(value, tuple) else turned(value)
    return value


def _counts(rank: Rank) -> dict[str, float]:
    steps = len(rank.lengths_ns)
    rows = [row for row in known(rank.ledger) or () if row.row.startswith(("compute.", "exposed_comm."))]
    return {row.row: row.count / steps for row in rows if row.group == "budget"}


def _known(view: View, is_before: bool, names: Iterable[str]) -> Any:
    result = view.facts.base if is_before else view.facts.new
    sources = settings_of(result).values, given_of(result)
    values = (source.get(name) for name in names for source in sources)
    return next((value for value in values if value is not None), None)


SAME_COUNT: Final = Limit(
    0.02,
    "fraction",
    "ours: classes of two GPUs of one real run differ by up to 1.8 %; one of 32 layers is 3 %",
)
MAIN: Final = Limit(0.5, "fraction", "ours: of parts that add up, one of at least a half is the main one")

CLASSES: Final = tuple(f"compute.{class_}" for class_ in compute_classes())

Part = Literal["count", "duration", "overlap"]


def same_count(before: float, after: float) -> bool:
    """Whether two numbers of activities are the same but for what routing moves."""
    return abs(after - before) <= SAME_COUNT.value * max(before, after)


def kernel_counts(view: View, names: Sequence[str] = CLASSES) -> tuple[float, float]:
    """Compute kernels a step of some classes, before and after."""
    pairs = [view.counts[name] for name in names if name in view.counts]
    return sum(one[0] for one in pairs), sum(one[1] for one in pairs)


def main_part(rows: Sequence[ComparedRow]) -> Part | None:
    """Which of count, duration and overlap makes most of rows that grew; None where none does, or unknown."""
    delta_ns = sum(row.delta_ns for row in rows)
    if delta_ns <= 0 or any(known(row.count_ns) is None for row in rows):
        return None
    parts: dict[Part, int] = {
        "count": sum(known(row.count_ns) or 0 for row in rows),
        "duration": sum(known(row.duration_ns) or 0 for row in rows),
        "overlap": sum(known(row.overlap_ns) or 0 for row in rows),
    }
    part = max(parts, key=lambda one: parts[one])
    return part if parts[part] >= MAIN.value * delta_ns else None


def grew(view: View, *patterns: str) -> tuple[ComparedRow, ...]:
    """Rows that got longer."""
    return tuple(row for row in view.matching(*patterns) if row.delta_ns > 0)
