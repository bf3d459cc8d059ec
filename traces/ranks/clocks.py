"""One clock for all ranks, from the ends of the collectives that they took part in together.

Each recording has times of its own: rebased on the start of its session where that is recorded, and then
fitted, offset and drift, on ends that belong together. What cannot be fitted has durations only, and of who
was late nothing is known.

A recording of several processes may be of several hosts. Each process has a clock of its own, as in a
recording of its own, so that one file gives what many give. Where that leaves too few collectives for a fit,
the processes of one recording count as one clock, unless their collectives contradict it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, distinct
from traces.limits import Limit
from traces.missing import Missing, gap
from traces.ranks import parts
from traces.ranks.clock_fit import ClockFit, fitted_together, lines_by_part
from traces.ranks.match import Matched
from traces.ranks.summary import RankSummary
from traces.sections import run as sections
from traces.sections.cause import ClockSource
from traces.spelling import duration

RESIDUAL: Final = Limit(
    50_000,
    "ns",
    "ours: ends of one collective lie within 7 us on eight recorded ranks; a wait shorter than this limit "
    "could not be charged to anybody",
)
ENDS: Final = Limit(
    3, "collectives in common", "ours: offset and drift are two unknowns, and a third end checks them"
)
PAIRED: Final = Limit(
    0.05,
    "of the ends that a usual clock has",
    "ours: a window of one step beside those of twenty has as many",
)
FEW_ENDS: Final = Limit(10, "ends", "ours: from ten on, chance lays no line through them")
APART: Final = Limit(
    300.0,
    "parts per million",
    "ours: two crystals drift apart by 200 at most, and so do fits over some steps of 339 simulated runs",
)
_TOGETHER: Final = 4
"""Collectives that end on all ranks at once, from which on a clock is fitted on these and not on others."""
MOST_ENDS: Final = Limit(
    128,
    "collectives of a clock",
    "ours: of more, some in regular distances; a line through a hundred ends that scatter by 10 us lies "
    "within 1 us or so",
)
_OF_GROUP: Final = 16
"""Collectives of one group that a fit has at least, where there are so many: few may hold clocks together."""
_AT_ONCE: Final = 2_000_000
"""Ends times clocks, up to which all clocks are fitted at once in the end."""
_SWEEPS: Final = 3
_STILL_NS: Final = 10.0
"""Where no clock moves by more, another sweep changes nothing: clocks are read to 100 ns or so."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """The one clock. `residual_ns`: how far ends lie from where they belong, the median; None where unknown.

    `missing` says why there is none; then `fits` is empty and times stay as recorded.
    """

    aligned: bool
    residual_ns: int | None
    fits: tuple[ClockFit, ...]
    missing: Missing | None = None

    def by_fingerprint(self) -> dict[int, ClockFit]:
        return {fit.clock: fit for fit in self.fits}


@dataclass(frozen=True, slots=True)
class Aligned:
    """Starts and ends of all participations on the one clock, shape (p,), and how good that clock is."""

    start_ns: IntArray
    end_ns: IntArray
    clocks: Clocks


def align(summaries: Sequence[RankSummary], matched: Matched) -> Aligned:
    """Put the participations on one clock, as far as that can be."""
    fingerprints = sorted({summary.identity.clock for summary in summaries})
    number = {clock: place for place, clock in enumerate(fingerprints)}
    of_place = np.array([number[summary.identity.clock] for summary in summaries], dtype=np.int64)
    if not len(matched):
        why = "no two ranks recorded one collective, so their clocks cannot be put together"
        return unaligned(matched, None, why)
    if not matched.agreed:
        return unaligned(matched, None, _WHY_DOUBT)
    base_ns = _bases(summaries, of_place, len(fingerprints))
    of_row = of_place[matched.place]
    end = (matched.end_ns - base_ns[of_row]).astype(np.float64)
    fitter = _Fitter(matched, of_row, end, len(fingerprints))
    offset, slope, known = fitter.fit(_begun(matched, fingerprints, base_ns))
    known = known & ~_unpaired(of_row, len(fingerprints))
    if not known[distinct(of_row)].all():
        return unaligned(matched, None, _WHY_APART)
    residual_ns = fitter.residual_ns(offset, slope)
    if residual_ns > RESIDUAL.value:
        why = (
            f"the ends of collectives lie {duration(residual_ns)} apart after the best fit of the clocks, "
            f"more than {duration(RESIDUAL.value)}"
        )
        return unaligned(matched, residual_ns, why)
    if np.abs(slope[known] * 1e6).max(initial=0) > APART.value:
        return unaligned(matched, residual_ns, "the clocks drift apart faster than clocks do")
    start = (matched.start_ns - base_ns[of_row]).astype(np.float64)
    zero_ns = int(base_ns[0])
    fits = tuple(
        ClockFit(
            clock,
            int(base_ns[place]),
            round(int(base_ns[place]) - zero_ns - offset[place]),
            float(-slope[place] * 1e6),
        )
        for place, clock in enumerate(fingerprints)
        if known[place]
    )
    starts, ends = (_placed(times, of_row, offset, slope) + zero_ns for times in (start, end))
    return Aligned(starts, np.maximum(starts, ends), Clocks(True, residual_ns, fits))


def _begun(
    matched: Matched, fingerprints: Sequence[int], base_ns: IntArray
) -> tuple[FloatArray, FloatArray] | None:
    """Offsets and slopes of clocks by which collectives were matched; None where these were matched without.

    One after the other, fitted on three ends each, clocks of a long pipeline would drift off.
    """
    fits = matched.clocks
    if fits is None or any(clock not in fits for clock in fingerprints):
        return None
    some = [fits[clock] for clock in fingerprints]
    zero_ns = int(base_ns[0])
    offset = [one.time_of(at) - zero_ns for one, at in zip(some, base_ns.tolist(), strict=True)]
    return np.array(offset, dtype=np.float64), np.array([-one.drift_ppm * 1e-6 for one in some])


def _unpaired(of_row: IntArray, clocks: int) -> BoolArray:
    """Clocks with a few ends where the others have hundreds: their collectives were not told apart."""
    counts = np.bincount(of_row, minlength=clocks)
    usual = float(np.median(counts[counts > 0]))
    few: BoolArray = (counts > 0) & (counts < min(PAIRED.value * usual, FEW_ENDS.value))
    return few


_WHY_APART: Final = (
    f"too few collectives in common: a clock is fitted on at least {int(ENDS.value)} that it shares with "
    "clocks already fitted"
)
_WHY_DOUBT: Final = (
    "ranks of other stages have collectives that look alike, and no two kinds of them agree on how far the "
    "clocks are apart"
)
_CURE: Final = "record the same steps on all ranks, with NCCL's ranges or the process groups beside kernels"


def _placed(times: FloatArray, clock: IntArray, offset: FloatArray, slope: FloatArray) -> IntArray:
    return np.rint(times + offset[clock] + slope[clock] * times).astype(np.int64)


def unaligned(matched: Matched, residual_ns: int | None, why: str) -> Aligned:
    """Times as recorded, and why there is no one clock."""
    missing = gap(why, _CURE)
    return Aligned(matched.start_ns, matched.end_ns, Clocks(False, residual_ns, (), missing))


def _bases(summaries: Sequence[RankSummary], of_place: IntArray, count: int) -> IntArray:
    """Where each clock's times begin: at its first collective, so that fractions stay exact."""
    base_ns = np.full(count, np.iinfo(np.int64).max)
    for summary, clock in zip(summaries, of_place.tolist(), strict=True):
        if len(summary.instances):
            base_ns[clock] = min(base_ns[clock], int(summary.instances.start_ns[0]))
    return np.where(base_ns == np.iinfo(np.int64).max, 0, base_ns)


