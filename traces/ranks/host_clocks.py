"""How to put the times of each recording on one clock: by collectives, else by the starts of sessions."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from traces.ranks.cause import ClockSource
from traces.ranks.clock_fit import ClockFit
from traces.ranks.clocks import Clocks
from traces.ranks.summary import RankSummary


@dataclass(frozen=True, slots=True)
class HostClock:
    """A clock, the places of the ranks that it timed, and how it stands to the one clock."""

    places: tuple[int, ...]
    source: ClockSource
    fit: ClockFit


def host_clocks(summaries: Sequence[RankSummary], clocks: Clocks) -> tuple[HostClock, ...]:
    """Every clock of which that is known. `summaries` are those used, in order of place."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, one in enumerate(summaries):
        places[one.identity.clock].append(place)
    if clocks.aligned:
        fits = clocks.by_fingerprint()
        found = [(several, fits[clock]) for clock, several in places.items() if clock in fits]
        return tuple(HostClock(tuple(several), ClockSource.COLLECTIVES, fit) for several, fit in found)
    starts = {clock: summaries[several[0]].identity.session_start_ns for clock, several in places.items()}
    told = {clock: start for clock, start in starts.items() if start is not None}
    if len(told) < len(starts):
        return ()
    first_ns = min(told.values(), default=0)
    return tuple(
        HostClock(tuple(places[clock]), ClockSource.SESSION_START, ClockFit(clock, 0, first_ns - start, 0.0))
        for clock, start in told.items()
    )
