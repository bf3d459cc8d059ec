"""One step as it ran: what every stream did and when, and under it why no compute ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from reports.document import Document
from reports.figures.canvas import INNER, LINE, SMALL, Area, Panel, notice
from reports.figures.legend import draw_legend, legend_height
from reports.figures.lettering import fitted, wrapped_all
from reports.figures.paint import HAIR, SOFT, Paint, paint_of, pattern_ink
from reports.figures.stacks import quiet
from reports.figures.told import Rank, about_run, ms, why_untold
from reports.words import kind_words, seconds, wall_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LANES: Final = 12
_NAMES: Final = 1.1
_LANE_LEAST, _LANE_MOST, _ALL_LANES = 0.3, 0.6, 1.8
_REASONS, _AXIS = 0.26, 0.5
_HEIGHTS: Final = {"compute": 0.84, "comm": 0.56, "copy": 0.3}
"""Of a lane: so compute, communication and copies can be told without colours."""
_PATTERNED: Final = 0.07
"""Inches a piece must be long for its pattern to show."""
_DRAWN_AS_IMAGE: Final = 2_000
"""Pieces beyond which svg and pdf hold them as one image: each would take about 150 bytes."""

Boxes = list[tuple[float, float, float, float]]
"""Left and right in ms, top and bottom in inches."""


def timeline_panel(document: Document, place: int) -> Panel:
    """The step that the document shows of one rank."""
    rank = document["ranks"][place]
    told = rank.get("timeline")  # results of earlier versions have none
    if not told or not told["lanes"]:
        why = why_untold(document, place, ["timeline"])
        return notice("One step by stream", about_run(document, place, "ms"), why)
    lanes = _shown(told["lanes"])
    entries = [(_key_words(key), paint_of(key)) for key in told["keys"]]
    reasons = told["reasons"]
    why_absent = (
        [] if reasons is None else [(_reason_words(one), paint_of(one)) for one in reasons["reasons"]]
    )
    notes = _notes(document, place, told, len(lanes))
    lane_height = len(lanes) * _lane(lanes) + (_REASONS if reasons else 0)
    legends = legend_height(entries) + (LINE + legend_height(why_absent) if why_absent else 0)
    height = lane_height + _AXIS + legends + len(notes) * LINE + 0.05

    def draw(area: Area) -> None:
        _draw_lanes(area, told, lanes, lane_height)
        top = lane_height + _AXIS
        draw_legend(area, top, entries)
        top += legend_height(entries)
        if why_absent:
            area.text(0, top + LINE / 2, "why no compute ran:", color=SOFT)
            draw_legend(area, top + LINE, why_absent)
            top += LINE + legend_height(why_absent)
        for index, note in enumerate(notes):
            area.text(0, top + 0.05 + (index + 0.5) * LINE, note, color=SOFT)

    return Panel(_title(told), about_run(document, place, _when(told)), height, draw)


def _lane(lanes: Sequence[dict[str, Any]]) -> float:
    """Inches of a stream: few get more."""
    return min(_LANE_MOST, max(_LANE_LEAST, _ALL_LANES / len(lanes)))


def _title(told: dict[str, Any]) -> str:
    length = ms(told["end_ns"] - told["start_ns"])
    if told["step"] is None:
        return f"The window by stream: {length} ms"
    part = "the beginning of step" if told["left_out"] else "step"
    return f"One step by stream: {part} {told['step']}, {length} ms, the nearest to the median"


def _when(told: dict[str, Any]) -> str:
    return f"ms from {seconds(told['start_ns'])} of the recording"


def _shown(lanes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The streams with the most work, in the order of the document."""
    kept = sorted(lanes, key=lambda lane: -sum(lane["length_ns"]))[:_LANES]
    return [lane for lane in lanes if lane in kept]


