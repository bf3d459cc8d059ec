"""Waiting charged: to the rank that came last, and to what was found to make ranks late."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.names.kinds import COMM_KINDS
from traces.ranks.alike import Alike
from traces.ranks.cause import Cause
from traces.ranks.grid import Grid, own_step_of
from traces.ranks.late import Suspicion
from traces.ranks.match import Matched
from traces.ranks.parts import median, most, spread
from traces.ranks.summary import UNKNOWN
from traces.ranks.waits import NOBODY, Waits


@dataclass(frozen=True, slots=True)
class Charged:
    """Sums over the collectives in the steps of the run. By place, shape (ranks,): what it waited, and what
    others waited for it. `late_ns` is what is charged to the cause that was found; `transfer_ns` is moving.
    `by_kind_ns`: all waiting by kind of communication, in the words of the document. Of each instance, shape
    (n,): the `step` of the run, whether it is `counted` here, and whether its waiting is of the cause.
    """

    waited_ns: IntArray
    caused_ns: IntArray
    late_ns: int
    transfer_ns: int
    by_kind_ns: Mapping[str, int]
    step: IntArray
    counted: BoolArray
    of_cause: BoolArray


def charged_to(
    matched: Matched, waits: Waits, grid: Grid, suspicion: Suspicion, alike: Sequence[Alike]
) -> Charged:
    """Add up the waiting."""
    count = len(grid.later)
    if not len(matched):
        nothing, none = np.zeros(count, dtype=np.int64), np.zeros(0, dtype=np.bool_)
        return Charged(nothing, nothing, 0, 0, {}, np.zeros(0, dtype=np.int64), none, none)
    step = step_of(matched, grid)
    inside = step != UNKNOWN if grid.step_count else np.ones(len(matched), dtype=np.bool_)
    rows = spread(inside, matched.first)
    waited_ns = _by_place(matched.place[rows], waits.wait_ns[rows], count)
    caused = np.flatnonzero(inside & (waits.last != NOBODY))
    wait_ns, late = waits.of_instance_ns(matched.first)[caused], matched.place[waits.last[caused]]
    caused_ns = _by_place(late, wait_ns, count)
    counts = _counts(suspicion, late, alike)
    moving_ns = int(waits.moving_ns[rows].sum())
    by_kind_ns = _by_kind(matched.kind[rows], waits.wait_ns[rows])
    of_cause = np.zeros(len(matched), dtype=np.bool_)
    of_cause[caused[counts]] = True
    late_ns = int(wait_ns[counts].sum())
    return Charged(waited_ns, caused_ns, late_ns, moving_ns, by_kind_ns, step, inside, of_cause)


def step_of(matched: Matched, grid: Grid) -> IntArray:
    """The step of the run in which each instance lies, `UNKNOWN` outside of all."""
    told = matched.step != UNKNOWN
    own = own_step_of(matched, grid)
    has = most(told, matched.first)
    return np.where(has, median(own, matched.first, told), UNKNOWN)


def _counts(suspicion: Suspicion, late: IntArray, alike: Sequence[Alike]) -> BoolArray:
    """Which instances are charged to the cause: those whose last rank it makes late; where that is not one
    rank or stage, all.
    """
    if suspicion.cause is Cause.NONE:
        return np.zeros(len(late), dtype=np.bool_)
    if suspicion.place != UNKNOWN:
        of_one: BoolArray = late == suspicion.place
        return of_one
    if suspicion.cause is Cause.PIPELINE_IMBALANCE:
        return np.isin(late, alike[suspicion.group].places)
    return np.ones(len(late), dtype=np.bool_)


def _by_kind(kind: IntArray, wait_ns: IntArray) -> dict[str, int]:
    """Largest first; without what nobody waited in."""
    found = {name: int(wait_ns[kind == code].sum()) for code, name in enumerate(COMM_KINDS)}
    return {name: found[name] for name in sorted(found, key=lambda name: -found[name]) if found[name]}


def _by_place(place: IntArray, values: IntArray, count: int) -> IntArray:
    result = np.zeros(count, dtype=np.int64)
    np.add.at(result, place, values)
    return result
