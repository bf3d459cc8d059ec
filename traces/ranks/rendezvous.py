"""Where clocks meet: offsets between ranks of which nothing but the order of their collectives is recorded.

Stages of a pipeline run different programs, so that the turn of a stream does not tell whose it is, and what
comes once a step has one period everywhere. But a message, a reduction and a gather that two ranks share all
end on both at once: at the true offset of their clocks ends of several independent sequences coincide, at any
other those of few. Ranks are joined where that leaves no doubt, and a clock is known along such joints alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, distinct
from traces.groups import begins
from traces.limits import Limit
from traces.ranks.clock_fit import ClockFit, lines_by_part
from traces.ranks.gathered import MEET, WHOLE
from traces.ranks.summary import Operation

PART: Final = Limit(
    0.4,
    "of the messages of a rank",
    "ours: of a stage's messages half are with the next one, at least nearly",
)
SECOND: Final = Limit(
    0.6, "of the ends that coincide", "ours: steps are nearly alike, and a whole step off up to half coincide"
)
STRONG: Final = Limit(
    0.5,
    "of the ends of the rank with fewer",
    "ours: in 190 simulated runs pairs that met at a wrong offset shared up to 0.36, pairs of one node most",
)
_SEQUENCE: Final = 2
"""Ends of a sequence that comes once a step, from which on it agrees."""
_LEAST: Final = 5
"""Ends that coincide, from which on an offset is worth a look; and of a sequence that comes often."""
_TRIED: Final = 6
"""Offsets that are looked at."""
_LOOKED_AT: Final = 0.4
"""Of the most ends that coincide at any offset: a pair of stages shares less than what is in lockstep."""
_RICH: Final = 1.5
"""Collectives a step, above which a sequence comes often."""
_ANCHORS: Final = 16
"""Ends of each sequence by which offsets are tried."""
_WINDOW_NS: Final = 200_000_000
"""In it clocks that drift by 40 ppm each way stay within what ends may lie apart."""
_ELSEWHERE: Final = 2 * MEET.value
_WHERE: Final = (0.5, 0.2, 0.8)
"""Where in a recording offsets are tried: it may overlap with the other in a part only."""


_SPAN: Final = 1 << 58
"""Above any time of a recording."""


@dataclass(frozen=True, slots=True)
class Sequences:
    """Ends of one rank by time, shape (m,): what each does, and which sequence, of a stream, it is of."""

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

    def nearest(self, operation: IntArray, times_ns: IntArray) -> IntArray:
        """The row whose end is nearest to each time, mostly one of that operation where there is any."""
        key = operation * _SPAN + np.clip(times_ns - self.end_ns[0], 0, _SPAN - 1)
        after = np.clip(np.searchsorted(self.key, key), 1, max(1, len(self.key) - 1))
        before = after - 1
        after = np.minimum(after, len(self.key) - 1)
        return self.by_operation[np.where(key - self.key[before] <= self.key[after] - key, before, after)]


def sequences_of(end_ns: IntArray, operation: IntArray, number: IntArray, steps: int) -> Sequences:
    """The ends of one rank, in any order."""
    order = np.argsort(end_ns, kind="stable")
    operation, number = operation[order], number[order]
    end_ns = end_ns[order]
    key = operation * _SPAN + (end_ns - end_ns[:1])
    by_key = np.argsort(key, kind="stable")
    of_operation, of_number = _rows_of(operation), _rows_of(number)
    return Sequences(end_ns, operation, number, steps, of_operation, of_number, by_key, key[by_key])


def _rows_of(values: IntArray) -> dict[int, IntArray]:
    return {one: np.flatnonzero(values == one) for one in distinct(values).tolist()}


@dataclass(frozen=True, slots=True)
class Met:
    """How one rank's time becomes another's: other = own + offset + slope * (own - `at_ns`); `ends` that
    coincide, each pair of sequences with how many of these."""

    at_ns: int
    offset_ns: int
    slope: float
    ends: int
    sequences: Mapping[tuple[int, int], int]

    def other_of(self, own_ns: int) -> int:
        return own_ns + self.offset_ns + round(self.slope * (own_ns - self.at_ns))

    def own_of(self, other_ns: int) -> int:
        own_ns = other_ns - self.offset_ns
        return own_ns - round(self.slope * (own_ns - self.at_ns))


def meet(own: Sequences, other: Sequences) -> Met | None:
    """The offset at which ends of the two coincide without doubt; None where there is none."""
    for where in _WHERE:
        if (met := _meet_around(own, other, where)) is not None:
            return met
    return None


def _meet_around(own: Sequences, other: Sequences, where: float) -> Met | None:
    if not (len(own.end_ns) and len(other.end_ns)):
        return None
    at_ns = int(own.end_ns[0] + where * (own.end_ns[-1] - own.end_ns[0]))
    apart, weight = _apart(own, other, at_ns)
    found = []
    for middle_ns in _crowded(apart, weight):
        met = _followed(own, other, at_ns, middle_ns)
        if _independent(met, own, other):
            found.append(met)
    found.sort(key=lambda met: -met.ends)
    if not found or (len(found) > 1 and found[1].ends > SECOND.value * found[0].ends):
        return None
    return found[0]


def _crowded(apart: IntArray, weight: FloatArray) -> list[int]:
    """The offsets, of those sorted, near which most lie by weight; each far from the others."""
    found: list[int] = []
    until = np.searchsorted(apart, apart + int(MEET.value))
    summed = np.concatenate(([0.0], np.cumsum(weight)))
    crowd = summed[until] - summed[:-1]
    most = crowd.max(initial=0.0)
    for _ in range(_TRIED):
        if not len(apart) or crowd.max() <= _LOOKED_AT * most:
            break
        best = int(np.argmax(crowd))
        found.append(int(np.median(apart[best : until[best]])))
        crowd[np.abs(apart - found[-1]) <= _ELSEWHERE] = 0
    return found


def _apart(own: Sequences, other: Sequences, at_ns: int) -> tuple[IntArray, FloatArray]:
    """How far ends of one operation are apart, of some of the own with all of the other, in order.

    Each sequence weighs one, however many ends it has: in lockstep are those that have many.
    """
    found, weight = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    near = np.abs(own.end_ns - at_ns)
    for mine in own.of_number.values():
        mine = mine[near[mine] <= _WINDOW_NS // 2]
        mine = mine[np.argsort(near[mine], kind="stable")[:_ANCHORS]]
        if len(mine) and (rows := other.of_operation.get(int(own.operation[mine[0]]))) is not None:
            found.append((other.end_ns[rows] - own.end_ns[mine][:, np.newaxis]).ravel())
            weight.append(np.full(len(found[-1]), 1 / len(mine)))
    apart, weights = np.concatenate(found), np.concatenate(weight)
    order = np.argsort(apart, kind="stable")
    return apart[order], weights[order]


def _followed(own: Sequences, other: Sequences, at_ns: int, offset_ns: int) -> Met:
    """From where two clocks meet along the recordings, farther and farther, as they drift."""
    slope, offset = 0.0, float(offset_ns)
    near = np.abs(own.end_ns - at_ns)
    farthest = int(near.max())
    for reach_ns in (_WINDOW_NS // 2, 4 * _WINDOW_NS, farthest, farthest):
        mine, theirs = _pairs(own, other, at_ns, offset, slope, near <= min(reach_ns, farthest))
        if len(mine) < _LEAST:
            return Met(at_ns, round(offset), slope, 0, {})
        at = (own.end_ns[mine] - at_ns).astype(np.float64)
        apart = (other.end_ns[theirs] - own.end_ns[mine]).astype(np.float64)
        offset, slope = (float(one[0]) for one in lines_by_part(at, apart, np.zeros_like(mine), None, 1))
    every = np.ones(len(own.end_ns), dtype=np.bool_)
    mine, theirs = _pairs(own, other, at_ns, offset, slope, every)
    pairs, count = np.unique(np.stack((own.number[mine], other.number[theirs])), axis=1, return_counts=True)
    agree = {(one, two): int(n) for (one, two), n in zip(pairs.T.tolist(), count.tolist(), strict=True)}
    return Met(at_ns, round(offset), slope, len(mine), agree)


def _pairs(
    own: Sequences,
    other: Sequences,
    at_ns: int,
    offset: float,
    slope: float,
    which: BoolArray,
) -> tuple[IntArray, IntArray]:
    """Ends of one operation that coincide, each with the nearest of the other; one has one."""
    rows = np.flatnonzero(which)
    at = own.end_ns[rows] - at_ns
    expected_ns = own.end_ns[rows] + np.rint(offset + slope * at).astype(np.int64)
    near = other.nearest(own.operation[rows], expected_ns)
    apart_ns = np.abs(other.end_ns[near] - expected_ns)
    apart_ns[own.operation[rows] != other.operation[near]] = 1 << 62
    order = np.lexsort((apart_ns, near))
    order = order[begins(near[order])]
    order = order[apart_ns[order] <= MEET.value]
    return rows[order], near[order]


def _independent(met: Met, own: Sequences, other: Sequences) -> bool:
    """Whether a sequence that comes once a step agrees on it, and one that comes often.

    Either alone says little: what comes once a step has one period everywhere, and of stages that work in
    turn many ends coincide at an offset that is none.
    """
    rare = often = False
    for (one, two), count in met.sequences.items():
        mine, theirs = own.end_ns[own.of_number[one]], other.end_ns[other.of_number[two]]
        begin = max(int(mine[0]), met.own_of(int(theirs[0])))
        end = min(int(mine[-1]), met.own_of(int(theirs[-1])))
        in_common = min(_within(mine, begin, end), _within(theirs, met.other_of(begin), met.other_of(end)))
        whole = count >= max(_SEQUENCE, WHOLE.value * in_common)
        is_rare = max(len(mine), len(theirs)) <= _RICH * max(1, own.steps, other.steps)
        rare |= whole and is_rare
        part = WHOLE.value if own.operation[own.of_number[one][0]] != Operation.EXCHANGE else PART.value
        often |= not is_rare and count >= max(_LEAST, part * in_common)
    return rare and often


def _within(times_ns: IntArray, begin_ns: int, end_ns: int) -> int:
    reach = int(MEET.value)
    return int(
        np.searchsorted(times_ns, end_ns + reach, "right") - np.searchsorted(times_ns, begin_ns - reach)
    )


def joined_clocks(ranks: Sequence[Sequences], clocks: Sequence[int]) -> dict[int, ClockFit] | None:
    """A clock for all by what ranks share; None where that does not join all of them.

    `clocks`: the fingerprint of each rank's. Ranks of one program that share most come first. Then what this
    joined, such as nodes, is joined to stages, and these to each other, by pairs of ranks that agree.
    """
    joined = _Joined(ranks, clocks)
    for one, other in _strides(len(ranks)):
        if joined.island(one) != joined.island(other) and _alike(ranks[one], ranks[other]):
            met = meet(ranks[one], ranks[other])
            fewer = min(len(ranks[one].end_ns), len(ranks[other].end_ns))
            if met is not None and met.ends >= STRONG.value * fewer:
                joined.join(one, other, met)
    for of_one_program in (True, False):
        joined.join_neighbours(of_one_program)
    return joined.fits if len(joined.islands()) == 1 else None


def _strides(count: int) -> Iterator[tuple[int, int]]:
    """Pairs 1, 2, 4 and so on apart, nearest first: groups of ranks have such strides, mostly."""
    apart = 1
    while apart < count:
        yield from ((one, one + apart) for one in range(count - apart))
        apart *= 2


def of_one_program(ranks: Sequence[Sequences]) -> bool:
    """Whether the turn of a stream may stand for the same on all ranks."""
    return all(_alike(ranks[0], other) for other in ranks[1:])


def _alike(one: Sequences, other: Sequences) -> bool:
    """Whether two may be of one program: as many sequences of each operation, that come as often."""
    mine, theirs = (
        sorted((int(rank.operation[rows[0]]), len(rows)) for rows in rank.of_number.values())
        for rank in (one, other)
    )
    reach = max(1, one.steps, other.steps)
    return len(mine) == len(theirs) and all(
        a[0] == b[0] and abs(a[1] - b[1]) <= max(2, 2 * max(a[1], b[1]) // reach)
        for a, b in zip(mine, theirs, strict=True)
    )


_ENOUGH: Final = 4
"""Pairs of ranks of two stages that meet, of which the best is taken."""


class _Joined:
    """Clocks put together island by island."""

    def __init__(self, ranks: Sequence[Sequences], clocks: Sequence[int]) -> None:
        self._ranks, self._clocks = ranks, clocks
        self._leader = {clock: clock for clock in clocks}
        self.fits = {
            clock: ClockFit(clock, _begin(rank), 0, 0.0) for clock, rank in zip(clocks, ranks, strict=True)
        }

    def island(self, place: int) -> int:
        return self._leader[self._clocks[place]]

    def islands(self) -> list[list[int]]:
        """Places by island, in the order of their first."""
        found: dict[int, list[int]] = {}
        for place in range(len(self._ranks)):
            found.setdefault(self.island(place), []).append(place)
        return list(found.values())

    def join_neighbours(self, of_one_program: bool) -> None:
        """Join islands, neighbours first, as far as that goes; only those `of_one_program`, or any."""
        joins = True
        while joins:
            islands = self.islands()
            joins = False
            for apart in range(1, len(islands)):
                for mine, theirs in zip(islands, islands[apart:], strict=False):
                    if self.island(mine[0]) == self.island(theirs[0]):
                        continue
                    if not of_one_program or _alike(self._ranks[mine[0]], self._ranks[theirs[0]]):
                        joins |= self._join_best(mine, theirs)
                if joins:
                    break

    def _join_best(self, mine: Sequence[int], theirs: Sequence[int]) -> bool:
        """Join two islands if they meet; ranks in equal places of stages side by side are tried first."""
        stage = min(len(mine), len(theirs))
        turns = sorted(
            ((one, other) for one in mine for other in theirs),
            key=lambda pair: abs(abs(pair[0] - pair[1]) - stage),
        )
        found: list[tuple[int, int, Met]] = []
        for one, other in turns:
            if (met := meet(self._ranks[one], self._ranks[other])) is not None:
                found.append((one, other, met))
            if len(found) == _ENOUGH:
                break
        best = self._most_agreed(found) if found else None
        if best is not None:
            self.join(*found[best])
        return best is not None

    def _most_agreed(self, found: Sequence[tuple[int, int, Met]]) -> int | None:
        """The pair on whose line between two islands the most ends of all pairs coincide.

        None where there are several, and no two agree.
        """
        _, first, _ = found[0]
        fit, theirs = self.fits[self._clocks[first]], self._ranks[first].end_ns
        at_ns = np.array([fit.time_of(int(theirs[0])), fit.time_of(int(theirs[-1]))])
        ends = np.array([met.ends for _, _, met in found])
        lines = np.array([self._moved_by(*one).times_of(at_ns) for one in found])
        agree = (np.abs(lines - lines[:, np.newaxis]) <= MEET.value).all(axis=2)
        best = int(np.lexsort((ends, agree @ ends))[-1])
        return best if len(found) == 1 or agree[best].sum() > 1 else None

    def _moved_by(self, one: int, other: int, met: Met) -> ClockFit:
        return _moved(met, self.fits[self._clocks[one]], self.fits[self._clocks[other]])

    def join(self, one: int, other: int, met: Met) -> None:
        mine, theirs = self._clocks[one], self._clocks[other]
        moved, gone = self._moved_by(one, other, met), self._leader[theirs]
        for clock in [clock for clock in self._leader if self._leader[clock] == gone]:
            self.fits[clock] = _fit_of(clock, self.fits[clock], moved)
            self._leader[clock] = self._leader[mine]


def _begin(rank: Sequences) -> int:
    return int(rank.end_ns[0]) if len(rank.end_ns) else 0


_FAR_NS: Final = 1_000_000_000
"""Two points of a line are so far apart."""


def _moved(met: Met, mine: ClockFit, theirs: ClockFit) -> ClockFit:
    """From the common time of others to that of ours, by where their clocks meet."""
    ours, other = zip(
        *((mine.time_of(own), theirs.time_of(met.other_of(own))) for own in (met.at_ns, met.at_ns + _FAR_NS)),
        strict=True,
    )
    gained = ((other[1] - other[0]) - (ours[1] - ours[0])) / (other[1] - other[0])
    return ClockFit(0, other[0], other[0] - ours[0], gained * 1e6)


def _fit_of(clock: int, fit: ClockFit, moved: ClockFit) -> ClockFit:
    begin, end = (moved.time_of(fit.time_of(own)) for own in (fit.base_ns, fit.base_ns + _FAR_NS))
    return ClockFit(clock, fit.base_ns, fit.base_ns - begin, (_FAR_NS - (end - begin)) / _FAR_NS * 1e6)
