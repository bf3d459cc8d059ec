"""A result as a trace for ui.perfetto.dev or chrome://tracing: verdict, steps and lost time by stream.

Ranks of several recordings stand on one clock as far as the result has it; others are named.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from msgspec import UNSET

from heuristics.result.judged import Evidence, Wall
from heuristics.result.result import Result
from reports.content.analysis.headline import headline
from reports.content.blocks import Detail
from reports.content.names import gpu_of, name_of, who
from reports.redaction import redaction_words
from reports.result.codec import lowered
from reports.write.perfetto.tracks import (
    Args,
    Counter,
    Process,
    Slice,
    Track,
    render_events,
    step_tracks,
    verdict,
)
from traces.missing import known
from traces.ranks.clocks import clock_fit
from traces.sections.cause import ClockSource
from traces.sections.rank import Rank, Span, Step
from traces.sections.run import ClockFit
from traces.sections.tables import LedgerRow
from traces.spelling import percent
from traces.steps.selection import seconds

OnClock = Callable[[int], int]


def fits_of(result: Result) -> dict[int, ClockFit]:
    run = result.run
    return {} if run is UNSET else {place: fit for fit in run.clocks.by_rank for place in fit.ranks}


def on_clock(fit: ClockFit | None) -> OnClock:
    """From a rank's own times to those of the one clock; without a fit they stay as they are."""
    if fit is None:
        return lambda own_ns: own_ns
    return clock_fit.ClockFit(0, fit.base_ns, fit.offset_ns, fit.drift_ppm).time_of


def moved(process: Process, to: OnClock) -> Process:
    tracks = [replace(track, slices=[_slice(one, to) for one in track.slices]) for track in process.tracks]
    counters = [
        Counter(one.name, [(to(at_ns), values) for at_ns, values in one.points]) for one in process.counters
    ]
    return Process(process.name, tracks, counters)


def _slice(one: Slice, to: OnClock) -> Slice:
    return replace(one, start_ns=to(one.start_ns), end_ns=to(one.end_ns))


def clock_words(result: Result, place: int) -> str:
    if len(result.traces) < 2:
        return ""
    fit = fits_of(result).get(place)
    if fit is None:
        return ", own clock: its times cannot be compared with other ranks"
    return ", put in place by its session's start" if fit.source is ClockSource.SESSION_START else ""


def about_clocks(result: Result) -> Args:
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


_SHOWN: Final = 8
"""Ranks whose streams are shown: each may have 17,000 activities, 4 MB."""
_FIXES: Final = 3


def write_perfetto(result: Result, detail: Detail) -> str:
    """A JSON object of the Trace Event Format: one process for the verdict, one a rank, all on one clock.

    Tracks of a rank: where evidence can be seen, steps, windows, expert all-to-all, the host's threads, why
    no compute ran and the streams in all steps that the result holds; counters of each used step, in ms.
    `FULL`: the streams of every rank, not of the first eight.
    """
    shown = len(result.ranks) if detail is Detail.FULL else min(_SHOWN, len(result.ranks))
    processes = [Process("moe-diag: verdict", [*_verdict_tracks(result)])]
    arrows, fits = count(1), fits_of(result)
    for place, rank in enumerate(result.ranks):
        tracks = [*_own_tracks(result, place)]
        if place < shown:
            a2a = known(rank.a2a)
            tracks.append(Track("expert all-to-all", [_span(one) for one in a2a.spans] if a2a else []))
            tracks += step_tracks(rank.timelines, arrows)
        process = Process(_name(result, place), tracks, [*_counters(rank)])
        processes.append(moved(process, on_clock(fits[place])) if place in fits else process)
    return render_events(processes, _about(result, shown))


def _name(result: Result, place: int) -> str:
    rank = result.ranks[place]
    process = known(rank.process)
    whose = f", process {process}" if process is not None else ""
    trace = f", {rank.trace}" if len(result.traces) > 1 else ""
    return f"{who(rank)} ({gpu_of(rank)}){whose}{trace}{_late(result, place)}{clock_words(result, place)}"


def _late(result: Result, place: int) -> str:
    late = None if result.run is UNSET else known(result.run.late)
    return f", late: {name_of(late.cause)}" if late is not None and place in late.places else ""


def _about(result: Result, shown: int) -> Args:
    return {
        **lowered(result.tool),
        "schema_version": result.schema_version,
        "traces": [trace.name for trace in result.traces],
        **about_clocks(result),
        "redaction": redaction_words(result.redacted),
        "ranks_without_streams": len(result.ranks) - shown,
        "activities_left_out": [sum(one.left_out for one in rank.timelines) for rank in result.ranks[:shown]],
        "calls_and_ranges_left_out": [
            sum(one.host_left_out for one in rank.timelines) for rank in result.ranks[:shown]
        ],
    }


