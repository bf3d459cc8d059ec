"""A recording with other times: rows where the graph puts them, arrows and ranges of streams with them."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from pathlib import Path

from bench.injected.graph import Graph, end, start
from bench.injected.read import Event, Row, to_us

Times = list[int | None]


def written(graph: Graph, times: Times) -> Event:
    """The document with these times; rows that were put in stand after all others."""
    recording = graph.recording
    events = [dict(event) for event in recording.events]
    for index, event in enumerate(events):
        begins = times[start(index)]
        if begins is not None:
            ends = times[end(index)]
            _place(event, graph.at[start(index)] or 0, begins, None if ends is None else ends - begins)
        if index in graph.renamed:
            event["name"] = graph.renamed[index]
    follow = _following(graph, times)
    for row in recording.elsewhere:
        begins, ends = follow(row)
        _place(events[row.index], row.start, begins, ends - begins)
    for number, event in enumerate(graph.added):
        point = start(len(events) + number)
        _fresh(event, times[point], times[point + 1], recording.whole_us)
    for event, first, before, last in graph.riders:
        _fresh(event, (times[first] or 0) - before, times[last], recording.whole_us)
    return {
        **recording.document,
        "traceEvents": [*events, *graph.added, *(event for event, *_ in graph.riders), *_arrows(graph)],
    }


def _place(event: Event, was: int, begins: int, lasts: int | None) -> None:
    """Give an event its new times; what has not moved keeps its digits."""
    if begins != was:
        event["ts"] = to_us(begins, event["ts"])
    if lasts is not None and "dur" in event and to_us(lasts, event["dur"]) != event["dur"]:
        event["dur"] = to_us(lasts, event["dur"])


def _fresh(event: Event, begins: int | None, ends: int | None, whole: bool) -> None:
    like = 0 if whole else 0.0
    event["ts"], event["dur"] = to_us(begins or 0, like), to_us((ends or 0) - (begins or 0), like)


def _following(graph: Graph, times: Times) -> Callable[[Row], tuple[int, int]]:
    """Where a row goes that is on no thread that launches and is no GPU work.

    Arrows go with the work they point at, ranges of a stream with the rows they hold, all else with the
    main thread.
    """
    recording = graph.recording
    main = sorted(
        (graph.at[point], times[point])
        for row in recording.host.get(recording.main, ())
        for point in (start(row.index), end(row.index))
        if graph.at[point] is not None
    )
    was, now = [one or 0 for one, _ in main], [other or 0 for _, other in main]
    grown = max(one for one in times[: len(graph.at)] if one is not None)
    grown -= max(one for one in graph.at if one is not None)
    work = {(row.correlation, row.start): row.index for row in recording.gpu}
    starts = {place: [row.start for row in rows] for place, rows in recording.on_gpu.items()}
    ends = {place: sorted((row.end, row.index) for row in rows) for place, rows in recording.on_gpu.items()}

    def by_main(time: int) -> int:
        found = bisect_right(was, time) - 1
        if found < 0:
            return time
        if found + 1 == len(was):
            return max(now[found], time + grown)
        return min(now[found] + time - was[found], max(now[found], now[found + 1]))

    def where(row: Row) -> tuple[int, int]:
        arrow = work.get((row.correlation, row.start))
        if arrow is not None and row.start == row.end:
            moved = times[start(arrow)] or 0
            return moved, moved
        if row.place in starts:
            first = bisect_left(starts[row.place], row.start)
            last = bisect_right(ends[row.place], (row.end, 1 << 62)) - 1
            if first < len(starts[row.place]) and starts[row.place][first] <= row.end and last >= 0:
                one = recording.on_gpu[row.place][first].index
                end_ns, other = ends[row.place][last]
                begins = (times[start(one)] or 0) - (starts[row.place][first] - row.start)
                return begins, max(begins, (times[end(other)] or 0) + row.end - end_ns)
        begins = by_main(row.start)
        return begins, by_main(row.end) if row.end > row.start else begins

    return where


def _arrows(graph: Graph) -> list[Event]:
    """From each call that was put in to its work, where the recording has such arrows."""
    flows = [one for one in graph.recording.events if one.get("ph") == "s" and "correlation" not in one]
    kind = next((one for one in flows if str(one.get("cat")) in ("ac2g", "async")), None)
    if kind is None:
        return []
    ends: dict[str, list[Event]] = {"s": [], "f": []}
    for event in graph.added:
        on_gpu = "stream" in event["args"]
        number = event["args"].get("correlation")
        arrow = {"ph": "f" if on_gpu else "s", "id": number, "pid": event["pid"], "tid": event["tid"]}
        arrow |= {"ts": event["ts"], "cat": kind["cat"], "name": kind["name"]} | (
            {"bp": "e"} if on_gpu else {}
        )
        ends[arrow["ph"]].append(arrow)
    worked = {one["id"] for one in ends["f"]}
    return [*(one for one in ends["s"] if one["id"] in worked), *ends["f"]]


def save(document: Event, path: Path) -> None:
    """Write a document, compressed."""
    data = json.dumps(document, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(data, 3, mtime=0))
