"""How clocks stand to each other: straight lines through times that several clocks show of one
moment.

The ends of a collective are such times, and so are those of a message, whichever ranks they are of.
All clocks are fitted at once, robustly against the few times that do not fit, and each with its
error.
"""

from collections.abc import Sequence
from math import ceil, sqrt
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, ints, row_by_row, summed, whole
from traces.frozen import frozen
from traces.groups import places_of_each
from traces.limits import Limit
from traces.ranks.rows import parts


@frozen
class ClockFit:
    """A clock, by its fingerprint: `offset_ns` ahead at its time `base_ns`, and it gains
    `drift_ppm`.
    """

    clock: int
    base_ns: int
    offset_ns: int
    drift_ppm: float

    def times_of(self, own_ns: IntArray) -> IntArray:
        gained = whole((own_ns - self.base_ns) * (self.drift_ppm * 1e-6))
        return own_ns - self.offset_ns - gained


DRIFT: Final = Limit(
    200.0,
    "parts per million",
    "published: IEEE 802.3 and 1588 allow an oscillator 100, and two may err each way",
)
ENDS: Final = Limit(
    3,
    "moments in common",
    "counted: offset and drift are two unknowns, and a third moment checks them",
)
MEET: Final = Limit(
    10_000,
    "ns",
    "measured: the ends of one collective lie within 7 us on eight ranks of a recorded run",
)
WHOLE: Final = Limit(
    0.85,
    "of the ends of a sequence",
    "ours: a few kernels end late; of stages in lockstep up to 75 % coincide",
)


def in_time_of(times_ns: IntArray, of_ns: IntArray) -> int:
    """How many times are no earlier and no later than those of another sequence."""
    return summed((times_ns >= of_ns[0] - MEET.value) & (times_ns <= of_ns[-1] + MEET.value))


def in_common(one_ns: IntArray, other_ns: IntArray) -> int:
    """How many times two sequences can have in common: of the time that both were recorded."""
    return min(in_time_of(one_ns, other_ns), in_time_of(other_ns, one_ns))


_NO_DRIFT: Final = 1_000.0 / (2 * 100e-6**2)
"""How much speaks for a clock without drift, where times scatter by a us and clocks drift by 100
ppm or so: over a few ms scatter would look like drift. """
_READ_NS: Final = 1.0
"""No clock is read more finely."""
_ROUNDS: Final = 32
_NARROWER: Final = 4.0
"""Far residuals lose their weight by and by: those that weigh alike are so many times smaller each
round."""
_STILL_NS: Final = 0.1
"""Where no time moves by more, further rounds change no ns."""
_TURNS: Final = 100
_SOLVED: Final = 1e-10
"""Of the squared error of a round's equations, what may be left."""
_BY_CHANCE: Final = 1.96
"""Standard deviations, within which 95 % lie."""


@frozen
class Fits:
    """Lines of clocks, shape (clocks,): time = own + `offset` + `slope` * (own - `middle`).

    By 95 % a line lies within `within_ns` of the truth at both ends of its times, and its slope
    within `slope_within`. `known`: clocks that enough moments tie to the one that has most.
    """

    middle: FloatArray
    offset: FloatArray
    slope: FloatArray
    within_ns: FloatArray
    slope_within: FloatArray
    known: BoolArray

    def times_of(self, own_ns: FloatArray, clock: IntArray) -> IntArray:
        """Times of clocks, given by number, on the one clock."""
        times_ns = own_ns + self.offset[clock] + self.slope[clock] * (own_ns - self.middle[clock])
        return whole(times_ns)

    def clocks(self, fingerprints: Sequence[int], base_ns: IntArray) -> dict[int, ClockFit]:
        """Those that are known, by fingerprint, where their times were counted from `base_ns`."""
        count = len(fingerprints)
        ahead_ns = base_ns - base_ns[0] - self.times_of(np.zeros(count), np.arange(count))
        columns = row_by_row(base_ns, ahead_ns, -1e6 * self.slope)
        rows = zip(fingerprints, self.known.tolist(), columns, strict=True)
        return {clock: ClockFit(clock, *line) for clock, known, line in rows if known}


_POINTS: Final = 64
"""Points that decide a slope; of more, some in regular distances."""


def scatter_ns(own_ns: IntArray, other_ns: IntArray) -> float:
    """How far times of two clocks lie from a straight line in the middle; the median slope gives
    it.
    """
    at, apart = (own_ns - own_ns[0]).astype(np.float64), (other_ns - own_ns).astype(np.float64)
    picked = ints(np.linspace(0, len(at) - 1, min(len(at), _POINTS)))
    early, late = np.triu_indices(len(picked), 1)
    run = at[picked[late]] - at[picked[early]]
    slopes = (apart[picked[late]] - apart[picked[early]])[run > 0] / run[run > 0]
    most = DRIFT.value * 1e-6
    level = apart - (np.clip(np.median(slopes), -most, most) * at if len(slopes) else 0.0)
    return float(np.median(np.abs(level - np.median(level))))


