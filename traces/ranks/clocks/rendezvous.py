"""Pairs of times of ranks of which nothing but the order of their collectives is recorded: where
clocks meet.

Stages of a pipeline run different programs, so that the turn of a stream does not tell whose it is,
and what comes once a step has one period everywhere. But a message, a reduction and a gather that
two ranks share all end on both at once: at the true offset of their clocks ends of several
independent sequences coincide, at any other those of few. All pairs that coincide are fitted
together, so that most of them decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Final

import numpy as np

from traces.arrays import (
    FOREVER,
    BoolArray,
    FloatArray,
    IntArray,
    ints,
    none_of,
    order_of,
    sums_before,
    whole,
    zeros,
)
from traces.frozen import frozen
from traces.groups import begins, places_of_each
from traces.limits import Limit
from traces.ranks.clocks.clock_fit import DRIFT, ENDS, MEET, WHOLE, ClockFit, fit_clocks, in_common
from traces.ranks.summaries.summary import Operation

PART: Final = Limit(
    0.4,
    "of the messages of a rank",
    "counted: of a middle stage's messages half are with the next one, but for a fifth that end "
    "late",
)
SECOND: Final = Limit(
    0.6,
    "of the ends that coincide",
    "ours: steps are nearly alike, and a whole step off up to half coincide",
)
_SEQUENCE: Final = 2
"""Ends of a sequence that comes once a step, from which on it agrees."""
_LEAST: Final = 5
"""Ends that coincide, from which on an offset is worth a look; and of a sequence that comes
often."""
_TRIED: Final = 6
"""Offsets that are looked at."""
_LOOKED_AT: Final = 0.4
"""Of the most ends that coincide at any offset: a pair of stages shares less than what is in
lockstep."""
_RICH: Final = 1.5
"""Collectives a step, above which a sequence comes often."""
_ANCHORS: Final = 16
"""Ends of each sequence by which offsets are tried."""
_WINDOW_NS: Final = 200_000_000
"""In it clocks that drift by 40 ppm each way stay within what ends may lie apart."""
_STEADY: Final = (MEET.value / 2 / 100e-6) ** 2
"""How much speaks for a clock without drift: what ends may be apart, over the drift that clocks
have."""
_WHERE: Final = (0.5, 0.2, 0.8)
"""Where in a recording offsets are tried: it may overlap with the other in a part only."""


_SPAN: Final = 1 << 58
"""Above any time of a recording."""


@frozen
class Sequences:
    """Ends of one rank by time, shape (m,): what each does, and which sequence, of a stream, it is
    of.
    """

    end_ns: IntArray
    operation: IntArray
    number: IntArray
    steps: int
    of_operation: Mapping[int, IntArray]
    """Rows by operation."""
    of_number: Mapping[int, IntArray]
    """Rows by sequence."""
    by_operation: IntArray
    """Rows by operation and time, of which `key` rises."""
    key: IntArray

    def kinds(self) -> IntArray:
        """What each sequence does and how often, shape (sequences, 2), in order of both."""
        several = self.of_number.values()
        return ints(sorted((self.operation[rows[0]], len(rows)) for rows in several))

    def nearest(self, operation: IntArray, times_ns: IntArray) -> IntArray:
        """The row whose end is nearest to each time, mostly one of that operation where there is
        any.
        """
        key = operation * _SPAN + np.maximum(times_ns - self.end_ns[0], 0)
        after = np.maximum(np.searchsorted(self.key, key), 1)
        before = after - 1
        after = np.minimum(after, len(self.key) - 1)
        return self.by_operation[
            np.where(key - self.key[before] <= self.key[after] - key, before, after)
        ]


def sequences_of(end_ns: IntArray, operation: IntArray, number: IntArray, steps: int) -> Sequences:
    """The ends of one rank, in any order."""
    order = order_of(end_ns)
    operation, number = operation[order], number[order]
    end_ns = end_ns[order]
    key = operation * _SPAN + (end_ns - end_ns[:1])
    by_key = order_of(key)
    of_operation, of_number = dict(places_of_each(operation)), dict(places_of_each(number))
    return Sequences(end_ns, operation, number, steps, of_operation, of_number, by_key, key[by_key])


@frozen
class CoincidingEnds:
    """Ends of two ranks that coincide, by row, each with one, where those of the one are expected
    on the other's clock.
    """

    mine: IntArray
    theirs: IntArray
    expected_ns: IntArray

    def __len__(self) -> int:
        return len(self.mine)


def meet(own: Sequences, other: Sequences) -> CoincidingEnds | None:
    """Where ends of the two coincide, of several independent sequences; None where that leaves
    doubt.
    """
    for where in _WHERE:
        at_ns = int(own.end_ns[0] + where * (own.end_ns[-1] - own.end_ns[0]))
        meetings = []
        for middle_ns in _crowded(*_apart(own, other, at_ns)):
            met = _followed(own, other, at_ns, middle_ns)
            if _independent(met, own, other):
                meetings.append(met)
        meetings.sort(key=len, reverse=True)
        if meetings and (len(meetings) == 1 or len(meetings[1]) <= SECOND.value * len(meetings[0])):
            return meetings[0]
    return None


def _crowded(apart: IntArray, weight: FloatArray) -> list[int]:
    """The offsets, of those sorted, near which most lie by weight; each far from the others."""
    middles_ns: list[int] = []
    until = np.searchsorted(apart, apart + MEET.whole)
    summed = sums_before(weight)
    crowd = summed[until] - summed[:-1]
    most = crowd.max(initial=0.0)
    for _ in range(_TRIED):
        if not len(apart) or crowd.max() <= _LOOKED_AT * most:
            break
        best = int(np.argmax(crowd))
        middles_ns.append(int(np.median(apart[best : until[best]])))
        crowd[np.abs(apart - middles_ns[-1]) <= 2 * MEET.value] = 0
    return middles_ns


def _apart(own: Sequences, other: Sequences, at_ns: int) -> tuple[IntArray, FloatArray]:
    """How far ends of one operation are apart, of some of the own with all of the other, in order.

    Each sequence weighs one, however many ends it has: in lockstep are those that have many.
    """
    apart_ns, weight = [zeros(0)], [np.zeros(0)]
    near = np.abs(own.end_ns - at_ns)
    for mine in own.of_number.values():
        mine = mine[near[mine] <= _WINDOW_NS // 2]
        mine = mine[order_of(near[mine])[:_ANCHORS]]
        if len(mine) and (rows := other.of_operation.get(int(own.operation[mine[0]]))) is not None:
            apart_ns.append((other.end_ns[rows] - own.end_ns[mine][:, np.newaxis]).ravel())
            weight.append(np.full(len(apart_ns[-1]), 1 / len(mine)))
    apart, weights = np.concatenate(apart_ns), np.concatenate(weight)
    order = order_of(apart)
    return apart[order], weights[order]


def _followed(own: Sequences, other: Sequences, at_ns: int, offset_ns: int) -> CoincidingEnds:
    """From where two clocks meet along the recordings, farther and farther, as they drift."""
    line = np.array([offset_ns, 0.0])
    at = (own.end_ns - at_ns).astype(np.float64)
    farthest = float(np.abs(at).max())
    for reach_ns in (_WINDOW_NS / 2, 4 * _WINDOW_NS, farthest, farthest):
        met = _pairs(own, other, at, line, np.abs(at) <= reach_ns)
        if len(met) < _LEAST:
            break
        line = _line(
            at[met.mine], (other.end_ns[met.theirs] - own.end_ns[met.mine]).astype(np.float64)
        )
    return _pairs(own, other, at, line, ~none_of(len(at)))


def _line(at: FloatArray, apart: FloatArray) -> FloatArray:
    """Offset and slope of the line through how far two clocks are apart, near enough to follow it,
    and no steeper than clocks drift.
    """
    x, y = at - at.mean(), apart - apart.mean()
    most = DRIFT.value * 1e-6
    slope = float(np.clip((x * y).sum() / ((x * x).sum() + _STEADY), -most, most))
    return np.array([apart.mean() - slope * at.mean(), slope])


def _pairs(
    own: Sequences, other: Sequences, at: FloatArray, line: FloatArray, which: BoolArray
) -> CoincidingEnds:
    """Ends of one operation that coincide, each with the nearest of the other; one has one."""
    expected_ns = own.end_ns + whole(line[0] + line[1] * at)
    rows = np.flatnonzero(which)
    near = other.nearest(own.operation[rows], expected_ns[rows])
    apart_ns = np.abs(other.end_ns[near] - expected_ns[rows])
    apart_ns[own.operation[rows] != other.operation[near]] = _SPAN
    order = np.lexsort((apart_ns, near))
    order = order[begins(near[order])]
    order = order[apart_ns[order] <= MEET.value]
    return CoincidingEnds(rows[order], near[order], expected_ns)


def _independent(met: CoincidingEnds, own: Sequences, other: Sequences) -> bool:
    """Whether sequences agree on it of which one comes once a step: another that comes often, or
    two more that come once a step, of several ends each.

    One alone says little: what comes once a step has one period everywhere, and of stages that work
    in turn many ends coincide at an offset that is none. Steps differ by more than ends that meet.
    """
    rare, often = list[int](), False
    several = np.stack((own.number[met.mine], other.number[met.theirs]))
    pairs, counts = np.unique(several, axis=1, return_counts=True)
    for (ours, others), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        mine, theirs = met.expected_ns[own.of_number[ours]], other.end_ns[other.of_number[others]]
        possible = in_common(mine, theirs)
        if max(len(mine), len(theirs)) <= _RICH * max(1, own.steps, other.steps):
            if count >= max(_SEQUENCE, WHOLE.value * possible):
                rare.append(count)
            continue
        sends = Operation.EXCHANGE in own.operation[own.of_number[ours]]
        part = PART.value if sends else WHOLE.value
        often |= count >= max(_LEAST, part * possible)
    return bool(rare) and (often or sum(count >= ENDS.value for count in rare) >= ENDS.value)


def joined_clocks(
    ranks: Sequence[Sequences], fingerprints: Sequence[int], number: IntArray
) -> dict[int, ClockFit] | None:
    """A clock for all by what ranks share; None where that does not join all of them.

    `fingerprints` of the clocks, and the number of each rank's. Where a pair of ranks meets
    elsewhere, the others outweigh it.
    """
    base_ns = np.full(len(fingerprints), FOREVER)
    np.minimum.at(base_ns, number, [rank.end_ns[0] for rank in ranks])
    times, of_clock = [zeros(0)], [zeros(0)]
    for first, other, met in _meetings(ranks, number):
        ends_ns = ranks[first].end_ns[met.mine], ranks[other].end_ns[met.theirs]
        clocks = number[[first, other]]
        times.append((np.stack(ends_ns, axis=1) - base_ns[clocks]).ravel())
        of_clock.append(np.tile(clocks, len(met)))
    time, clock = np.concatenate(times).astype(np.float64), np.concatenate(of_clock)
    fits = fit_clocks(time, clock, np.arange(0, len(time) + 1, 2), len(fingerprints))
    if not fits.known.all() or fits.within_ns.max() > MEET.value:
        return None
    return fits.clocks(fingerprints, base_ns)


def _meetings(
    ranks: Sequence[Sequences], clock: IntArray
) -> Iterator[tuple[int, int, CoincidingEnds]]:
    """Ranks that meet, neighbours first. Of what those 1, 2, 4 and so on apart join, such as
    stages, each two that are not one yet are held together by a few pairs; ranks in equal places of
    them are tried first.
    """
    island = clock.copy()
    for first, other in _strides(len(ranks)):
        if clock[first] != clock[other] and (met := meet(ranks[first], ranks[other])) is not None:
            yield first, other, met
            island[island == island[other]] = island[first]
    islands = sorted(members.tolist() for _, members in places_of_each(island))
    for apart in range(1, len(islands)):
        for mine, theirs in zip(islands, islands[apart:], strict=False):
            if set(island[mine]) != set(island[theirs]):
                yield from islice(_between(ranks, mine, theirs, island), _ENOUGH)


def _between(
    ranks: Sequence[Sequences], mine: Sequence[int], theirs: Sequence[int], island: IntArray
) -> Iterator[tuple[int, int, CoincidingEnds]]:
    """Ranks of two islands that meet, which makes these one."""
    stage = min(len(mine), len(theirs))
    for first, other in sorted(
        product(mine, theirs), key=lambda pair: abs(abs(pair[0] - pair[1]) - stage)
    ):
        if (met := meet(ranks[first], ranks[other])) is not None:
            island[island == island[other]] = island[first]
            yield first, other, met


_ENOUGH: Final = 4
"""Pairs of ranks that hold two islands together."""


def _strides(count: int) -> Iterator[tuple[int, int]]:
    """Pairs 1, 2, 4 and so on apart, nearest first: groups of ranks have such strides, mostly."""
    apart = 1
    while apart < count:
        yield from zip(range(count - apart), range(apart, count), strict=True)
        apart *= 2


def of_one_program(ranks: Sequence[Sequences]) -> bool:
    """Whether the turn of a stream may stand for the same on all ranks."""
    return all(_alike(ranks[0], other) for other in ranks[1:])


def _alike(own: Sequences, other: Sequences) -> bool:
    """Whether two may be of one program: as many sequences of each operation, that come as
    often.
    """
    if len(own.of_number) != len(other.of_number):
        return False
    (does, often), (others_do, others_often) = own.kinds().T, other.kinds().T
    more = 2 * np.maximum(often, others_often) // max(1, own.steps, other.steps)
    near = np.abs(often - others_often) <= np.maximum(2, more)
    return bool(((does == others_do) & near).all())
