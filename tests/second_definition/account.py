"""Why no compute ran: every nanosecond of the windows without compute has one reason.

Before it, what a kernel waits for on the GPU, and what a host call waits for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tests.second_definition.budget import Windows
from tests.second_definition.rows import EARLIEST, Call, Rank, Work

STAGED = 20_000
"""A copy call of pageable memory that is shorter returned before its copy ended."""
ROOM_WAIT, ROOM_NEAR = 2_000, 5_000


def launched_on(rank: Rank, stream: int, before: int, began: int) -> Work | None:
    """The last work of a stream that was launched before an instant of the host, and began before another.

    A stream's order is that of start: what has no launch row was launched with what is before it, unless it
    still ran as that other began.
    """
    last, known = None, EARLIEST
    for work in rank.works:
        if work.stream == stream and (work.start < began or work.start == work.end == began):
            if not work.call and work.end > began:
                continue
            known = work.call.start if work.call else known
            last = work if known < before else last
    return last


def producers(rank: Rank, late: Work) -> list[Work]:
    """The work before on its stream, what events made it wait for, and the kernel that left it room."""
    place = rank.works.index(late)
    found = [work for work in rank.works[:place] if work.stream == late.stream][-1:]
    since = found[0].call.start if found and found[0].call else EARLIEST
    if late.call:
        for called, stream, event in rank.waits:
            if stream == late.stream and since < called < late.call.start and event in rank.records:
                awaited = launched_on(rank, *rank.records[event], late.start)
                found += [awaited] if awaited and awaited.end <= late.start else []
    known = max([*(work.end for work in found), late.call.end if late.call else EARLIEST])
    # how long it waited is not known without its launch
    if late.group == "compute" and late.call and late.start - known > ROOM_WAIT:
        found += _room(rank, late)
    return found


def _room(rank: Rank, late: Work) -> list[Work]:
    """A compute kernel of another stream that filled the SMs until just before this one began."""
    near = [
        work
        for work in rank.of("compute")
        if work.stream != late.stream
        and work.start < min(late.start, work.end)
        and 0 <= late.start - work.end <= ROOM_NEAR
        and _fill(rank, work) + _fill(rank, late) > 1
    ]
    return [max(near, key=lambda work: work.end)] if near else []


def _fill(rank: Rank, work: Work) -> float:
    """Share of the GPU's places for blocks; 128 threads of 32 registers fit sixteen times on an SM."""
    return min(1.0, work.blocks / (16 * rank.sms)) if rank.sms else 0.0


def running(rank: Rank, work: Work, time: int) -> Work | None:
    """At an instant before the end of a work, the operation that does it: itself, or what it waits for."""
    if work.start <= time:
        return work if time < work.end else None
    pending = [other for other in producers(rank, work) if other.end > time]
    return running(rank, max(pending, key=lambda other: other.end), time) if pending else None


def awaited(rank: Rank, call: Call) -> list[Work] | None:
    """All work that a call waits for; None for a call that waits for none."""
    own = [work for work in rank.works if work.correlation == call.correlation and work.group == "copy"]
    if own and call.name == "cudaMemcpy":
        return own
    if own and own[0].pageable:
        return own if call.end - call.start > STAGED else None
    if call.name == "cudaFree":  # waits for everything
        return [work for work in rank.works if work.call and work.call.start < call.start]
    if call.correlation not in rank.syncs:
        return None
    kind, stream, event = rank.syncs[call.correlation]
    before = call.start
    if kind == 1 and event is not None and event in rank.records:
        stream, before = rank.records[event]
    return [
        work
        for work in rank.works
        if work.call and work.call.start < before and (kind == 4 or work.stream == stream)
    ]


def ended_within(rank: Rank, call: Call) -> list[Work] | None:
    """The same by another reading: whatever else was launched before a waiting call and ended within it.

    Communication apart from the stream that is waited for, and that no stream waits for since, is none.
    """
    target = awaited(rank, call)
    if target is None:
        return None
    of_stream = rank.syncs.get(call.correlation, (0, 0, None))
    found = [work for work in target if work.group == "copy" and work.correlation == call.correlation]
    until = max((work.end for work in found), default=call.end)
    for work in rank.works:
        began = work.call.start if work.call else work.start
        if (
            work.group == "compute"
            or began >= call.start
            or not call.start < work.end <= min(call.end, until)
        ):
            continue
        waits = any(began <= at < call.start for at, _, _ in rank.waits)
        if of_stream[0] == 3 and work.group == "comm" and work.stream != of_stream[1] and not waits:
            continue
        found.append(work)
    return found


