"""Messages between stages of a pipeline, of ranks whose clocks are known: which two ends are of
one.

A message has two ends, at one time. Ranks of one stage are often in lockstep, so that ends of many
coincide: those of one message do so more closely than others, once what the clocks of two ranks are
apart is taken away. Stages have one size, and each rank exchanges with those in its place in the
next ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations
from typing import Final

import numpy as np

from traces.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    ints,
    none_of,
    sums_before,
    unknown,
    zeros,
)
from traces.frozen import frozen
from traces.limits import Limit
from traces.ranks.clocks.clock_fit import MEET, WHOLE, in_time_of
from traces.ranks.matching.gathered import FINEST_NS, LEAST, OnClock, Pair
from traces.ranks.rows import parts
from traces.statistics.resampled import CHANCE, drawn_again

_OFTEN: Final = Limit(
    0.2, "of the messages of a rank that are with one other", "ours: it has one neighbour or two"
)
_NEIGHBOURS: Final = 2
"""Ranks that one exchanges messages with: of the stage before and of the next one."""
_EVEN_NS: Final = 100.0
"""Ends that lie nearer are as near as each other."""
_MICROSECOND_NS: Final = 1_000
"""How finely times in microseconds without a fraction are told."""


@frozen
class MessagesOfTwo:
    """Messages that two sequences exchange, k of them, in order of time.

    `lower` and `higher` are the numbers of the sequences among those of `Exchanges`. Message i is
    the end `lower_ends[i]` of the one and `higher_ends[i]` of the other: places in their `end_ns`,
    shape (k,).
    """

    lower: int
    higher: int
    lower_ends: IntArray
    higher_ends: IntArray


@frozen
class Meeting:
    """Ends of two sequences that are nearest to each other, k pairs in order of time.

    `lower_ends` and `higher_ends` are their places in the times that were compared, and `apart_ns`
    how far the two of each pair are apart, but for what all of them are in the middle: clocks of
    two stages may differ by some microseconds. All of shape (k,).
    """

    lower_ends: IntArray
    higher_ends: IntArray
    apart_ns: IntArray

    @property
    def farness(self) -> float:
        """In ns, smaller where more ends meet: of two in lockstep as many meet as of messages, but
        not as closely.
        """
        return max(float(np.median(self.apart_ns)), FINEST_NS) / len(self.apart_ns)


def _meet(lower_ns: IntArray, higher_ns: IntArray) -> Meeting | None:
    """How the ends of two sequences, times that rise, meet; None where less than `LEAST` do."""
    if min(len(lower_ns), len(higher_ns)) < LEAST:
        return None
    nearest, back = _nearest(lower_ns, higher_ns), _nearest(higher_ns, lower_ns)
    mutual = np.flatnonzero(back[nearest] == np.arange(len(lower_ns)))
    later_ns = higher_ns[nearest[mutual]] - lower_ns[mutual]
    near_ns = later_ns[np.abs(later_ns) <= 2 * MEET.value]
    if not len(near_ns):
        return None
    apart_ns = np.abs(later_ns - int(np.median(near_ns)))
    meets = apart_ns <= MEET.value
    if meets.sum() < LEAST:
        return None
    return Meeting(mutual[meets], nearest[mutual[meets]], apart_ns[meets])


@frozen
class Exchanges:
    """Sequences of exchanges on the clock of the run, m of them, each of one stream of a rank.

    `meetings`: how the ends of two meet, by the numbers of the sequences, the lower first; of two
    ranks, and only where they meet. The ends of all sequences stand one after the other, those of
    sequence i at [`first[i]`, `first[i + 1]`); `first` is of shape (m + 1,).
    """

    sequences: Sequence[OnClock]
    meetings: Mapping[Pair, Meeting]
    first: IntArray

    @staticmethod
    def of(sequences: Sequence[OnClock]) -> Exchanges:
        meetings = {
            (lower, higher): met
            for (lower, mine), (higher, theirs) in combinations(enumerate(sequences), 2)
            if mine.place != theirs.place and (met := _meet(mine.end_ns, theirs.end_ns))
        }
        lengths = ints([len(sequence.end_ns) for sequence in sequences])
        return Exchanges(sequences, meetings, sums_before(lengths))

    def _among_all(self, pair: Pair) -> tuple[IntArray, IntArray]:
        """Where the ends of two that meet each other stand among those of all, of either."""
        (lower, higher), met = pair, self.meetings[pair]
        return self.first[lower] + met.lower_ends, self.first[higher] + met.higher_ends

    def are_whole(self) -> BoolArray:
        """Which sequences meet others from end to end, shape (m,); of messages a part meets each
        neighbour.

        Ranks of one stage may send at one time: then those of other stages meet more closely.
        """
        number = parts.numbers(self.first)
        closest, with_whole = np.full(len(number), np.inf), none_of(len(number))
        for pair, met in self.meetings.items():
            # whether nearly all ends of two meet, of the time that both were recorded
            lower_ns, higher_ns = (self.sequences[sequence].end_ns for sequence in pair)
            most = max(in_time_of(higher_ns, lower_ns), in_time_of(lower_ns, higher_ns))
            whole = len(met.apart_ns) >= WHOLE.value * most
            for ends in self._among_all(pair):
                nearer = ends[closest[ends] > met.farness]
                closest[nearer], with_whole[nearer] = met.farness, whole
        count = len(self.sequences)
        wholes = np.bincount(number[with_whole], minlength=count)
        return wholes * 2 > np.bincount(number[np.isfinite(closest)], minlength=count)

    def stage_size(self) -> int | None:
        """How many places a stage has: ends of ranks so far apart meet more closely than any others
        do.

        None where they do not: in a group the ends of all are as near as each other.
        """
        pairs = defaultdict[int, list[Pair]](list)
        for pair, met in self.meetings.items():
            if self._meet_often(pair, met):
                lower_place, higher_place = self._places(pair)
                pairs[higher_place - lower_place].append(pair)
        count = self._place_count
        if count < 2:
            return None
        sizes = np.arange(1, count)
        apart_ns = np.stack([self._mean_apart_ns(size, pairs[size]) for size in range(1, count)])
        best = np.where(count % sizes == 0, apart_ns[:, 0], np.inf).argmin()
        others_ns = np.delete(apart_ns, best, axis=0).min(axis=0, initial=np.inf)
        is_nearest = others_ns > np.maximum(apart_ns[best], self._even_ns)
        return int(sizes[best]) if is_nearest[0] and np.mean(~is_nearest) < CHANCE.value else None

    @property
    def _even_ns(self) -> float:
        """How near ends are as near as each other: no nearer than the recordings tell times."""
        between_ns = np.concatenate([np.diff(sequence.end_ns) for sequence in self.sequences])
        return max(_EVEN_NS, min(int(np.gcd.reduce(between_ns)), _MICROSECOND_NS))

    def _mean_apart_ns(self, size: int, pairs: Sequence[Pair]) -> FloatArray:
        """How far each end of all sequences is from the nearest that it meets in these pairs, in
        the mean; then of sequences drawn again. One that meets none counts as far as ends may be
        that meet.
        """
        nearest_ns = unknown(self.first[-1])
        for pair in combinations(range(len(self.sequences)), 2):
            if np.diff(self._places(pair)) == size:
                for ends in self._in_common(pair):
                    nearest_ns[ends] = np.fmin(nearest_ns[ends], MEET.value)
        for pair in pairs:
            for ends in self._among_all(pair):
                nearest_ns[ends] = np.fmin(nearest_ns[ends], self.meetings[pair].apart_ns)
        is_met, m = ~np.isnan(nearest_ns), len(self.sequences)
        number = parts.numbers(self.first)[is_met]
        sums_ns = np.bincount(number, nearest_ns[is_met], minlength=m)
        drawn = np.concatenate([[np.arange(m)], drawn_again(m)])
        counts = np.bincount(number, minlength=m)[drawn].sum(axis=1)
        means_ns = sums_ns[drawn].sum(axis=1) / np.maximum(counts, 1)
        return np.where(counts, means_ns, float(MEET.value))

    def _in_common(self, pair: Pair) -> Iterator[IntArray]:
        """Ends of two while the other was recorded as well, of either."""
        for mine, theirs in (pair, pair[::-1]):
            own_ns, other_ns = self.sequences[mine].end_ns, self.sequences[theirs].end_ns
            begin, end = np.searchsorted(
                own_ns, other_ns[[0, -1]] + np.array([-MEET.value, MEET.value])
            )
            yield self.first[mine] + np.arange(begin, end)

    def messages(
        self,
        which: Sequence[int],
        beside: Set[Pair] = frozenset(),
        stage_size: int | None = None,
    ) -> list[MessagesOfTwo]:
        """Messages among the sequences `which`, by number: of those that are no group as a whole.

        Each rank exchanges with few others: those whose ends meet its own most closely, and often.
        Two places that work `beside` each other in one stage exchange none; nor, where the size of
        stages is known, those that are not one stage apart. The last may send to the first.
        """
        left = [np.arange(len(ends.end_ns)) for ends in self.sequences]  # ends of no message yet
        partners = zeros(len(left))
        messages = []
        for pair in sorted(self.meetings, key=lambda pair: self.meetings[pair].farness):
            lower, higher = pair
            if not {*pair} <= {*which} or not self._may_send(pair, beside, stage_size):
                continue
            mine, theirs = left[lower], left[higher]
            met = _meet(self.sequences[lower].end_ns[mine], self.sequences[higher].end_ns[theirs])
            if (
                met is None
                or not self._meet_often(pair, met)
                or partners[[*pair]].max() == _NEIGHBOURS
            ):
                continue
            left[lower] = np.delete(mine, met.lower_ends)
            left[higher] = np.delete(theirs, met.higher_ends)
            partners[[*pair]] += 1
            ends = mine[met.lower_ends], theirs[met.higher_ends]
            messages.append(MessagesOfTwo(lower, higher, *ends))
        return messages

    def _may_send(self, pair: Pair, beside: Set[Pair], stage_size: int | None) -> bool:
        """Whether the places of two sequences may exchange messages, as `messages` says."""
        lower_place, higher_place = self._places(pair)
        if stage_size is None:
            return (lower_place, higher_place) not in beside
        return higher_place - lower_place in (stage_size, self._place_count - stage_size)

    @property
    def _place_count(self) -> int:
        return max((sequence.place for sequence in self.sequences), default=-1) + 1

    def _places(self, pair: Pair) -> Pair:
        """The places of the summaries of two sequences, the lower first."""
        lower_place, higher_place = sorted(self.sequences[sequence].place for sequence in pair)
        return lower_place, higher_place

    def _meet_often(self, pair: Pair, met: Meeting) -> bool:
        """Whether so many ends meet as a rank exchanges with a neighbour."""
        fewer = min(len(self.sequences[sequence].end_ns) for sequence in pair)
        return len(met.apart_ns) >= _OFTEN.value * fewer


def _nearest(times_ns: IntArray, among_ns: IntArray) -> IntArray:
    """Of each time the place of the nearest among some that rise, the earlier of two as near."""
    after = np.clip(np.searchsorted(among_ns, times_ns), 0, len(among_ns) - 1)
    before = np.maximum(after - 1, 0)
    return np.where(
        np.abs(times_ns - among_ns[before]) <= np.abs(among_ns[after] - times_ns), before, after
    )
