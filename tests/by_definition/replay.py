"""The replay, a second time: from its definition, each moment the latest of those it comes after.

Slow and plain on purpose, and nothing in here comes from the program: no order of events is known, each
moment asks for the ones before it. Which work produces for which, and what launches and gaps usually take,
is given: the account has them from a second hand already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from statistics import median

US = 1_000
SMALL_COPY_BYTES = 64 * 1024
NAMED = ("host_comm", "gc", "lazy_init", "checkpoint", "data", "logging", "evaluation")
ASIDES = ("profiler", *NAMED, "cold", "single", "os_wait")  # an instant counts as the first of them
COLD = 50 * US
"""The cold start after a synchronising call is no longer."""
WORDS = {
    "Synchronize": "sync",
    "Module": "init",
    "Malloc": "allocate",
    "Free": "allocate",
    "Launch": "launch",
    "Memcpy": "copy",
}
"""What a call does, by the first word in its name."""


@dataclass(frozen=True)
class Call:
    """A call of a host thread; or an aside of it, by one of the names above."""

    thread: int
    start: int
    end: int
    name: str

    @property
    def kind(self) -> str:
        """What it does to its thread; the first word that fits."""
        if self.name.startswith(("cudaFree", "cuMemFree")) and "Async" not in self.name:
            return "free"
        return next((kind for word, kind in WORDS.items() if word in self.name), "other")


@dataclass(frozen=True)
class Work:
    """What ran on the GPU. `call`: place of the call that launched it; `blocks` of its grid."""

    start: int
    end: int
    stream: int
    bucket: str
    kind: str
    name: str
    call: int | None
    is_copy: bool
    size_bytes: int
    blocks: int

    @property
    def small(self) -> bool:
        """A small copy to the host."""
        return self.kind == "memcpy_d2h" and self.size_bytes <= SMALL_COPY_BYTES


@dataclass(frozen=True)
class Story:
    """A recording of one GPU; works in order of start, stream and launch, calls as noted.

    `behind`: of each work its producers; `room`: what held its SMs though launched later; `syncs`: of a call
    the stream that its row says it waits for; `usual_gap` and `usual_arrival` are this recording's. Only
    [since, until) is run again.
    """

    works: list[Work]
    calls: list[Call]
    behind: list[list[int]]
    room: list[int | None]
    syncs: dict[int, int]
    asides: list[Call]
    usual_gap: int
    usual_arrival: int
    since: int
    until: int


Moment = tuple[str, int]

Waits = list[list[tuple[int, int]]]
"""Of each call some work, and how long after its end the call goes on."""


@dataclass
class Takes:
    """What everything takes, by place of the work or of the call."""

    duration: list[int]
    gap: list[int]
    arrival: list[int]
    residual: list[int]
    engine: list[int | None]
    pause: list[int]
    own: list[int]
    waits: Waits
    polled: Waits


@dataclass
class Told:
    """A story with its host calls put in order, and what each takes."""

    story: Story
    calls: list[Call] = field(init=False)
    launch: list[int | None] = field(init=False)
    before: list[int | None] = field(init=False)
    own_before: list[int | None] = field(init=False)
    feeds: set[int] = field(default_factory=set)
    takes: Takes = field(init=False)

    def __post_init__(self) -> None:
        works = self.story.works
        self.inside = [w.end > self.story.since and w.start < self.story.until for w in works]
        self._read_calls()
        self.own_before = [self._last_of_thread(place) for place in range(len(self.calls))]
        self.before = [self._last_returned(place) for place in range(len(self.calls))]
        pause = [
            0 if b is None else max(0, call.start - self.calls[b].end)
            for call, b in zip(self.calls, self.before, strict=True)
        ]
        own = [call.end - call.start for call in self.calls]
        none: Waits = [[] for _ in self.calls]
        nothing, length = [0] * len(works), [work.end - work.start for work in works]
        engine = [self._engine(place) for place in range(len(works))]
        polled: Waits = [[] for _ in self.calls]
        self.takes = Takes(length, nothing, [*nothing], [*nothing], engine, pause, own, none, polled)
        self._poll()
        self._wait()
        self._late()

    # --- the host ---

    def _read_calls(self) -> None:
        story = self.story
        launches = [story.calls[w.call] for w in story.works if w.call is not None]
        inside = [story.calls[w.call].start for w, i in zip(story.works, self.inside, strict=True)
                  if i and w.call is not None]  # fmt: skip
        since, threads = min([story.since, *inside]) - 1, {call.thread for call in launches}
        mine = [p for p, call in enumerate(story.calls) if call.thread in threads]
        last = max((story.calls[p].end for p in mine if story.calls[p].end <= since), default=None)
        noted = [p for p in mine if story.calls[p].start < story.until
                 and (story.calls[p].end > since or story.calls[p].end == last)]  # fmt: skip
        outer = [p for p in noted if not any(self._holds(q, p) for q in noted)]
        outer.sort(key=lambda p: (story.calls[p].start, story.calls[p].end))
        self.calls, self.noted = [story.calls[p] for p in outer], outer
        self.moves = [call.end > since for call in self.calls]
        self.launch = [None if w.call is None else self._holder(w.call) for w in story.works]

    def _holds(self, outer: int, inner: int) -> bool:
        a, b = self.story.calls[outer], self.story.calls[inner]
        first = (a.start, -a.end, outer) < (b.start, -b.end, inner)
        return first and a.thread == b.thread and b.start < a.end

    def _holder(self, noted: int) -> int | None:
        asked = self.story.calls[noted]
        found = [p for p, call in enumerate(self.calls)
                 if call.thread == asked.thread and call.start <= asked.start <= call.end]  # fmt: skip
        return found[-1] if found else None

    def _last_of_thread(self, place: int) -> int | None:
        earlier = [p for p in range(place) if self.calls[p].thread == self.calls[place].thread]
        return earlier[-1] if earlier else None

    def _last_returned(self, place: int) -> int | None:
        """The threads hand over to each other: a call follows the last return, of equals its own thread's.

        One that only copies while others launch helps: it follows them, but nobody follows it.
        """
        own, begin, helpers = self.own_before[place], self.calls[place].start, self._helpers()
        back = [p for p in range(place) if self.calls[p].end <= begin]
        if self.calls[place].thread not in helpers:
            back = [p for p in back if self.calls[p].thread not in helpers]
        if not back:
            return own
        last = max(back, key=lambda p: (self.calls[p].end, p == own, p))
        return last

    def _helpers(self) -> set[int]:
        launched = [
            (self.story.calls[w.call].thread, w.bucket) for w in self.story.works if w.call is not None
        ]
        threads, launching = {t for t, _ in launched}, {t for t, bucket in launched if bucket != "copy"}
        return threads - launching if launching else set()

    def _poll(self) -> None:
        """A host that polls goes on equally soon after the same control kernel in most layers."""
        works, takes = self.story.works, self.takes
        usual_pause = median(takes.pause) if takes.pause else 0
        control = [p for p, w in enumerate(works) if w.kind == "ep_control" and w.call is not None]
        since = min((call.start for call in self.calls), default=0)
        until = max((call.end for call in self.calls), default=0)
        control = [p for p in control if since < works[p].end <= until]
        for name in {works[p].name for p in control}:
            mine = [p for p in control if works[p].name == name]
            found = []
            for p in mine:
                end = works[p].end
                call = next((c for c, call in enumerate(self.calls) if call.start >= end), None)
                last = None if call is None else self.before[call]
                if call is not None and last is not None and self.calls[last].end < end:
                    found.append((call, p, self.calls[call].start - end))
            if len(found) < 3:
                continue
            afters = [after for *_, after in found]
            usual = median(afters)
            hits = [after for after in afters if abs(after - usual) <= max(10 * US, 0.75 * usual)]
            steady = usual < 200 * US and len(hits) >= 0.8 * len(mine)
            pauses = [self.calls[call].start - self.calls[self.before[call] or 0].end for call, *_ in found]
            if not (known := "::notify_dispatch" in (works[mine[0]].name) and not self._called_within(mine)):
                steady = steady and apart(pauses) >= 2 * apart(afters)
            if not steady and not known:
                continue
            for call, p, after in found:
                late = after >= 200 * US
                wait = (p, min(afters) if late else after)
                takes.polled[call] = [min([*takes.polled[call], wait], key=lambda one: one[1])]
                if not late:
                    takes.pause[call] = min(takes.pause[call], after, int(usual_pause))

    def _called_within(self, mine: list[int]) -> bool:
        """Whether any call began after one of the kernels was launched, and before it ended."""
        works = self.story.works
        launches = [(self.story.calls[works[p].call or 0].end, works[p].end) for p in mine]
        return any(back <= call.start < end for back, end in launches for call in self.calls)

    # --- what calls wait for ---

    def _wait(self) -> None:
        works = self.story.works
        for place, call in enumerate(self.calls):
            if call.kind == "sync":
                awaited = self._awaited(place)
                if awaited and works[last := max(awaited, key=lambda p: works[p].end)].small:
                    self.feeds.add(last)
                self._let_wait(place, awaited)
            elif call.kind == "free":
                self._let_wait(place, self._last_of_streams(call))
        for p, work in enumerate(works):
            held = self.launch[p]
            if work.is_copy and held is not None and self.calls[held].kind == "copy":
                length = self.calls[held].end - self.calls[held].start
                if length > 20 * US and work.start <= self.calls[held].end + 50 * US:
                    self.takes.own[held] = 20 * US
                    self.takes.waits[held] = [(p, self.calls[held].end - work.end)]
        self._queue()

    def _let_wait(self, place: int, awaited: Iterable[int]) -> None:
        call, works = self.calls[place], self.story.works
        held = [p for p in awaited if works[p].end <= call.end + 50 * US]  # GPU clocks may run behind
        last = max((works[p].end for p in held), default=call.start)
        after = call.end - max(last, call.start)
        self.takes.own[place] = max(0, after)
        self.takes.waits[place] = [(p, after) for p in held]

    def _launched(self, p: int) -> int:
        work = self.story.works[p]
        return work.start if work.call is None else self.story.calls[work.call].start

    def _earlier(self, call: Call, stream: int | None = None) -> list[int]:
        """Work launched before a call, in order of launch."""
        works = self.story.works
        some = [p for p in range(len(works)) if self._launched(p) < call.start]
        return sorted(
            (p for p in some if stream in (None, works[p].stream)), key=lambda p: (self._launched(p), p)
        )

    def _last_of_streams(self, call: Call) -> list[int]:
        streams = {work.stream for work in self.story.works}
        return [some[-1] for stream in sorted(streams) if (some := self._earlier(call, stream))]

    def _awaited(self, place: int) -> list[int]:
        call, works = self.calls[place], self.story.works
        if "Device" in call.name or "Ctx" in call.name:
            return self._last_of_streams(call)
        named = self.story.syncs.get(self.noted[place])
        if named is not None:
            return self._earlier(call, named)[-1:]
        by_end = sorted(self._earlier(call), key=lambda p: (works[p].end, p))
        if within := [p for p in by_end if call.start < works[p].end <= call.end]:
            copies = [p for p in within if works[p].small and works[p].end >= call.end - 150 * US]
            return (copies or within)[-1:]
        if soon := [p for p in by_end if call.end < works[p].end <= call.end + 50 * US]:
            return soon[:1]
        mine = [p for p in self._earlier(call)[-64:] if self._thread(p) == call.thread]
        return mine[-1:]

    def _thread(self, p: int) -> int | None:
        work = self.story.works[p]
        return None if work.call is None else self.story.calls[work.call].thread

    def _queue(self) -> None:
        """A launch returns when the launch so many before it has ended; long ones tell how many.

        What was queued when the recording began has no launch in it, and comes first.
        """
        works, takes, last = self.story.works, self.takes, dict[int, int]()
        for p, held in enumerate(self.launch):
            if held is not None and (held not in last or works[p].end >= works[last[held]].end):
                last[held] = p
        launching = sorted(last)
        first = min((p for p, held in enumerate(self.launch) if held is not None), default=len(works))
        queued = [p for p in range(first) if works[p].call is None]
        order = queued + [last[c] for c in launching]
        length = [self.calls[c].end - self.calls[c].start for c in launching]
        usual = median(length) if length else 0
        by_end = sorted(range(len(order)), key=lambda at: (works[order[at]].end, at))
        released = {}
        for at, c in enumerate(launching, len(queued)):
            call = self.calls[c]
            ended = [one for one in by_end if works[order[one]].end <= call.end]
            if length[at - len(queued)] > 5 * usual and ended and at - ended[-1] >= 200:
                end = works[order[ended[-1]]].end
                if end > call.start and call.end - end <= 20 * US:
                    released[at] = ended[-1]
        depth = max((at - one for at, one in released.items()), default=1_022)
        for at, c in enumerate(launching, len(queued)):
            made_room = released.get(at, at - depth)
            if made_room >= 0 and self.calls[c].kind in ("launch", "copy"):
                work = order[made_room]
                after = self.calls[c].end - works[work].end
                if after >= 0:
                    if at in released and not takes.waits[c]:
                        takes.own[c] = min(length[at - len(queued)], int(usual))
                    takes.waits[c] = [*takes.waits[c], (work, after if at in released else 0)]

    # --- the GPU ---

    def producers(self, p: int) -> list[int]:
        """What had ended when it began, or precedes it on its stream."""
        works = self.story.works
        return [
            q for q in self.story.behind[p]
            if works[q].end <= works[p].start or (q < p and works[q].stream == works[p].stream)
        ]  # fmt: skip

    def _engine(self, p: int) -> int | None:
        """The copy before it in its direction, where it followed at once."""
        works = self.story.works
        same = [q for q in range(p) if works[q].bucket == "copy" == works[p].bucket]
        same = [q for q in same if works[q].kind == works[p].kind]
        return same[-1] if same and 0 <= works[p].start - works[same[-1]].end <= 5 * US else None

    def _late(self) -> None:
        story, takes = self.story, self.takes
        for p, work in enumerate(story.works):
            held, engine = self.launch[p], takes.engine[p]
            behind = self.producers(p) + ([] if engine is None else [engine])
            behind += [] if (one := self.held_up(p)) is None else [one]
            ready: list[tuple[int, int, list[int] | None]] = []  # when, of equals launch before gap, whose
            if behind:
                ended = max(story.works[q].end for q in behind)
                takes.gap[p] = min(work.start - ended, story.usual_gap)
                ready.append((ended + takes.gap[p], 0, takes.gap))
            if held is not None:
                call = self.calls[held]
                if self.in_its_call(p):
                    ready.append((call.start + self.into_call(p, takes.own[held]), 1, None))
                else:
                    takes.arrival[p] = min(work.start - call.end, story.usual_arrival)
                    ready.append((call.end + takes.arrival[p], 1, takes.arrival))
            if not ready:
                continue
            if self.anchor is not None:  # nothing began before the recording did
                ready.append((story.works[self.anchor].start, -1, None))
            last, _, latency = max(ready, key=lambda one: one[:2])
            rest = work.start - last
            if rest <= 2 * US and latency is not None:  # latencies vary
                latency[p] += rest
            else:
                takes.residual[p] = rest

    def held_up(self, p: int) -> int | None:
        """What held its SMs, where that had been launched by the time that it was ready itself."""
        holder = self.story.room[p]
        if holder is None:
            return None
        at: dict[Moment, int] = {("end", q): self.story.works[q].end for q in self.producers(p)}
        for q in (p, holder):
            if (call := self.launch[q]) is not None:
                at |= {("begin", call): self.calls[call].start, ("back", call): self.calls[call].end}
        return holder if self.lets_go_first(p, holder, self.takes, at) else None

    def lets_go_first(self, p: int, holder: int, takes: Takes, at: dict[Moment, int]) -> bool:
        ends = [at["end", q] for q in self.producers(p)]
        return self.launched_at(holder, takes, at) <= max([*ends, self.launched_at(p, takes, at)])

    def launched_at(self, p: int, takes: Takes, at: dict[Moment, int]) -> int:
        """When its launch call had returned, or had done what it takes to start it; long ago if not known."""
        if (call := self.launch[p]) is None:
            return -(1 << 62)
        if self.in_its_call(p):
            return at["begin", call] + self.into_call(p, takes.own[call])
        return at["back", call]

    def in_its_call(self, p: int) -> bool:
        """Work that began before its call returned, or for which its call waits, needs no return."""
        held = self.launch[p]
        assert held is not None
        waited_for = any(p == one for one, _ in self.takes.waits[held])
        return waited_for or self.story.works[p].start < self.calls[held].end

    def into_call(self, p: int, own: int) -> int:
        """How far into its launch call work began that did not wait for its return; not beyond own time."""
        held = self.launch[p]
        assert held is not None
        return min(max(0, self.story.works[p].start - self.calls[held].start), own)

    @property
    def anchor(self) -> int | None:
        """The window's first work stays where it is, where none came before it."""
        came_before = any(work.end <= self.story.since for work in self.story.works)
        return None if came_before else self.inside.index(True)


