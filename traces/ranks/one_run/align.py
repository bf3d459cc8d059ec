"""One clock for all ranks, from the ends of the collectives that they took part in together.

Each recording has times of its own: rebased on the start of its session where that is recorded, and
then fitted, offset and drift, on ends that belong together. What cannot be fitted has durations
only, and of who was late nothing is known.

The processes of one recording count as one clock, unless their collectives contradict it: it may
be of several hosts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from traces.arrays import (
    FOREVER,
    BoolArray,
    FloatArray,
    IntArray,
    count_from_0,
    distinct,
    ints,
    sums_before,
)
from traces.frozen import frozen
from traces.groups import group_of
from traces.limits import Limit
from traces.missing import Missing, gap
from traces.ranks.clocks.clock_fit import DRIFT, ENDS, MEET, ClockFit, Fits, fit_clocks
from traces.ranks.matching.match import Matched
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import RankSummary, Summaries, clocks_of
from traces.sections import run as sections
from traces.sections.cause import ClockSource
from traces.spelling import duration

RESIDUAL: Final = Limit(
    50_000,
    "ns",
    "measured: ends of one collective lie within 27 us on two recorded ranks, and clocks may be "
    "off as much; a wait that is shorter could not be charged to anybody",
)
MOST_ENDS: Final = Limit(
    128,
    "collectives of a clock",
    "counted: of so many times the middle one is known to a sixth of what they scatter",
)
_OF_GROUP: Final = 16
"""Collectives of one group that a fit has at least, where there are so many: few may hold clocks
together."""


@frozen
class Clocks:
    """The one clock, by the `fits` of all others. `residual_ns`: how far ends lie from where they
    belong, the median; None where unknown.

    `missing` says why there is none, or why the one clock that ranks share tells nothing; then
    `fits` is empty and times stay as recorded.
    """

    aligned: bool
    residual_ns: int | None
    fits: tuple[ClockFit, ...]
    missing: Missing | None = None

    def by_fingerprint(self) -> dict[int, ClockFit]:
        return {fit.clock: fit for fit in self.fits}


@frozen
class Aligned:
    """Starts and ends of all participations on the one clock, shape (p,), and how good that clock
    is.
    """

    start_ns: IntArray
    end_ns: IntArray
    clocks: Clocks


def align(summaries: Summaries, matched: Matched) -> Aligned:
    """Put the participations on one clock, as far as that can be."""
    fingerprints, of_place = clocks_of(summaries)
    if not len(matched):
        why = "no collective kernel was recorded on two GPUs, which would show who waits for whom"
        return unaligned(matched, None, why, is_one=len(fingerprints) == 1)
    if not matched.agreed:
        return unaligned(
            matched,
            None,
            "ranks of other stages have collectives that look alike, and no two kinds of them "
            "agree on how far the clocks are apart",
        )
    if matched.clocks is not None:
        begun = _by_known_clocks(summaries, matched, matched.clocks)
        again = align(summaries, replace(matched, clocks=None))
        if again.clocks.aligned and np.ptp(again.end_ns - begun.end_ns) <= MEET.value:
            return again
        return begun
    # each clock's times begin at its first collective, so that fractions stay exact
    base_ns = np.full(len(fingerprints), FOREVER)
    np.minimum.at(base_ns, of_place[matched.recorded.place], matched.recorded.rows.start_ns)
    base_ns = np.where(base_ns == FOREVER, 0, base_ns)
    of_row = of_place[matched.place]
    begun_ns = base_ns[of_row]
    start = (matched.start_ns - begun_ns).astype(np.float64)
    end = (matched.end_ns - begun_ns).astype(np.float64)
    fits, used = _fitted(matched, of_row, end, len(fingerprints))
    if not fits.known[distinct(of_row)].all():
        return unaligned(matched, None, _WHY_APART)
    starts, ends = fits.times_of(start, of_row), fits.times_of(end, of_row)
    residual_ns = _residual_ns(matched, ends, used)
    unknown_ns = max(residual_ns, round(float(fits.within_ns[fits.known].max())))
    if unknown_ns > RESIDUAL.value:
        why = (
            f"the best fit of the clocks leaves one of them unknown by {duration(unknown_ns)}, "
            f"more than {duration(RESIDUAL.value)}"
        )
        return unaligned(matched, residual_ns, why)
    if (np.abs(fits.slope) - fits.slope_within)[fits.known].max() * 1e6 > DRIFT.value:
        return unaligned(matched, residual_ns, "the clocks drift apart faster than clocks do")
    zero_ns = int(base_ns[0])
    starts, ends = starts + zero_ns, ends + zero_ns
    return Aligned(
        starts,
        np.maximum(starts, ends),
        Clocks(True, residual_ns, (*fits.clocks(fingerprints, base_ns).values(),)),
    )


def _by_known_clocks(
    summaries: Summaries, matched: Matched, fits: Mapping[int, ClockFit]
) -> Aligned:
    """By clocks that are known.

    Others, fitted anew to what these match, are better where they are near; else some was matched
    wrongly.
    """
    start_ns, end_ns = matched.start_ns.copy(), matched.end_ns.copy()
    for place, summary in enumerate(summaries):
        rows = matched.place == place
        for times in (start_ns, end_ns):
            times[rows] = fits[summary.identity.clock].times_of(times[rows])
    residual_ns = _residual_ns(matched, end_ns, matched.ends_together)
    return Aligned(
        start_ns, np.maximum(start_ns, end_ns), Clocks(True, residual_ns, (*fits.values(),))
    )


def _residual_ns(matched: Matched, end_ns: IntArray, used: BoolArray) -> int:
    """How far ends of one instance lie apart, of those used where there are any."""
    apart_ns = np.abs(end_ns - parts.spread(parts.median(end_ns, matched.first), matched.first))
    return int(np.median(apart_ns[parts.spread(used, matched.first)] if used.any() else apart_ns))


def _fitted(
    matched: Matched, clock: IntArray, end: FloatArray, count: int
) -> tuple[Fits, BoolArray]:
    """Clocks, and the instances that they are fitted on.

    These are what ends on all ranks at once, and what joins clocks that it does not hold together;
    where that is too little, all that several clocks took part in.
    """
    several = parts.varies(clock, matched.first)
    together = several & matched.ends_together
    island = _islands(matched, clock, together, count)
    joining = several & parts.varies(island[clock], matched.first)
    for chosen in (together | joining, several):
        used = chosen & _some(matched, clock, chosen)
        rows = parts.spread(used, matched.first)
        fits = fit_clocks(end[rows], clock[rows], sums_before(matched.sizes[used]), count)
        if fits.known[distinct(clock)].all():
            break
    return fits, used


def _islands(matched: Matched, clock: IntArray, together: BoolArray, count: int) -> IntArray:
    """Of each clock a number, the same for those that enough common ends hold together."""
    rows = parts.spread(together, matched.first)
    met = distinct((matched.instance * count + clock)[rows]) % count
    rows &= (np.bincount(met, minlength=count) > ENDS.value)[clock]
    return parts.joined(clock[rows], parts.begins_of(matched.instance[rows]), count)


_WHY_APART: Final = (
    f"too few collectives in common: a clock is fitted on at least {ENDS.whole} that it "
    "shares with clocks already fitted"
)


def unaligned(
    matched: Matched, residual_ns: int | None, why: str, *, is_one: bool = False
) -> Aligned:
    """Times as recorded, and why there is no one clock, or what it does not tell."""
    missing = gap(
        why,
        "record the same steps on all ranks, with NCCL's ranges or the process groups beside "
        "kernels",
    )
    return Aligned(matched.start_ns, matched.end_ns, Clocks(is_one, residual_ns, (), missing))


def _some(matched: Matched, clock: IntArray, which: BoolArray) -> BoolArray:
    """Of instances these: all of groups and clocks that have few, else some in regular
    distances.
    """
    ends = np.bincount(clock[parts.spread(which, matched.first)], minlength=count_from_0(clock))
    every = -(-int(ends.max(initial=0)) // MOST_ENDS.whole)
    of_group = parts.begins_of(matched.group)  # groups rise
    apart = np.clip(np.diff(of_group) // _OF_GROUP, 1, max(1, every))
    few = parts.least(ends[clock], matched.first) <= MOST_ENDS.value
    return few | (parts.turns(of_group) % parts.spread(apart, of_group) == 0)


def agreed(
    summaries: Summaries, matched: Matched, aligned: Aligned, possible: BoolArray
) -> Aligned:
    """The same, or without clocks where only instances that contradict them hold these together.

    `possible`: those that do not.
    """
    _, clock = clocks_of(summaries)
    # of kinds of which most are possible
    kind = ints(group_of(matched.operation, matched.kinds))
    often = np.bincount(kind)
    kept = matched.take(
        possible & (np.bincount(kind[possible], minlength=len(often)) >= often / 2)[kind]
    )
    if _islands_of(kept, clock, matched.place) <= 1:
        return aligned
    return unaligned(
        matched,
        aligned.clocks.residual_ns,
        "collectives contradict the clocks that fit most of them: ranks would "
        "be in one after others had left it",
    )


def _islands_of(kept: Matched, clock: IntArray, place: IntArray) -> int:
    """Into how many islands these instances leave the clocks of such places."""
    island = parts.joined(clock[kept.place], kept.first, count_from_0(clock))
    return len(distinct(island[distinct(clock[place])]))


def consistent(matched: Matched, aligned: Aligned) -> BoolArray:
    """Which instances can be what they seem: no participant ended before the last one was there.

    Others were put together wrongly, where only their order was known.
    """
    last_ns = parts.most(aligned.start_ns, matched.first)
    return last_ns <= parts.least(aligned.end_ns, matched.first) + RESIDUAL.value


def with_own_clocks(summaries: Summaries) -> list[RankSummary]:
    """A clock for each process of each recording, by a number in their order."""
    number: dict[tuple[int, int | None], int] = {}
    summaries_now = []
    for summary in summaries:
        who = summary.identity
        clock = number.setdefault((who.clock, who.process), len(number))
        summaries_now.append(replace(summary, identity=replace(who, clock=clock)))
    return summaries_now


def one_clock_holds(summaries: Summaries, matched: Matched) -> bool:
    """Whether most of what ends at once on several processes of one clock does so by it."""
    _, clock = clocks_of(summaries)
    ends = matched.take(matched.ends_together & ~parts.varies(clock[matched.place], matched.first))
    apart_ns = parts.most(ends.end_ns, ends.first) - parts.least(ends.end_ns, ends.first)
    return bool((apart_ns <= RESIDUAL.value).sum() * 2 >= len(ends))


def fits_of(summaries: Summaries, clocks: Clocks) -> Iterator[sections.ClockFit]:
    """Every clock of which that is known. `summaries` are those used, in order of place."""
    places = defaultdict[int, list[int]](list)
    for place, summary in enumerate(summaries):
        places[summary.identity.clock].append(place)
    source, fits = ClockSource.COLLECTIVES, clocks.by_fingerprint()
    if not clocks.fits:
        source, fits = ClockSource.SESSION_START, by_sessions(summaries)
    for clock, members in places.items():
        if (fit := fits.get(clock)) is not None:
            at = fit.base_ns, fit.offset_ns, fit.drift_ppm + 0.0
            yield sections.ClockFit(tuple(members), source, *at)


def by_sessions(summaries: Summaries) -> dict[int, ClockFit]:
    """Clocks as the starts of their sessions were recorded; none where one was not."""
    starts_ns: dict[int, int] = {}
    for summary in summaries:
        if summary.identity.session_start_ns is None:
            return {}
        starts_ns.setdefault(summary.identity.clock, summary.identity.session_start_ns)
    first_ns = min(starts_ns.values(), default=0)
    return {
        clock: ClockFit(clock, 0, first_ns - start_ns, 0.0) for clock, start_ns in starts_ns.items()
    }


def hold(summaries: Summaries, matched: Matched, fits: Mapping[int, ClockFit]) -> bool:
    """Whether what ends on all ranks at once does so on these clocks, and joins them all."""
    fingerprints, clock = clocks_of(summaries)
    ahead_ns = ints([fits[clock].offset_ns for clock in fingerprints])
    shared = matched.take(matched.ends_together & parts.varies(clock[matched.place], matched.first))
    end_ns = shared.end_ns - ahead_ns[clock[shared.place]]
    apart_ns = parts.most(end_ns, shared.first) - parts.least(end_ns, shared.first)
    agreeing = apart_ns <= MEET.value
    if agreeing.sum() * 2 < len(shared):
        return False
    return _islands_of(shared.take(agreeing), clock, matched.recorded.place) == 1
