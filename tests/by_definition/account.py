"""The account of time without compute, a second time: from its definition, one moment after the other.

Slow and plain on purpose, and nothing in here comes from the program: between two moments at which anything
begins or ends nothing changes, so each such stretch is asked once why no compute ran.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

US = 1_000
SMALL_COPY_BYTES, QUEUE, LONG_AGO = 64 * 1024, 1_000, -(1 << 62)
COLD = 50 * US
"""The cold start after a synchronising call is no longer."""


@dataclass(frozen=True)
class Call:
    """What a host thread called; or an aside, what it is known to have done: profiler, os_wait, gc, data."""

    thread: int
    start: int
    end: int
    name: str


@dataclass(frozen=True)
class Work:
    """What ran on the GPU; `bucket` is compute, comm or copy, `call` the place of the launching call."""

    start: int
    end: int
    stream: int
    bucket: str
    kind: str
    call: int | None
    size_bytes: int = 0

    def runs(self, t: int) -> bool:
        return self.start <= t < self.end


@dataclass(frozen=True)
class Mark:
    """An event recorded on a stream, or a stream's wait for it, by the place of the call that said so."""

    call: int
    stream: int
    event: int
    sync_id: int | None = None


@dataclass
class Story:
    """A recording of one GPU. `works` stand in order of start, stream, and launch."""

    works: list[Work]
    calls: list[Call]
    records: list[Mark] = field(default_factory=list)
    waits: list[Mark] = field(default_factory=list)
    asides: list[Call] = field(default_factory=list)
    arrival_limit: int = 5 * US
    gap_limit: int = 5 * US

    def launch(self, work: Work) -> Call | None:
        return None if work.call is None else self.calls[work.call]

    def launched(self, work: Work) -> int:
        """When its launch began; if that was not recorded, it was at its start at the latest."""
        return work.start if work.call is None else self.calls[work.call].start

    def ready(self, work: Work) -> int:
        """L: its launch had returned, or it had started."""
        return LONG_AGO if work.call is None else min(self.calls[work.call].end, work.start)

    def compute(self) -> list[Work]:
        return [work for work in self.works if work.bucket == "compute" and work.end > work.start]


def clocks_agree(story: Story) -> bool:
    """Whether the clocks are one: by some work near its launch or some call just after its work.

    Or nothing speaks against it: none starts before its launch, and there are few, or the host stays ahead.
    """
    launched = [(work, call) for work in story.works if (call := story.launch(work))]
    if any(
        -50 * US <= work.start - at <= 50 * US for work, call in launched for at in (call.start, call.end)
    ):
        return True
    for call in story.calls:
        for stream in {work.stream for work, _ in launched}:
            before = [(own.start, work.end) for work, own in launched if work.stream == stream]
            before = [one for one in before if one[0] < call.start]
            ended = max(before)[1] if before and "Synchronize" in call.name else call.end + 1
            if max(call.start, call.end - 50 * US) <= ended <= call.end:
                return True
    least = min(work.start - call.start for work, call in launched)
    return least >= 0 and (len(launched) < 32 or stays_ahead(story, least))


def stays_ahead(story: Story, later: int) -> bool:
    """Whether at most 1 % of the time would be spent waiting for launches that came so much later."""
    late, idle_since = 0, min(work.start for work in story.works)
    for work in sorted(story.compute(), key=lambda work: work.start):
        if work.start > idle_since:
            late += max(0, story.launched(work) + later - idle_since)
        idle_since = max(idle_since, work.end)
    return 100 * late <= max(work.end for work in story.works) - min(work.start for work in story.works)


def account(story: Story, windows: list[tuple[int, int]]) -> tuple[Counter[tuple[str, str]], int]:
    """Nanoseconds by reason, over the windows; and how much of launch_starved lay under a producer."""
    total, masked_ns = Counter[tuple[str, str]](), 0
    for t, until in stretches(story, windows):
        reason = why(story, t)
        total[reason] += until - t
        if reason[0] == "launch_starved":
            x = nodes_ending(story, t)[0]
            masked = any(work.runs(t) for work in [*producers(story, x), *outlasted(story, x, t)])
            masked_ns += (until - t) * masked
    return total, masked_ns


