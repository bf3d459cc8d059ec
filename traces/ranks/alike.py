"""Which ranks do the same work: only like is compared with like."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traces.columns import FloatArray, IntArray
from traces.ranks.summary import Fingerprint, RankSummary


@dataclass(frozen=True, slots=True)
class Alike:
    """Ranks of one fingerprint: `places` of their summaries, in order."""

    fingerprint: Fingerprint
    places: tuple[int, ...]

    @property
    def layers(self) -> int:
        """What tells how many layers they have: kernels of attention in a step, else of routers."""
        return self.fingerprint.attention or self.fingerprint.routers


def groups_alike(summaries: Sequence[RankSummary]) -> tuple[Alike, ...]:
    """The ranks by fingerprint, in the order in which each comes first."""
    places: dict[Fingerprint, list[int]] = {}
    for place, summary in enumerate(summaries):
        places.setdefault(summary.fingerprint, []).append(place)
    return tuple(Alike(fingerprint, tuple(several)) for fingerprint, several in places.items())


def numbers_of(groups: Sequence[Alike], count: int) -> IntArray:
    """The group of each place, shape (count,)."""
    number = np.zeros(count, dtype=np.int64)
    for group, one in enumerate(groups):
        number[list(one.places)] = group
    return number


def excess(values: FloatArray, groups: Sequence[Alike]) -> FloatArray:
    """How much each rank's values, shape (ranks, ...), lie above the median of the other ranks like it.

    NaN where a value is, or where no other rank is like it.
    """
    result = np.full(values.shape, np.nan)
    for group in groups:
        if len(group.places) < 2:
            continue
        several = values[list(group.places)]
        result[list(group.places)] = several - _others(several)
    return result


def ratio(values: FloatArray, groups: Sequence[Alike]) -> FloatArray:
    """Each rank's values over the median of the other ranks like it; NaN where there is none."""
    result = np.full(values.shape, np.nan)
    for group in groups:
        if len(group.places) < 2:
            continue
        result[list(group.places)] = over_others(values[list(group.places)])
    return result


def over_others(several: FloatArray) -> FloatArray:
    """Each row over the median of all other rows; NaN where there is none, or it is 0."""
    other = _others(several)
    result: FloatArray = np.divide(several, other, out=np.full(several.shape, np.nan), where=other > 0)
    return result


def _others(several: FloatArray) -> FloatArray:
    """Of each row the median of all other rows, without NaN; NaN where there is none.

    Without one value, the median is one of the two or three in the middle of them all.
    """
    ordered = np.sort(several, axis=0)  # NaN last
    count = np.sum(~np.isnan(several), axis=0)
    place = np.argsort(np.argsort(several, axis=0, kind="stable"), axis=0, kind="stable")
    left = count - 1
    low, high = (left - 1) // 2, left // 2
    low, high = low + (place <= low), high + (place <= high)
    last = len(several) - 1
    picked = [np.take_along_axis(ordered, np.clip(at, 0, last), axis=0) for at in (low, high)]
    middle = (picked[0] + picked[1]) / 2
    return np.where((left > 0) & ~np.isnan(several), middle, np.nan)
