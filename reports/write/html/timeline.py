"""The timelines of a page as data for its script, in the room that the page has, and their sums as
tables.

What each class, kind and reason looks like is alike in every picture of a page. Colours are those
of Okabe and Ito (https://jfly.uni-koeln.de/color/), apart for colour-blind readers. Families share
a colour: matrix work blue, attention sky, other work of a layer green, expert exchange vermillion,
other communication orange, copies yellow, a late host purple. Within a family the pattern differs.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from reports.content.blocks import Table, Term
from reports.content.names import capital, grid_words, kernel_name, optional
from reports.content.tables import shaped
from reports.measures import words_of
from reports.rows import each, those
from reports.write.lanes import Drawn, DrawnTimeline, caption, lanes_of, longest, title_of
from traces.frozen import frozen
from traces.sections.rank import Rank
from traces.sections.tables import Timeline
from traces.spelling import counted, duration, milliseconds, printable
from traces.toml_tables import read_table


class KeyLook(NamedTuple):
    """A colour (class `c-NAME` of the style sheet) and a pattern (`p-NAME` of the page), `solid`
    for none.
    """

    colour: str
    pattern: str


def length(share: float) -> str:
    """A part of the room there is, as a style sheet takes it."""
    return f"{share:.4%}"


@cache
def _looks() -> Mapping[str, Mapping[str, KeyLook]]:
    return read_table("reports.write.html", "looks.toml", dict[str, dict[str, KeyLook]])


def look(key: str) -> KeyLook:
    """The look of a key: `compute.gemm`, `exposed_comm.ep_combine`, `launch_starved.sync`, `idle`.

    Of an unknown key: that of its group, or grey.
    """
    own_look = _looks()["looks"].get(key.removeprefix("idle."))
    return own_look or _looks()["groups"].get(key.split(".")[0], KeyLook("grey", "grid"))


_NAME: Final = 120
_FEWEST: Final = 50
"""Activities that a lane keeps, however little room there is."""

_COARSE: Final = 2_000
"""Bytes of a rank's timeline below which it shows nothing."""

Data = dict[str, object]
WallOf = Mapping[str, str]
"""A key of a timeline, and the wall whose time it is."""


@frozen
class TimelineFigure:
    """The timelines of one figure: what its script reads, what stands under it.

    Figures whose `linked` is one word zoom together.
    """

    id: str
    caption: str
    data: Data
    tables: tuple[Table, ...]
    linked: str = ""


