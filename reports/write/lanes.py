"""Lanes of a timeline by what they mean: ranges and calls of the host, why no compute ran,
streams.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import nlargest
from typing import Any, Final, Literal

from heuristics.walls.verdict import by_family
from reports.content.names import capital, name_of, when
from reports.measures import words_of
from reports.rows import each, those
from traces.frozen import frozen
from traces.missing import known
from traces.sections.tables import HostLane, Lane, Timeline
from traces.spelling import counted

Kind = Literal["functions", "ranges", "calls", "why", "stream"]

_WORTH: Final = 0.2
"""Of a stream's time: what has less is not in its name."""


@frozen
class Drawn:
    """One lane: columns of one length, `at_ns` from the stretch's beginning on; `key` has a look.

    `name` is empty where the key says all; `launch_ns` is empty where no launch is recorded.
    """

    kind: Kind
    title: str
    under: str
    at_ns: Sequence[int]
    length_ns: Sequence[int]
    key: Sequence[str]
    name: Sequence[str]
    launch_ns: Sequence[int | None] = ()


@frozen
class DrawnTimeline:
    """One timeline that can be chosen: whose, which one; `words` has the texts that its columns
    point to.
    """

    place: str
    step: str
    timeline: Timeline
    words: Timeline


def lanes_of(stretch: DrawnTimeline) -> list[Drawn]:
    """Functions last: their stacks are deep, and what they launch is seen above."""
    lanes, streams, functions = list[Drawn](), [], list[Drawn]()
    for drawn in _host(stretch):
        (functions if drawn.kind == "functions" else lanes).append(drawn)
    if (why := stretch.timeline.reasons) and why.at_ns:
        keys = [why.reasons[reason] for reason in why.reason]
        lanes.append(
            Drawn("why", "Why no compute", "", why.at_ns, why.length_ns, keys, ("",) * len(keys))
        )
    for lane in stretch.timeline.lanes:
        if lane.at_ns:
            keys = [stretch.words.keys[key] for key in lane.key]
            title, under = _meaning(lane, keys), f"stream {lane.stream}"
            columns = lane.at_ns, lane.length_ns, keys, _names(stretch, lane)
            streams.append(Drawn("stream", title, under, *columns, [*map(known, lane.launch_ns)]))
    return [*lanes, *sorted(streams, key=_order), *functions]


def title_of(key: str) -> str:
    family, _, kind = key.partition(".")
    if family == "host":
        return words_of("host_lane")[kind]
    if family == "blocking":
        return f"wait for {name_of(key)}"
    return name_of(key)


def longest(lane: Drawn, count: int) -> Drawn:
    places = sorted(
        nlargest(count, range(len(lane.at_ns)), key=lambda place: lane.length_ns[place])
    )
    if len(places) == len(lane.at_ns):
        return lane
    columns = dict[str, Any]()
    for name in ("at_ns", "length_ns", "key", "name", "launch_ns"):
        if column := getattr(lane, name):
            columns[name] = [column[place] for place in places]
    return replace(lane, **columns)


def _host(stretch: DrawnTimeline) -> Iterator[Drawn]:
    host = stretch.timeline.host
    threads = [*dict.fromkeys(each(host, "thread"))]
    for lane in sorted(
        host, key=lambda lane: ([*words_of("host_lane")].index(lane.kind), lane.thread, lane.depth)
    ):
        title = words_of("host_lane")[lane.kind]
        if len(threads) > 1:
            title += f", thread {threads.index(lane.thread) + 1}"
        names, keys = _names(stretch, lane), (f"host.{lane.kind}",) * len(lane.name)
        yield Drawn(
            lane.kind, when(not lane.depth, title), "", lane.at_ns, lane.length_ns, keys, names
        )


def _names(stretch: DrawnTimeline, lane: HostLane | Lane) -> list[str]:
    return [stretch.words.names[name] if name >= 0 else "" for name in lane.name]


def _meaning(lane: Lane, keys: Sequence[str]) -> str:
    times = defaultdict[str, Counter[str]](Counter)
    for key, length_ns in zip(keys, lane.length_ns, strict=True):
        family, _, kind = key.partition(".")
        times[family][kind] += length_ns
    first, *others = sorted(times, key=lambda family: -times[family].total())
    whole_ns = sum(lane.length_ns)
    if first == "comm":
        kinds = by_family(times[first])
        return capital(
            ", ".join(name_of(kind) for kind in kinds if kinds[kind] >= _WORTH * whole_ns)
        )
    families = words_of("lane_family")
    family_name = families.get(first, capital(name_of(first)))
    if others and times[others[0]].total() >= _WORTH * whole_ns:
        return f"{family_name}, {families.get(others[0], name_of(others[0])).lower()}"
    return family_name


def _order(lane: Drawn) -> tuple[int, int]:
    families, place = {key.partition(".")[0] for key in lane.key}, 0
    for family in words_of("lane_family"):
        if family in families:
            break
        place += 1
    return place, -sum(lane.length_ns)


def caption(lanes: Sequence[Drawn]) -> str:
    """How much a stretch holds: `412 activities on 4 streams`."""
    streams = those(lanes, kind="stream")
    count = sum(map(len, each(streams, "at_ns")))
    return f"{counted(count, 'activity', 'activities')} on {counted(len(streams), 'stream')}"
