"""Rows of two ledgers by name, per step, so that each side's rows still add up to its mean step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final

from traces.limits import Limit
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.tables import Group, LedgerRow, WallId

IDLE: Final = "idle"
_BUSY: Final = "busy"
"""Compute and communication together, where a side cannot tell them apart."""
_COPY: Final = "exposed_copy"
_DIRECTED: Final = ("ep_dispatch", "ep_combine")
_OPEN: Final = {
    "sendrecv_unresolved": (*_DIRECTED, "ep_a2a", "pp_p2p", "cp", "sendrecv_unresolved"),
    "ep_a2a": (*_DIRECTED, "ep_a2a"),
}
"""Kinds of exchanges whose purpose or direction is unknown, each with all that such an exchange may be."""
TOLD: Final = Limit(
    0.05,
    "of the exchanges",
    "ours: at the borders of a window a few are unresolved; more is a recording that resolves less",
)


@dataclass(frozen=True, slots=True)
class OneSide:
    """A row of one side per step: wall time, activities and their summed time, all exact.

    `work_ns` is None where it is unknown. `per_step_ns` is empty where only the mean is.
    """

    mean_ns: Fraction
    count: Fraction
    work_ns: Fraction | None
    per_step_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Matched:
    """One row on both sides; a side that does not have it has zeros."""

    row: str
    wall: WallId | None
    base: OneSide
    new: OneSide

    @property
    def delta_ns(self) -> Fraction:
        """New less base, per step."""
        return self.new.mean_ns - self.base.mean_ns


def mean_step_ns(rank: Rank) -> Fraction:
    """Mean length of the used steps, or of the one window."""
    return Fraction(sum(rank.lengths_ns), len(rank.lengths_ns))


def budget_rows(base: Rank, new: Rank) -> tuple[Matched, ...]:
    """What the steps are made of: on each side the rows add up to its mean step.

    Reasons of idle time lose their `idle.`. Where one side has idle time without a reason, both have one row
    `idle`; where reasons are put together so, their work is unknown, as a stretch may have several of them.
    Where a side has no ledger, compute and communication are one row, `busy`, copies and idle time are whole.
    Exchanges that one side separates and the other does not are one row.
    """
    if known(base.ledger) is None or known(new.ledger) is None:
        return _pair(_buckets(base), _buckets(new))
    one, other = _group(base, "budget"), _group(new, "budget")
    is_whole = any(row.row == IDLE for row in (*one, *other))
    idle_of, exchange_of = _idle_whole if is_whole else _idle_by_reason, exchange_rows(base, new)

    def name_of(row: str) -> str:
        return exchange_of(idle_of(row))

    return _pair(_side(base, one, name_of), _side(new, other, name_of))


def group_rows(base: Rank, new: Rank, group: Group) -> tuple[Matched, ...]:
    """The rows of another group by name; none where a side has no ledger. Exchanges as in `budget_rows`."""
    name_of = exchange_rows(base, new)
    return _pair(*(_side(rank, _group(rank, group), name_of) for rank in (base, new)))


def added(rows: Sequence[Matched]) -> Matched:
    """Rows of the same steps as one, which has no name and no wall."""
    return Matched("", None, _added([row.base for row in rows]), _added([row.new for row in rows]))


def _added(sides: Sequence[OneSide]) -> OneSide:
    works = [side.work_ns for side in sides if side.work_ns is not None]
    return OneSide(
        mean_ns=sum((side.mean_ns for side in sides), Fraction(0)),
        count=sum((side.count for side in sides), Fraction(0)),
        work_ns=sum(works, Fraction(0)) if len(works) == len(sides) else None,
        per_step_ns=tuple(sum(step) for step in zip(*(side.per_step_ns for side in sides), strict=True)),
    )


def _group(rank: Rank, group: Group) -> list[LedgerRow]:
    return [row for row in known(rank.ledger) or () if row.group == group]


def _idle_whole(row: str) -> str:
    return IDLE if row.startswith(f"{IDLE}.") else row


def _idle_by_reason(row: str) -> str:
    return row.removeprefix(f"{IDLE}.")


@dataclass(frozen=True, slots=True)
class _Side:
    """Rows of one side by name, each with its wall. `per_step`: whether rows are known step by step."""

    rows: dict[str, tuple[WallId | None, OneSide]]
    steps: int
    per_step: bool = True

    def wall(self, name: str) -> WallId | None:
        return self.rows[name][0] if name in self.rows else None

    def row(self, name: str, like: _Side) -> OneSide:
        """The row, or one of zeros that knows as much as the other side does."""
        if name in self.rows:
            return self.rows[name][1]
        work_ns = None if like.rows[name][1].work_ns is None else Fraction(0)
        return OneSide(Fraction(0), Fraction(0), work_ns, (0,) * self.steps if self.per_step else ())


def _side(rank: Rank, rows: Iterable[LedgerRow], name_of: Callable[[str], str]) -> _Side:
    named: dict[str, list[LedgerRow]] = defaultdict(list)
    for row in rows:
        named[name_of(row.row)].append(row)
    steps = len(rank.lengths_ns)
    sums = {
        name: (_one_wall(known(row.wall) for row in same), _sum(name, same, steps))
        for name, same in named.items()
    }
    return _Side(sums, steps)


def _sum(name: str, rows: list[LedgerRow], steps: int) -> OneSide:
    split = name == IDLE and any(row.row != IDLE for row in rows)
    per_step_ns = tuple(sum(step) for step in zip(*(row.per_step_ns for row in rows), strict=True))
    return OneSide(
        mean_ns=Fraction(sum(per_step_ns), steps),
        count=Fraction(sum(row.count for row in rows), steps),
        work_ns=None if split else Fraction(sum(row.work_ns for row in rows), steps),
        per_step_ns=per_step_ns,
    )


def _buckets(rank: Rank) -> _Side:
    """Buckets that every document has; what is neither copy nor idle is busy."""
    steps = len(rank.lengths_ns)
    budget = rank.budget_ns
    rest = {_COPY: Fraction(budget.exposed_copy, steps), IDLE: Fraction(budget.idle, steps)}
    means = {_BUSY: mean_step_ns(rank) - sum(rest.values()), **rest}
    rows = {key: (None, OneSide(value, Fraction(0), None, ())) for key, value in means.items()}
    return _Side({key: row for key, row in rows.items() if row[1].mean_ns}, steps, per_step=False)


def _pair(base: _Side, new: _Side) -> tuple[Matched, ...]:
    return tuple(
        Matched(
            row=name,
            wall=_one_wall((base.wall(name), new.wall(name))),
            base=base.row(name, new),
            new=new.row(name, base),
        )
        for name in sorted(base.rows.keys() | new.rows.keys())
    )


def _one_wall(walls: Iterable[WallId | None]) -> WallId | None:
    """The one wall that is named; None where there is none, or more than one."""
    named = {wall for wall in walls if wall is not None}
    return named.pop() if len(named) == 1 else None


def exchange_rows(base: Rank, new: Rank) -> Callable[[str], str]:
    """Name of a row -> its name on both sides: that of all it may be, where a side knows less of it.

    So exchanges that one recording separates and another does not are one row on both sides.
    """
    for kind, whole in _OPEN.items():
        one, other = _part(base, kind, whole), _part(new, kind, whole)
        if one is not None and other is not None and abs(one - other) > TOLD.value:
            return partial(_renamed, kind, whole)
    return str


def _part(rank: Rank, kind: str, whole: tuple[str, ...]) -> float | None:
    """How many of some exposed exchanges are of one kind; None where there are none."""
    counts = {row.row: row.count for row in known(rank.ledger) or () if row.group == "budget"}
    number = sum(counts.get(f"exposed_comm.{one}", 0) for one in whole)
    return counts.get(f"exposed_comm.{kind}", 0) / number if number else None


def _renamed(kind: str, whole: tuple[str, ...], row: str) -> str:
    bucket, _, what = row.partition(".")
    return f"{bucket}.{kind}" if bucket in ("exposed_comm", "blocking") and what in whole else row
