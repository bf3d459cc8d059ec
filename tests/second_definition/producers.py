"""What a kernel waits for on the GPU, and what a host call waits for."""

from __future__ import annotations

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
