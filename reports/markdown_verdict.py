"""Verdict and walls, as GitHub markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.document import Document
from reports.markdown_marks import folded, plain, table
from reports.sentences import replay_sentences, verdict_sentences, wall_sentence
from reports.words import kind_words, milliseconds, percent, seconds, wall_words

_SHOWN_KINDS: Final = 4


def verdict_lines(document: Document) -> Iterator[str]:
    """The wall or none, how sure, what bounds the run."""
    yield from ("", "## Verdict", "", f"**{plain(wall_sentence(document))}**", "")
    yield from (f"- {plain(sentence)}" for sentence in verdict_sentences(document))


def wall_lines(document: Document) -> Iterator[str]:
    """What each wall costs at most; the evidence folded."""
    count = _step_count(document)
    per = f"At most, ms per step (mean of {count})" if count else "At most, ms of all windows"
    walls = sorted(document["walls"], key=lambda one: -(one["cost_frac"] or 0))
    rows, found = [], []
    for wall in walls:
        name = plain(wall_words(wall["id"]))
        rows.append([name, _outcome(wall), *_cost(wall, count)])
        if wall["outcome"] == "finding":
            found += [f"- {name}{said}" for said in _finding(wall)]
    yield from ("", "## Why", "", "What each wall costs at most, by replay without its handicap:", "")
    yield from table(["Wall", "Outcome", per, "Share"], rows, numbers=2)
    if found:
        yield from ("", *found)
    yield from ("", *(plain(said) for said in replay_sentences(document)))
    headers = ["Wall", "Measure", "Where", "Because", "Value", "Limit"]
    evidence = [_evidence(wall, one) for wall in walls for one in wall["evidence"]]
    yield from folded("Evidence of each wall", table(headers, evidence, numbers=2) if evidence else [])


def _outcome(wall: dict[str, Any]) -> str:
    if wall["outcome"] != "unmeasurable":
        return plain(wall["outcome"])
    return f"not measurable: {plain('; '.join(wall['missing']))}"


def _cost(wall: dict[str, Any], count: int) -> tuple[str, str]:
    """In ms, of a step where it can be divided by their count, and as a share."""
    if wall["cost_frac"] is None:
        return "not told", "not told"
    return f"{wall['cost_ns'] / (count or 1) / 1e6:,.3f}", percent(wall["cost_frac"])


def _step_count(document: Document) -> int:
    """Steps a cost is divided by; none where several ranks have a part in it."""
    ranks = document["ranks"]
    return len(ranks[0]["steps"]["used"]) if len(ranks) == 1 else 0


def _finding(wall: dict[str, Any]) -> Iterator[str]:
    """Its kinds, and where it can be seen."""
    parts = sorted((wall["cost_by_kind_ns"] or {}).items(), key=lambda part: -part[1])[:_SHOWN_KINDS]
    if parts:
        alone = ", ".join(f"{plain(kind_words(kind))} {milliseconds(ns)}" for kind, ns in parts)
        yield f", each kind alone (they overlap), ms of all steps: {alone}"
    for one in wall["evidence"]:
        if one["start_ns"] is not None:
            value = _value(one["value"], one["unit"])
            yield f", where to look: {plain(one['measure'])} {value}, {_where(one)}"


def _evidence(wall: dict[str, Any], one: dict[str, Any]) -> list[str]:
    limit = "" if one["limit"] is None else _value(one["limit"], one["unit"])
    value = _value(one["value"], one["unit"])
    return [
        plain(wall_words(wall["id"])),
        plain(one["measure"]),
        _where(one),
        f"{plain(one['because'])} ({plain(one['unit'])})",
        value,
        limit,
    ]


def _where(one: dict[str, Any]) -> str:
    """Rank, step, and the stretch as the nsys GUI shows it and in ns."""
    said = [f"{key} {one[key]}" for key in ("rank", "step") if one[key] is not None]
    start_ns, end_ns = one["start_ns"], one["end_ns"]
    if start_ns is not None and end_ns is not None:
        said.append(f"{seconds(start_ns)} to {seconds(end_ns)} ({start_ns} to {end_ns} ns)")
    return plain(", ".join(said))


def _value(value: float, unit: str) -> str:
    if unit.startswith("fraction"):
        return percent(value)
    return f"{milliseconds(int(value))} ms" if unit == "ns" else f"{value:,}"
