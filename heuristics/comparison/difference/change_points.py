"""Where the mean of a short, noisy series shifts, without assuming how its noise is distributed.

A shift is looked for in two forms: a cut (one mean before it, another after) and a stretch (another mean for
a while, then back). Each is tested by permutation: how often does the same series in random order show one as
large? An unchanged series is therefore marked no more often than the two levels add up to, whatever its
noise. What is found splits the series, the parts are searched alike, and at the end each place is found anew
between its neighbours.

References: Olshen, Venkatraman, Lucito and Wigler 2004 (doi:10.1093/biostatistics/kxh008) for stretches;
Matteson and James 2014 (doi:10.1080/01621459.2013.849605) for permutation tests on the parts of a series.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.limits import Limit

CUT_LEVEL: Final = Limit(
    0.035,
    "probability",
    "ours: with stretches, 2.5 to 5.0 % of 600 unchanged series are marked (10, 30, 100 values; 4 kinds of "
    "noise); last 5 values 2 sigma higher are found in 80 % of series of 30, and in 90 % of 100",
)
STRETCH_LEVEL: Final = Limit(
    0.01, "probability", "ours: what cuts leave of 5 %, less half a point for chance; see CUT_LEVEL"
)
OUTLIER: Final = Limit(
    3.0,
    "standard deviations",
    "ours: values further from the median count as that far, or one would be a shift",
)
LEAST: Final = Limit(3, "values", "ours: fewer than three in a row are outliers rather than a new mean")

_SHUFFLES: Final = 999
_SEED: Final = 20_040_701
_MAD_TO_SIGMA: Final = 1.4826  # of a normal distribution
_LENGTHS: Final = 40  # of stretches; all there are, in a series of up to 40 values

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A shift of the mean. `index`: the first value after it, in the series as given, gaps counted.

    The means are those of the values back to the change before it, and up to the next.
    """

    index: int
    before_mean: float
    after_mean: float


def change_points(values: Sequence[float | None]) -> tuple[ChangePoint, ...]:
    """The shifts of a series of finite values, in order; None is a gap.

    Always the same for the same series. Of fewer than eight values there are never any: chance alone puts
    three against four in order in 1 of 18 cases.
    """
    known = [place for place, value in enumerate(values) if value is not None]
    series = np.array([values[place] for place in known], dtype=np.float64)
    steady = without_outliers(series)
    cuts = _placed(steady, _split(steady))
    means = [float(series[start:end].mean()) for start, end in pairwise([0, *cuts, len(series)]) if cuts]
    return tuple(
        ChangePoint(known[cut], before, after)
        for cut, (before, after) in zip(cuts, pairwise(means), strict=True)
    )


def without_outliers(series: Floats) -> Floats:
    """The series with its outliers drawn in to `OUTLIER`, by the median absolute deviation."""
    if not len(series):
        return series
    middle = np.median(series)
    reach = OUTLIER.value * _MAD_TO_SIGMA * np.median(np.abs(series - middle))
    return np.clip(series, middle - reach, middle + reach) if reach else series


def best_cut(rows: Floats) -> tuple[Floats, Places]:
    """Per row of `rows` [row, value]: the size of its largest cut, and its place [row, 1]."""
    count, least = rows.shape[1], int(LEAST.value)
    places = np.arange(least, count - least + 1)
    sizes = np.abs(_sums(rows)[:, places]) / np.sqrt(places * (count - places) / count)
    at = sizes.argmax(axis=1)
    return sizes.max(axis=1), places[at][:, None]


def best_stretch(rows: Floats) -> tuple[Floats, Places]:
    """Per row: the size of its largest stretch against all the rest, and its two ends [row, 2].

    Zero where a row is too short for one with `LEAST` values on either side.
    """
    count, least = rows.shape[1], int(LEAST.value)
    sums, sizes = _sums(rows), np.zeros(len(rows))
    ends = np.zeros((len(rows), 2), dtype=np.int64)
    for length in _lengths(count - 2 * least):
        starts = np.arange(least, count - least - length + 1)
        found = np.abs(sums[:, starts + length] - sums[:, starts])
        found /= np.sqrt(length * (count - length) / count)
        largest = found.max(axis=1)
        larger = largest > sizes
        sizes[larger] = largest[larger]
        start = starts[found[larger].argmax(axis=1)]
        ends[larger] = np.stack([start, start + length], axis=1)
    return sizes, ends


def _lengths(longest: int) -> list[int]:
    if longest < LEAST.value:
        return []
    if longest <= _LENGTHS:
        return list(range(int(LEAST.value), longest + 1))
    return sorted({round(length) for length in np.geomspace(LEAST.value, longest, _LENGTHS)})


def _sums(rows: Floats) -> Floats:
    """Sums of the first 0, 1, ... values of each row, less its mean."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    return np.pad(np.cumsum(centred, axis=1), ((0, 0), (1, 0)))


def _split(series: Floats) -> list[int]:
    """Places of the shifts that pass their test, in the series and then in its parts."""
    if len(series) < 2 * LEAST.value or series.max() == series.min():
        return []
    found = _passed(series)
    if not found:
        return []
    parts = pairwise([0, *found, len(series)])
    return sorted(found + [start + cut for start, end in parts for cut in _split(series[start:end])])


def _passed(series: Floats) -> list[int]:
    shuffled = np.random.default_rng(_SEED).permuted(np.tile(series, (_SHUFFLES, 1)), axis=1)
    for best, level in ((best_cut, CUT_LEVEL), (best_stretch, STRETCH_LEVEL)):
        sizes, places = best(series[None, :])
        by_chance, _ = best(shuffled)
        as_large = int(np.count_nonzero(by_chance >= sizes[0] * (1 - 1e-9)))  # equal but for rounding
        if (1 + as_large) / (1 + _SHUFFLES) <= level.value:
            return [int(place) for place in places[0]]
    return []


def _placed(series: Floats, cuts: list[int]) -> list[int]:
    """Each cut where it is largest between its neighbours."""
    edges = [0, *cuts, len(series)]
    for place in range(1, len(edges) - 1):
        start, end = edges[place - 1], edges[place + 1]
        edges[place] = start + int(best_cut(series[None, start:end])[1][0, 0])
    return edges[1:-1]
