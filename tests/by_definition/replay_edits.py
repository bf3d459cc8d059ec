"""What each wall takes away, a second time: from the definition, on the replay written from its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from tests.by_definition.replay import ASIDES, COLD, Call, Takes, Told, Work

KEEPS_ITS_TIME = ("free", "allocate")


def without_communication(told: Told, kind: str | None = None, stretch_frac: float | None = None) -> Takes:
    """It takes no time; compute is as much shorter as it was slower beside it."""
    works, duration = told.story.works, [*told.takes.duration]
    gone = [p for p, work in enumerate(works) if work.bucket == "comm" and kind in (None, work.kind)]
    slower = max(stretch_frac or 0.0, 0.0)
    for p, work in enumerate(works):
        if p in gone:
            duration[p] = 0
        elif work.bucket == "compute":
            beside = _beside(work.start, work.end, [(works[q].start, works[q].end) for q in gone])
            duration[p] -= int(beside * (slower / (1 + slower)))
    return replace(told.takes, duration=duration)


def _beside(start: int, end: int, others: list[tuple[int, int]]) -> int:
    near = [(a, b) for a, b in others if a < end and start < b]
    cuts = sorted({start, end, *(t for one in near for t in one if start < t < end)})
    return sum(until - t for t, until in pairwise(cuts) if any(a <= t < b for a, b in near))


def without_host(told: Told) -> Takes:
    """The host takes no time of its own; allocator calls and the profiler's work stay."""
    gone = {c for c, call in enumerate(told.calls) if call.kind not in KEEPS_ITS_TIME}
    stays = [_aside_ns(told, c, ("profiler",)) for c in range(len(told.calls))]
    takes = _without_calls(told, gone, stays)
    return replace(takes, arrival=[0] * len(takes.arrival))


def without_pauses(told: Told, names: Iterable[str]) -> Takes:
    """Only what the host did between calls: asides by name; what no aside explains is `python`.

    Pauses of it over 10 times the thread's 99th percentile are `long_python_pauses`.
    """
    kept, pauses = [name for name in ASIDES if name not in names], []  # cold starts go with their calls
    rest = [pause - _aside_ns(told, c, ASIDES) for c, pause in enumerate(told.takes.pause)]
    for c, call in enumerate(told.calls):
        mine = [ns for ns, other in zip(rest, told.calls, strict=True) if other.thread == call.thread]
        python = "long_python_pauses" if rest[c] > max(0, 10 * _percentile_99(mine)) else "python"
        pauses.append(_aside_ns(told, c, kept) + (0 if python in names else rest[c]))
    return _without_calls(told, set(), pauses)


def _percentile_99(values: list[int]) -> float:
    below, part = divmod(99 * (len(values) - 1), 100)
    ordered = [*sorted(values), max(values)]
    return ordered[below] + (ordered[below + 1] - ordered[below]) * part / 100


def _counts(told: Told) -> set[int]:
    """Calls that wait for a small copy, where kernels route tokens."""
    if not any(work.kind in ("router", "permute") for work in told.story.works):
        return set()
    return {c for c, one in enumerate(told.takes.waits) if any(p in told.feeds for p, _ in one)}


def without_calls_of(told: Told, *kinds: str) -> Takes:
    """Only the time of some kinds of calls; `counts` are those that wait for a small copy to the host."""
    counts = _counts(told)
    names = [
        "counts" if call.kind == "sync" and c in counts else call.kind for c, call in enumerate(told.calls)
    ]
    return _without_calls(told, {c for c, name in enumerate(names) if name in kinds}, told.takes.pause)


def without_syncs(told: Told, kind: str) -> Takes:
    """Only synchronising calls and their cold starts: `counts` that wait for a small copy, or the others."""
    counts = _counts(told)
    syncs = [c for c, call in enumerate(told.calls) if call.kind == "sync"]
    gone = {c for c in syncs if (c in counts) == (kind == "counts")}
    pauses = []
    for c, pause in enumerate(told.takes.pause):
        is_count = told.before[c] in counts
        cold = _aside_ns(told, c, ("cold",)) if is_count == (kind == "counts") else 0
        pauses.append(max(0, pause - cold))
    return _without_calls(told, gone, pauses)


def without_arrival(told: Told) -> Takes:
    """Launched work arrives at once."""
    return replace(told.takes, arrival=[0] * len(told.takes.arrival))


def _without_calls(told: Told, gone: set[int], pauses: list[int]) -> Takes:
    takes = told.takes
    syncs = [c for c in gone if told.calls[c].kind == "sync"]
    fed = {p for c in syncs for p, _ in takes.waits[c] if p in told.feeds}

    def unless_fed(values: list[int]) -> list[int]:
        return [0 if p in fed else value for p, value in enumerate(values)]

    waits, polled = [*takes.waits], [*takes.polled]
    for c in gone:
        waits[c] = [(p, min(after, 0)) for p, after in takes.waits[c]]
    shorter = [min(new, old) for new, old in zip(pauses, takes.pause, strict=True)]
    for c, pause in enumerate(shorter):
        if pause < takes.pause[c]:
            polled[c] = [(p, min(after, pause)) for p, after in polled[c]]
    return Takes(
        unless_fed(takes.duration),
        unless_fed(takes.gap),
        takes.arrival,
        unless_fed(takes.residual),
        [None if p in fed else one for p, one in enumerate(takes.engine)],
        shorter,
        [min(ns, _profiler_within_ns(told, c)) if c in gone else ns for c, ns in enumerate(takes.own)],
        waits,
        polled,
    )


def _profiler_within_ns(told: Told, c: int) -> int:
    """What the profiler's own work covers of a call."""
    call = told.calls[c]
    mine = [(a.start, a.end) for a in told.story.asides if (a.thread, a.name) == (call.thread, "profiler")]
    return _beside(call.start, call.end, mine)