def _verdict_tracks(result: Result) -> Iterator[Track]:
    fits = fits_of(result)
    times = [
        on_clock(fits.get(place))(time_ns)
        for place, rank in enumerate(result.ranks)
        for pair in rank.windows_ns
        for time_ns in pair
    ]
    start_ns, end_ns = min(times), max(times)
    yield verdict(headline(result), start_ns, end_ns, "verdict")
    for wall in sorted(result.walls, key=lambda one: -(known(one.cost_frac) or 0)):
        share = known(wall.cost_frac)
        name = f"{name_of(wall.id)}: {'unknown' if share is None else f'at most {percent(share)}'}"
        yield Track(name_of(wall.id), [Slice(start_ns, end_ns, name, wall.outcome, _wall(result, wall))])


def _wall(result: Result, wall: Wall) -> Args:
    fixes = [one for one in result.fixes if one.wall == wall.id][:_FIXES]
    return {**lowered(wall), "next": [f"{fix.id} {fix.title}" for fix in fixes]}


def _own_tracks(result: Result, place: int) -> Iterator[Track]:
    rank = result.ranks[place]
    for wall in result.walls:
        seen = [slice for one in wall.evidence if one.rank == place for slice in _evidence(wall, one)]
        yield Track(f"{name_of(wall.id)}: where to look", seen)
    steps = rank.steps
    slow = [_step(one, "slow") for one in steps.dropped if one.index in steps.slow]
    used = [_step(one, "used") for one in steps.used]
    left_out = [_step(one, "left out", one.reason) for one in steps.dropped if one.index not in steps.slow]
    yield Track("slow steps", slow)
    yield Track("steps", used + slow + left_out)
    whole = _whole(rank)
    windows = [Slice(start_ns, end_ns, "window", "window", whole) for start_ns, end_ns in rank.windows_ns]
    yield Track("windows", windows)


def _whole(rank: Rank) -> Args:
    return {
        "budget_ns": lowered(rank.budget_ns),
        "exposed_comm_by_kind_ns": known(rank.exposed_comm_by_kind_ns),
        "exposed_copy_by_kind_ns": rank.exposed_copy_by_kind_ns,
        "compute_by_class_ns": rank.compute_by_class_ns,
        "absent_ns": lowered(absent) if (absent := known(rank.absent_ns)) else None,
        "masked_ns": known(rank.masked_ns),
        "hidden_comm_ns": known(rank.hidden_comm_ns),
    }


def _evidence(wall: Wall, one: Evidence) -> Iterator[Slice]:
    if one.start_ns is not None and one.end_ns is not None:
        said = {**lowered(one), **_where(one.start_ns, one.end_ns)}
        yield Slice(one.start_ns, one.end_ns, name_of(one.measure), wall.id, said)


def _where(start_ns: int, end_ns: int) -> Args:
    return {"start": seconds(start_ns), "end": seconds(end_ns)}


def _step(one: Step, state: str, reason: str = "") -> Slice:
    said = f"{state}: {reason}" if reason else state
    args = {"state": said, **_where(one.start_ns, one.end_ns)}
    return Slice(one.start_ns, one.end_ns, f"step {one.index}, {said}", f"{state} step", args)


def _span(one: Span) -> Slice:
    """An exchange; an unknown direction is no phase."""
    place = {"step": known(one.step), "layer": known(one.layer), "phase": known(one.phase)}
    return Slice(one.start_ns, one.end_ns, name_of(one.kind), one.kind, place)


def _counters(rank: Rank) -> Iterator[Counter]:
    used, ledger = rank.steps.used, known(rank.ledger)
    if not used or not ledger:
        return
    for name, group in (("used steps, ms", "budget"), ("no compute in used steps, ms", "absent")):
        series = _by_head([row for row in ledger if row.group == group])
        if series:
            yield Counter(name, [*_points(used, series)])


def _by_head(rows: Sequence[LedgerRow]) -> dict[str, list[int]]:
    parts: dict[str, list[Sequence[int]]] = {}
    for row in rows:
        parts.setdefault(row.row.partition(".")[0], []).append(row.per_step_ns)
    return {head: [sum(step) for step in zip(*several, strict=True)] for head, several in parts.items()}


def _points(
    used: Sequence[Step], series: Mapping[str, Sequence[int]]
) -> Iterator[tuple[int, dict[str, int]]]:
    for place, step in enumerate(used):
        yield step.start_ns, {head: lengths[place] for head, lengths in series.items()}
        following = used[place + 1].start_ns if place + 1 < len(used) else None
        if following != step.end_ns:
            yield step.end_ns, dict.fromkeys(series, 0)
