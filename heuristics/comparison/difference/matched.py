"""Rows of two ledgers by name, per step, so that each side's rows still add up to its mean step."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from operator import add
from typing import Final

from heuristics.comparison.difference.subject import only_one, rows_of_group, same_capture
from traces.frozen import frozen
from traces.limits import HALF_A_WALL
from traces.missing import known, of_known
from traces.sections.rank import Rank
from traces.sections.tables import Group, WallId
from traces.texts import Texts

IDLE: Final = "idle"
_BUSY: Final = "busy"
"""Compute and communication together, where a side cannot tell them apart, or not what its graphs
hold."""
_OPAQUE: Final = ("compute", "exposed_comm")
"""Buckets whose parts a graph that was recorded whole hides."""
_DIRECTED: Final = ("ep_dispatch", "ep_combine")
_OPEN: Final = {
    "sendrecv_unresolved": (*_DIRECTED, "ep_a2a", "pp_p2p", "cp", "sendrecv_unresolved"),
    "ep_a2a": (*_DIRECTED, "ep_a2a"),
}
"""Kinds of exchanges whose purpose or direction is unknown, each with all that such an exchange may
be."""


@frozen
class OneSide:
    """A row of one side per step: wall time, activities and their summed time, all exact.

    `work_ns` is None where it is unknown. `per_step_ns` is empty where only the mean is.
    """

    mean_ns: Fraction
    count: Fraction
    work_ns: Fraction | None
    per_step_ns: tuple[int, ...]
    wall: WallId | None = None


@frozen
class Matched:
    """One row on both sides; a side that does not have it has zeros."""

    row: str
    wall: WallId | None
    base: OneSide
    new: OneSide

    @property
    def delta_ns(self) -> Fraction:
        return self.new.mean_ns - self.base.mean_ns


def mean_ns(lengths_ns: Sequence[int]) -> Fraction:
    """Their mean, exactly."""
    return Fraction(sum(lengths_ns), len(lengths_ns))


def mean_step_ns(rank: Rank) -> Fraction:
    """Mean length of the used steps, or of the one window."""
    return mean_ns(rank.lengths_ns)


def budget_rows(base: Rank, new: Rank) -> tuple[Matched, ...]:
    """What the steps are made of: on each side the rows add up to its mean step.

    Reasons of idle time lose their `idle.`. Where one side has idle time without a reason, both
    have one row `idle`; where reasons are put together so, their work is unknown, as a stretch may
    have several of them. Where a side has no ledger, compute and communication are one row, `busy`,
    copies and idle time are whole. Where only one side recorded what its CUDA graphs hold, they are
    one row too: kernels are no more than the replay that they became. Exchanges that one side
    separates and the other does not are one row.
    """
    if known(base.ledger) is None or known(new.ledger) is None:
        return _paired(base, new, _buckets(base), _buckets(new))
    rows = (*rows_of_group(base, "budget"), *rows_of_group(new, "budget"))
    is_whole = any(row.row == IDLE for row in rows)
    return group_rows(base, new, "budget", IDLE if is_whole else "")


def group_rows(base: Rank, new: Rank, group: Group, idle: str | None = None) -> tuple[Matched, ...]:
    """The rows of a group by name; none where a side has no ledger. Exchanges as in `budget_rows`.

    `idle`: the row in which all reasons of idle time are one; empty: each is a row of its own.
    """
    exchange_of = _exchange_rows(base, new)
    opaque = group == "budget" and not same_capture(base, new)

    def name_of(row: str) -> str:
        if opaque and row.partition(".")[0] in _OPAQUE:
            return _BUSY
        reason = row.removeprefix(f"{IDLE}.")
        if idle is None or reason == row:
            return exchange_of(row)
        return exchange_of(idle or reason)

    return _paired(base, new, _side(base, group, name_of), _side(new, group, name_of))


def added(rows: Sequence[Matched]) -> Matched:
    """Rows of the same steps as one, which has no name and no wall."""
    return Matched("", None, _added([row.base for row in rows]), _added([row.new for row in rows]))


def _added(sides: Sequence[OneSide]) -> OneSide:
    mean_ns = count = Fraction(0)
    work_ns: Fraction | None = Fraction(0)
    walls, steps = set[WallId | None](), list[tuple[int, ...]]()
    for side in sides:
        mean_ns += side.mean_ns
        count += side.count
        work_ns = of_known(add, work_ns, side.work_ns)
        walls.add(side.wall)
        steps.append(side.per_step_ns)
    return OneSide(
        mean_ns, count, work_ns, tuple(map(sum, zip(*steps, strict=True))), only_one(walls)
    )


def _side(rank: Rank, group: Group, name_of: Callable[[str], str]) -> dict[str, OneSide]:
    named = defaultdict[str, list[OneSide]](list)
    steps = len(rank.lengths_ns)
    for row in rows_of_group(rank, group):
        name = name_of(row.row)
        mean_ns, work_ns = Fraction(sum(row.per_step_ns), steps), Fraction(row.work_ns, steps)
        side = OneSide(
            mean_ns, Fraction(row.count, steps), work_ns, tuple(row.per_step_ns), known(row.wall)
        )
        if name == _BUSY:
            side = replace(side, count=Fraction(0), work_ns=None, wall=None)
        elif name == IDLE != row.row:
            side = replace(side, work_ns=None)
        named[name].append(side)
    return {name: _added(same) for name, same in named.items()}


def _buckets(rank: Rank) -> dict[str, OneSide]:
    """Buckets that every document has; what is neither copy nor idle is busy."""
    steps, budget = len(rank.lengths_ns), rank.budget_ns
    not_busy = {
        "exposed_copy": Fraction(budget.exposed_copy, steps),
        IDLE: Fraction(budget.idle, steps),
    }
    means = {_BUSY: mean_step_ns(rank) - sum(not_busy.values()), **not_busy}
    return {key: OneSide(value, Fraction(0), None, ()) for key, value in means.items() if value}


def _paired(
    base: Rank, new: Rank, base_sides: Mapping[str, OneSide], new_sides: Mapping[str, OneSide]
) -> tuple[Matched, ...]:
    matched = []
    for name in sorted(base_sides.keys() | new_sides.keys()):
        mine = base_sides.get(name) or _zeros(new_sides[name], base)
        theirs = new_sides.get(name) or _zeros(mine, new)
        matched.append(Matched(name, only_one({mine.wall, theirs.wall}), mine, theirs))
    return tuple(matched)


def _zeros(like: OneSide, rank: Rank) -> OneSide:
    """A row of zeros that knows as much as the other side does."""
    none = Fraction(0)
    steps = len(rank.lengths_ns) if like.per_step_ns else 0
    return OneSide(none, none, none if like.work_ns is not None else None, (0,) * steps)


def _exchange_rows(base: Rank, new: Rank) -> Callable[[str], str]:
    """Name of a row -> its name on both sides: that of all it may be, where a side knows less of
    it.

    So exchanges that one recording separates and another does not are one row on both sides.
    """
    for kind, whole in _OPEN.items():
        mine, theirs = _part(base, kind, whole), _part(new, kind, whole)
        if mine is not None and theirs is not None and abs(mine - theirs) > HALF_A_WALL.value:
            return partial(_renamed, kind, whole)
    return str


def _part(rank: Rank, kind: str, whole: Texts) -> float | None:
    """How many of some exposed exchanges are of one kind; None where there are none."""
    of_kind = number = 0
    for row in rows_of_group(rank, "budget"):
        bucket, _, what = row.row.partition(".")
        if bucket == "exposed_comm" and what in whole:
            number += row.count
            of_kind += row.count * (what == kind)
    if number:
        return of_kind / number
    return None


def _renamed(kind: str, whole: Texts, row: str) -> str:
    bucket, _, what = row.partition(".")
    if bucket in ("exposed_comm", "blocking") and what in whole:
        return f"{bucket}.{kind}"
    return row