def _aside_ns(told: Told, c: int, names: Iterable[str]) -> int:
    """What asides of its thread cover of the pause before a call; an instant counts as the first of them."""
    call, last = told.calls[c], told.before[c]
    since = call.start if last is None else min(told.calls[last].end, call.start)
    mine = [one for one in told.story.asides if one.thread == call.thread] + cold_starts(told, call.thread)
    cuts = {min(max(t, since), call.start) for one in mine for t in (one.start, one.end)}
    total = 0
    for t, until in pairwise(sorted(cuts)):
        now = [name for name in ASIDES if any(a.name == name and a.start <= t < a.end for a in mine)]
        total += until - t if now and now[0] in names else 0
    return total


def cold_starts(told: Told, thread: int) -> list[Call]:
    """After each synchronising call, until the next has returned, compute begins, or 50 us are over."""
    compute = [work for work in told.story.works if work.bucket == "compute"]
    ends = [call.end for call in told.story.calls if call.thread == thread and call.kind == "sync"]
    found = []
    for end in ends:
        later = [other for other in ends if other > end] + [
            work.start for work in compute if work.start > end
        ]
        if not any(work.start <= end < work.end for work in compute):
            found.append(Call(thread, end, min([end + COLD, *later]), "cold"))
    return found


def without_allocator(told: Told, since: int) -> Takes:
    """Allocator calls from a time on are gone, and nothing waits in them."""
    gone = {c for c, call in enumerate(told.calls) if call.kind in KEEPS_ITS_TIME and call.start >= since}
    return replace(
        told.takes,
        own=[0 if c in gone else ns for c, ns in enumerate(told.takes.own)],
        waits=[[] if c in gone else one for c, one in enumerate(told.takes.waits)],
    )


def without_copies(told: Told, which: set[int]) -> Takes:
    """Some copies are gone whole, with their calls: what leads up to each copy, and the one that follows.

    What asides cover of the pauses before these calls stays.
    """
    launching = {held for held in told.launch if held is not None}
    gone = {c for c in launching if all(p in which for p, held in enumerate(told.launch) if held == c)}
    threads: dict[int, list[int]] = {}
    for c, call in enumerate(told.calls):
        threads.setdefault(call.thread, []).append(c)
    telling = {c for c, call in enumerate(told.calls) if call.kind == "other"} - launching
    around = set[int]()
    for calls in threads.values():
        for at, c in enumerate(calls):
            if c not in gone:
                continue
            around |= {calls[at + 1]} & telling if at + 1 < len(calls) else set()
            for before in reversed(calls[:at]):
                if before not in telling:
                    break
                around.add(before)
    gone |= around
    kept = {
        c: min(told.takes.pause[c], _aside_ns(told, c, [name for name in ASIDES if name != "cold"]))
        for c in gone
    }
    return _without(told.takes, which, kept)


def without_stretch_of_work(told: Told, which: set[int]) -> Takes:
    """Some work is gone whole, with the calls that launched only it and those between two such calls."""
    takes, gone = told.takes, set[int]()
    thread: dict[int, list[int]] = {}
    for c, call in enumerate(told.calls):
        launched = {p in which for p, held in enumerate(told.launch) if held == c}
        gone |= {c} if launched == {True} else set()
        thread.setdefault(call.thread, []).append(c)
    launching = {held for held in told.launch if held is not None}
    for calls in thread.values():
        marks = [at for at, c in enumerate(calls) if c in launching]
        for a, b in pairwise(marks):
            gone |= set(calls[a:b]) if {calls[a], calls[b]} <= gone else set()

    return _without(takes, which, dict.fromkeys(gone, 0))


def _without(takes: Takes, which: set[int], gone: dict[int, int]) -> Takes:
    """Work and calls take no time and wait for nothing; `gone`: what is left of the pause before each."""

    def unless_gone(values: list[int]) -> list[int]:
        return [0 if p in which else value for p, value in enumerate(values)]

    return Takes(
        unless_gone(takes.duration),
        unless_gone(takes.gap),
        unless_gone(takes.arrival),
        unless_gone(takes.residual),
        takes.engine,
        [gone.get(c, ns) for c, ns in enumerate(takes.pause)],
        [0 if c in gone else ns for c, ns in enumerate(takes.own)],
        [[] if c in gone else one for c, one in enumerate(takes.waits)],
        [[] if c in gone else one for c, one in enumerate(takes.polled)],
    )


def with_filled_grids(told: Told, sm_count: int, kind: str) -> Takes:
    """Compute of a kind with fewer blocks than SMs takes blocks / SMs of its time."""
    return _with_shares(
        told, [_filled(work, sm_count) if work.kind == kind else 1 for work in told.story.works]
    )


def with_tensor_cores(told: Told, simt: set[int], tensor_frac: float) -> Takes:
    """GEMMs without tensor cores take the share that they would with them."""
    return _with_shares(told, [tensor_frac if p in simt else 1 for p in range(len(told.story.works))])


def with_both(told: Told, sm_count: int, simt: set[int], tensor_frac: float) -> Takes:
    """Filled grids and tensor cores: the share of a share."""
    works = enumerate(told.story.works)
    return _with_shares(
        told, [_filled(work, sm_count) * (tensor_frac if p in simt else 1) for p, work in works]
    )


def _filled(work: Work, sm_count: int) -> float:
    under = work.bucket == "compute" and 0 < work.blocks < sm_count
    return work.blocks / sm_count if under else 1


def _with_shares(told: Told, shares: list[float]) -> Takes:
    pairs = zip(told.takes.duration, shares, strict=True)
    return replace(told.takes, duration=[int(ns * share) for ns, share in pairs])