def _notes(document: Document, place: int, told: dict[str, Any], shown: int) -> list[str]:
    notes = ["Height tells as well: compute is highest, communication lower, copies lowest."]
    if more := len(told["lanes"]) - shown:
        notes.append(f"{more} more streams, with less work, are not shown.")
    if told["left_out"]:
        notes.append(f"{told['left_out']:,} activities that begin later are not shown.")
    if told["reasons"] is None:
        notes.append(f"Why no compute ran: {why_untold(document, place, ['timeline.reasons', 'absent_ns'])}")
    return wrapped_all(notes, INNER, SMALL)


def _key_words(key: str) -> str:
    return kind_words(key.partition(".")[2])


def _reason_words(reason: str) -> str:
    group, _, kind = reason.partition(".")
    return f"{wall_words(group)}: {kind_words(kind)}" if kind else wall_words(group)


def _draw_lanes(area: Area, told: dict[str, Any], lanes: Sequence[dict[str, Any]], height: float) -> None:
    width, lane_height = INNER - _NAMES, _lane(lanes)
    length_ms = (told["end_ns"] - told["start_ns"]) / 1e6
    axes = area.axes(_NAMES, 0, width, height)
    axes.set(xlim=(0, length_ms), ylim=(height, 0))
    quiet(axes)
    axes.set_xlabel(_when(told), fontsize=SMALL - 0.5, color=SOFT, loc="left", labelpad=2)
    boxes: dict[Paint, Boxes] = {}
    for index, lane in enumerate(lanes):
        middle = (index + 0.5) * lane_height
        axes.axhline(middle, color=HAIR, linewidth=0.6, zorder=0)
        area.text(_NAMES - 0.1, middle, fitted(f"stream {lane['stream']}", _NAMES - 0.15, SMALL), ha="right")
        halves = [_HEIGHTS[key.partition(".")[0]] * lane_height / 2 for key in told["keys"]]
        _collect(boxes, lane, lane["key"], [paint_of(key) for key in told["keys"]], middle, halves)
    if reasons := told["reasons"]:
        middle = len(lanes) * lane_height + _REASONS / 2
        area.text(_NAMES - 0.1, middle, "no compute", ha="right", color=SOFT)
        paints = [paint_of(one) for one in reasons["reasons"]]
        _collect(boxes, reasons, reasons["reason"], paints, middle, [0.36 * _REASONS] * len(paints))
    as_image = sum(map(len, boxes.values())) > _DRAWN_AS_IMAGE
    for paint, of_paint in boxes.items():
        _fill(axes, paint, of_paint, length_ms / width, as_image)


def _collect(
    boxes: dict[Paint, Boxes],
    lane: Rank,
    codes: Sequence[int],
    paints: Sequence[Paint],
    middle: float,
    halves: Sequence[float],
) -> None:
    """Add the pieces of a lane to those of their paint."""
    for at_ns, length_ns, code in zip(lane["at_ns"], lane["length_ns"], codes, strict=True):
        half = halves[code]
        box = (at_ns / 1e6, (at_ns + length_ns) / 1e6, middle - half, middle + half)
        boxes.setdefault(paints[code], []).append(box)


def _fill(axes: Axes, paint: Paint, boxes: Boxes, per_inch: float, as_image: bool) -> None:
    """All pieces of one paint; only those long enough for it have the pattern."""
    colour, hatch = paint
    long = [box for box in boxes if hatch and box[1] - box[0] >= _PATTERNED * per_inch]
    short = [box for box in boxes if not hatch or box[1] - box[0] < _PATTERNED * per_inch]
    for some, pattern in ((short, None), (long, hatch)):
        if not some:
            continue
        from matplotlib.collections import PolyCollection

        corners = [[(x0, y0), (x1, y0), (x1, y1), (x0, y1)] for x0, x1, y0, y1 in some]
        drawn = PolyCollection(
            corners,
            facecolors=colour,
            edgecolors=pattern_ink(colour) if pattern else "none",
            linewidths=0,
            hatch=pattern,
            rasterized=as_image,
        )
        axes.add_collection(drawn, autolim=False)
