"""Clocks of several hosts fitted on the ends of collectives they took part in, by trying every line.

Nothing in here comes from the program. All participants of a ring (all-gather, reduce-scatter, all-reduce)
end together, so the ends that two clocks recorded of the same instances lie on one straight line. The line
with the least sum of absolute distances passes through two of the points, so all lines through two points are
tried. A few points far off, of participants that did end later, do not move it. In an all-to-all a rank with
a slow link or more tokens ends later every time: its clock would seem ahead, so such ends are left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

MOST_POINTS: Final = 200
"""Lines are tried through so many points at most, evenly spread; more would take minutes."""

Name = TypeVar("Name", bound=Hashable)
Instance = TypeVar("Instance", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock beside the first one: at `at_ns` of the first clock it shows `offset_ns` more.

    From there it gains `drift_ppm` ns in each million. `residual_ns` is the median distance of the
    `point_count` ends from the line.
    """

    at_ns: int
    offset_ns: int
    drift_ppm: float
    residual_ns: float
    point_count: int

    def on_first_ns(self, own_ns: np.ndarray) -> np.ndarray:
        """Times of this clock on the first clock, whole ns."""
        since_ns = (own_ns - self.at_ns - self.offset_ns) / (1 + self.drift_ppm * 1e-6)
        whole: np.ndarray = self.at_ns + np.rint(since_ns).astype(np.int64)
        return whole


def earliest_ends(
    ends_ns: Mapping[Instance, Mapping[int, int]], clock_of: Mapping[int, Name]
) -> dict[Name, dict[Instance, int]]:
    """By clock, then by instance, the earliest end that any participant on that clock recorded.

    `ends_ns`: by instance, then by rank. The earliest, because whatever is slow can only make an end later.
    """
    found: dict[Name, dict[Instance, int]] = {clock: {} for clock in clock_of.values()}
    for instance, by_rank in ends_ns.items():
        for rank, end_ns in by_rank.items():
            known = found[clock_of[rank]]
            known[instance] = min(end_ns, known.get(instance, end_ns))
    return found


def fit_clocks(ends_ns: Mapping[Name, Mapping[Instance, int]]) -> dict[Name, Clock | None]:
    """Offset and drift of each clock beside the first; None of a clock that nothing ties to the first.

    `ends_ns`: by clock, then by instance, when it ended on that clock. A clock that shares no instance with
    the first is fitted on what it shares with clocks that are fitted already; the one that shares most first.
    """
    first, *others = ends_ns
    clocks: dict[Name, Clock | None] = dict.fromkeys(ends_ns)
    known_ns = dict(ends_ns[first])
    clocks[first] = Clock(min(known_ns.values()), 0, 0.0, 0.0, len(known_ns))
    while others:
        shared = {
            other: sorted(known_ns.keys() & ends_ns[other], key=known_ns.__getitem__) for other in others
        }
        best = max(others, key=lambda other: len(shared[other]))
        others.remove(best)
        if len(shared[best]) < 2:
            continue
        x_ns = np.array([known_ns[one] for one in shared[best]], np.int64)
        y_ns = np.array([ends_ns[best][one] for one in shared[best]], np.int64)
        fitted = clocks[best] = _fit(x_ns, y_ns)
        on_first = fitted.on_first_ns(np.array(list(ends_ns[best].values()), np.int64))
        known_ns = dict(zip(ends_ns[best], on_first.tolist(), strict=True)) | known_ns
    return clocks


def _fit(x_ns: np.ndarray, y_ns: np.ndarray) -> Clock:
    """The line of least absolute distances, of all through two of the points; these are in order of x."""
    at_ns = int(x_ns[len(x_ns) // 2])
    offset_ns = int(np.median(y_ns - x_ns))
    x, y = (x_ns - at_ns).astype(float), (y_ns - x_ns - offset_ns).astype(float)
    tried = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_POINTS)).round().astype(int))
    least, slope, height = float(np.abs(y).sum()), 0.0, 0.0
    for place, one in enumerate(tried[:-1]):
        rest = tried[place + 1 :][x[tried[place + 1 :]] > x[one]]
        slopes = (y[rest] - y[one]) / (x[rest] - x[one])
        apart = np.abs(y - y[one] - slopes[:, None] * (x - x[one])).sum(axis=1)
        if len(apart) and apart.min() < least:
            least, slope = float(apart.min()), float(slopes[apart.argmin()])
            height = float(y[one] - slope * x[one])
    residual_ns = float(np.median(np.abs(y - height - slope * x)))
    return Clock(at_ns, offset_ns + round(height), slope * 1e6, residual_ns, len(x))
