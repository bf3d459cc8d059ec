"""The timeline of one stretch: what its script draws, and the same in a table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from reports.html.colours import look
from reports.html.section import Table, short_ms
from reports.words import printable, seconds

_NAME_WIDTH: Final = 160
_ALIKE: Final = re.compile(r"^(compute|comm|copy|blocking)\.")


@dataclass(frozen=True, slots=True)
class Shown:
    """One timeline of a page.

    `keys`: classes, kinds and reasons in it. `legend`: a key and its name for everything that looks alike.
    """

    id: str
    caption: str
    keys: tuple[str, ...]
    legend: tuple[tuple[str, str], ...]
    table: Table
    data: dict[str, Any]


def timeline_of(timeline: dict[str, Any], place: int = 0, of: str = "") -> Shown:
    """Of one `ranks[].timeline`; `place` tells several on a page apart, `of` says whose it is."""
    keys = (*timeline["keys"], *_reason_keys(timeline))
    return Shown(
        id=f"timeline-{place}",
        caption=_caption(timeline, of),
        keys=keys,
        legend=legend_of(keys),
        table=_table(timeline),
        data=_data(timeline),
    )


def legend_of(keys: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """A key and its name, once for a class or kind and the waits for it: they look alike."""
    named: dict[str, str] = {}
    for key in keys:
        named.setdefault(_ALIKE.sub("", key), key)
    return tuple((key, name) for name, key in named.items())


def step_words(timeline: dict[str, Any]) -> str:
    """What stretch it is: `step 3`, or the window."""
    return "the window" if timeline["step"] is None else f"step {timeline['step']}"


def _caption(timeline: dict[str, Any], of: str) -> str:
    count = sum(len(lane["at_ns"]) for lane in timeline["lanes"])
    streams = len(timeline["lanes"])
    start_ns, end_ns = timeline["start_ns"], timeline["end_ns"]
    what = step_words(timeline)
    said = (
        f"{what[:1].upper()}{what[1:]}{of}: {short_ms(end_ns - start_ns)} ms from {seconds(start_ns)}, "
        f"{count:,} activities on {streams} stream{'s' if streams != 1 else ''}."
    )
    if timeline["left_out"]:
        said += f" {timeline['left_out']:,} that begin later are left out."
    if timeline["reasons"] is None:
        said += " Why no compute ran is not told."
    return said


def _reason_keys(timeline: dict[str, Any]) -> tuple[str, ...]:
    return () if timeline["reasons"] is None else tuple(timeline["reasons"]["reasons"])


def _data(timeline: dict[str, Any]) -> dict[str, Any]:
    reasons = timeline["reasons"]
    return {
        "start_ns": str(timeline["start_ns"]),
        "length_ns": timeline["end_ns"] - timeline["start_ns"],
        "keys": _looks(timeline["keys"]),
        "names": [printable(name, _NAME_WIDTH) for name in timeline["names"]],
        "lanes": timeline["lanes"],
        "reasons": reasons and {**reasons, "reasons": _looks(reasons["reasons"])},
    }


def _looks(keys: list[str]) -> list[list[str]]:
    return [[printable(key, _NAME_WIDTH), *look(key)] for key in keys]


def _table(timeline: dict[str, Any]) -> Table:
    """Every class with its number, its summed time and its longest; then the reasons."""
    lengths: dict[str, list[int]] = {}
    for lane in timeline["lanes"]:
        for key, length_ns in zip(lane["key"], lane["length_ns"], strict=True):
            lengths.setdefault(timeline["keys"][key], []).append(length_ns)
    rows = _summed(lengths) + _summed(longest_by_reason(timeline))
    return Table(
        "Activities of this stretch by class, then stretches without compute by reason. Times are summed: "
        "streams run beside each other.",
        ("Class or reason", "Number", "Summed, ms", "Longest, ms"),
        tuple(rows),
        numbers=3,
        keys=tuple(row[0] for row in rows),
    )


def longest_by_reason(timeline: dict[str, Any]) -> dict[str, list[int]]:
    """Lengths in ns of the stretches without compute, by reason; empty where reasons are not told."""
    lengths: dict[str, list[int]] = {}
    if (reasons := timeline["reasons"]) is not None:
        for reason, length_ns in zip(reasons["reason"], reasons["length_ns"], strict=True):
            lengths.setdefault(reasons["reasons"][reason], []).append(length_ns)
    return lengths


def _summed(lengths: dict[str, list[int]]) -> list[tuple[str, ...]]:
    by_time = sorted(lengths.items(), key=lambda one: -sum(one[1]))
    return [(key, f"{len(ns):,}", short_ms(sum(ns)), short_ms(max(ns))) for key, ns in by_time]