def _some(matched: Matched, clock: IntArray) -> BoolArray:
    """Which instances a fit needs: all of groups and clocks that have few, else some in regular distances."""
    ends = np.bincount(clock)
    every = -(-int(ends.max(initial=0)) // int(MOST_ENDS.value))
    of_group = parts.begins_of(matched.group)  # groups rise
    apart = np.clip(np.diff(of_group) // _OF_GROUP, 1, max(1, every))
    turn = np.arange(len(matched)) - parts.spread(of_group[:-1], of_group)
    few = parts.least(ends[clock], matched.first) <= MOST_ENDS.value
    return few | (turn % parts.spread(apart, of_group) == 0)


class _Fitter:
    """Clocks fitted one after the other: those that share collectives with fitted ones come next."""

    def __init__(self, matched: Matched, clock: IntArray, end: FloatArray, count: int) -> None:
        some = _some(matched, clock)
        rows = parts.spread(some, matched.first)
        self._clock, self._end, self._count = clock[rows], end[rows], count
        self._first = parts.borders(matched.sizes[some])
        self._instance = parts.numbers(self._first)
        several = self._joins(self._clock)
        together = several & matched.ends_together[some]
        joining = several & self._joins(self._islands(together))
        self._several = several[self._instance]
        self._used = (together | joining)[self._instance]

    def _joins(self, of_clock: IntArray) -> BoolArray:
        """Which instances have participants of several numbers."""
        return parts.most(of_clock, self._first) != parts.least(of_clock, self._first)

    def _islands(self, together: BoolArray) -> IntArray:
        """Of each participation a number, the same for clocks that enough common ends hold together.

        What does not end at once on all its ranks only joins such islands.
        """
        met = distinct((self._instance * self._count + self._clock)[together[self._instance]])
        enough = np.bincount(met % self._count, minlength=self._count) >= _TOGETHER
        rows = np.flatnonzero(together[self._instance] & enough[self._clock])
        island = parts.joined(self._clock[rows], parts.begins_of(self._instance[rows]), self._count)
        return island[self._clock]

    def fit(self, begun: tuple[FloatArray, FloatArray] | None) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Offsets, slopes, and which are known; from where all have `begun`, if that is known."""
        offset, slope = (one.copy() for one in begun or (np.zeros(self._count), np.zeros(self._count)))
        known = np.full(self._count, begun is not None)
        known[self._first_clock()] = True
        while True:
            new = self._next(known)
            if not new.any() and not known[self._clock].all():
                self._used = self._several  # too few end together: the others help
                new = self._next(known)
            if not new.any():
                break
            self._refit(offset, slope, known, new, near=None)
            known |= new
        latest = self._end.max(initial=0.0)
        for _ in range(_SWEEPS):
            again = known.copy()
            again[self._first_clock()] = False
            before = offset + slope * latest
            self._refit(offset, slope, known, again, near=(offset, slope))
            if np.abs(offset + slope * latest - before).max() < _STILL_NS:
                break
        if begun is not None:
            self._kept_near(begun, offset, slope, latest)
        elif self._used.any() and known[self._clock].all() and len(self._clock) * self._count <= _AT_ONCE:
            offset, slope = self._together(offset, slope)
        return offset, slope, known

    def _together(self, offset: FloatArray, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
        size = parts.total(self._used.astype(np.int64), self._first)
        rows, first = np.flatnonzero(self._used), parts.borders(size[size > 0])
        return fitted_together(self._end[rows], self._clock[rows], first, offset, slope, self._first_clock())

    def _kept_near(
        self, begun: tuple[FloatArray, FloatArray], offset: FloatArray, slope: FloatArray, latest: float
    ) -> None:
        """Clocks that went far from where they began stay there: some of few ends were no pairs."""
        moved = np.abs(offset - begun[0]), np.abs(offset + slope * latest - begun[0] - begun[1] * latest)
        far = np.maximum(*moved) > RESIDUAL.value
        offset[far], slope[far] = begun[0][far], begun[1][far]

    def residual_ns(self, offset: FloatArray, slope: FloatArray) -> int:
        """How far ends lie apart that the fit used; of one clock, where nothing is fitted, all of them."""
        whole = _placed(self._end, self._clock, offset, slope)
        apart = np.abs(whole - parts.spread(parts.median(whole, self._first), self._first))
        return int(np.median(apart[self._used] if self._used.any() else apart))

    def _first_clock(self) -> int:
        return int(np.argmax(np.bincount(self._clock, minlength=self._count)))

    def _next(self, known: BoolArray) -> BoolArray:
        """Clocks that are not fitted and share enough collectives with fitted ones."""
        anchored = parts.most(known[self._clock], self._first)
        rows = anchored[self._instance] & self._used & ~known[self._clock]
        return np.bincount(self._clock[rows], minlength=self._count) >= ENDS.value

    def _refit(
        self,
        offset: FloatArray,
        slope: FloatArray,
        known: BoolArray,
        which: BoolArray,
        near: tuple[FloatArray, FloatArray] | None,
    ) -> None:
        whole = _placed(self._end, self._clock, offset, slope)
        middle = parts.median(whole, self._first, known[self._clock])
        anchored = parts.most(known[self._clock], self._first)
        rows = which[self._clock] & self._used & anchored[self._instance]
        at, part = self._end[rows], self._clock[rows]
        apart = middle[self._instance[rows]] - at
        fitted = lines_by_part(at, apart, part, near, self._count)
        offset[which], slope[which] = fitted[0][which], fitted[1][which]


def with_own_clocks(summaries: Sequence[RankSummary]) -> list[RankSummary]:
    """A clock for each process of each recording, by a number in their order."""
    return _numbered(summaries, [(one.identity.clock, one.identity.process) for one in summaries])


def share_a_clock(summaries: Sequence[RankSummary]) -> bool:
    """Whether several processes are of one recording, by the clocks as recorded."""
    processes = defaultdict(set)
    for one in summaries:
        processes[one.identity.clock].add(one.identity.process)
    return any(len(each) > 1 for each in processes.values())


def with_shared_clocks(summaries: Sequence[RankSummary], matched: Matched) -> list[RankSummary]:
    """A clock for the processes of a recording whose collectives agree with that; another for the others.

    They agree where each is there before the other ends, and where what ends on all ranks at once does.
    """
    clocks = sorted({one.identity.clock for one in summaries})
    number = {clock: place for place, clock in enumerate(clocks)}
    of_place = np.array([number[one.identity.clock] for one in summaries], dtype=np.int64)
    clock, instance = of_place[matched.place], matched.instance
    order = np.lexsort((clock, instance))
    first = parts.begins_of(instance[order] * (len(clocks) + 1) + clock[order])
    rows = order[parts.spread(_agree(matched, order, first), first)]
    kept = parts.begins_of((instance * (len(clocks) + 1) + clock)[rows])
    island = parts.joined(matched.place[rows], kept, len(summaries))
    took = np.bincount(matched.place, minlength=len(summaries)) > 0
    alone = np.where(took, island, -1)  # what took part in nothing contradicts nothing
    return _numbered(summaries, list(zip(of_place.tolist(), alone.tolist(), strict=True)))


def _agree(matched: Matched, order: IntArray, first: IntArray) -> BoolArray:
    """Of the participants of an instance on one clock, whether its times fit together, shape (parts,)."""
    start_ns, end_ns = matched.start_ns[order], matched.end_ns[order]
    last_ns, early_ns = parts.most(start_ns, first), parts.least(end_ns, first)
    apart_ns = parts.most(end_ns, first) - early_ns
    together = matched.ends_together[matched.instance[order[first[:-1]]]]
    return (last_ns <= early_ns + RESIDUAL.value) & (~together | (apart_ns <= RESIDUAL.value))


def _numbered(summaries: Sequence[RankSummary], keys: Sequence[Hashable]) -> list[RankSummary]:
    number: dict[Hashable, int] = {}
    clocks = [number.setdefault(key, len(number)) for key in keys]
    return [
        one if one.identity.clock == clock else replace(one, identity=replace(one.identity, clock=clock))
        for one, clock in zip(summaries, clocks, strict=True)
    ]


def fits_of(summaries: Sequence[RankSummary], clocks: Clocks) -> Iterator[sections.ClockFit]:
    """Every clock of which that is known. `summaries` are those used, in order of place."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, one in enumerate(summaries):
        places[one.identity.clock].append(place)
    if clocks.aligned:
        fits = clocks.by_fingerprint()
        for clock, several in places.items():
            if (fit := fits.get(clock)) is not None:
                at = fit.base_ns, fit.offset_ns, fit.drift_ppm + 0.0
                yield sections.ClockFit(tuple(several), ClockSource.COLLECTIVES, *at)
        return
    starts = {clock: summaries[several[0]].identity.session_start_ns for clock, several in places.items()}
    told = {clock: start for clock, start in starts.items() if start is not None}
    if len(told) < len(starts):
        return
    first_ns = min(told.values(), default=0)
    for clock, start in told.items():
        yield sections.ClockFit(tuple(places[clock]), ClockSource.SESSION_START, 0, first_ns - start, 0.0)
