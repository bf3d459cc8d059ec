"""How the clock of a recording stands to the one clock of a run: a straight line through times of both.

Lines are robust against the few times that do not fit.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.arrays import FloatArray, IntArray, distinct
from traces.limits import Limit
from traces.ranks import parts


@dataclass(frozen=True, slots=True)
class ClockFit:
    """A clock, by its fingerprint: `offset_ns` ahead at its time `base_ns`, and it gains `drift_ppm`."""

    clock: int
    base_ns: int
    offset_ns: int
    drift_ppm: float

    def time_of(self, own_ns: int) -> int:
        return own_ns - self.offset_ns - round((own_ns - self.base_ns) * self.drift_ppm * 1e-6)

    def times_of(self, own_ns: IntArray) -> IntArray:
        gained = np.rint((own_ns - self.base_ns) * (self.drift_ppm * 1e-6)).astype(np.int64)
        return own_ns - self.offset_ns - gained


DRIFT: Final = Limit(
    500.0, "parts per million", "ours: crystals of computers drift by up to 100; more is no clock's drift"
)
_POINTS: Final = 64
"""How many points decide the slope between two recordings; of more, some in regular distances."""
_ROUNDS: Final = 12
_STILL_NS: Final = 0.1
"""Where no residual moves by more, further rounds change no ns."""
_AT_ONCE: Final = 8_192
"""Points of several clocks that are worked on together."""
_LEAST_RESIDUAL_NS: Final = 100.0
"""Residuals below weigh alike: no clock is read more finely."""
_NO_DRIFT: Final = 5e10
"""How much speaks for a clock without drift, where ends scatter by a us and clocks drift by 100 ppm or so:
a us over twice the square of that. Over a few ms, scatter would look like drift.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """other - own = offset + slope * own; `residual_ns` is the median distance of the points from it."""

    offset_ns: float
    slope: float
    residual_ns: float


def line_between(own_ns: IntArray, other_ns: IntArray, *, one_clock: bool) -> Line:
    """The line through ends that belong together; of one clock there is nothing to fit."""
    apart = (other_ns - own_ns).astype(np.float64)
    if one_clock:
        return Line(0.0, 0.0, float(np.median(np.abs(apart))))
    base_ns = int(own_ns[0])
    at = (own_ns - base_ns).astype(np.float64)
    some = np.linspace(0, len(at) - 1, min(len(at), _POINTS)).astype(np.int64)
    early, late = np.triu_indices(len(some), 1)
    run = at[some[late]] - at[some[early]]
    far = run > 0
    slopes = (apart[some[late]] - apart[some[early]])[far] / run[far]
    most = DRIFT.value * 1e-6
    slope = float(np.clip(np.median(slopes), -most, most)) if len(slopes) else 0.0
    offset = float(np.median(apart - slope * at))
    residual = float(np.median(np.abs(apart - slope * at - offset)))
    return Line(offset - slope * base_ns, slope, residual)


def lines_by_part(
    at: FloatArray, apart: FloatArray, part: IntArray, near: tuple[FloatArray, FloatArray] | None, count: int
) -> tuple[FloatArray, FloatArray]:
    """Of each part, shape (count,), offset and slope of the line that the most points lie near.

    Weighted least squares, again and again, with weights that make it the least sum of distances; a drift
    that points over a short time do not show is none. It begins `near` lines that are known already, else
    level in the middle of the points.
    """
    offset, slope = np.zeros(count), np.zeros(count)
    order = parts.order_of(part, count)
    first = parts.begins_of(part[order])
    begin, last = 0, len(first) - 1
    while begin < last:  # some parts at a time, so that all that is worked on stays in the cache
        end = int(np.searchsorted(first, first[begin] + _AT_ONCE, side="right")) - 1
        end = min(last, max(begin + 1, end))
        rows = order[first[begin] : first[end]]
        which = part[order[first[begin:end]]]
        borders = first[begin : end + 1] - first[begin]
        points = at[rows], apart[rows]
        start = (
            (_middle(points[1], borders), np.zeros(len(which)))
            if near is None
            else (near[0][which], near[1][which])
        )
        offset[which], slope[which] = _lines(*points, borders, *start)
        begin = end
    return offset, slope


