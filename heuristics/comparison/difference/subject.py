"""One side of a comparison: a result and the rank of it that is compared, and what is known of
both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter, truediv
from typing import Any, Final, TypeVar

from msgspec import UNSET

from heuristics.facts.dictionary import enter
from heuristics.result.configured import Setting
from heuristics.result.result import Result
from traces.limits import Limit
from traces.missing import known, of_known, sole
from traces.sections.rank import Rank
from traces.sections.tables import Group, LedgerRow
from traces.sections.trace import Trace

Value = bool | int | float | str | None | tuple[Any, ...]
Values = Mapping[str, Value]
"""By the name of what has it."""
T = TypeVar("T")

SAME_COUNT: Final = Limit(
    0.02,
    "fraction",
    "ours: classes of two GPUs of one real run differ by up to 1.8 %; one of 32 layers is 3 %",
)


@dataclass(frozen=True)
class Subject:
    """A result and the rank of it that is compared."""

    result: Result
    rank: Rank

    @cached_property
    def settings(self) -> dict[str, Setting]:
        """What its configuration sets, by knob."""
        return {set_.knob: set_ for set_ in known_of(self, "result.configuration.settings") or ()}

    @cached_property
    def values(self) -> dict[str, Value]:
        """To what it sets them, but for those whose value is withheld."""
        return {
            knob: _plain(set_.value) for knob, set_ in self.settings.items() if not set_.withheld
        }

    @cached_property
    def given(self) -> dict[str, Value]:
        return {field: _plain(value) for field, value in self.result.given.items()}

    @property
    def is_configured(self) -> bool:
        return known(self.result.configuration) is not None

    @property
    def trace(self) -> Trace | None:
        traces = self.result.traces
        return next(
            (trace for trace in traces if trace.name == self.rank.trace), next(iter(traces), None)
        )

    @property
    def logged_ns(self) -> tuple[int, ...]:
        return tuple(known_of(self, "result.log.iterations_ns") or ())

    @property
    def container(self) -> str | None:
        versions: Mapping[str, str] = known_of(self, "result.log.versions") or {}
        return versions.get("container")

    @cached_property
    def counts(self) -> dict[str, float]:
        """Activities per step of each row."""
        steps = len(self.rank.lengths_ns)
        return {row.row: row.count / steps for row in rows_of_group(self.rank, "budget")}

    def count(self, row: str) -> float:
        """Activities per step of a row; 0 where it has none."""
        return self.counts.get(row, 0.0)

    def said(self, knob: str) -> str | None:
        """Where a knob is set; None where it is not."""
        if knob in self.settings:
            return self.settings[knob].said
        return None

    def withholds(self, knob: str) -> bool:
        return knob in self.settings and self.settings[knob].withheld

    def value(self, *names: str) -> Value:
        """What is known of a knob or a given fact; the first of some names that is set."""
        for name in names:
            for source in (self.values, self.given):
                if source.get(name) is not None:
                    return source[name]
        return None


Shows = Callable[[Subject], Any]
"""What a side shows."""


def differing(base: T | None, new: T | None) -> tuple[T, T] | None:
    """What both sides tell where it is not the same; what one does not tell is no difference."""
    if base is None or new is None or base == new:
        return None
    return base, new


def only_one(values: set[T | None]) -> T | None:
    """The one that is known; None where there is none, or more than one."""
    return sole(values - {None})


def same_recorder(base: Subject, new: Subject) -> bool:
    """Whether not two kinds of recorders made the recordings."""
    return base.trace is None or new.trace is None or base.trace.kind == new.trace.kind


def rows_of_group(rank: Rank, group: Group) -> list[LedgerRow]:
    """Rows of the ledger; none where there is no ledger."""
    return [row for row in known(rank.ledger) or () if row.group == group]


def whole_replays(rank: Rank) -> bool:
    """Whether CUDA graphs were recorded as whole replays, without their kernels."""
    ledger = known(rank.ledger)
    return ledger is None or any(row.row == "compute.graph_replay" for row in ledger)


def same_capture(base: Rank, new: Rank) -> bool:
    """Whether what runs in CUDA graphs is recorded the same on both sides: its kernels, or none of
    them.
    """
    return whole_replays(base) == whole_replays(new)


def same_count(before: float, after: float) -> bool:
    """Whether two numbers of activities are the same but for what routing moves."""
    return abs(after - before) <= SAME_COUNT.value * max(before, after)


def enter_sided(view: type, sides: tuple[str, str], name: str, of: Shows) -> None:
    """What a side shows as two facts, `SIDE.NAME`, of what has both."""
    for side in sides:
        enter(f"{side}.{name}", partial(_of_side, attrgetter(side), of), view)


def known_of(of: object, path: str) -> Any:
    """What is known at a place, such as `rank.gpu`; None where that, or what it stands in, is
    not.
    """
    value = of
    for name in path.split("."):
        value = known(getattr(value, name))
        if value is None or value is UNSET:
            return None
    return value


def known_at(path: str) -> Shows:
    """What is known at a place of a side."""
    return partial(known_of, path=path)


def each_step(side: Subject, path: str, by: Callable[[Any, Any], float] = truediv) -> float | None:
    """A figure of all steps as one of each."""
    return of_known(by, known_of(side, path), len(side.rank.lengths_ns))


def _of_side(side: Callable[[Any], Subject], of: Shows, view: Any) -> object:
    return of(side(view))


def _plain(value: Any) -> Value:
    plain: Value = value
    if isinstance(value, list | tuple):
        plain = tuple(map(_plain, value))
    return plain
