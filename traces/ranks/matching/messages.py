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

from traces.arrays import BoolArray, IntArray
from traces.frozen import frozen
from traces.limits import Limit
from traces.ranks.clocks.clock_fit import MEET, WHOLE
from traces.ranks.matching.gathered import FINEST_NS, LEAST, OnClock

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

    @staticmethod
    def of(sequences: Sequence[OnClock]) -> Exchanges:
        met = {
            (one, other): found
            for one, other in combinations(range(len(sequences)), 2)
            if sequences[one].place != sequences[other].place
            and (found := _meet(sequences[one].end_ns, sequences[other].end_ns)) is not None
        }
        return Exchanges(sequences, met)

    def are_whole(self) -> BoolArray:
        """Which sequences meet others from end to end; of messages a part meets each neighbour.

        Ranks of one stage may send at one time: then those of other stages meet more closely.
        """
        closest = [np.full(len(one.end_ns), np.inf) for one in self.sequences]
        with_whole = [np.zeros(len(one.end_ns), dtype=np.bool_) for one in self.sequences]
        for pair, met in self.met.items():
            whole = self._are_all(pair)
            for one, rows in zip(pair, (met.rows, met.others), strict=True):
                nearer = rows[closest[one][rows] > met.farness]
                closest[one][nearer], with_whole[one][nearer] = met.farness, whole
        return np.array(
            [
                whole.sum() * 2 > np.isfinite(near).sum()
                for whole, near in zip(with_whole, closest, strict=True)
            ],
            dtype=np.bool_,
        )

    def _are_all(self, pair: tuple[int, int]) -> bool:
        """Whether nearly all ends of two meet, of the time that both were recorded."""
        ends = [self.sequences[one].end_ns for one in pair]
        begin = max(one[0] for one in ends) - MEET.value
        end = min(one[-1] for one in ends) + MEET.value
        most = max(int(((one >= begin) & (one <= end)).sum()) for one in ends)
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
        apart = {size: self._apart_ns(pairs[size]) for size in range(1, count)}
        best = min(
            (size for size in apart if count % size == 0), key=apart.__getitem__, default=None
        )
        if best is None:
            return None
        others = min((ns for size, ns in apart.items() if size != best), default=np.inf)
        if others >= CLOSER.value * max(apart[best], _EVEN_NS):
            return best
        return None

    def _apart_ns(self, pairs: Sequence[tuple[int, int]]) -> float:
        """How far each end is from the nearest that it meets in these pairs, in the mean."""
        nearest_ns = [np.full(len(one.end_ns), MEET.value) for one in self.sequences]
        for pair in pairs:
            met = self.met[pair]
            for one, rows in zip(pair, (met.rows, met.others), strict=True):
                nearest_ns[one][rows] = np.minimum(nearest_ns[one][rows], met.apart_ns)
        return float(np.concatenate(nearest_ns).mean())

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
        ends = [one.end_ns for one in self.sequences]
        open_ = [np.ones(len(one), dtype=np.bool_) for one in ends]
        partners = np.zeros(len(ends), dtype=np.int64)
        found = []
        # the last may send to the first
        among = {*which}
        apart = {stage, self._place_count - (stage or 0)}
        for one, other in sorted(self.met, key=lambda pair: (self.met[pair].farness, pair)):
            first, second = self._places(one, other)
            may = (first, second) not in beside if stage is None else second - first in apart
            if not may or not {one, other} <= among:
                continue
            mine, theirs = (np.flatnonzero(open_[number]) for number in (one, other))
            met = _meet(ends[one][mine], ends[other][theirs])
            if (
                met is None
                or not self._often(met, one, other)
                or partners[[one, other]].max() == _NEIGHBOURS
            ):
                continue
            rows, others = mine[met.rows], theirs[met.others]
            open_[one][rows] = open_[other][others] = False
            partners[[one, other]] += 1
            found.append(Pair(one, other, rows, others))
        return found

    @property
    def _place_count(self) -> int:
        return max((one.place for one in self.sequences), default=-1) + 1

    def _places(self, one: int, other: int) -> tuple[int, int]:
        """Of two sequences, the lower first."""
        first, second = sorted(self.sequences[number].place for number in (one, other))
        return first, second

    def _often(self, met: Meeting, one: int, other: int) -> bool:
        fewer = min(len(self.sequences[number].end_ns) for number in (one, other))
        return len(met.rows) >= _OFTEN.value * fewer


def _nearest(times_ns: IntArray, among_ns: IntArray) -> IntArray:
    """Of each time the place of the nearest among some that rise."""
    after = np.clip(np.searchsorted(among_ns, times_ns), 0, len(among_ns) - 1)
    before = np.maximum(after - 1, 0)
    return np.where(
        np.abs(times_ns - among_ns[before]) <= np.abs(among_ns[after] - times_ns), before, after
    )
