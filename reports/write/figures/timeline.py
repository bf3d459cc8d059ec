"""One step by stream, small: what each lane mostly did in every pixel, as dense as it was busy."""

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Final

import numpy as np

from reports.content.blocks import Hue
from reports.content.names import beyond, hue_of, optional, when
from reports.rows import those
from reports.write.figures.bars import draw_legend
from reports.write.figures.canvas import BODY, LARGE, SMALL, Area
from reports.write.figures.lettering import fitted, inches
from reports.write.lanes import Drawn, DrawnTimeline, lanes_of
from reports.write.palette import HUES, SHEET, SOFT
from traces.arrays import FloatArray, ints
from traces.columns import COPY_KINDS
from traces.sections.tables import Timeline
from traces.spelling import duration, milliseconds

_STREAMS: Final = 5
_NAMES: Final = 2.1
_BINS: Final = 700
_HUES: Final = tuple(Hue)
_LEVELS: Final = 4
"""How busy a lane was in a pixel, in as many tints."""
_TICKS: Final = 5
_LANE: Final = 0.2


def timeline_height(timeline: Timeline) -> float:
    return len(_chosen(timeline)[0]) * _LANE + 0.55


def draw_timeline(area: Area, timeline: Timeline) -> None:
    lanes, left_out = _chosen(timeline)
    if not lanes:
        return
    length_ns = timeline.end_ns - timeline.start_ns
    what = optional("Step {}", timeline.step) or "The window"
    title = f"{what} by stream, {duration(length_ns)}"
    area.strong(0, 0.08, title, LARGE)
    later = optional("{:,} later activities left out", timeline.left_out or None, int)
    notes = filter(None, (later, beyond(left_out, 0, "{} not drawn", "more lane")))
    area.note(inches(title, LARGE, bold=True) + 0.2, 0.08, "; ".join(notes))
    hues = set[Hue]()
    for lane in lanes:
        hues.update(map(partial(_hue, lane), {*lane.key}))
    draw_legend(area, hues)
    inner = area.part(_NAMES, 0.3, area.width - _NAMES, area.height - 0.55)
    high = inner.height / len(lanes)
    for place, lane in enumerate(lanes):
        middle = 0.3 + (place + 0.5) * high
        name = f"{lane.title} {optional('({})', lane.under)}"
        area.text(0, middle, fitted(name, _NAMES - 0.1, SMALL), SMALL)
        _draw_lane(inner.part(0, place * high, inner.width, high * 0.82), lane, length_ns)
    for tick in range(_TICKS + 1):
        left = _NAMES + inner.width * tick / _TICKS
        at = {0: "left", _TICKS: "right"}.get(tick, "center")
        words = milliseconds(length_ns * tick / _TICKS) + when(tick == _TICKS, " ms")
        area.text(
            left, area.height - 0.14, words, BODY - 1.5, color=SOFT, ha=at, gid=f"xtick_{tick}"
        )


def _chosen(timeline: Timeline) -> tuple[list[Drawn], int]:
    """The busiest lane of calls, lost time, the busiest streams; how many other streams there
    are.
    """
    lanes = lanes_of(DrawnTimeline("", "", timeline, timeline))
    streams = those(lanes, kind="stream")
    busy = _busiest(streams, _STREAMS)
    busy_streams = [lane for lane in streams if lane in busy]
    drawn = [*_busiest(those(lanes, kind="calls"), 1), *those(lanes, kind="why"), *busy_streams]
    return drawn, len(streams) - len(busy_streams)


def _busiest(lanes: Sequence[Drawn], most: int) -> list[Drawn]:
    return sorted(lanes, key=lambda lane: -sum(lane.length_ns))[:most]


def _draw_lane(area: Area, lane: Drawn, length_ns: int) -> None:
    axes = area.axes()
    axes.axhspan(0, area.height, color=SHEET, linewidth=0)
    width, place = area.width / _BINS, 0
    busy = pixels(lane, length_ns, _BINS)
    level = np.ceil(np.minimum(busy.sum(axis=0), 1.0) * _LEVELS - 1e-9).astype(int)
    hue = np.where(level, busy.argmax(axis=0), -1)
    for (tint, at), run in groupby(zip(level.tolist(), hue.tolist(), strict=True)):
        count = len([*run])
        if tint:
            box = [(place * width, count * width)]
            colour, alpha = HUES[_HUES[at]].light, 0.25 + 0.75 * tint / _LEVELS
            axes.broken_barh(box, (0, area.height), color=colour, alpha=alpha, linewidth=0)
        place += count


def pixels(lane: Drawn, length_ns: int, count: int) -> FloatArray:
    """How much of each pixel each hue fills, shape (hues, count), hues in the order of `Hue`."""
    hue_at = {key: _HUES.index(_hue(lane, key)) for key in set(lane.key)}
    scale = count / length_ns
    begin = np.minimum(np.array(lane.at_ns, dtype=np.float64) * scale, count)
    end = np.minimum(begin + np.array(lane.length_ns, dtype=np.float64) * scale, count)
    hue = ints([hue_at[key] for key in lane.key])
    first = np.minimum(begin.astype(np.int64), count - 1)
    last = np.minimum(end.astype(np.int64), count - 1)
    edges, busy = np.zeros((len(_HUES), count)), np.zeros((len(_HUES), count))
    np.add.at(edges, (hue, first), 1.0)  # every pixel from the first to before the last is full ...
    np.add.at(edges, (hue, last), -1.0)
    np.add.at(busy, (hue, first), first - begin)  # ... but for what lies before the beginning
    np.add.at(busy, (hue, last), end - last)
    busy += edges.cumsum(axis=1)
    return busy


def _hue(lane: Drawn, key: str) -> Hue:
    """As in the bar of the step, whose rows have another first word."""
    if lane.kind == "calls":
        return Hue.HOST
    family, _, kind = key.partition(".")
    if family == "blocking":
        if kind in COPY_KINDS:
            return Hue.COPY
        return Hue.COMMUNICATION
    if lane.kind == "why":
        return hue_of(key)
    return hue_of(key if key.startswith("compute.") else f"exposed_{key}")
