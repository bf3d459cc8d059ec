"""What a reader can click to be taken to: evidence with a place, slow steps, the step's longest waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from reports.html.section import short_ms
from reports.html.timeline import step_words
from reports.sentences import who
from reports.words import percent, seconds, wall_words

_WAITS: Final = 5
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """A stretch of time: `at_ns` is from the beginning of the timeline, `clock` its start as the GUI has it.

    `elsewhere`: where it is, when the timeline does not show it; else empty.
    """

    what: str
    at_ns: int
    length_ns: int
    clock: str
    elsewhere: str


def findings(document: Document) -> list[Finding]:
    """Of the rank shown, the first; those of other ranks are named as such."""
    rank = document["ranks"][0]
    return [*_evidence(document), *_slow_steps(rank), *_waits(rank)]


def _evidence(document: Document) -> Iterator[Finding]:
    for wall in sorted(document["walls"], key=lambda one: -(one["cost_frac"] or 0)):
        for one in wall["evidence"]:
            start_ns, end_ns = one["start_ns"], one["end_ns"]
            if start_ns is None or end_ns is None:
                continue
            what = f"{wall_words(wall['id'])}: {one['measure']} {_value(one['value'], one['unit'])}"
            elsewhere = _elsewhere(document, one["rank"] or 0, one["step"], start_ns, end_ns)
            yield _finding(document["ranks"][0], what, start_ns, end_ns, elsewhere)


def _slow_steps(rank: dict[str, Any]) -> Iterator[Finding]:
    slow, timeline = set(rank["steps"]["slow"]), rank["timeline"]
    for step in rank["steps"]["used"]:
        if step["index"] in slow:
            length_ns = step["end_ns"] - step["start_ns"]
            what = f"slow step {step['index']}: {short_ms(length_ns)} ms"
            elsewhere = "" if step["index"] == timeline["step"] else _step(step["index"], timeline)
            yield _finding(rank, what, step["start_ns"], step["end_ns"], elsewhere)


def _waits(rank: dict[str, Any]) -> Iterator[Finding]:
    """The longest stretch of each reason why no compute ran, the longest first."""
    timeline = rank["timeline"]
    if (reasons := timeline["reasons"]) is None:
        return
    longest: dict[int, int] = {}
    for place, reason in enumerate(reasons["reason"]):
        if reason not in longest or reasons["length_ns"][place] > reasons["length_ns"][longest[reason]]:
            longest[reason] = place
    by_length = sorted(longest.values(), key=lambda place: -reasons["length_ns"][place])
    for place in by_length[:_WAITS]:
        start_ns = timeline["start_ns"] + reasons["at_ns"][place]
        length_ns = reasons["length_ns"][place]
        what = f"longest {reasons['reasons'][reasons['reason'][place]]}: {short_ms(length_ns)} ms"
        yield _finding(rank, what, start_ns, start_ns + length_ns, "")


def _finding(rank: dict[str, Any], what: str, start_ns: int, end_ns: int, elsewhere: str) -> Finding:
    at_ns = start_ns - rank["timeline"]["start_ns"]
    return Finding(what, at_ns, end_ns - start_ns, seconds(start_ns), elsewhere)


def _elsewhere(document: Document, place: int, step: int | None, start_ns: int, end_ns: int) -> str:
    """Where a stretch is that the timeline of the first rank does not show; empty where it does."""
    timeline = document["ranks"][0]["timeline"]
    if place != 0:
        in_step = "" if step is None else f", step {step}"
        return f"{who(document['ranks'][place])}{in_step}"
    if start_ns < timeline["end_ns"] and end_ns > timeline["start_ns"]:
        return ""
    if step is not None and step != timeline["step"]:
        return _step(step, timeline)
    return f"a part of the recording that is not shown, at {seconds(start_ns)}"


def _step(step: int, timeline: dict[str, Any]) -> str:
    return f"step {step} (shown is {step_words(timeline)})"


def _value(value: float, unit: str) -> str:
    if unit.startswith("fraction"):
        return percent(value)
    return f"{short_ms(int(value))} ms" if unit == "ns" else f"{value:,}"