@dataclass(slots=True)
class _Shared:
    """Looks and names of all stretches, each once, in the order of their first use."""

    walls: WallOf
    grids: Mapping[str, str]
    looks: dict[str, int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    """By the text as it was recorded."""

    def copy(self) -> "_Shared":
        return replace(self, looks={**self.looks}, names={**self.names})

    def look(self, key: str) -> int:
        return self.looks.setdefault(key, len(self.looks))

    def name(self, name: str) -> int:
        if name:
            return self.names.setdefault(name, len(self.names))
        return -1

    def data(self) -> Data:
        looks = []
        for key in self.looks:
            titles = printable(title_of(key), _NAME), printable(key, _NAME)
            looks.append((*titles, *look(key), self.walls.get(key, "")))
        return {
            "looks": looks,
            "names": [printable(name, _NAME) for name in self.names],
            "short": [*map(kernel_name, self.names)],
            "grids": [self.grids.get(name, "") for name in self.names],
        }


def stretches(ranks: Sequence[Rank], called: Callable[[Rank], str]) -> list[DrawnTimeline]:
    firsts, others = list[DrawnTimeline](), list[DrawnTimeline]()
    for rank in ranks:
        for timeline in rank.timelines:
            if timeline.lanes:
                (firsts if timeline is rank.timeline else others).append(
                    DrawnTimeline(called(rank), step_words(timeline), timeline, rank.timeline)
                )
    return firsts + others


def grids_of(ranks: Sequence[Rank]) -> Mapping[str, str]:
    grids = defaultdict[str, set[str]](set)
    for rank in ranks:
        for row in rank.kernel_table.rows:
            if grid := grid_words(row.grid):
                grids[row.name].add(grid)
    return {name: only for name, (only, *others) in grids.items() if not others}


def timelines(
    drawable: Sequence[DrawnTimeline],
    walls: WallOf,
    grids: Mapping[str, str],
    room: int,
    id: str = "timeline",
) -> TimelineFigure:
    """All that fit in `room` bytes: of each rank one stretch, cut where it must be, then further
    ones whole.

    The first takes half of the room at most where there are several ranks, the others equal parts
    of the rest. Raises `IndexError` where there is none.
    """
    shared = _Shared(walls, grids)
    firsts = dict[str, DrawnTimeline]()
    for stretch in drawable:
        firsts.setdefault(stretch.place, stretch)
    first, *others = firsts.values()
    data, shared = _first(first, shared, room // 2 if others else room)
    drawn = [data]
    used = _size(drawn, shared)
    shown = {id_of(first)}
    for place, stretch in enumerate(others):
        part = max(0, room - used) // (len(others) - place)
        if part < _COARSE:
            break
        before = _size([], shared)
        data, shared = _first(stretch, shared, part, before)
        drawn.append(data)
        shown.add(id_of(stretch))
        used += len(json.dumps(data)) + _size([], shared) - before
    for stretch in drawable[1:]:
        if id_of(stretch) in shown:
            continue
        trial = shared.copy()
        data = _data(stretch, lanes_of(stretch), trial)
        used += len(json.dumps(data))
        if used + _size([], trial) - _size([], shared) > room:
            break
        drawn.append(data)
        shared = trial
    left_out = len(drawable) - len(drawn)
    caption_text = f"{capital(first.step)}: {caption(lanes_of(first))}."
    if first.timeline.left_out:
        caption_text += f" {first.timeline.left_out:,} that begin later are left out."
    if left_out:
        are = "is" if left_out == 1 else "are"
        caption_text += f" {counted(left_out, 'other step')} {are} left out to keep the page small."
    data = {"stretches": drawn, "left_out": left_out, **shared.data()}
    return TimelineFigure(id, caption_text, data, tuple(_tables(first)))


def id_of(stretch: DrawnTimeline) -> tuple[str, str]:
    return stretch.place, stretch.step


def _first(
    stretch: DrawnTimeline, shared: _Shared, room: int, before: int = 0
) -> tuple[Data, _Shared]:
    """The longest activities of a stretch that fit; `before`: bytes of names and looks that stand
    already.
    """
    lanes = lanes_of(stretch)
    most = max(map(len, each(lanes, "at_ns")))
    while True:
        trial = shared.copy()
        data = _data(stretch, [longest(lane, most) for lane in lanes], trial)
        size = _size([data], trial) - before
        if most <= _FEWEST or size <= room:
            return data, trial
        # a tenth fewer at least, so that it ends where names take the room
        most = max(_FEWEST, int(most * min(0.9, room / size)))


def _size(drawn: list[Data], shared: _Shared) -> int:
    return len(json.dumps([drawn, shared.data()], separators=(",", ":")))


def _data(stretch: DrawnTimeline, lanes: Sequence[Drawn], shared: _Shared) -> Data:
    timeline = stretch.timeline
    left_out = sum(map(len, each(lanes_of(stretch), "at_ns"))) - sum(map(len, each(lanes, "at_ns")))
    return {
        "place": stretch.place,
        "step": stretch.step,
        "start_ns": str(timeline.start_ns),
        "length_ns": timeline.end_ns - timeline.start_ns,
        "left_out": timeline.left_out + left_out,
        "lanes": [_lane(lane, shared) for lane in lanes],
    }


def _lane(lane: Drawn, shared: _Shared) -> Data:
    """Beginnings as the distance to the one before, launches as the distance to the beginning."""
    data: Data = {
        "kind": lane.kind,
        "title": lane.title,
        "under": lane.under,
        "at": [after - before for before, after in pairwise((0, *lane.at_ns))],
        "length": list(lane.length_ns),
        "look": [*map(shared.look, lane.key)],
        "name": [*map(shared.name, lane.name)],
    }
    if lane.launch_ns:
        pairs = zip(lane.at_ns, lane.launch_ns, strict=True)
        data["before"] = [None if launch is None else at_ns - launch for at_ns, launch in pairs]
    return data


def step_words(timeline: Timeline) -> str:
    what = optional("step {}", timeline.step) or "whole window"
    return f"{what}, {duration(timeline.end_ns - timeline.start_ns)}"


def _tables(stretch: DrawnTimeline) -> Iterator[Table]:
    lanes = lanes_of(stretch)
    for kind, title in words_of("timeline_table").items():
        lengths = defaultdict[str, list[int]](list)
        for lane in those(lanes, kind=kind):
            for key, length_ns in zip(lane.key, lane.length_ns, strict=True):
                lengths[key].append(length_ns)
        rows = []
        for key, lengths_ns in sorted(lengths.items(), key=lambda item: -sum(item[1])):
            most, whole = milliseconds(max(lengths_ns)), milliseconds(sum(lengths_ns))
            rows.append((Term(key.rpartition(".")[2]), f"{len(lengths_ns):,}", whole, most))
        if rows:
            yield shaped("activities", rows, title=f"{title}: {stretch.step}")
