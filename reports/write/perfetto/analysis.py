"""A result as a trace for ui.perfetto.dev or chrome://tracing: verdict, steps and lost time by
stream.

Ranks of several recordings stand on one clock as far as the result has it; others are named.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, count
from typing import Final

from heuristics.result.result import Result, late_rank
from reports.content.analysis.headline import headline
from reports.content.names import gpu_of, name_of, optional, who
from reports.content.page import Detail
from reports.redaction import redaction_words
from reports.result.codec import lowered
from reports.rows import each, those
from reports.write.perfetto.tracks import (
    Args,
    Counter,
    Process,
    Slice,
    Track,
    render_events,
    span,
    step_tracks,
    verdict,
)
from traces.missing import known
from traces.sections.cause import ClockSource
from traces.sections.rank import Rank
from traces.sections.run import ClockFit
from traces.sections.steps import Dropped, Step
from traces.spelling import percent

OnClock = Callable[[int], int]


def fits_of(result: Result) -> dict[int, ClockFit]:
    fits = dict[int, ClockFit]()
    if run := result.run:
        for fit in run.clocks.by_rank:
            fits |= dict.fromkeys(fit.ranks, fit)
    return fits


def on_clock(fit: ClockFit | None) -> OnClock:
    """From a rank's own times to those of the one clock; without a fit they stay as they are."""
    if not fit:
        return lambda own_ns: own_ns
    return fit.time_of


def moved(process: Process, to: OnClock) -> Process:
    tracks, counters = [], []
    for track in process.tracks:
        slices = [
            replace(slice_, start_ns=to(slice_.start_ns), end_ns=to(slice_.end_ns))
            for slice_ in track.slices
        ]
        tracks.append(replace(track, slices=slices))
    for counter in process.counters:
        counters.append(
            Counter(counter.name, [(to(at_ns), values) for at_ns, values in counter.points])
        )
    return Process(process.name, tracks, counters)


def about_clocks(result: Result) -> Args:
    if not (run := result.run):
        return {}
    source = "".join(each(run.clocks.by_rank[:1], "source")) or "own"
    fits = [
        {
            "ranks": [*clock.ranks],
            "offset_ns": str(clock.offset_ns),
            "drift_ppm": clock.drift_ppm,
        }
        for clock in run.clocks.by_rank
    ]
    return {"clock": source, "clock_residual_ns": known(run.clocks.residual_ns), "clock_fits": fits}


_SHOWN: Final = 8
"""Ranks whose streams are shown: each may have 17,000 activities, 4 MB."""
_FIXES: Final = 3
_OF_WINDOWS: Final = (
    "budget_ns",
    "exposed_comm_by_kind_ns",
    "exposed_copy_by_kind_ns",
    "compute_by_class_ns",
    "absent_ns",
    "masked_ns",
    "hidden_comm_ns",
)
"""Fields of a rank that stand at its windows."""


def write_perfetto(result: Result, detail: Detail) -> str:
    """A JSON object of the Trace Event Format: one process for the verdict, one a rank, all on one
    clock.

    Tracks of a rank: where evidence can be seen, steps, windows, expert all-to-all, the host's
    threads, why no compute ran and the streams in all steps that the result holds; counters of each
    used step, in ms. `FULL`: the streams of every rank, not of the first eight.
    """
    shown = len(result.ranks)
    if detail is Detail.FIRST:
        shown = min(_SHOWN, shown)
    processes = [Process("moe-diag: verdict", [*_verdict_tracks(result)])]
    arrows, fits = count(1), fits_of(result)
    for place, rank in enumerate(result.ranks):
        tracks = [*_own_tracks(result, place)]
        if place < shown:
            a2a, spans = rank.a2a, []
            for call in a2a.spans if a2a else ():  # an unknown direction is no phase
                within = {
                    "step": known(call.step),
                    "layer": known(call.layer),
                    "phase": known(call.phase),
                }
                spans.append(
                    Slice(call.start_ns, call.end_ns, name_of(call.kind), call.kind, within)
                )
            tracks += (Track("expert all-to-all", spans), *step_tracks(rank.timelines, arrows))
        process = Process(_name(result, place), tracks, [*_counters(rank)])
        processes.append(moved(process, on_clock(fits[place])) if place in fits else process)
    timelines = each(result.ranks[:shown], "timelines")
    about = {
        **lowered(result.tool),
        "schema_version": result.schema_version,
        "traces": each(result.traces, "name"),
        **about_clocks(result),
        "redaction": redaction_words(result.redacted),
        "ranks_without_streams": len(result.ranks) - shown,
        "activities_left_out": [sum(each(of_rank, "left_out")) for of_rank in timelines],
        "calls_and_ranges_left_out": [sum(each(of_rank, "host_left_out")) for of_rank in timelines],
    }
    return render_events(processes, about)


