"""One step of each side as it ran, one above the other: both begin at their own beginning, on one axis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from reports.document import Document
from reports.html.timeline import Shown, timeline_of

_SIDES: Final = ("base", "new")


@dataclass(frozen=True, slots=True)
class Timelines:
    """Those that are told, base first, and one legend for both; `said` is what they show, or why not."""

    shown: tuple[Shown, ...]
    keys: tuple[str, ...]
    said: str


def both_timelines(document: Document) -> Timelines:
    """Of `base.timeline` and `new.timeline`."""
    told = {side: document[side].get("timeline") for side in _SIDES}
    lengths_ns = [one["end_ns"] - one["start_ns"] for one in told.values() if one]
    shown = [
        _on_axis(timeline_of(one, place, f" of {side}"), max(lengths_ns))
        for place, (side, one) in enumerate(told.items())
        if one
    ]
    keys = dict.fromkeys(key for one in shown for key in one.keys)
    return Timelines(tuple(shown), tuple(keys), _said(told))


def _on_axis(shown: Shown, axis_ns: int) -> Shown:
    return replace(shown, data={**shown.data, "axis_ns": axis_ns})


def _said(told: dict[str, Any]) -> str:
    untold = [side for side, one in told.items() if not one]
    if untold:
        where = "either side" if len(untold) > 1 else untold[0]
        return f"No timeline of {where}: its result was made by an earlier version. Make it again to see it."
    return (
        "One stretch of each side: the step whose length is nearest to its median, or the whole window where "
        "no steps were found. Both are on one scale and zoom together."
    )