LATENCY = 5_000
COLD = 50_000
ALLOCATES = re.compile(r"^cuda(Malloc|Free)|^cuMem")
INITIALISES = re.compile(r"^cu(Module|Library)Load")
RANGES = {"data": re.compile("DataLoader"), "gc": re.compile(r"\bgc\b")}
NEAR = 50_000
LAUNCHES_JUDGED = 32


@dataclass
class _Late:
    """The kernel that ends an interval, with what is asked of it again and again."""

    kernel: Work
    launched: int
    """L: the earlier of the return of its launch call and its start."""
    producers: list[Work]
    limits: tuple[int, int]
    """How long arrival and a gap between kernels may be."""
    first_node: int | None
    """Start of the first node of its graph replay, where it is another."""


def account(rank: Rank, windows: Windows, within: bool = False) -> tuple[Counter[str], int]:
    """Nanoseconds by reason, and those of launch_starved in which a producer ran as well.

    `within`: a waiting call waits for whatever ended within it, not for what it names.
    """
    reasons: Counter[str] = Counter()
    masked, limits = 0, latencies(rank)
    lates: dict[int, _Late] = {}
    for start, end in _without_compute(rank, windows):
        late = next((w for w in rank.of("compute") if w.start >= end and w.end > w.start), None)
        if late is None:
            reasons["trailing"] += end - start
            continue
        about = lates.setdefault(id(late), _about(rank, late, limits))
        for begin, until in pairwise(_cuts(rank, about, start, end)):
            reason = _reason(rank, about, begin, within)
            reasons[reason] += until - begin
            if reason.startswith("launch_starved") and any(
                work.start <= begin < work.end for work in about.producers
            ):
                masked += until - begin
    return reasons, masked


