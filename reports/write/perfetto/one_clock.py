"""Ranks of several recordings on one clock, as far as the result has it; others are named."""

from collections.abc import Callable
from dataclasses import replace

from msgspec import UNSET

from heuristics.result.result import Result
from reports.write.perfetto.events import Args, Counter, Process, Slice
from traces.missing import known
from traces.ranks.cause import ClockSource
from traces.sections.run import ClockFit

OnClock = Callable[[int], int]


def fits_of(result: Result) -> dict[int, ClockFit]:
    """How the clock of each rank stands to the one clock, by place; empty where nothing tells."""
    run = result.run
    return {} if run is UNSET else {place: fit for fit in run.clocks.by_rank for place in fit.ranks}


def on_clock(fit: ClockFit | None) -> OnClock:
    """From a rank's own times to those of the one clock; without a fit they stay as they are."""
    if fit is None:
        return lambda own_ns: own_ns
    return fit.time_of


def moved(process: Process, to: OnClock) -> Process:
    """The process with all its times on another clock."""
    tracks = [replace(track, slices=[_slice(one, to) for one in track.slices]) for track in process.tracks]
    counters = [
        Counter(one.name, [(to(at_ns), values) for at_ns, values in one.points]) for one in process.counters
    ]
    return Process(process.name, tracks, counters)


def _slice(one: Slice, to: OnClock) -> Slice:
    return replace(one, start_ns=to(one.start_ns), end_ns=to(one.end_ns))


def clock_words(result: Result, place: int) -> str:
    """What a track's name adds where a rank is not on the clock of the others."""
    if len(result.traces) < 2:
        return ""
    fit = fits_of(result).get(place)
    if fit is None:
        return ", own clock: its times cannot be compared with other ranks"
    return ", put in place by its session's start" if fit.source is ClockSource.SESSION_START else ""


def about_clocks(result: Result) -> Args:
    """By what the ranks are on one clock, and how well."""
    run = result.run
    if run is UNSET:
        return {}
    source = next((str(one.source) for one in run.clocks.by_rank), "own")
    residual_ns = known(run.clocks.residual_ns)
    fits = [
        {"ranks": list(one.ranks), "offset_ns": str(one.offset_ns), "drift_ppm": one.drift_ppm}
        for one in run.clocks.by_rank
    ]
    return {"clock": source, "clock_residual_ns": residual_ns, "clock_fits": fits}
