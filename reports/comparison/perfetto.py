"""A comparison as a trace for ui.perfetto.dev: a step of either run, both begun at zero, and what differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.comparison.figures import exact, share
from reports.comparison.sentences import (
    before_suspects,
    effect_sentence,
    headline,
    side_sentence,
    suspect_sentence,
    verdict_sentences,
)
from reports.document import Document
from reports.redaction import redaction_sentence
from reports.timeline_tracks import timeline_tracks
from reports.trace_events import Args, Process, Slice, Track, render_events
from reports.words import seconds

_SIDES: Final = ("base", "new")
_ROWS: Final = 10


def render_comparison_perfetto(document: Document, everything: bool = False) -> str:
    """A JSON object of the Trace Event Format: one process for the verdict, one a side.

    The verdict, the suspects and the rows of the attribution lie over the whole of the longer step: they are
    notes, not times. Ten rows are noted, every one with `everything`.
    """
    longest_ns = max(_length_ns(document[side]) for side in _SIDES)
    rows = document["attribution"] if everything else document["attribution"][:_ROWS]
    processes = [Process("moe-diag: new against base", [*_notes(document, rows, longest_ns)])]
    for side in _SIDES:
        about = document[side]
        processes.append(Process(f"{side} {about['name']}", [*_side(document, side)]))
    return render_events(processes, _about(document, len(rows)))


def _length_ns(side: dict[str, Any]) -> int:
    """Of the step that is shown; of the mean step where none is."""
    timeline = side.get("timeline")
    length_ns: int = timeline["end_ns"] - timeline["start_ns"] if timeline else side["step_ns"]
    return length_ns


def _about(document: Document, shown: int) -> Args:
    """What wrote the file, and what is left out of it."""
    return {
        **document["tool"],
        "schema_version": document["schema_version"],
        "redaction": redaction_sentence(document),
        "rows_left_out": len(document["attribution"]) - shown,
    }


def _notes(document: Document, rows: list[dict[str, Any]], length_ns: int) -> Iterator[Track]:
    said = {"because": [*verdict_sentences(document)]}
    yield Track("verdict", [Slice(0, length_ns, headline(document), document["verdict"], said)])
    for place, suspect in enumerate(document["suspects"], start=1):
        name = f"{place}. {suspect['title']}"
        yield Track(f"suspect {place}", [Slice(0, length_ns, name, "suspect", _suspect(document, suspect))])
    for row in rows:
        name = f"{row['row']} {exact(row['delta_ns'])} ms ({share(row['share_frac'])})"
        yield Track(row["row"], [Slice(0, length_ns, name, row["wall"] or "no wall", _row(row))])


def _suspect(document: Document, suspect: dict[str, Any]) -> Args:
    return {
        "explains": suspect_sentence(document, suspect),
        "only": before_suspects(document),
        "because": suspect["because"],
        "next": suspect["next"],
        "source": suspect["source"],
    }


def _row(row: dict[str, Any]) -> Args:
    figures = ("base_ns", "new_ns", "delta_ns", "base_count", "new_count", "ci95_ns", "parts")
    return {"effect": effect_sentence(row), **{key: row[key] for key in figures}}


def _side(document: Document, side: str) -> Iterator[Track]:
    """The step that is shown from its beginning, and what was recorded in it."""
    about = document[side]
    timeline = about.get("timeline")  # results of earlier versions have none
    if timeline is None:
        return
    step = "window" if timeline["step"] is None else f"step {timeline['step']}"
    where = {
        "run": side_sentence(about),
        "start": seconds(timeline["start_ns"]),
        "end": seconds(timeline["end_ns"]),
        "activities_left_out": timeline["left_out"],
        "mean_ns_by_row": {one["row"]: one["mean_ns"] for one in about["budget_rows"]},
    }
    yield Track("step", [Slice(0, _length_ns(about), f"{step} of {side}", "step", where)])
    yield from timeline_tracks(timeline, start_ns=0)
