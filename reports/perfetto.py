"""The document as a trace for ui.perfetto.dev or chrome://tracing: verdict, steps and lost time by stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.document import Document
from reports.redaction import redaction_sentence
from reports.sentences import fix_title, verdict_sentences, wall_sentence, who
from reports.timeline_tracks import timeline_tracks
from reports.trace_events import Args, Counter, Process, Slice, Track, render_events
from reports.words import kind_words, seconds, wall_words

_SHOWN: Final = 8
"""Ranks whose streams are shown: each may have 12,000 activities, 2 MB."""
_FIXES: Final = 3
_WHOLE: Final = (
    "budget_ns",
    "exposed_comm_by_kind_ns",
    "exposed_copy_by_kind_ns",
    "compute_by_class_ns",
    "absent_ns",
    "masked_ns",
    "hidden_comm_ns",
)
"""What is said of all windows together."""


def render_perfetto(document: Document, everything: bool = False) -> str:
    """A JSON object of the Trace Event Format: one process for the verdict, one a rank.

    Tracks of a rank: where evidence can be seen, steps, windows, expert all-to-all, why no compute ran, and
    the streams of one step; counters of each used step, in ms. `everything`: the streams of every rank, not
    of the first eight.
    """
    ranks = document["ranks"]
    shown = len(ranks) if everything else min(_SHOWN, len(ranks))
    processes = [Process("moe-diag: verdict", [*_verdict_tracks(document)])]
    for place, rank in enumerate(ranks):
        tracks = [*_own_tracks(document, place), *(_recorded_tracks(rank) if place < shown else ())]
        processes.append(Process(_name(document, rank), tracks, [*_counters(rank)]))
    return render_events(processes, _about(document, shown))


def _name(document: Document, rank: dict[str, Any]) -> str:
    return who(rank) if len(document["traces"]) == 1 else f"{who(rank)}, {rank['trace']}"


def _about(document: Document, shown: int) -> Args:
    """What wrote the file, and what is left out of it."""
    return {
        **document["tool"],
        "schema_version": document["schema_version"],
        "traces": [trace["name"] for trace in document["traces"]],
        "redaction": redaction_sentence(document),
        "ranks_without_streams": len(document["ranks"]) - shown,
        "activities_left_out": [
            rank["timeline"]["left_out"] for rank in document["ranks"][:shown] if rank.get("timeline")
        ],
    }


def _verdict_tracks(document: Document) -> Iterator[Track]:
    """The verdict and each wall, as long as all windows."""
    windows = [pair for rank in document["ranks"] for pair in rank["windows_ns"]]
    start_ns, end_ns = min(start for start, _ in windows), max(end for _, end in windows)
    said = {"because": [*verdict_sentences(document)]}
    yield Track("verdict", [Slice(start_ns, end_ns, wall_sentence(document), "verdict", said)])
    for wall in sorted(document["walls"], key=lambda one: -(one["cost_frac"] or 0)):
        name = f"{wall_words(wall['id'])}: {wall['outcome']}"
        yield Track(name, [Slice(start_ns, end_ns, name, wall["outcome"], _wall(document, wall))])


def _wall(document: Document, wall: dict[str, Any]) -> Args:
    """Its cost, the figures behind it, what is missing, and what to try first against it."""
    fixes = [one for one in document["fixes"] if one["wall"] == wall["id"]][:_FIXES]
    return {
        "cost_ns": wall["cost_ns"],
        "cost_frac": wall["cost_frac"],
        "cost_by_kind_ns": wall["cost_by_kind_ns"],
        "evidence": [
            {key: one[key] for key in ("measure", "value", "unit", "limit")} for one in wall["evidence"]
        ],
        "missing": wall["missing"],
        "cure": wall["cure"],
        "next": [f"{fix['id']} {fix_title(fix)}" for fix in fixes],
    }


def _own_tracks(document: Document, place: int) -> Iterator[Track]:
    """What was found of a rank: evidence, steps, windows."""
    rank = document["ranks"][place]
    for wall in document["walls"]:
        seen = [one for one in wall["evidence"] if one["start_ns"] is not None and one["rank"] == place]
        yield Track(f"{wall_words(wall['id'])}: where to look", [_evidence(wall, one) for one in seen])
    steps = rank["steps"]
    slow = [_step(one, "slow") for one in steps["used"] if one["index"] in steps["slow"]]
    used = [_step(one, "used") for one in steps["used"] if one["index"] not in steps["slow"]]
    left_out = [_step(one, f"left out: {one['reason']}") for one in steps["dropped"]]
    yield Track("slow steps", slow)
    yield Track("steps", used + slow + left_out)
    whole = {key: rank[key] for key in _WHOLE}
    yield Track(
        "windows", [Slice(start, end, "window", "window", whole) for start, end in rank["windows_ns"]]
    )


def _recorded_tracks(rank: dict[str, Any]) -> Iterator[Track]:
    """What ran on a rank: expert all-to-all of all windows, and one step by stream."""
    yield Track("expert all-to-all", [_span(one) for one in rank["a2a"]["spans"]] if rank["a2a"] else [])
    yield from timeline_tracks(rank.get("timeline"))  # results of earlier versions have none


def _evidence(wall: dict[str, Any], one: dict[str, Any]) -> Slice:
    said = {key: one[key] for key in ("value", "unit", "limit", "because", "step")}
    where = {"start": seconds(one["start_ns"]), "end": seconds(one["end_ns"])}
    return Slice(one["start_ns"], one["end_ns"], one["measure"], wall["id"], said | where)


def _step(one: dict[str, Any], state: str) -> Slice:
    where = {"state": state, "start": seconds(one["start_ns"]), "end": seconds(one["end_ns"])}
    category = state.partition(":")[0]
    return Slice(one["start_ns"], one["end_ns"], f"step {one['index']}, {state}", f"{category} step", where)


def _span(one: dict[str, Any]) -> Slice:
    """An exchange; an unknown direction is no phase."""
    place = {key: one[key] for key in ("step", "layer", "phase")}
    return Slice(one["start_ns"], one["end_ns"], kind_words(one["kind"]), one["kind"], place)


def _counters(rank: dict[str, Any]) -> Iterator[Counter]:
    """What the used steps are made of, and why no compute ran in them; nothing outside of them."""
    used, ledger = rank["steps"]["used"], rank.get("ledger")
    if not used or not ledger:
        return
    for name, group in (("used steps, ms", "budget"), ("no compute in used steps, ms", "absent")):
        series = _by_head([row for row in ledger if row["group"] == group])
        if series:
            yield Counter(name, [*_points(used, series)])


def _by_head(rows: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Rows added up by the first word of their names: one length a step."""
    added: dict[str, list[int]] = {}
    for row in rows:
        head, lengths = row["row"].partition(".")[0], row["per_step_ns"]
        added[head] = [sum(pair) for pair in zip(added.get(head, [0] * len(lengths)), lengths, strict=True)]
    return added


def _points(used: list[dict[str, Any]], series: dict[str, list[int]]) -> Iterator[tuple[int, dict[str, int]]]:
    for place, step in enumerate(used):
        yield step["start_ns"], {head: lengths[place] for head, lengths in series.items()}
        following = used[place + 1]["start_ns"] if place + 1 < len(used) else None
        if following != step["end_ns"]:
            yield step["end_ns"], dict.fromkeys(series, 0)
