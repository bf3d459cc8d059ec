"""Messages between stages of a pipeline, of ranks whose clocks are known: which two ends are of
one.

A message has two ends, at one time. Ranks of one stage are often in lockstep, so that ends of many
coincide: those of one message do so more closely than others, once what the clocks of two ranks are
apart is taken away. Stages have one size, and each rank exchanges with those in its place in the
next ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from itertools import combinations
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, ints, none_of, zeros
from traces.frozen import frozen
from traces.limits import Limit
from traces.ranks.clocks.clock_fit import MEET, WHOLE, in_time_of
from traces.ranks.matching.gathered import FINEST_NS, LEAST, OnClock
from traces.ranks.rows import parts

_OFTEN: Final = Limit(
    0.2, "of the messages of a rank that are with one other", "ours: it has one neighbour or two"
)
_NEIGHBOURS: Final = 2
"""Ranks that one exchanges messages with: of the stage before and of the next one."""
CLOSER: Final = Limit(
    1.4,
    "times as far apart as the ends of messages",
    "ours: in 113 of 117 simulated pipelines ends at a wrong distance are 1.5 times as far apart "
    "or more; in "
    "a group those of all are as near as each other",
)
_EVEN_NS: Final = 100.0
"""Ends that lie nearer are as near as each other."""


@frozen
class Pair:
    """Messages of two sequences, by number: which of each belong together, in order."""

    one: int
    other: int
    rows: IntArray
    others: IntArray


@frozen
class Meeting:
    """Ends of two that are nearest to each other, by row, and how far apart each two are, but for
    what all of them are in the middle: clocks of two stages may differ by some microseconds.
    """

    rows: IntArray
    others: IntArray
    apart_ns: IntArray

    @property
    def farness(self) -> float:
        """Of two in lockstep ends meet as often as those of a message, but not as closely."""
        return max(float(np.median(self.apart_ns)), FINEST_NS) / len(self.rows)


def _meet(own_ns: IntArray, other_ns: IntArray) -> Meeting | None:
    """None of less than `LEAST`."""
    if min(len(own_ns), len(other_ns)) < LEAST:
        return None
    there, back = _nearest(own_ns, other_ns), _nearest(other_ns, own_ns)
    rows = np.flatnonzero(back[there] == np.arange(len(own_ns)))
    apart_ns = other_ns[there[rows]] - own_ns[rows]
    near_ns = apart_ns[np.abs(apart_ns) <= 2 * MEET.value]
    if not len(near_ns):
        return None
    apart_ns = np.abs(apart_ns - int(np.median(near_ns)))
    rows, apart_ns = rows[apart_ns <= MEET.value], apart_ns[apart_ns <= MEET.value]
    if len(rows) >= LEAST:
        return Meeting(rows, there[rows], apart_ns)
    return None


@frozen
class Exchanges:
    """Sequences of exchanges, and how those of two places meet, by their numbers, the lower
    first.
    """

    sequences: Sequence[OnClock]
    met: Mapping[tuple[int, int], Meeting]
    first: IntArray
    """Where the ends of each begin among those of all, and the end of the last."""

    @staticmethod
    def of(sequences: Sequence[OnClock]) -> Exchanges:
        met: dict[tuple[int, int], Meeting] = {}
        for (one, mine), (other, theirs) in combinations(enumerate(sequences), 2):
            if mine.place != theirs.place and (found := _meet(mine.end_ns, theirs.end_ns)):
                met[one, other] = found
        return Exchanges(
            sequences, met, parts.borders(ints([len(one.end_ns) for one in sequences]))
        )

    def _rows(self, pair: tuple[int, int]) -> tuple[IntArray, IntArray]:
        """Which ends of two meet each other, among those of all."""
        met, first = self.met[pair], self.first
        return first[pair[0]] + met.rows, first[pair[1]] + met.others

    def are_whole(self) -> BoolArray:
        """Which sequences meet others from end to end; of messages a part meets each neighbour.

        Ranks of one stage may send at one time: then those of other stages meet more closely.
        """
        number = parts.numbers(self.first)
        closest, with_whole = np.full(len(number), np.inf), none_of(len(number))
        for pair, met in self.met.items():
            whole = self._are_all(pair)
            for rows in self._rows(pair):
                nearer = rows[closest[rows] > met.farness]
                closest[nearer], with_whole[nearer] = met.farness, whole
        count = len(self.sequences)
        wholes = np.bincount(number[with_whole], minlength=count)
        return wholes * 2 > np.bincount(number[np.isfinite(closest)], minlength=count)

    def _are_all(self, pair: tuple[int, int]) -> bool:
        """Whether nearly all ends of two meet, of the time that both were recorded."""
        one, other = self.sequences[pair[0]].end_ns, self.sequences[pair[1]].end_ns
        most = max(in_time_of(other, one), in_time_of(one, other))
        return len(self.met[pair].rows) >= WHOLE.value * most

    def stage_size(self) -> int | None:
        """How many places a stage has: ends of ranks so far apart meet more closely than any others
        do.

        None where they do not: in a group the ends of all are as near as each other.
        """
        pairs: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for pair, met in self.met.items():
            if self._often(met, *pair):
                one, other = self._places(*pair)
                pairs[other - one].append(pair)
        count = self._place_count
        if count < 2:
            return None
        sizes = np.arange(1, count)
        apart_ns = np.array([self._apart_ns(pairs[size]) for size in range(1, count)])
        best = np.where(count % sizes == 0, apart_ns, np.inf).argmin()
        others_ns = np.delete(apart_ns, best).min(initial=np.inf)
        if others_ns >= CLOSER.value * max(apart_ns[best], _EVEN_NS):
            return int(sizes[best])
        return None

    def _apart_ns(self, pairs: Sequence[tuple[int, int]]) -> float:
        """How far each end is from the nearest that it meets in these pairs, in the mean."""
        nearest_ns = np.full(self.first[-1], MEET.value)
        for pair in pairs:
            for rows in self._rows(pair):
                nearest_ns[rows] = np.minimum(nearest_ns[rows], self.met[pair].apart_ns)
        return float(nearest_ns.mean())

    def messages(
        self,
        which: Sequence[int],
        beside: Set[tuple[int, int]] = frozenset(),
        stage: int | None = None,
    ) -> list[Pair]:
        """Pairs of messages among `which`: of those that are no group as a whole.

        Each rank exchanges with few others: those whose ends meet its own most closely, and often.
        Two places that work `beside` each other in one stage exchange none, nor those that are not
        one `stage` apart.
        """
        left = [np.arange(len(one.end_ns)) for one in self.sequences]
        partners = zeros(len(left))
        found = []
        # the last may send to the first
        among = {*which}
        apart = {stage, self._place_count - (stage or 0)}
        for one, other in sorted(self.met, key=lambda pair: (self.met[pair].farness, pair)):
            first, second = self._places(one, other)
            may = (first, second) not in beside if stage is None else second - first in apart
            if not may or not {one, other} <= among:
                continue
            mine, theirs = left[one], left[other]
            met = _meet(self.sequences[one].end_ns[mine], self.sequences[other].end_ns[theirs])
            if (
                met is None
                or not self._often(met, one, other)
                or partners[[one, other]].max() == _NEIGHBOURS
            ):
                continue
            left[one], left[other] = np.delete(mine, met.rows), np.delete(theirs, met.others)
            partners[[one, other]] += 1
            found.append(Pair(one, other, mine[met.rows], theirs[met.others]))
        return found

    @property
    def _place_count(self) -> int:
        return max((one.place for one in self.sequences), default=-1) + 1

    def _places(self, one: int, other: int) -> tuple[int, int]:
        """Of two sequences, the lower first."""
        first, second = sorted((self.sequences[one].place, self.sequences[other].place))
        return first, second

    def _often(self, met: Meeting, one: int, other: int) -> bool:
        fewer = min(len(self.sequences[one].end_ns), len(self.sequences[other].end_ns))
        return len(met.rows) >= _OFTEN.value * fewer


def _nearest(times_ns: IntArray, among_ns: IntArray) -> IntArray:
    """Of each time the place of the nearest among some that rise."""
    after = np.clip(np.searchsorted(among_ns, times_ns), 0, len(among_ns) - 1)
    before = np.maximum(after - 1, 0)
    return np.where(
        np.abs(times_ns - among_ns[before]) <= np.abs(among_ns[after] - times_ns), before, after
    )