def fitted_together(
    end: FloatArray,
    clock: IntArray,
    first: IntArray,
    offset: FloatArray,
    slope: FloatArray,
    fixed: int,
) -> tuple[FloatArray, FloatArray]:
    """Offsets and slopes of all clocks at once, from where they nearly are; that of `fixed` stays.

    Fitted one by one, two clocks that share much keep each other where the first of them began. Here all
    stand in one system: ends of an instance, from `first` to `first`, lie at one time, and the sum of their
    distances from it is the least, by weights as in `lines_by_part`.
    """
    free = distinct(clock[clock != fixed])
    unit = float(np.abs(end).max(initial=1.0))
    design = np.zeros((len(end), 2 * len(free)))
    mine = np.flatnonzero(clock != fixed)
    column = np.searchsorted(free, clock[mine])
    design[mine, column] = 1.0
    design[mine, len(free) + column] = end[mine] / unit
    found = np.concatenate((offset[free], slope[free] * unit))
    still = np.concatenate((np.zeros(len(free)), np.full(len(free), _NO_DRIFT / unit**2)))
    fixed_ns = np.where(clock == fixed, offset[fixed] + slope[fixed] * end, 0.0)
    weight, residual = np.ones(len(end)), np.full(len(end), np.inf)
    for _ in range(_ROUNDS):
        time = end + fixed_ns + design @ found
        before, residual = residual, time - _means(time, weight, first)
        if np.abs(residual - before).max() < _STILL_NS:
            break
        weight = 1 / np.maximum(np.abs(residual), _LEAST_RESIDUAL_NS)
        away = design - _means(design, weight, first)
        weighted = weight[:, np.newaxis] * away
        level = weighted.T @ (time - _means(time, weight, first)) + still * found
        found = found - np.linalg.lstsq(weighted.T @ away + np.diag(still), level, rcond=None)[0]
    offset, slope = offset.copy(), slope.copy()
    offset[free], slope[free] = found[: len(free)], found[len(free) :] / unit
    return offset, slope


def _means(values: FloatArray, weight: FloatArray, first: IntArray) -> FloatArray:
    """The weighted mean of each part, for each of its rows."""
    weight = weight.reshape(-1, *(1,) * (values.ndim - 1))
    total = np.add.reduceat(weight * values, first[:-1]) / np.add.reduceat(weight, first[:-1])
    return np.repeat(total, np.diff(first), axis=0)


def _middle(apart: FloatArray, first: IntArray) -> FloatArray:
    order = np.argsort(apart)
    order = order[parts.order_of(parts.numbers(first)[order], len(first))]
    return apart[order][(first[:-1] + first[1:] - 1) // 2]


def _lines(
    at: FloatArray, apart: FloatArray, first: IntArray, offset: FloatArray, slope: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The lines of parts that stand together, from where they nearly are; `first` says where each begins."""
    part = parts.numbers(first)
    residual = np.abs(apart - offset[part] - slope[part] * at)
    for _ in range(_ROUNDS):
        weight = 1 / np.maximum(residual, _LEAST_RESIDUAL_NS)
        total = np.maximum(parts.total(weight, first), 1e-30)
        mean_at = parts.total(weight * at, first) / total
        mean_apart = parts.total(weight * apart, first) / total
        x, y = at - mean_at[part], apart - mean_apart[part]
        weighted = weight * x
        spread, level = parts.total(weighted * x, first), parts.total(weighted * y, first)
        slope = level / (spread + _NO_DRIFT)
        offset = mean_apart - slope * mean_at
        before, residual = residual, np.abs(apart - offset[part] - slope[part] * at)
        if np.abs(residual - before).max() < _STILL_NS:
            break
    return offset, slope