def clock(rank: Rank) -> tuple[int, int] | None:
    """How far host times are ahead, and within what; None where the clocks are apart and nothing tells."""
    launches = list({work.call: work for work in reversed(rank.works) if work.call}.values())
    waited = [(c, max(w.end for w in works), works) for c in rank.calls if (works := awaited(rank, c))]
    ends = [call.end - end for call, end, _ in waited if end > call.start]
    starts = [work.start - work.call.start for work in launches if work.call]
    early = sum(one < -NEAR for one in starts)
    if len(launches) < LAUNCHES_JUDGED and 100 * early > len(launches):
        return None  # nothing starts before its launch
    if len(launches) < LAUNCHES_JUDGED or any(0 <= one <= NEAR for one in (*starts, *ends)):
        return 0, 0
    low = max(-one for one in starts)
    every = [
        call.end - end
        for call, end, works in waited
        if call.name != "cudaFree" and (call.name != "cudaMemcpy" or works[0].kind == "memcpy_d2h")
    ]
    high = min(every, default=low + NEAR)
    return ((low + high) // 2, (high - low) // 2) if 0 <= high - low < NEAR else None


def corrected(rank: Rank, ahead: int) -> Rank:
    """The rank with host times on the GPU's clock."""
    moved = {id(c): c._replace(start=c.start - ahead, end=c.end - ahead) for c in rank.calls}
    works = [replace(w, call=moved[id(w.call)] if w.call else None) for w in rank.works]
    spans = {
        table: [s._replace(start=s.start - ahead, end=s.end - ahead) for s in several]
        for table, several in rank.spans.items()
    }
    records = {key: (stream, at - ahead) for key, (stream, at) in rank.records.items()}
    waits = [(at - ahead, stream, event) for at, stream, event in rank.waits]
    calls = list(moved.values())
    return replace(rank, works=works, calls=calls, spans=spans, records=records, waits=waits)


def _without_compute(rank: Rank, windows: Windows) -> list[tuple[int, int]]:
    """Maximal stretches of each window in which no compute runs."""
    found = []
    for start, end in windows:
        at = start
        for work in rank.of("compute"):
            if work.end > work.start and work.end > at and work.start < end:
                if work.start > at:
                    found.append((at, work.start))
                at = work.end
        if at < end:
            found.append((at, end))
    return found


def _about(rank: Rank, late: Work, limits: tuple[int, int]) -> _Late:
    launched = min(late.call.end, late.start) if late.call else EARLIEST
    nodes = [w.start for w in rank.works if w.node is not None and w.correlation == late.correlation]
    first = min(nodes) if late.node is not None and min(nodes) < late.start else None
    return _Late(late, launched, producers(rank, late), limits, first)


def latencies(rank: Rank) -> tuple[int, int]:
    """5 µs, or twice this trace's own: arrival onto an empty stream, gaps where the launch came before."""
    arrivals, gaps, replayed = [], [], set()
    for work in rank.works:
        if work.call is None or work.call in replayed:
            continue
        if work.node is not None:
            replayed.add(work.call)
        back = min(work.call.end, work.start)
        ended = max((one.end for one in producers(rank, work)), default=EARLIEST)
        if ended <= work.call.start and work.start - back <= NEAR:
            arrivals.append(work.start - back)
        elif back < ended <= work.start:
            gaps.append(work.start - ended)
    arrival, gap = (int(np.percentile(one, 5)) if one else 0 for one in (arrivals, gaps))
    return max(LATENCY, 2 * arrival), max(LATENCY, 2 * gap)


def _cuts(rank: Rank, late: _Late, start: int, end: int) -> list[int]:
    """Instants at which a reason may change."""
    cuts = {start, end, late.launched, late.first_node or start}
    cuts |= {time for work in rank.works for time in (work.start, work.end)}
    cuts |= {time for call in rank.calls for time in (call.start, call.end, call.end + COLD)}
    cuts |= {time for group in rank.spans.values() for span in group for time in (span.start, span.end)}
    cuts |= {time + limit for time in tuple(cuts) for limit in late.limits}
    return sorted(time for time in cuts if start <= time <= end)


def _reason(rank: Rank, late: _Late, time: int, within: bool) -> str:
    if late.first_node is not None and time >= late.first_node:
        nodes = [w for w in rank.works if w.node is not None and w.correlation == late.kernel.correlation]
        ran = [work for work in nodes if work.start <= time < work.end]
        return f"blocking.{max(ran, key=lambda work: work.end).kind}" if ran else "graph_opaque"
    if late.kernel.call and time < late.launched:
        return _before_launch(rank, late.kernel.call, time, within)
    return _after_launch(rank, late, late.kernel, late.launched, late.producers, time)


def _after_launch(rank: Rank, late: _Late, work: Work, launched: int, waits: list[Work], time: int) -> str:
    """By the producer that runs and ends last; where none runs, by what the last to end waits for itself."""
    runs = [one for one in waits if one.start <= time < one.end]
    if runs:
        return f"blocking.{max(runs, key=lambda one: one.end).kind}"
    last = max(waits, key=lambda one: one.end, default=None)
    if last and last.end > time:
        own = min(last.call.end, last.start) if last.call else EARLIEST
        return _after_launch(rank, late, last, own, producers(rank, last), time)
    produced = last.end if last else EARLIEST
    arrives = launched >= produced
    if time - max(launched, produced) >= late.limits[0 if arrives else 1]:
        first = all(other.start >= work.start for other in rank.works if other.stream == work.stream)
        return "blocking.unrecorded" if first and _host_waits(rank, time) else "dependency_stalled"
    return "launch_latency.arrival" if arrives else "launch_latency.kernel_gap"


def _host_waits(rank: Rank, time: int) -> bool:
    """Whether a thread that launches is in a call that waits for GPU work; a copy does for over 20 us."""
    theirs = {work.call.thread for work in rank.works if work.call}
    return any(
        call.correlation in rank.syncs
        or call.name.startswith("cudaFree")
        or ("emcpy" in call.name and call.end - call.start > 20_000)
        for call in rank.calls
        if call.thread in theirs and call.start <= time < call.end
    )


def _doer(rank: Rank, launch: Call, time: int) -> int:
    """The thread that decides: the launching one, or the one that handed over to it, until it did.

    One that only copies is a helper, and hands over to nobody.
    """
    theirs = {work.call.thread for work in rank.works if work.call}
    helpers = theirs - {work.call.thread for work in rank.works if work.call and work.is_kernel}
    before = [c for c in rank.calls if c.end <= launch.start and c.thread not in helpers]
    last = max(before, key=lambda call: call.end, default=None)
    return last.thread if last and time < last.end else launch.thread


def _before_launch(rank: Rank, launch: Call, time: int, within: bool) -> str:
    thread = _doer(rank, launch, time)
    calls = [call for call in rank.calls if call.thread == thread]
    inside = [call for call in calls if call.start <= time < call.end]
    call = inside[-1] if inside else None
    if call and within:
        held = [work for work in ended_within(rank, call) or [] if work.start <= time < work.end]
        if held:
            return f"blocking.{max(held, key=lambda work: work.end).kind}"
    works = awaited(rank, call) if call and not within else None
    if works and (last := max(works, key=lambda work: work.end)).end > time:
        doing = running(rank, last, time)
        if doing:
            return f"blocking.{doing.kind}"
    return f"launch_starved.{_cause(rank, calls, call, thread, time)}"


def _cause(rank: Rank, calls: list[Call], call: Call | None, thread: int, time: int) -> str:
    on = {
        table: [span.name for span in spans if span.thread == thread and span.start <= time < span.end]
        for table, spans in rank.spans.items()
    }
    if on["PROFILER_OVERHEAD"]:
        return "profiler"
    if call:
        if ALLOCATES.match(call.name):
            return "allocator"
        if call.correlation in rank.syncs:
            return "sync"
        if (own := awaited(rank, call)) and time >= max(work.end for work in own):
            return "copy_overhead"
        return "lazy_init" if INITIALISES.match(call.name) else "launch"
    for cause, pattern in RANGES.items():
        if any(pattern.search(text) for text in on["NVTX_EVENTS"]):
            return cause
    if _is_cold(rank, calls, time):
        return "sync"
    if any(begin <= time < end and own == thread for begin, end, own in _first_pauses(rank)):
        return "lazy_init"
    return "os_wait" if on["OSRT_API"] else "python"


def _first_pauses(rank: Rank) -> list[tuple[int, int, int]]:
    """Outside all calls, over 2 ms, before half of the launches, ten times all that come later."""
    launched = sorted((work.call for work in rank.works if work.call), key=lambda call: call.start)
    theirs = {call.thread for call in launched}
    calls = sorted((call for call in rank.calls if call.thread in theirs), key=lambda call: call.start)
    pauses, until = [], EARLIEST
    for call in calls:
        if until != EARLIEST:
            pauses.append((until, call.start, call.thread))
        until = max(until, call.end)
    half = launched[len(launched) // 2].start if launched else EARLIEST
    later = max((end - begin for begin, end, _ in pauses if end > half), default=0)
    single = [one for one in pauses if one[1] - one[0] >= 2_000_000 and one[1] - one[0] > 10 * later]
    first = [*_before_first(rank)]
    loads = [call.start for call in calls if INITIALISES.match(call.name)]
    shown = [one for one in first if any(one[0] <= load < one[1] for load in loads)]
    open_ = [one for one in first if one not in shown]
    later = max((end - begin for begin, end, _ in open_ if end > half), default=0)
    return [*single, *shown, *(one for one in open_ if one[1] - one[0] > 10 * later)]


def _before_first(rank: Rank) -> Iterator[tuple[int, int, int]]:
    """From one launch to the first of a kernel that recurs: over 2 ms, and ten times any later such time."""
    launches = sorted(
        (w for w in rank.works if w.is_kernel and w.call),
        key=lambda w: (w.call.start if w.call else 0, w.start),
    )
    found: dict[str, list[tuple[int, int, int]]] = {}
    until = EARLIEST
    for work in launches:
        if call := work.call:
            since = call.start if until == EARLIEST else until
            found.setdefault(work.name, []).append((since, call.start, call.thread))
            until = max(until, call.end)
    for (since, start, thread), *others in found.values():
        if others and start - since > max(2_000_000, *(10 * (b - a) for a, b, _ in others)):
            yield since, start, thread


def _is_cold(rank: Rank, calls: list[Call], time: int) -> bool:
    """Within 50 µs of the return of a synchronising call, since when no compute ran."""
    return any(
        call.end <= time < call.end + COLD
        and call.correlation in rank.syncs
        and not any(w.start <= time and w.end > max(call.end, w.start) for w in rank.of("compute"))
        for call in calls
    )
