"""How to put the times of each recording on one clock: by collectives, else by the starts of sessions."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from traces.ranks.cause import ClockSource
from traces.ranks.clocks import Clocks
from traces.ranks.summary import RankSummary
from traces.sections import run as sections


def clocks_of(summaries: Sequence[RankSummary], clocks: Clocks) -> sections.Clocks:
    """Every clock of which that is known. `summaries` are those used, in order of place."""
    residual_ns = clocks.missing or clocks.residual_ns
    return sections.Clocks(clocks.aligned, residual_ns, tuple(_fits(summaries, clocks)))


def _fits(summaries: Sequence[RankSummary], clocks: Clocks) -> Iterator[sections.ClockFit]:
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
