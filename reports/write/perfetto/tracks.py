"""Steps of a rank as tracks: host threads, why no compute ran, streams, arrows from call to kernel."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from reports.write.perfetto.events import Slice, Track
from traces.missing import known
from traces.sections.tables import HostLane, Lane, Timeline
from traces.spelling import printable

_NAME_WIDTH: Final = 120
"""Names are cut in the middle here: a step has them thousands of times."""
_UNNAMED: Final = "range (its text may be private)"


class StepTracks:
    """The tracks of some steps that lie apart in time. `moved_ns` is added to every time."""

    def __init__(self, timelines: Sequence[Timeline], arrows: Iterator[int], moved_ns: int = 0) -> None:
        self._arrows = arrows
        self._host: dict[int, list[Slice]] = {}
        self._reasons: list[Slice] = []
        self._streams: dict[int, list[Slice]] = {}
        for timeline in timelines:
            self._add(timeline, timeline.start_ns + moved_ns)

    def tracks(self) -> Iterator[Track]:
        """From top to bottom; a thread's calls lie within its ranges."""
        for thread, slices in sorted(self._host.items()):
            yield Track(f"host thread {thread}: NVTX ranges and CUDA calls", slices, nests=True)
        yield Track("why no compute ran", self._reasons)
        for stream, slices in sorted(self._streams.items()):
            yield Track(f"stream {stream}", slices)

    def _add(self, timeline: Timeline, at_ns: int) -> None:
        names = [printable(name, _NAME_WIDTH) for name in timeline.names]
        called = {one for lane in timeline.host if lane.kind == "calls" for one in lane.at_ns}
        launched: dict[int, list[int]] = {}
        for lane in timeline.lanes:
            self._streams.setdefault(lane.stream, []).extend(
                self._activities(timeline, names, lane, at_ns, called, launched)
            )
        for host in timeline.host:
            self._host.setdefault(host.thread, []).extend(_host(host, names, at_ns, launched))
        if (reasons := known(timeline.reasons)) is not None:
            columns = (reasons.at_ns, reasons.length_ns, reasons.reason)
            for offset_ns, length_ns, reason in zip(*columns, strict=True):
                name, start_ns = reasons.reasons[reason], at_ns + offset_ns
                self._reasons.append(Slice(start_ns, start_ns + length_ns, name, name.partition(".")[0]))

    def _activities(
        self,
        timeline: Timeline,
        names: Sequence[str],
        lane: Lane,
        at_ns: int,
        called: set[int],
        launched: dict[int, list[int]],
    ) -> Iterator[Slice]:
        """Kernels by their names, copies by their kinds; the class is the category.

        Notes in `launched` which arrows begin at which call, where that call is shown.
        """
        launches = lane.launch_ns or (None,) * len(lane.at_ns)
        columns = (lane.at_ns, lane.length_ns, lane.key, lane.name, launches)
        for offset_ns, length_ns, key, name, launch in zip(*columns, strict=True):
            category = timeline.keys[key]
            said = names[name] if name >= 0 else category.partition(".")[2]
            arrow, launch_ns = 0, known(launch)
            if launch_ns is not None and launch_ns in called and launch_ns <= offset_ns:
                arrow = next(self._arrows)
                launched.setdefault(launch_ns, []).append(arrow)
            start_ns = at_ns + offset_ns
            yield Slice(start_ns, start_ns + length_ns, said, category, launched_by=arrow)


def _host(
    lane: HostLane, names: Sequence[str], at_ns: int, launched: dict[int, list[int]]
) -> Iterator[Slice]:
    """Calls take the arrows that begin at their start; of two at one instant the first."""
    category = "call" if lane.kind == "calls" else "range"
    for offset_ns, length_ns, name in zip(lane.at_ns, lane.length_ns, lane.name, strict=True):
        arrows = tuple(launched.pop(offset_ns, ())) if lane.kind == "calls" else ()
        said = names[name] if name >= 0 else _UNNAMED if lane.kind == "ranges" else "call"
        yield Slice(at_ns + offset_ns, at_ns + offset_ns + length_ns, said, category, launches=arrows)


def arrow_numbers() -> Iterator[int]:
    """Numbers of arrows, each once in a file."""
    return count(1)