def fit_clocks(own_ns: FloatArray, clock: IntArray, first: IntArray, count: int) -> Fits:
    """Clocks fitted on moments: from `first` to `first` are the times that clocks show of one.

    Huber's estimate: the squares of small residuals are summed, and of those above the median the
    distances. Least squares find it, again and again, with weights that make it that.
    """
    times = np.bincount(clock, minlength=count)
    reference = int(np.argmax(times))
    middle = np.bincount(clock, own_ns, count) / np.maximum(times, 1)
    known = _tied(clock, first, count, reference)
    rows = np.flatnonzero(known[clock])
    moment = parts.numbers(first)[rows]
    free = known & (np.arange(count) != reference)
    moments = _Moments(clock[rows], (own_ns - middle[clock])[rows], parts.begins_of(moment), free)
    time, offset, slope = own_ns[rows], np.zeros(count), np.zeros(count)
    weight = np.ones(len(rows))
    apart = moments.apart(time, weight)
    least_ns = float(np.abs(apart).max(initial=_READ_NS))
    for _ in range(_ROUNDS if len(rows) else 0):
        level, turn = moments.nearer(apart, weight, slope)
        moved = moments.along(level, turn)
        offset, slope, time = offset - level, slope - turn, time - moved
        apart = moments.apart(time, weight)
        middle_ns = max(float(np.median(np.abs(apart))), _READ_NS)
        if least_ns <= middle_ns and np.abs(moved).max() < _STILL_NS:
            break
        least_ns = max(least_ns / _NARROWER, middle_ns)
        weight = 1 / np.maximum(np.abs(apart), least_ns)
        apart = moments.apart(time, weight)
    within, slope_within = moments.errors(apart, weight)
    return Fits(middle, offset, slope, within, slope_within, known)


def _tied(clock: IntArray, first: IntArray, count: int, reference: int) -> BoolArray:
    """Which clocks enough moments tie to the reference, one by another."""
    known = np.arange(count) == reference
    while True:
        is_known = known[clock]
        rows = parts.spread(parts.most(is_known, first), first) & ~is_known
        new = np.bincount(clock[rows], minlength=count) >= ENDS.value
        if not new.any():
            return known
        known |= new


@frozen
class _Moments:
    """Times of moments, from `first` to `first`: of which `clock`, and `at` which time beside its
    middle.

    `free`: the clocks that may move.
    """

    clock: IntArray
    at: FloatArray
    first: IntArray
    free: BoolArray

    def apart(self, time: FloatArray, weight: FloatArray) -> FloatArray:
        """How far each is from the weighted mean of its moment."""
        total = parts.total(weight * time, self.first) / parts.total(weight, self.first)
        return time - parts.spread(total, self.first)

    def along(self, level: FloatArray, slope: FloatArray) -> FloatArray:
        """Lines of the clocks at their times."""
        return level[self.clock] + slope[self.clock] * self.at

    def _summed(self, values: FloatArray) -> FloatArray:
        """Of each clock that may move the sum, and the sum by time, shape (2, clocks)."""
        count = len(self.free)
        sums = np.bincount(self.clock, values, count)
        return np.where(self.free, (sums, np.bincount(self.clock, values * self.at, count)), 0.0)

    def nearer(self, apart: FloatArray, weight: FloatArray, slope: FloatArray) -> FloatArray:
        """Levels and slopes, shape (2, clocks), that leave the least squares when they are taken
        away.

        By conjugate gradients: each turn costs what there are times, however many clocks there are.
        """
        still = np.array([[0.0], [_NO_DRIFT]])
        sums = self._summed(weight)[0], self._summed(weight * self.at)[1] + _NO_DRIFT
        scale = np.where(self.free, sums, 1.0)
        solved = np.zeros((2, len(self.free)))
        left = self._summed(weight * apart) + still * np.where(self.free, slope, 0.0)
        way = left / scale
        residual = begun = float((left * way).sum())
        for _ in range(_TURNS):
            if residual <= _SOLVED * begun:
                break
            pushed = self._summed(weight * self.apart(self.along(*way), weight)) + still * way
            step = residual / float((way * pushed).sum())
            solved, left = solved + step * way, left - step * pushed
            scaled = left / scale
            before, residual = residual, float((left * scaled).sum())
            way = scaled + residual / before * way
        return solved

    def errors(self, apart: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How far lines may be off at their ends, twice as far as in the middle, and their slopes,
        by 95 %.

        Of n times the middle one lies between those that are as many places away as n throws of a
        coin may be off, whatever they scatter like. Each is held beside the others of its moment.
        """
        _, own = np.unique(
            parts.numbers(self.first) * len(self.free) + self.clock, return_inverse=True
        )
        of_own = np.bincount(own, weight)[own]
        others_part = 1 - of_own / parts.spread(parts.total(weight, self.first), self.first)
        far = np.abs(apart) / np.maximum(others_part, 1e-3)
        within, slope = np.full((2, len(self.free)), np.inf)
        within[~self.free] = slope[~self.free] = 0.0
        for clock, rows in places_of_each(self.clock):
            if self.free[clock]:
                ordered = np.sort(far[rows])
                within[clock] = ordered[min(len(rows), ceil(_BY_CHANCE * sqrt(len(rows)))) - 1]
                slope[clock] = within[clock] / max(float(self.at[rows].std()), 1.0)
        return 2 * within, slope