def apart(values: list[int]) -> float:
    """How far values are from their middle, on average."""
    middle = median(values) if values else 0
    return sum(abs(value - middle) for value in values) / len(values) if values else 0.0


def run_again(told: Told, takes: Takes) -> list[tuple[int, int]]:
    """When each work starts and ends. Raises CycleError where something comes after itself."""
    after: dict[Moment, list[tuple[Moment, int]]] = {}
    at: dict[Moment, int] = {}
    works, anchor = told.story.works, told.anchor
    for p, work in enumerate(works):
        after["end", p] = [(("start", p), takes.duration[p])]
        behind = [*told.producers(p), *(() if (one := takes.engine[p]) is None else (one,))]
        needs: list[tuple[Moment, int]] = [(("end", q), takes.gap[p] + takes.residual[p]) for q in behind]
        if (call := told.launch[p]) is not None:
            if told.in_its_call(p):
                into = told.into_call(p, takes.own[call])
                needs.append((("begin", call), into + takes.residual[p]))
            else:
                needs.append((("back", call), takes.arrival[p] + takes.residual[p]))
        if told.inside[p] and needs and p != anchor:
            after["start", p] = needs
        else:
            at["start", p] = work.start
            at |= {} if told.inside[p] else {("end", p): work.end}
    for c, call_ in enumerate(told.calls):
        if not told.moves[c]:
            at |= {("begin", c): call_.start, ("back", c): call_.end}
            continue
        ends: list[tuple[Moment, int]] = [(("end", p), more) for p, more in takes.waits[c]]
        after["back", c] = [(("begin", c), takes.own[c]), *ends]
        if (last := told.before[c]) is None:
            at["begin", c] = call_.start
            continue
        after["begin", c] = [(("back", last), takes.pause[c])]
        after["begin", c] += [(("end", p), more) for p, more in takes.polled[c]]
        if (own := told.own_before[c]) is not None:
            after["begin", c].append((("back", own), 0))
    first = {moment: [one for one, _ in needs] for moment, needs in after.items()}
    held = {
        p: one for p in range(len(works)) if ("start", p) in after and (one := told.held_up(p)) is not None
    }
    for p, holder in held.items():
        call = told.launch[holder]
        first["start", p] += [("end", holder), *(() if call is None else (("begin", call), ("back", call)))]
    for moment in TopologicalSorter(first).static_order():
        if moment in at:
            continue
        at[moment] = max(at[one] + more for one, more in after[moment])
        if moment[0] == "start" and anchor is not None:
            at[moment] = max(at[moment], works[anchor].start + takes.residual[moment[1]])
        if moment[0] == "start" and (p := moment[1]) in held and told.lets_go_first(p, held[p], takes, at):
            at[moment] = max(at[moment], at["end", held[p]] + takes.gap[p] + takes.residual[p])
    return [(at["start", p], at["end", p]) for p in range(len(works))]
