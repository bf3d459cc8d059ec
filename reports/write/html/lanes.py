"""Lanes of a timeline by what they mean: ranges and calls of the host, why no compute ran, the GPU's streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import Final, Literal

from heuristics.result.tables import HostLane, Lane, Timeline
from heuristics.result.told import known
from reports.content.quantities import counted
from reports.measures import measures

Kind = Literal["ranges", "calls", "why", "stream"]

_FAMILIES: Final = {"compute": "Compute", "comm": "Communication", "copy": "Copies"}
"""The first word of a key, and a stream that mostly runs such."""
_MIXED: Final = 0.8
"""A stream whose largest family has a smaller part of its time than this is named by two."""


@dataclass(frozen=True, slots=True)
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

    @property
    def busy_ns(self) -> int:
        """The summed length of its activities."""
        return sum(self.length_ns)


def lanes_of(timeline: Timeline) -> list[Drawn]:
    """From top to bottom: what the host's threads say and call, why no compute ran, streams by family."""
    return [*_host(timeline), *_why(timeline), *sorted(_streams(timeline), key=_order)]


def title_of(key: str) -> str:
    """What a key of the timeline is called: `comm.ep_dispatch` is expert dispatch."""
    *groups, last = key.split(".")
    known_as = measures()
    name = known_as[last].title if last in known_as else last.replace("_", " ")
    return f"wait for {name}" if groups == ["blocking"] else name


def longest(lane: Drawn, count: int) -> Drawn:
    """The lane with its `count` longest activities, in their order."""
    places = sorted(nlargest(count, range(len(lane.at_ns)), key=lambda place: lane.length_ns[place]))
    if len(places) == len(lane.at_ns):
        return lane
    return replace(
        lane,
        at_ns=[lane.at_ns[place] for place in places],
        length_ns=[lane.length_ns[place] for place in places],
        key=[lane.key[place] for place in places],
        name=[lane.name[place] for place in places],
        launch_ns=[lane.launch_ns[place] for place in places] if lane.launch_ns else (),
    )


def _host(timeline: Timeline) -> Iterator[Drawn]:
    """Ranges first, outer ones above inner ones; then calls."""
    threads = list(dict.fromkeys(lane.thread for lane in timeline.host))
    for lane in sorted(timeline.host, key=lambda one: (one.kind == "calls", one.thread, one.depth)):
        thread = f"host thread {threads.index(lane.thread) + 1}" if len(threads) > 1 else "host thread"
        yield _of_host(timeline, lane, thread)


def _of_host(timeline: Timeline, lane: HostLane, thread: str) -> Drawn:
    title = "CUDA calls" if lane.kind == "calls" else "NVTX ranges" if not lane.depth else ""
    under = thread if not lane.depth else ""
    count = len(lane.at_ns)
    names = [timeline.names[name] if name >= 0 else "" for name in lane.name]
    return Drawn(
        lane.kind, title, under, lane.at_ns, lane.length_ns, (f"host.{lane.kind}",) * count, names
    )


def _why(timeline: Timeline) -> Iterator[Drawn]:
    if (lane := known(timeline.reasons)) is not None and lane.at_ns:
        keys = [lane.reasons[reason] for reason in lane.reason]
        yield Drawn("why", "Why no compute", "", lane.at_ns, lane.length_ns, keys, ("",) * len(keys))


def _streams(timeline: Timeline) -> Iterator[Drawn]:
    for lane in timeline.lanes:
        if lane.at_ns:
            keys = [timeline.keys[key] for key in lane.key]
            names = [timeline.names[name] if name >= 0 else "" for name in lane.name]
            title = _meaning(_by_family(lane, keys))
            under = f"stream {lane.stream}"
            yield Drawn(
                "stream", title, under, lane.at_ns, lane.length_ns, keys, names, lane.launch_ns
            )


def _by_family(lane: Lane, keys: Sequence[str]) -> Mapping[str, int]:
    times: dict[str, int] = {}
    for key, length_ns in zip(keys, lane.length_ns, strict=True):
        family = key.partition(".")[0]
        times[family] = times.get(family, 0) + length_ns
    return dict(sorted(times.items(), key=lambda one: -one[1]))


def _meaning(times: Mapping[str, int]) -> str:
    first, *others = times
    named = _FAMILIES.get(first, title_of(first))
    if others and times[first] < _MIXED * sum(times.values()):
        return f"{named}, {_FAMILIES.get(others[0], title_of(others[0])).lower()}"
    return named


def _order(lane: Drawn) -> tuple[int, int]:
    families = list(_FAMILIES.values())
    first = lane.title.partition(",")[0]
    return (families.index(first) if first in families else len(families), -lane.busy_ns)


def caption(timeline: Timeline, lanes: Sequence[Drawn]) -> str:
    """How much a stretch holds: `412 activities on 4 streams`."""
    streams = [lane for lane in lanes if lane.kind == "stream"]
    count = sum(len(lane.at_ns) for lane in streams)
    return f"{counted(count, 'activity', 'activities')} on {counted(len(streams), 'stream')}"
