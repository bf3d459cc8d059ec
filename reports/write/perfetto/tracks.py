"""Tracks of the Trace Event Format: processes, slices, arrows, and steps of a rank written as such.

Google's "Trace Event Format"
(docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): `X` complete events, `C`
counters, `M` metadata, `s` and `f` the ends of an arrow; `ts` and `dur` in microseconds. On one
thread events nest or lie apart: ui.perfetto.dev drops what overlaps (perfetto.dev/docs/faq), so
what overlaps gets a further track.

A step has host threads, why no compute ran, streams, and arrows from call to kernel.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, count, repeat
from typing import Any, Final

from reports.content.blocks import Headline
from reports.content.names import optional, plain, when
from reports.rows import each, those
from traces.frozen import frozen
from traces.missing import known
from traces.sections.tables import HostLane, Lane, Timeline
from traces.spelling import printable
from traces.steps.selection import seconds

_NAME, _TEXT = 300, 2_000
"""Widths at which names and texts are cut in the middle; the document has them whole."""
_EXACT_NS: Final = 2**50
"""Below it (13 days) the doubles next to a time in microseconds lie within a quarter of a
nanosecond."""
_TIDS: Final = 100_000
"""Thread numbers of a process: more than it can have tracks, and none is the number of a
process."""
_NOTHING: Final[tuple[object, ...]] = (None, "", [], {})

Args = Mapping[str, Any]
"""Plain values of the document by its keys."""


@frozen
class Slice:
    """A stretch on a track, in ns of the trace's clock; `launches` and `launched_by` number its
    arrows.
    """

    start_ns: int
    end_ns: int
    name: str
    category: str
    args: Args = field(default_factory=dict)
    launches: tuple[int, ...] = ()
    launched_by: int = 0


@frozen
class Track:
    """A named row of slices, in any order; where they overlap it becomes several.

    `nests`: a slice within another belongs to it and stays in its row.
    """

    name: str
    slices: Sequence[Slice]
    nests: bool = False


@frozen
class Counter:
    """Durations that change at instants: `(at_ns, {series: ns})`, in order; written in ms,
    exactly.
    """

    name: str
    points: Sequence[tuple[int, Mapping[str, int]]]


@frozen
class Process:
    """A named group of tracks; they stand in the order given."""

    name: str
    tracks: Sequence[Track]
    counters: Sequence[Counter] = ()


def verdict(first: Headline, start_ns: int, end_ns: int, category: str) -> Track:
    """The one sentence of a page over a stretch, and what it rests on."""
    name = f"{first.label}: {plain(first.whole)}"
    because = {"because": [*map(plain, first.under)]}
    return Track("verdict", [Slice(start_ns, end_ns, name, category, because)])


def span(start_ns: int, end_ns: int) -> Args:
    """A stretch as people read it."""
    return {"start": seconds(start_ns), "end": seconds(end_ns)}


def render_events(processes: Sequence[Process], about: Args) -> str:
    """The file's text, one event a line, ending in a line break; `about` becomes `otherData`.

    Times stay on the trace's clock where a reader's doubles hold them to the nanosecond. Where they
    do not (UNIX times), or where a time is negative, they begin at the first one, and `origin_ns`
    of `otherData` is what to add.
    """
    times = list[int]()
    for process in processes:
        for slice_ in chain.from_iterable(each(process.tracks, "slices")):
            times += (slice_.start_ns, slice_.end_ns)
        for at_ns, _ in chain.from_iterable(each(process.counters, "points")):
            times.append(at_ns)
    fits = min(times, default=0) >= 0 and max(times, default=0) < _EXACT_NS
    origin_ns = 0 if fits else min(times)
    other = _json({**about, "origin_ns": str(origin_ns)})
    events = map(_process, count(1), processes, repeat(origin_ns))
    listed = ",\n".join(chain.from_iterable(events))
    return f'{{"displayTimeUnit":"ns","otherData":{other},"traceEvents":[\n{listed}\n]}}\n'


def microseconds(ns: int) -> str:
    """A time in microseconds, exact: `1234.567`.

    Perfetto reads a double, multiplies it by 1000 and cuts off what is behind the point: that takes
    a nanosecond from one time in 170. Such a time gets the digits of the next double, which loses
    none.
    """
    sign, absolute_ns = ("-", -ns) if ns < 0 else ("", ns)
    exact = f"{sign}{absolute_ns // 1000}.{absolute_ns % 1000:03d}"
    double = float(exact)
    if absolute_ns >= _EXACT_NS or int(double * 1000.0) == ns:
        return exact
    return repr(math.nextafter(double, math.copysign(math.inf, ns)))


def rows(slices: Iterable[Slice], nests: bool = False) -> list[list[Slice]]:
    """Slices on as few rows as they need to lie apart, in order of start; each on the first that is
    free.

    Where they may nest, a row is also free for what lies within the slice that is open there.
    """
    placed = list[list[Slice]]()
    open_ends = list[list[int]]()
    outer_first = -1 if nests else 1
    for placed_slice in sorted(
        slices, key=lambda slice_: (slice_.start_ns, outer_first * slice_.end_ns)
    ):
        for row, ends in zip(placed, open_ends, strict=True):
            while ends and ends[-1] <= placed_slice.start_ns:
                ends.pop()
            if not ends or (nests and placed_slice.end_ns <= ends[-1]):
                row.append(placed_slice)
                ends.append(placed_slice.end_ns)
                break
        else:
            placed.append([placed_slice])
            open_ends.append([placed_slice.end_ns])
    return placed


def _process(pid: int, process: Process, origin_ns: int) -> Iterator[str]:
    yield _named(pid, 0, "process_name", {"name": printable(process.name, _NAME)})
    yield _named(pid, 0, "process_sort_index", {"sort_index": pid})
    tid = pid * _TIDS
    for track in process.tracks:
        for place, row in enumerate(rows(track.slices, track.nests), start=1):
            tid += 1
            name = track.name if place == 1 else f"{track.name} ({place})"
            yield _named(pid, tid, "thread_name", {"name": printable(name, _NAME)})
            yield _named(pid, tid, "thread_sort_index", {"sort_index": tid})
            for slice_ in row:
                yield from _slice(pid, tid, slice_, origin_ns)
    for counter in process.counters:
        head = f'{{"ph":"C","pid":{pid},"name":{_json(counter.name)}'
        for at_ns, values in counter.points:
            shown = ",".join(
                f"{_json(key)}:{ns // 10**6}.{ns % 10**6:06d}" for key, ns in values.items()
            )
            yield f'{head},"ts":{microseconds(at_ns - origin_ns)},"args":{{{shown}}}}}'


def _slice(pid: int, tid: int, slice_: Slice, origin_ns: int) -> Iterator[str]:
    """A slice, and the ends of arrows at it: both bind to the slice that is open at its start."""
    at = f'"pid":{pid},"tid":{tid},"ts":{microseconds(slice_.start_ns - origin_ns)}'
    length = microseconds(slice_.end_ns - slice_.start_ns)
    name, category = _json(printable(slice_.name, _NAME)), _json(printable(slice_.category, _NAME))
    args = optional(',"args":{}', slice_.args or None, _json)
    yield f'{{"ph":"X",{at},"dur":{length},"name":{name},"cat":{category}{args}}}'
    at += ',"name":"launch","cat":"launch"'
    for arrow in slice_.launches:
        yield f'{{"ph":"s","id":{arrow},{at}}}'
    if slice_.launched_by:
        yield f'{{"ph":"f","bp":"e","id":{slice_.launched_by},{at}}}'


def _named(pid: int, tid: int, what: str, args: Args) -> str:
    thread = when(tid, f',"tid":{tid}')
    return f'{{"ph":"M","pid":{pid}{thread},"name":"{what}","args":{_json(args)}}}'


def _json(value: Any) -> str:
    return json.dumps(_harmless(value), separators=(",", ":"), allow_nan=False)


def _harmless(value: Any) -> Any:
    """Without what is empty or not told, and without texts that a terminal or a reader would act
    on.
    """
    if isinstance(value, Mapping):
        return {
            printable(key, _NAME): _harmless(part)
            for key, part in value.items()
            if part not in _NOTHING
        }
    if isinstance(value, list | tuple):
        return [_harmless(part) for part in value if part not in _NOTHING]
    if isinstance(value, str):
        return printable(value, _TEXT)
    return value


_NAME_WIDTH: Final = 120
"""Names are cut in the middle here: a step has them thousands of times."""


def step_tracks(
    timelines: Iterable[Timeline], arrows: Iterator[int], moved_ns: int = 0
) -> Iterator[Track]:
    """The tracks of some steps that lie apart in time, from top to bottom; calls lie within ranges.

    `arrows`: numbers for arrows, each once in a file; `moved_ns` is added to every time.
    """
    hosts = defaultdict[int, list[Slice]](list)
    streams = defaultdict[int, list[Slice]](list)
    why = []
    for timeline in timelines:
        at_ns = timeline.start_ns + moved_ns
        names = [printable(name, _NAME_WIDTH) for name in timeline.names]
        call_starts = {*chain.from_iterable(each(those(timeline.host, kind="calls"), "at_ns"))}
        launched = defaultdict[int, list[int]](list)
        for lane in timeline.lanes:
            for activity, launch_ns in _activities(timeline, names, lane, at_ns):
                if (
                    launch_ns is not None
                    and launch_ns in call_starts
                    and launch_ns <= activity.start_ns - at_ns
                ):
                    activity = replace(activity, launched_by=next(arrows))
                    launched[launch_ns].append(activity.launched_by)
                streams[lane.stream].append(activity)
        for host in timeline.host:
            hosts[host.thread] += _host(host, names, at_ns, launched)
        if reasons := timeline.reasons:
            columns = reasons.at_ns, reasons.length_ns, reasons.reason
            for offset_ns, length_ns, reason in zip(*columns, strict=True):
                name, start_ns = reasons.reasons[reason], at_ns + offset_ns
                why.append(Slice(start_ns, start_ns + length_ns, name, name.partition(".")[0]))
    for id, slices in sorted(hosts.items()):
        yield Track(f"host thread {id}: NVTX ranges and CUDA calls", slices, nests=True)
    yield Track("why no compute ran", why)
    for id, slices in sorted(streams.items()):
        yield Track(f"stream {id}", slices)


def _activities(
    timeline: Timeline, names: Sequence[str], lane: Lane, at_ns: int
) -> Iterator[tuple[Slice, int | None]]:
    """Kernels by their names, copies by their kinds, each with its launch; the class is the
    category.
    """
    launches = lane.launch_ns or (None,) * len(lane.at_ns)
    columns = lane.at_ns, lane.length_ns, lane.key, lane.name, launches
    for offset_ns, length_ns, key, name, launch_ns in zip(*columns, strict=True):
        category, start_ns = timeline.keys[key], at_ns + offset_ns
        shown = names[name] if name >= 0 else category.partition(".")[2]
        yield Slice(start_ns, start_ns + length_ns, shown, category), known(launch_ns)


def _host(
    lane: HostLane, names: Sequence[str], at_ns: int, launched: dict[int, list[int]]
) -> Iterator[Slice]:
    """Calls take the arrows that begin at their start; of two at one instant the first."""
    category, arrows = lane.kind.removesuffix("s"), tuple[int, ...]()
    unnamed = "call" if lane.kind == "calls" else "range (its text may be private)"
    for offset_ns, length_ns, name in zip(lane.at_ns, lane.length_ns, lane.name, strict=True):
        if lane.kind == "calls":
            arrows = tuple(launched.pop(offset_ns, ()))
        shown, start_ns = names[name] if name >= 0 else unnamed, at_ns + offset_ns
        yield Slice(start_ns, start_ns + length_ns, shown, category, launches=arrows)