def stretches(story: Story, windows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The time without compute, cut wherever anything begins or ends."""
    moments = {t for window in windows for t in window}
    spans: list[Work | Call] = [*story.works, *story.calls, *story.asides]
    moments |= {t for span in spans for t in (span.start, span.end)}
    # where a latency becomes a stall
    moments |= {t + limit for t in moments for limit in (story.arrival_limit, story.gap_limit, COLD)}
    return [
        (t, until)
        for t, until in pairwise(sorted(moments))
        if any(a <= t < b for a, b in windows) and not any(work.runs(t) for work in story.compute())
    ]


def why(story: Story, t: int) -> tuple[str, str]:
    """Why no compute runs at t."""
    nodes = nodes_ending(story, t)
    if not nodes:
        return ("trailing", "")
    if nodes[0].start <= t:
        busy = [work for work in nodes if work.runs(t)]
        return blocked(busy) if busy else ("graph_opaque", "")
    return (of_host if t < story.ready(nodes[0]) else of_gpu)(story, nodes[0], t)


def nodes_ending(story: Story, t: int) -> list[Work]:
    """The compute kernel that ends the time without compute around t, with the graph it is a node of."""
    x = next((work for work in story.compute() if t < work.start), None)  # of equals the first
    return replay(story, x) if x else []


def replay(story: Story, x: Work) -> list[Work]:
    """What the same call launched: the nodes of a graph, or the kernel alone."""
    return [work for work in story.works if work is x or (x.call is not None and work.call == x.call)]


def blocked(busy: list[Work]) -> tuple[str, str]:
    return ("blocking", max(busy, key=lambda work: work.end).kind)


# --- while the launch has not returned: the host ---


def of_host(story: Story, x: Work, t: int) -> tuple[str, str]:
    thread = deciding_thread(story, x, t)
    inside = calls_around(story, thread, t)
    busy = [work for call in inside for work in waited_for(story, call) if work.runs(t)]
    return blocked(busy) if busy else ("launch_starved", cause(story, thread, inside, t))


def calls_around(story: Story, thread: int, t: int) -> list[Call]:
    return [call for call in story.calls if call.thread == thread and call.start <= t < call.end]


def outlasted(story: Story, x: Work, t: int) -> list[Work]:
    """The communication that ended last within a call around t, which did not wait for it."""
    inside = calls_around(story, deciding_thread(story, x, t), t)
    apart = [work for call in inside for work in ended_within(story, call) if runs_apart(story, work, call)]
    return [max(apart, key=lambda work: work.end)] if apart else []


def deciding_thread(story: Story, x: Work, t: int) -> int:
    """The launching thread; until the last call before the launch returned, that call's thread."""
    threads = {story.calls[work.call].thread for work in story.works if work.call is not None}
    assert x.call is not None
    own = story.calls[x.call]
    before = [call for call in story.calls if call.thread in threads and call.end <= own.start]
    last = max(reversed(before), key=lambda call: call.end, default=own)  # of equals the last noted
    return last.thread if t < last.end else own.thread


def waited_for(story: Story, call: Call) -> list[Work]:
    """Work without compute that a call waits for: what ended within it, and its own copy."""
    own = [work for work in story.works if story.launch(work) is call and work.bucket == "copy"]
    ended = [work for work in ended_within(story, call) if work.bucket != "compute"]
    if own:  # what ended after its own copy did not keep it
        ended = [work for work in ended if work.end <= max(one.end for one in own)]
    ended = [work for work in ended if not runs_apart(story, work, call)]
    return ended + own if waits(story, call) else []


def runs_apart(story: Story, work: Work, call: Call) -> bool:
    """Communication on a stream of its own holds nobody who synchronises with another one.

    Unless some stream was made to wait after its launch: the other one may.
    """
    mixed = {other.stream for other in story.works if other.bucket != "comm"}
    told = any(
        "WaitEvent" in other.name and story.launched(work) <= other.start < call.start
        for other in story.calls
    )
    alone = work.bucket == "comm" and work.stream not in mixed
    return "StreamSynchronize" in call.name and alone and not told


def waits(story: Story, call: Call) -> bool:
    frees = call.name.startswith(("cudaFree", "cuMemFree")) and "Async" not in call.name
    long_copy = "Memcpy" in call.name and call.end - call.start > 20 * US
    in_flight = sum(story.launched(work) < call.start < work.end for work in story.works)
    full = "Launch" in call.name and in_flight >= QUEUE
    return "Synchronize" in call.name or frees or long_copy or full


def ended_within(story: Story, call: Call) -> list[Work]:
    """Work launched before a call that ended within it."""
    return [work for work in story.works if story.launched(work) < call.start < work.end <= call.end]


def cause(story: Story, thread: int, inside: list[Call], t: int) -> str:
    told = {a.name for a in story.asides if a.thread == thread and a.start <= t < a.end}
    if inside:
        innermost = max(inside, key=lambda call: (call.start, -call.end))
        return "profiler" if "profiler" in told else of_call(story, innermost)
    for evident in ("profiler", "gc", "lazy_init", "checkpoint", "data", "logging", "evaluation"):
        if evident in told:
            return evident
    began = max((work.end for work in story.compute() if work.end <= t), default=LONG_AGO)
    syncs = [call for call in story.calls if call.thread == thread and "Synchronize" in call.name]
    returned = [call for call in syncs if began <= call.end <= t < call.end + COLD]
    if returned:  # the cold start goes by the name of the call that returned last
        return of_call(story, max(returned, key=lambda call: call.end))
    return "os_wait" if "os_wait" in told else "python"


def of_call(story: Story, call: Call) -> str:
    if "Synchronize" in call.name:
        ended = ended_within(story, call)
        last = [
            work
            for work in ended
            if work.end == max(other.end for other in ended if other.stream == work.stream)
        ]
        small = any(work.kind == "memcpy_d2h" and work.size_bytes <= SMALL_COPY_BYTES for work in last)
        return "token_count_sync" if small else "sync"
    if any(word in call.name for word in ("Free", "Malloc", "cuMem")) and "Memcpy" not in call.name:
        return "allocator"
    if any(word in call.name for word in ("Module", "Library", "Capture", "Instantiate")):
        return "lazy_init"
    return "launch"


# --- after the launch has returned: the GPU ---


def producers(story: Story, x: Work) -> list[Work]:
    """The previous work on x's stream, and what recorded events make its stream wait for."""
    found = [work for work in story.works[: story.works.index(x)] if work.stream == x.stream][-1:]
    for wait in story.waits:
        said = story.calls[wait.call].start
        there = [work for work in story.works if work.stream == wait.stream and work.call is not None]
        held = [work for work in there if said <= story.launched(work)]
        if held and min(held, key=story.launched) is x:
            found += awaited_by(story, wait)
    return [work for work in found if work is not x and work.end <= x.start]


def awaited_by(story: Story, wait: Mark) -> list[Work]:
    """The last work launched before the record of the event; without a recorded launch it was the first."""
    said = story.calls[wait.call].start
    records = [
        mark
        for mark in story.records
        if mark.sync_id == wait.sync_id
        and (mark.sync_id is not None or (mark.event == wait.event and story.calls[mark.call].start < said))
    ]
    if not records:
        return []
    record = max(records, key=lambda mark: story.calls[mark.call].start)
    noted, there = story.calls[record.call].start, [w for w in story.works if w.stream == record.stream]
    launched = [work for work in there if (call := story.launch(work)) and call.start < noted]
    return (launched or [work for work in there if work.call is None])[-1:]


def of_gpu(story: Story, x: Work, t: int) -> tuple[str, str]:
    behind = producers(story, x)
    if busy := [work for work in behind if work.runs(t)]:
        return blocked(busy)
    if to_come := [work for work in behind if work.start > t]:
        return of_gpu(story, max(to_come, key=lambda work: work.end), t)
    launched, ended = story.ready(x), max((work.end for work in behind), default=LONG_AGO)
    reason, limit = ("arrival", story.arrival_limit) if launched >= ended else ("kernel_gap", story.gap_limit)
    return ("launch_latency", reason) if t < max(launched, ended) + limit else ("dependency_stalled", "")
