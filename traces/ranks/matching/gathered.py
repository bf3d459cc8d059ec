"""Sequences of collectives put together into groups, each with its shift against the others.

On one clock every two of a group are in each collective at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, distinct, ints, none_of, order_of, row_by_row, zeros
from traces.frozen import frozen
from traces.groups import places_of_each
from traces.ranks.clocks.clock_fit import MEET, in_common

LEAST: Final = 3
"""Collectives that two ranks must have in common: two lie on any line."""
ON_CLOCK: Final = 2
"""The same where their clocks are known: one may end with another by chance."""
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

Pair = tuple[int, int]
"""Two sequences, or two ranks, by number."""
Fits = dict[Pair, tuple[float, int]]
"""Of two sequences how far their ends are apart, and by how many one began later."""
Members = list[tuple[int, int]]
"""Sequences of one group, by number, with their shifts."""


class JoinedSequences:
    """Sequences put together pair by pair, each with its shift against the first of its group."""

    def __init__(self, count: int) -> None:
        self._leader, self._shift = np.arange(count), zeros(count)

    def members(self, sequence: int) -> IntArray:
        return np.flatnonzero(self._leader == self._leader[sequence])

    def join(self, sequence: int, other: int, by: int) -> None:
        """Let two groups be one, where they are not; `by`: the shift of the other against the
        one.
        """
        apart = self._shift[sequence] + by - self._shift[other]
        if self._leader[sequence] != self._leader[other]:
            theirs = self.members(other)
            self._leader[theirs] = self._leader[sequence]
            self._shift[theirs] += apart

    def groups(self) -> list[Members]:
        by_leader = places_of_each(self._leader)
        return [[*row_by_row(members, self._shift[members])] for _, members in by_leader]


def best_of(fits: Fits, count: int) -> list[float]:
    """How near the nearest other is to each of `count`."""
    best = [np.inf] * count
    for pair, (apart_ns, _) in fits.items():
        for sequence in pair:
            best[sequence] = min(best[sequence], apart_ns)
    return best


@frozen
class OnClock:
    """One sequence of a rank, on the clock of the run, in order."""

    place: int
    start_ns: IntArray
    end_ns: IntArray


def by_clock(sequences: Sequence[OnClock]) -> list[Members]:
    """Groups of sequences of one operation, of which each rank may have several.

    Those whose ends lie nearest come together first. Ranks of other groups may be in lockstep, so
    ends must not lie much farther apart than those of the nearest of either: of a rank with a slow
    link all are far. Of two ranks whose links are as slow only the other's are near: where that
    leaves groups of several sizes, those that are farther come together as well, if that makes
    groups of one size.
    """
    near: Fits = {}
    may_join = none_of((len(sequences),) * 2)
    for (first, led), (second, own) in combinations(enumerate(sequences), 2):
        if led.place == own.place:  # a group has each rank once
            continue
        if (fitted := _shift_at_once(own, led)) is not None:
            near[first, second] = fitted
        elif in_common(own.end_ns, led.end_ns) >= ON_CLOCK:
            continue  # so many ends in common tell that they are apart; fewer leave it open
        may_join[first, second] = may_join[second, first] = True
    best = best_of(near, len(sequences))
    together = JoinedSequences(len(sequences))
    states: list[tuple[float, list[Members]]] = []
    far: list[tuple[Pair, int]] = []
    for pair, (apart_ns, by) in sorted(near.items(), key=lambda fit: fit[1]):
        if apart_ns > FARTHER * max(FINEST_NS, *(best[sequence] for sequence in pair)):
            far.append((pair, by))
        elif _may_join(together, pair, may_join):
            states.append((apart_ns, together.groups()))
            together.join(*pair, by)
    chosen = _evenest(states, together.groups())
    if not _of_one_size(chosen):
        for pair, by in far:
            if _may_join(together, pair, may_join):
                together.join(*pair, by)
            if _of_one_size(together.groups()):
                return together.groups()
    return chosen


def _may_join(together: JoinedSequences, pair: Pair, may_join: BoolArray) -> bool:
    """Whether two groups are not one yet, and each of one can be in the collectives of each of the
    other: none is in those of its own rank, so that of one group it never holds.
    """
    return bool(may_join[np.ix_(*map(together.members, pair))].all())


def _of_one_size(groups: Sequence[Members]) -> bool:
    return len({*map(len, groups)}) == 1


def _evenest(states: Sequence[tuple[float, list[Members]]], last: list[Members]) -> list[Members]:
    """Of what groups were before each two came together, `states` with how far these are apart,
    those of one size that lie farthest from the next ones; the last where none are.

    Groups of one family have one size. Where they work in lockstep, ends of two are nearly as near
    as those of one.
    """
    best, evenest = 1.0, last
    before_ns = FINEST_NS
    for apart_ns, groups in states:
        far = max(apart_ns, FINEST_NS)
        if len(groups[0]) > 1 and _of_one_size(groups) and far / before_ns > best:
            best, evenest = far / before_ns, groups
        before_ns = max(before_ns, far)
    if _of_one_size(last) and FARTHER * FINEST_NS / before_ns >= best:
        return last
    return evenest


def _shift_at_once(own: OnClock, led: OnClock) -> tuple[float, int] | None:
    """How far ends lie apart, and the shift at which no collective of one ends before the other's
    began.
    """
    fits = []
    for shift, mine, theirs in overlaps(own.end_ns, led.end_ns, ON_CLOCK, one_clock=True):
        own_end, led_end = own.end_ns[mine], led.end_ns[theirs]
        latest_ns = np.maximum(own.start_ns[mine] - led_end, led.start_ns[theirs] - own_end).max()
        if latest_ns <= MEET.value:
            fits.append((float(np.median(np.abs(own_end - led_end))), shift))
    return min(fits, default=None)


def overlaps(
    own_ns: IntArray, led_ns: IntArray, least: int, *, one_clock: bool
) -> Iterator[tuple[int, slice, slice]]:
    """Shifts at which some ends may lie together, none first, and what both then have in common, at
    least so many.
    """
    likely = shifts_at_once if one_clock else likely_shifts
    for shift in (0, *likely(own_ns, led_ns)):
        mine, theirs = max(0, -shift), max(0, shift)
        common = min(len(own_ns) - mine, len(led_ns) - theirs)
        if common >= least:
            yield shift, slice(mine, mine + common), slice(theirs, theirs + common)


def _glanced_at(own_ns: IntArray) -> IntArray:
    """Places of some of the ends, from the first to the last."""
    return distinct(ints(np.linspace(0, len(own_ns) - 1, _GLANCE)))


def shifts_at_once(own_ns: IntArray, led_ns: IntArray) -> list[int]:
    """The shifts at which most ends are each the next after the other's, on one clock."""
    if min(len(own_ns), len(led_ns)) < ON_CLOCK:
        return []
    picked = _glanced_at(own_ns)
    after = np.searchsorted(led_ns, own_ns[picked] - MEET.value)
    shifts, often = np.unique(after - picked, return_counts=True)
    best = shifts[order_of(-often)[:_BEST]]
    return best[best != 0].tolist()


def likely_shifts(own_ns: IntArray, led_ns: IntArray) -> list[int]:
    """The shifts at which some of the ends lie best together, on any clocks; judged at a glance."""
    fewer = min(len(own_ns), len(led_ns))
    if fewer < LEAST:
        return []
    reach = min(_SHIFTS, abs(len(own_ns) - len(led_ns)) + fewer // 2)
    shifts = np.arange(-reach, reach + 1)
    picked = _glanced_at(own_ns)
    at = picked + shifts[:, np.newaxis]
    within = (at >= 0) & (at < len(led_ns))
    apart = np.where(within, led_ns[np.clip(at, 0, len(led_ns) - 1)] - own_ns[picked], np.nan)
    enough = within.sum(axis=1) >= LEAST
    apart, shifts = apart[enough], shifts[enough]
    spread = np.nanmedian(np.abs(apart - np.nanmedian(apart, axis=1)[:, np.newaxis]), axis=1)
    best = shifts[order_of(spread)[:_BEST]]
    return best[best != 0].tolist()
