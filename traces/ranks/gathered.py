"""Sequences of collectives put together into groups, each with its shift against the others.

On one clock every two of a group are in each collective at the same time. A message has two ends: of what a
stage sends and receives in turn each is with the one other rank whose end is nearest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, distinct
from traces.limits import Limit

MEET: Final = Limit(
    10_000, "ns", "ours: the ends of one collective lie within 7 us on eight ranks of a recorded run"
)
WHOLE: Final = Limit(
    0.85,
    "of the ends of a sequence",
    "ours: a few kernels end late; of stages in lockstep up to 75 % coincide",
)
_LEAST: Final = 3
"""Collectives that two ranks must have in common: two lie on any line."""
_SHIFTS: Final = 64
"""How many collectives later a recording may begin."""
_GLANCE: Final = 24
"""How many ends judge a shift at a glance."""
_BEST: Final = 4
"""How many shifts are looked at more closely."""
FARTHER: Final = 8.0
"""How many times as far apart as those of the best fit ends may lie."""
FINEST_NS: Final = 1_000.0
"""Fits better than this are alike."""

Members = list[tuple[int, int]]
"""Sequences of one group, by number, with their shifts."""


class Gathered:
    """Sequences put together pair by pair, each with its shift against the first of its group."""

    def __init__(self, count: int) -> None:
        self._leader, self._shift = [*range(count)], [0] * count

    def members(self, one: int) -> list[int]:
        return [place for place, leader in enumerate(self._leader) if leader == self._leader[one]]

    def join(self, one: int, other: int, by: int) -> None:
        """Let two groups be one, where they are not; `by`: the shift of the other against the one."""
        apart = self._shift[one] + by - self._shift[other]
        for member in self.members(other) if self._leader[one] != self._leader[other] else ():
            self._leader[member] = self._leader[one]
            self._shift[member] += apart

    def groups(self) -> list[Members]:
        return [[(one, self._shift[one]) for one in self.members(head)] for head in sorted({*self._leader})]


def best_of(fits: Mapping[tuple[int, int], tuple[float, int]], count: int) -> list[float]:
    """How near the nearest other is to each of `count`."""
    best = [np.inf] * count
    for pair, (apart_ns, _) in fits.items():
        for one in pair:
            best[one] = min(best[one], apart_ns)
    return best


@dataclass(frozen=True, slots=True)
class OnClock:
    """One sequence of a rank, on the clock of the run, in order."""

    place: int
    start_ns: IntArray
    end_ns: IntArray


def by_clock(sequences: Sequence[OnClock]) -> list[Members]:
    """Groups of sequences of one operation, of which each rank may have several.

    Those whose ends lie nearest come together first. Ranks of other groups may be in lockstep, so ends must
    not lie much farther apart than those of the nearest of either: of a rank with a slow link all are far. Of
    two ranks whose links are as slow only the other's are near: where that leaves groups of several sizes,
    those that are farther come together as well, if that makes groups of one size.
    """
    near = {
        (one, other): found
        for one, other in combinations(range(len(sequences)), 2)
        if sequences[one].place != sequences[other].place
        and (found := _shift_at_once(sequences[other], sequences[one])) is not None
    }
    best = best_of(near, len(sequences))
    together = Gathered(len(sequences))
    states: list[tuple[float, list[Members]]] = []
    far: list[tuple[int, int, int]] = []
    for apart_ns, by, one, other in sorted((*found, *pair) for pair, found in near.items()):
        if apart_ns > FARTHER * max(best[one], best[other], FINEST_NS):
            far.append((one, other, by))
        elif _may_join(together, one, other, near):
            states.append((apart_ns, together.groups()))
            together.join(one, other, by)
    chosen = _evenest(states, together.groups())
    for one, other, by in far:
        if _of_one_size(chosen) or _of_one_size(together.groups()):
            break
        if _may_join(together, one, other, near):
            together.join(one, other, by)
    return chosen if _of_one_size(chosen) or not _of_one_size(together.groups()) else together.groups()


def _may_join(together: Gathered, one: int, other: int, near: Mapping[tuple[int, int], object]) -> bool:
    """Whether two groups are not one yet, and each of one can be in the collectives of each of the other."""
    mine, theirs = together.members(one), together.members(other)
    return one not in theirs and all((min(a, b), max(a, b)) in near for a in mine for b in theirs)


def _of_one_size(groups: Sequence[Members]) -> bool:
    return len({len(one) for one in groups}) == 1


def _evenest(states: Sequence[tuple[float, list[Members]]], last: list[Members]) -> list[Members]:
    """Of what groups were before each two came together, `states` with how far these are apart, those of one
    size that lie farthest from the next ones; the last where none are.

    Groups of one family have one size. Where they work in lockstep, ends of two are nearly as near as those
    of one.
    """
    best, found = 1.0, last
    before_ns = FINEST_NS
    for apart_ns, groups in states:
        far = max(apart_ns, FINEST_NS)
        if len(groups[0]) > 1 and _of_one_size(groups) and far / before_ns > best:
            best, found = far / before_ns, groups
        before_ns = max(before_ns, far)
    return last if _of_one_size(last) and FARTHER * FINEST_NS / before_ns >= best else found


def _shift_at_once(own: OnClock, led: OnClock) -> tuple[float, int] | None:
    """How far ends lie apart, and the shift at which no collective of one ends before the other's began."""
    found = []
    for shift in (0, *likely_shifts(own.end_ns, led.end_ns, one_clock=True)):
        mine, theirs = slice(max(0, -shift), None), slice(max(0, shift), None)
        common = min(len(own.end_ns[mine]), len(led.end_ns[theirs]))
        if common < _LEAST or common < min(len(led.end_ns), len(own.end_ns)) / 2:
            continue
        own_end, led_end = own.end_ns[mine][:common], led.end_ns[theirs][:common]
        own_begin, led_begin = own.start_ns[mine][:common], led.start_ns[theirs][:common]
        latest_ns = np.maximum(own_begin - led_end, led_begin - own_end).max()
        if latest_ns <= MEET.value:
            found.append((float(np.median(np.abs(own_end - led_end))), shift))
    return min(found, default=None)