def _name(result: Result, place: int) -> str:
    rank, late, fit = result.ranks[place], late_rank(result), fits_of(result).get(place)
    name = f"{who(rank)} ({gpu_of(rank)}){optional(', process {}', rank.process)}"
    several = len(result.traces) > 1
    if several:
        name += f", {rank.trace}"
    if late and place in late.places:
        name += f", late: {name_of(late.cause)}"
    if several and not fit:
        name += ", own clock: its times cannot be compared with other ranks"
    elif several and fit and fit.source is ClockSource.SESSION_START:
        name += ", put in place by its session's start"
    return name


def _verdict_tracks(result: Result) -> Iterator[Track]:
    fits, times = fits_of(result), list[int]()
    for place, rank in enumerate(result.ranks):
        times += map(on_clock(fits.get(place)), chain.from_iterable(rank.windows_ns))
    start_ns, end_ns = min(times), max(times)
    yield verdict(headline(result), start_ns, end_ns, "verdict")
    for wall in sorted(result.walls, key=lambda judged: -(judged.cost_frac or 0)):
        cost = optional("at most {}", wall.cost_frac, percent) or "unknown"
        fixes = [f"{fix.id} {fix.title}" for fix in those(result.fixes, wall=wall.id)]
        args = {**lowered(wall), "next": fixes[:_FIXES]}
        name = name_of(wall.id)
        yield Track(name, [Slice(start_ns, end_ns, f"{name}: {cost}", wall.outcome, args)])


def _own_tracks(result: Result, place: int) -> Iterator[Track]:
    rank = result.ranks[place]
    for wall in result.walls:
        marks = []
        for proof in wall.evidence:
            if proof.rank == place and proof.start_ns is not None and proof.end_ns is not None:
                args = {**lowered(proof), **span(proof.start_ns, proof.end_ns)}
                marks.append(
                    Slice(proof.start_ns, proof.end_ns, name_of(proof.measure), wall.id, args)
                )
        yield Track(f"{name_of(wall.id)}: where to look", marks)
    slow, steps = [], [_step(step, "used") for step in rank.steps.used]
    for dropped in sorted(rank.steps.dropped, key=lambda step: step.index not in rank.steps.slow):
        if dropped.index in rank.steps.slow:
            slow.append(_step(dropped, "slow"))
        else:
            steps.append(_step(dropped, "left out", f": {dropped.reason}"))
    yield Track("slow steps", slow)
    yield Track("steps", steps + slow)
    whole = {name: lowered(getattr(rank, name)) for name in _OF_WINDOWS}
    windows = [Slice(*window_ns, "window", "window", whole) for window_ns in rank.windows_ns]
    yield Track("windows", windows)


def _step(step: Step | Dropped, state: str, reason: str = "") -> Slice:
    args = {"state": f"{state}{reason}", **span(step.start_ns, step.end_ns)}
    name = f"step {step.index}, {state}{reason}"
    return Slice(step.start_ns, step.end_ns, name, f"{state} step", args)


def _counters(rank: Rank) -> Iterator[Counter]:
    used, ledger = rank.steps.used, rank.ledger
    for name, group in (("used steps, ms", "budget"), ("no compute in used steps, ms", "absent")):
        parts = dict[str, list[int]]()
        for row in those(ledger or (), group=group):
            sums = parts.setdefault(row.row.partition(".")[0], [0] * len(row.per_step_ns))
            for place, ns in enumerate(row.per_step_ns):
                sums[place] += ns
        points = []
        for place, step in enumerate(used):
            points.append((step.start_ns, {head: sums[place] for head, sums in parts.items()}))
            if step.end_ns not in each(used[place + 1 : place + 2], "start_ns"):
                points.append((step.end_ns, dict.fromkeys(parts, 0)))
        if used and parts:
            yield Counter(name, points)
