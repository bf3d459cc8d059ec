"""A reader of the Trace Event Format that shares nothing with its writer, and refuses what breaks its rules.

Rules from Google's "Trace Event Format" (its sections "JSON Object Format", "Complete Events", "Counter
Events", "Flow Events", "Metadata Events";
docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU) and from what Perfetto answers about
it (perfetto.dev/docs/faq: events of a thread nest or lie apart, or are dropped).
Perfetto reads a time as a double, multiplies it by 1000 and cuts off the rest (`CoerceToTs` of its JSON
importer), and drops events before zero; so times are read both exactly and its way, and both must agree.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

METADATA = {
    "process_name": "name",
    "thread_name": "name",
    "process_sort_index": "sort_index",
    "thread_sort_index": "sort_index",
}
TOO_MUCH = Decimal("0.25")
"""Of a nanosecond: what a time may lie behind a whole one, so that cut off or rounded it is that one."""


class NotATrace(AssertionError):
    """What is wrong, and with which event."""


@dataclass(frozen=True, slots=True)
class Event:
    """A complete event, in ns from the file's origin."""

    start_ns: int
    end_ns: int
    name: str
    category: str
    args: dict[str, Any]


@dataclass(slots=True)
class Read:
    """Events by process and thread name in order of their sort indexes; points of counters; arrows by id."""

    origin_ns: int
    other: dict[str, Any]
    tracks: dict[str, dict[str, list[Event]]] = field(default_factory=dict)
    counters: dict[str, dict[str, list[tuple[int, dict[str, Decimal]]]]] = field(default_factory=dict)
    arrows: dict[int, tuple[Event, Event]] = field(default_factory=dict)

    def track(self, process: str, thread: str) -> list[Event]:
        """The events of the one track so named in the one process whose name begins so."""
        (found,) = [tracks for name, tracks in self.tracks.items() if name.startswith(process)]
        return found[thread]


def read(text: str) -> Read:
    """The file, every rule checked; raises NotATrace."""
    value = json.loads(text, parse_float=Decimal, parse_constant=_refused)
    _that(value["displayTimeUnit"] in ("ms", "ns"), "times are shown in ms or ns", "displayTimeUnit")
    names: dict[tuple[Any, Any, str], Any] = {}
    threads: dict[tuple[int, int], list[tuple[Event, tuple[int, int]]]] = defaultdict(list)
    counters: dict[int, dict[str, list[tuple[int, dict[str, Decimal]]]]] = defaultdict(dict)
    ends: dict[int, dict[str, tuple[int, int, int]]] = defaultdict(dict)
    for event in value["traceEvents"]:
        _fields(event)
        if event["ph"] == "M":
            key = (event["pid"], event.get("tid"), event["name"])
            _that(key not in names, "a name is given once", event)
            names[key] = event["args"][METADATA[event["name"]]]
        elif event["ph"] == "X":
            threads[event["pid"], event["tid"]].append(_complete(event))
        elif event["ph"] in "sf":
            _that(event["ph"] not in ends[event["id"]], "an arrow has one beginning and one end", event)
            ends[event["id"]][event["ph"]] = (event["pid"], event["tid"], _ns(event["ts"]))
        else:
            points = counters[event["pid"]].setdefault(event["name"], [])
            points.append((_ns(event["ts"]), event["args"]))
            _that(sorted({at for at, _ in points}) == [at for at, _ in points], "points are in order", event)
    found = Read(int(value["otherData"]["origin_ns"]), value["otherData"])
    for (pid, tid), events in sorted(threads.items(), key=lambda one: _place(names, *one[0])):
        _nested([one for one, _ in events])
        _nested([Event(*as_read, one.name, "", {}) for one, as_read in events])
        tracks = found.tracks.setdefault(names[pid, None, "process_name"], {})
        thread = names[pid, tid, "thread_name"]
        _that(thread not in tracks, "threads of a process have names of their own", thread)
        tracks[thread] = [one for one, _ in events]
    for number, both in ends.items():
        _that(both.keys() == {"s", "f"}, "an arrow has a beginning and an end", number)
        begun, ended = (_around(threads, *both[end]) for end in "sf")
        _that(begun.start_ns <= ended.start_ns, "an arrow points forward", number)
        found.arrows[number] = (begun, ended)
    for pid, series in counters.items():
        found.counters[names[pid, None, "process_name"]] = series
    return found


def _place(names: dict[tuple[Any, Any, str], Any], pid: int, tid: int) -> tuple[int, int]:
    """Where a thread stands; each must have names and places."""
    for key in ((pid, None, "process_name"), (pid, tid, "thread_name")):
        _that(isinstance(names.get(key), str) and names[key], "processes and threads are named", key)
    places = (names.get((pid, None, "process_sort_index")), names.get((pid, tid, "thread_sort_index")))
    _that(all(isinstance(one, int) for one in places), "processes and threads have places", (pid, tid))
    return places  # type: ignore[return-value]


def _around(
    threads: dict[tuple[int, int], list[tuple[Event, tuple[int, int]]]], pid: int, tid: int, at_ns: int
) -> Event:
    """The event that begins where the end of an arrow is."""
    found = [one for one, _ in threads[pid, tid] if one.start_ns == at_ns]
    _that(found, "an arrow ends at an event", (pid, tid, at_ns))
    return max(found, key=lambda one: -one.end_ns)


def _fields(event: Any) -> None:
    _that(event["ph"] in "XCMsf" and event["pid"] > 0 and event["name"], "it is known and named", event)
    if event["ph"] == "C":
        numbers = all(isinstance(one, int | Decimal) for one in event["args"].values())
        _that(event["args"] and numbers, "a counter has numbers", event)
    if event["ph"] in "sf":
        _that(event["ph"] == "s" or event["bp"] == "e", "an arrow ends at the slice around it", event)
    if event["ph"] in "Xsf":
        _that(event["tid"] > 0 and event["cat"], "an event has a thread and a category", event)


def _complete(event: dict[str, Any]) -> tuple[Event, tuple[int, int]]:
    """The event, and its start and end the way Perfetto reads them."""
    start_ns, length_ns = _ns(event["ts"]), _ns(event["dur"])
    start_read, length_read = (int(float(event[key]) * 1000.0) for key in ("ts", "dur"))
    _that((start_read, length_read) == (start_ns, length_ns), "Perfetto reads every nanosecond", event)
    args = event.get("args", {})
    whole = Event(start_ns, start_ns + length_ns, event["name"], event["cat"], args)
    return whole, (start_read, start_read + length_read)


def _ns(microseconds: Any) -> int:
    """The whole nanoseconds of a time; a number with decimals, or it holds none."""
    _that(isinstance(microseconds, Decimal), "a time has decimals", microseconds)
    ns = int(microseconds * 1000)
    _that(microseconds >= 0, "a time is not before zero", microseconds)
    _that(microseconds * 1000 - ns <= TOO_MUCH, "a time is a whole number of ns", microseconds)
    return ns


def _nested(events: list[Event]) -> None:
    """Every event lies within the one that is open, or after it."""
    open_: list[Event] = []
    for one in sorted(events, key=lambda one: (one.start_ns, -one.end_ns)):
        while open_ and open_[-1].end_ns <= one.start_ns:
            open_.pop()
        if open_:
            _that(one.end_ns <= open_[-1].end_ns, "events of a thread nest or lie apart", one)
        open_.append(one)


def _refused(constant: str) -> None:
    raise NotATrace(f"JSON has no {constant}")


def _that(holds: Any, rule: str, where: Any) -> None:
    if not holds:
        raise NotATrace(f"{rule}: {str(where)[:300]}")
