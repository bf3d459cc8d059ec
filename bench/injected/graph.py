"""Which times of a recording follow from which, with what lag; and all times, where some of them change.

A row has two points: 2 * index is its start, 2 * index + 1 its end. Of the points that one waits for,
the last to allow it keeps the recorded lag, the others the lag that is usual of their kind: when those come
later, they hold it up. Not carried: what other ranks do, limits of queues and memory, clocks under load.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final

from bench.injected.read import COPY, Event, Key, Recording, Row

LEAST_GAP_NS: Final = 50_000
"""A thread that does nothing for so long may wait for another."""
COVERED_FRAC: Final = 0.5
RETURN_NS: Final = 20_000
"""A call that waited comes back, and a thread goes on after another, within this."""
STAGED_NS: Final = 100_000
"""A copy of pageable memory may end so long after its call, which waited for the GPU nevertheless."""
CLOCKS_NS: Final = 2_000
NEAR_NS: Final = 10_000
"""A kernel that begins so soon after the end of one of another stream waited for it."""
LAUNCH_NS: Final = 5_000
WAITS: Final = ("DeviceSynchronize", "StreamSynchronize", "EventSynchronize", "CtxSynchronize")


def start(index: int) -> int:
    """The point at which a row starts."""
    return 2 * index


def end(index: int) -> int:
    """The point at which a row ends."""
    return 2 * index + 1


@dataclass
class Edit:
    """What was put in, by points: enough to take it out again of the recording that it made."""

    delays: list[tuple[int, int]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    waits: list[tuple[int, dict[int, int]]] = field(default_factory=list)


class Graph:
    """The points of a recording, before each those it waits for with lags, and the rows put in so far."""

    def __init__(self, recording: Recording) -> None:
        count = 2 * len(recording.events)
        self.recording = recording
        self.at: list[int | None] = [None] * count
        self.before: list[dict[int, int]] = [{} for _ in range(count)]
        self.next: dict[int, int] = {}
        self.held: dict[int, int] = {}
        self.latency_ns, self.gap_ns = LAUNCH_NS, 1_000
        self.added: list[Event] = []
        self.riders: list[tuple[Event, int, int, int]] = []
        self.renamed: dict[int, str] = {}
        self.edit = Edit()

    def copy(self) -> Graph:
        """One to edit: the dictionaries inside are replaced, never changed."""
        other = Graph.__new__(Graph)
        other.__dict__ = dict(self.__dict__)
        other.before, other.next, other.added, other.edit = list(self.before), dict(self.next), [], Edit()
        other.riders, other.renamed = [], {}
        other.at = list(self.at)
        return other

    def delay(self, point: int, by: int) -> None:
        """The point comes later after all it waits for."""
        self.before[point] = {one: lag + by for one, lag in self.before[point].items()}
        self.edit.delays.append((point, by))

    def wait(self, point: int, on: int, lag: int) -> None:
        """The point waits for one more."""
        self.edit.waits.append((point, self.before[point]))
        self.before[point] = {**self.before[point], on: max(lag, self.before[point].get(on, lag))}

    def insert(self, event: Event, after: int, gap: int, duration: int) -> int:
        """A new row on a thread or stream, after this point; what came next there waits for its end."""
        index = len(self.at) // 2
        self.at += [None, None]
        self.before += [{after: gap}, {start(index): duration}]
        self.added.append(event)
        self.edit.rows.append(index)
        following = self.next.get(after)
        if following is not None:
            self._instead(following, after, end(index))
            self.next[end(index)] = following
        self.next[after] = start(index)
        return index

    def work_added(self) -> list[int]:
        """The GPU rows put in so far."""
        first = len(self.recording.events)
        return [first + at for at, event in enumerate(self.added) if "stream" in event["args"]]

    def _instead(self, point: int, old: int, new: int) -> None:
        waited = dict(self.before[point])
        if old in waited:
            waited[new] = waited.pop(old)
        self.before[point] = waited

    def take_over(self, instead: dict[int, int]) -> None:
        """All that waits for some points waits for others, but for the rows of those."""
        for point, waited in enumerate(self.before):
            for old in [one for one in waited if one in instead and instead[one] // 2 != point // 2]:
                self._instead(point, old, instead[old])

    def take_out(self, edit: Edit) -> None:
        """Undo an edit in the graph of the recording that it made."""
        for point, by in edit.delays:
            held = self.held.get(point)
            self.before[point] = {
                one: lag - by if one == held or len(self.before[point]) == 1 else lag
                for one, lag in self.before[point].items()
            }
        for point, waited in reversed(edit.waits):
            self.before[point] = waited
        instead: dict[int, int] = {}
        kept = set(edit.rows)
        last = {following: one for one, following in self.next.items()}
        for index in edit.rows:
            one = last.get(start(index))
            while one is not None and one // 2 in kept:
                one = last.get(start(one // 2) if one % 2 else one)
            if one is not None:
                instead[end(index)] = instead[start(index)] = one
        for point, waited in enumerate(self.before):
            if point // 2 not in kept and any(one in instead for one in waited):
                self.before[point] = {instead.get(one, one): lag for one, lag in waited.items()}

    def times(self) -> list[int | None]:
        """The earliest time of every point, in ns: None for rows that follow others."""
        after: dict[int, list[int]] = defaultdict(list)
        missing = [len(waited) for waited in self.before]
        for point, waited in enumerate(self.before):
            for one in waited:
                after[one].append(point)
        found = list(self.at)
        ready = [point for point, count in enumerate(missing) if count == 0]
        done = 0
        while ready:
            point = ready.pop()
            done += 1
            waited = self.before[point]
            if waited:
                found[point] = max((found[one] or 0) + lag for one, lag in waited.items())
            for one in after.get(point, ()):
                missing[one] -= 1
                if missing[one] == 0:
                    ready.append(one)
        if done != len(missing):
            raise ValueError("the recorded order contradicts itself")
        return found


@dataclass
class _Building:
    """The graph as it grows: candidates are points that one may wait for, with the usual lag."""

    graph: Graph
    at: dict[int, int] = field(default_factory=dict)
    candidates: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    points: dict[Key, list[int]] = field(default_factory=dict)

    def may_wait(self, point: int, on: int, usual: int) -> None:
        self.candidates[point].append((on, usual))


def build(recording: Recording) -> Graph:
    """The graph of a recording: its own times come back from it to the nanosecond."""
    building = _Building(Graph(recording))
    _threads(building)
    _handovers(building)
    _streams(building)
    _between_streams(building)
    _blocking(building)
    return _settled(building)


def _threads(building: _Building) -> None:
    """Each point of a thread after the one before."""
    for place, rows in building.graph.recording.host.items():
        points: list[tuple[int, int, int, int, int]] = []
        for row in rows:
            long = row.end - row.start
            lasts = building.graph.recording.events[row.index].get("ph") == "X"
            points.append((row.start, 1, -long, row.index, start(row.index)))
            if lasts:
                points.append(
                    (row.end, 0 if long else 1, long, row.index if not long else -row.start, end(row.index))
                )
        points.sort()
        building.at.update((point, at) for at, _, _, _, point in points)
        order = building.points[place] = [point for *_, point in points]
        for one, other in pairwise(order):
            building.may_wait(other, one, 0 if other // 2 != one // 2 else LAUNCH_NS)
            building.graph.next[one] = other


def _handovers(building: _Building) -> None:
    """A thread that stood still while another worked goes on after it."""
    times = {place: [building.at[point] for point in points] for place, points in building.points.items()}
    for place, points in building.points.items():
        for number, point in enumerate(points):
            now = times[place][number]
            earlier = times[place][number - 1] if number else None
            if earlier is not None and now - earlier < LEAST_GAP_NS:
                continue
            for other, theirs in times.items():
                low = bisect_right(theirs, earlier) if earlier is not None else 0
                high = bisect_right(theirs, now)
                if other == place or high - low < 2:
                    continue
                if earlier is None or theirs[high - 1] - theirs[low] >= COVERED_FRAC * (now - earlier):
                    building.may_wait(point, building.points[other][high - 1], RETURN_NS)


def _streams(building: _Building) -> None:
    """Each GPU row after its launch and after the row before it on its stream."""
    recording, graph = building.graph.recording, building.graph
    for row in recording.gpu:
        building.at[start(row.index)], building.at[end(row.index)] = row.start, row.end
        building.may_wait(end(row.index), start(row.index), row.end - row.start)
    pairs = [pair for rows in recording.on_gpu.values() for pair in zip([None, *rows], rows, strict=False)]
    launched = [
        (one, row, recording.call_of[row.index]) for one, row in pairs if row.index in recording.call_of
    ]
    most = max(recording.on_gpu.values(), key=len)[0].place
    idle = [
        row.start - call.start
        for one, row, call in launched
        if row.place == most and (one is None or one.end <= call.start)
    ]
    queued = [row.start - one.end for one, row, call in launched if one and call.end + 30_000 < one.end]
    graph.latency_ns = max(0, int(median(idle))) if idle else LAUNCH_NS
    graph.gap_ns = max(0, int(median(queued))) if queued else 1_000
    for _, row, call in launched:
        building.may_wait(start(row.index), start(call.index), graph.latency_ns)
    for one, row in pairs:
        if one is not None:
            building.may_wait(start(row.index), end(one.index), graph.gap_ns)
            graph.next[end(one.index)] = start(row.index)


def _between_streams(building: _Building) -> None:
    """Rows after a call for it, and rows that begin just after one of another stream ended, wait for that."""
    recording, graph = building.graph.recording, building.graph
    if len(recording.on_gpu) < 2:
        return
    orders = _launch_order(recording)
    ends = {place: sorted((row.end, row.index) for row in rows) for place, rows in recording.on_gpu.items()}
    waiting: dict[Key, int] = {}
    for call in recording.calls:
        if "StreamWaitEvent" in call.name:
            waiting[call.place] = call.start
        works = recording.work_of.get(call.index)
        if not works:
            continue
        since, row = waiting.pop(call.place, None), works[0]
        for place in orders:
            if place == row.place or place[0] != row.place[0]:
                continue
            if since is not None:
                other = _last_before(orders[place], since)
                if other is not None and other.end <= row.start + CLOCKS_NS:
                    building.may_wait(start(row.index), end(other.index), graph.gap_ns)
            found = bisect_right(ends[place], (row.start, 1 << 62)) - 1
            known = max(building.at[one] + usual for one, usual in building.candidates[start(row.index)])
            if (
                found >= 0
                and row.start - ends[place][found][0] < NEAR_NS
                and row.start - known > graph.gap_ns
            ):
                building.may_wait(start(row.index), end(ends[place][found][1]), graph.gap_ns)


def _launch_order(recording: Recording) -> dict[Key, tuple[list[int], list[Row]]]:
    """Of each stream when its rows were launched, and the rows in that order."""
    rows: dict[Key, list[tuple[int, int, Row]]] = defaultdict(list)
    for row in recording.gpu:
        if row.index in recording.call_of:
            rows[row.place].append((recording.call_of[row.index].start, row.start, row))
    ordered = {place: sorted(found, key=lambda one: one[:2]) for place, found in rows.items()}
    return {place: ([one[0] for one in found], [one[2] for one in found]) for place, found in ordered.items()}


def _last_before(order: tuple[list[int], list[Row]], time: int) -> Row | None:
    """The last row of a stream that was launched before this time."""
    found = bisect_left(order[0], time) - 1
    return order[1][found] if found >= 0 else None


def _blocking(building: _Building) -> None:
    """Calls that wait for the GPU come back after the work they wait for."""
    recording = building.graph.recording
    orders = _launch_order(recording)
    for call in recording.calls:
        if end(call.index) not in building.at:
            continue
        if call.name.endswith(WAITS) or (call.name.endswith("Free") and call.end - call.start > RETURN_NS):
            for order in orders.values():
                other = _last_before(order, call.start)
                near = other is not None and call.end - other.end < 2 * RETURN_NS
                if (
                    other is not None
                    and other.end <= call.end + CLOCKS_NS
                    and (near or call.name.endswith(WAITS))
                ):
                    building.may_wait(end(call.index), end(other.index), RETURN_NS)
        for row in recording.work_of.get(call.index, ()) if "emcpy" in call.name else ():
            staged = STAGED_NS if call.end - call.start > 4 * STAGED_NS else 0
            if row.end <= call.end + staged and COPY.match(row.name) and "Device -> Device" not in row.name:
                building.may_wait(end(call.index), end(row.index), RETURN_NS)


def _settled(building: _Building) -> Graph:
    """Lags of all candidates: as recorded of the last to allow a point, of others no more than usual."""
    graph, at = building.graph, building.at
    for point, time in at.items():
        graph.at[point] = time
        usual = {
            one: min(time - at[one], lag) for one, lag in building.candidates.get(point, ()) if one in at
        }
        if not usual:
            continue
        held = max(usual, key=lambda one: (at[one] + usual[one], one))
        graph.held[point] = held
        graph.before[point] = {**usual, held: time - at[held]}
    return graph