def likely_shifts(own_ns: IntArray, led_ns: IntArray, *, one_clock: bool) -> list[int]:
    """The shifts at which some of the ends lie best together, judged at a glance."""
    reach = min(_SHIFTS, abs(len(own_ns) - len(led_ns)) + min(len(own_ns), len(led_ns)) // 2)
    if reach < 1:
        return []
    shifts = np.arange(-reach, reach + 1)
    some = distinct(np.linspace(0, len(own_ns) - 1, _GLANCE).astype(np.int64))
    at = some + shifts[:, np.newaxis]
    within = (at >= 0) & (at < len(led_ns))
    apart = np.where(within, led_ns[np.clip(at, 0, len(led_ns) - 1)] - own_ns[some], np.nan)
    enough = within.sum(axis=1) >= _LEAST
    apart, shifts = apart[enough], shifts[enough]
    middle = 0.0 if one_clock else np.nanmedian(apart, axis=1)[:, np.newaxis]
    spread = np.nanmedian(np.abs(apart - middle), axis=1)
    return [int(shift) for shift in shifts[np.argsort(spread, kind="stable")[:_BEST]] if shift]


@dataclass(frozen=True, slots=True)
class Pair:
    """Messages of two sequences, by number: which of each belong together, in order."""

    one: int
    other: int
    rows: IntArray
    others: IntArray


def are_whole(sequences: Sequence[OnClock]) -> BoolArray:
    """Which sequences of exchanges meet others from end to end; of messages a part meets each neighbour.

    Ranks of one stage may be in lockstep and send at one time: then the nearest are of other stages.
    """
    meets = np.zeros((len(sequences), len(sequences)), dtype=np.bool_)
    for one, other in combinations(range(len(sequences)), 2):
        mine, theirs = sequences[one].end_ns, sequences[other].end_ns
        if sequences[one].place == sequences[other].place:
            continue
        begin, end = max(mine[0], theirs[0]) - MEET.value, min(mine[-1], theirs[-1]) + MEET.value
        most = max(int(((each >= begin) & (each <= end)).sum()) for each in (mine, theirs))
        if most >= _LEAST and len(_mutual(mine, theirs)[0]) >= WHOLE.value * most:
            meets[one, other] = meets[other, one] = True
    rows = _Rows.of(sequences)
    near = _nearest_other(rows.end_ns, rows.place)
    has = near >= 0
    with_whole = meets[rows.owner[has], rows.owner[near[has]]]
    of_whole = np.bincount(rows.owner[has], weights=with_whole, minlength=len(sequences))
    return of_whole * 2 > np.bincount(rows.owner[has], minlength=len(sequences))


@dataclass(frozen=True, slots=True)
class _Rows:
    """All ends of some sequences: of which each is, and which of its own."""

    owner: IntArray
    place: IntArray
    turn: IntArray
    end_ns: IntArray

    @staticmethod
    def of(sequences: Sequence[OnClock]) -> _Rows:
        owner = np.repeat(np.arange(len(sequences)), [len(one.end_ns) for one in sequences])
        return _Rows(
            owner,
            np.array([one.place for one in sequences], dtype=np.int64)[owner],
            np.concatenate([np.arange(len(one.end_ns)) for one in sequences]),
            np.concatenate([one.end_ns for one in sequences]),
        )


_OFTEN: Final = 0.2
"""Part of the messages of a rank that are with one other: it has one neighbour or two."""


def messages_by_clock(sequences: Sequence[OnClock], beside: Set[tuple[int, int]] = frozenset()) -> list[Pair]:
    """Pairs of messages among sequences of exchanges: of those that are no group as a whole.

    Each message is with the other rank whose end is nearest, among those that it often is with. Two places
    that work `beside` each other in one stage exchange none.
    """
    if not sequences:
        return []
    rows_of = _Rows.of(sequences)
    owner, end_ns = rows_of.owner, rows_of.end_ns
    open_ = np.ones(len(owner), dtype=np.bool_)
    length = np.bincount(owner, minlength=len(sequences))
    pairs = []
    for one, other in combinations(range(len(sequences)), 2):
        places = sequences[one].place, sequences[other].place
        if places[0] == places[1] or tuple(sorted(places)) in beside:
            continue
        count, apart_ns = _met(sequences[one].end_ns, sequences[other].end_ns)
        if count >= max(_LEAST, _OFTEN * min(length[one], length[other])):
            pairs.append((-count, apart_ns, one, other))
    found = []
    for _, _, one, other in sorted(pairs):
        mine, theirs = (np.flatnonzero((owner == which) & open_) for which in (one, other))
        rows, others = _mutual(end_ns[mine], end_ns[theirs])
        rows, others = mine[rows], theirs[others]
        if len(rows) >= _LEAST:
            open_[rows] = open_[others] = False
            found.append(Pair(int(one), int(other), rows_of.turn[rows], rows_of.turn[others]))
    return found


def _met(mine: IntArray, theirs: IntArray) -> tuple[int, float]:
    """How many ends of two are nearest to each other, and how far apart, in the middle.

    Two of one stage in lockstep end as often together as the two ends of a message, but not as near.
    """
    rows, others = _mutual(mine, theirs)
    return len(rows), float(np.median(np.abs(mine[rows] - theirs[others]))) if len(rows) else np.inf


def _nearest_other(end_ns: IntArray, place: IntArray) -> IntArray:
    """Of each row the one of another place whose end is nearest, within what clocks are apart; else -1."""
    order = np.argsort(end_ns, kind="stable")
    found = np.full(len(end_ns), -1, dtype=np.int64)
    apart = np.full(len(end_ns), int(MEET.value) + 1)
    for step in range(1, _AROUND + 1):
        for mine, theirs in ((order[step:], order[:-step]), (order[:-step], order[step:])):
            far = np.abs(end_ns[mine] - end_ns[theirs])
            better = (place[mine] != place[theirs]) & (far < apart[mine])
            found[mine[better]], apart[mine[better]] = theirs[better], far[better]
    return found


_AROUND: Final = 8
"""Ends before and after among which the nearest is sought."""


def _mutual(own_ns: IntArray, other_ns: IntArray) -> tuple[IntArray, IntArray]:
    """Ends of two that are nearest to each other, within what clocks are apart."""
    if not (len(own_ns) and len(other_ns)):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    there, back = nearest(own_ns, other_ns), nearest(other_ns, own_ns)
    rows = np.flatnonzero(back[there] == np.arange(len(own_ns)))
    rows = rows[np.abs(own_ns[rows] - other_ns[there[rows]]) <= MEET.value]
    return rows, there[rows]


def nearest(times_ns: IntArray, among_ns: IntArray) -> IntArray:
    """Of each time the place of the nearest among some that rise."""
    after = np.clip(np.searchsorted(among_ns, times_ns), 0, len(among_ns) - 1)
    before = np.maximum(after - 1, 0)
    return np.where(np.abs(times_ns - among_ns[before]) <= np.abs(among_ns[after] - times_ns), before, after)
