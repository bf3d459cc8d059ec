"""One step of the document as tracks: why no compute ran, and each stream as it was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.trace_events import Slice, Track
from reports.words import printable

_NAME_WIDTH: Final = 120
"""Kernel names are cut in the middle here: a step has them thousands of times."""


def timeline_tracks(timeline: dict[str, Any] | None, start_ns: int | None = None) -> Iterator[Track]:
    """Tracks of a `timeline`, begun at `start_ns` in place of its own; none where there is no timeline."""
    if timeline is None:
        return
    at_ns = timeline["start_ns"] if start_ns is None else start_ns
    if reasons := timeline["reasons"]:
        yield Track(f"why no compute ran{_of_step(timeline)}", [*_reasons(reasons, at_ns)])
    for lane in timeline["lanes"]:
        yield Track(f"stream {lane['stream']}{_of_step(timeline)}", [*_activities(timeline, lane, at_ns)])


def _of_step(timeline: dict[str, Any]) -> str:
    return "" if timeline["step"] is None else f", step {timeline['step']}"


def _reasons(reasons: dict[str, Any], at_ns: int) -> Iterator[Slice]:
    columns = (reasons["at_ns"], reasons["length_ns"], reasons["reason"])
    for offset_ns, length_ns, reason in zip(*columns, strict=True):
        name = reasons["reasons"][reason]
        start_ns = at_ns + offset_ns
        yield Slice(start_ns, start_ns + length_ns, name, name.partition(".")[0])


def _activities(timeline: dict[str, Any], lane: dict[str, Any], at_ns: int) -> Iterator[Slice]:
    """Kernels by their names, copies by their kinds; the class is the category."""
    names = [printable(name, _NAME_WIDTH) for name in timeline["names"]]
    columns = (lane["at_ns"], lane["length_ns"], lane["key"], lane["name"])
    for offset_ns, length_ns, key, name in zip(*columns, strict=True):
        category = timeline["keys"][key]
        called = names[name] if name >= 0 else category.partition(".")[2]
        start_ns = at_ns + offset_ns
        yield Slice(start_ns, start_ns + length_ns, called, category)
