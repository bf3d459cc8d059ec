"""Verdict and walls of a ticket: what holds the run back, what it costs at most, where that shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.document import Document
from reports.markdown_blocks import Block, Line, Strong, folded, items, table
from reports.sentences import outcome_words, replay_sentences, verdict_sentences, wall_sentence
from reports.words import kind_words, milliseconds, percent, seconds, wall_words

_SHOWN_KINDS: Final = 4
_SHOWN_PLACES: Final = 2


def verdict_blocks(document: Document) -> Iterator[Block]:
    """The wall or none, how sure, what bounds the run."""
    yield Line((Strong(wall_sentence(document)),))
    yield from items(verdict_sentences(document))


def wall_blocks(document: Document) -> Iterator[Block]:
    """What each wall costs at most, and where it shows; the evidence folded."""
    count = _step_count(document)
    per = f"At most, ms per step (mean of {count})" if count else "At most, ms of all windows"
    walls = sorted(document["walls"], key=lambda one: -(one["cost_frac"] or 0))
    rows = [(wall_words(one["id"]), outcome_words(one), *_cost(one, count)) for one in walls]
    yield Line("What each wall costs at most, by replay without its handicap:")
    yield from table(["Wall", "Outcome", per, "Share"], rows, numbers=2)
    found = [said for one in walls if one["outcome"] == "finding" for said in _finding(one, count)]
    places = [said for one in walls if one["outcome"] == "finding" for said in _places(one)]
    proofs = list(replay_sentences(document))
    is_sure = document["verdict"]["confidence"] is not None
    shown = [] if is_sure else proofs[:1]
    yield from items([*found, *places[:_SHOWN_PLACES], *_unmeasurable(walls), *shown])
    yield from folded(
        "Evidence of each wall", _evidence_blocks(walls, [*places[_SHOWN_PLACES:], *proofs[len(shown) :]])
    )


def _cost(wall: dict[str, Any], count: int) -> tuple[str, str]:
    """In ms, of a step where it can be divided by their count, and as a share."""
    if wall["cost_frac"] is None:
        return "not told", "not told"
    return f"{wall['cost_ns'] / (count or 1) / 1e6:,.3f}", percent(wall["cost_frac"])


def _step_count(document: Document) -> int:
    """Steps a cost is divided by; none where several ranks have a part in it."""
    ranks = document["ranks"]
    return len(ranks[0]["steps"]["used"]) if len(ranks) == 1 else 0


def _finding(wall: dict[str, Any], count: int) -> Iterator[str]:
    """What it is made of."""
    parts = sorted((wall["cost_by_kind_ns"] or {}).items(), key=lambda part: -part[1])[:_SHOWN_KINDS]
    if parts:
        alone = ", ".join(f"{kind_words(kind)} {ns / (count or 1) / 1e6:,.3f}" for kind, ns in parts)
        per = "ms per step" if count else "ms of all windows"
        yield f"{wall_words(wall['id'])}, each kind alone (they overlap), {per}: {alone}"


def _places(wall: dict[str, Any]) -> Iterator[str]:
    for one in wall["evidence"]:
        if one["start_ns"] is not None:
            value = _value(one["value"], one["unit"])
            yield f"Where to look for {wall_words(wall['id'])}: {one['because']}, {value}, {_where(one)}"


def _unmeasurable(walls: list[dict[str, Any]]) -> Iterator[str]:
    """Why walls could not be measured, those of one reason together."""
    reasons: dict[str, list[str]] = {}
    for wall in walls:
        if wall["outcome"] == "unmeasurable":
            reasons.setdefault("; ".join(wall["missing"]), []).append(wall_words(wall["id"]))
    for reason, names in reasons.items():
        named = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
        yield f"Not measurable: {named}. {reason[:1].upper()}{reason[1:]}."


def _evidence_blocks(walls: list[dict[str, Any]], also: list[str]) -> Iterator[Block]:
    headers = ["Wall", "Measure", "Where", "Because", "Value", "Limit"]
    rows = [_evidence(wall, one) for wall in walls for one in wall["evidence"]]
    yield from table(headers, rows, numbers=2)
    yield from items(also)


def _evidence(wall: dict[str, Any], one: dict[str, Any]) -> list[str]:
    limit = "" if one["limit"] is None else _value(one["limit"], one["unit"])
    value = _value(one["value"], one["unit"])
    because = f"{one['because']} ({one['unit']})"
    return [wall_words(wall["id"]), one["measure"], _where(one), because, value, limit]


def _where(one: dict[str, Any]) -> str:
    """Rank, step, and the stretch as the nsys GUI shows it and in ns."""
    said = [f"{key} {one[key]}" for key in ("rank", "step") if one[key] is not None]
    start_ns, end_ns = one["start_ns"], one["end_ns"]
    if start_ns is not None and end_ns is not None:
        said.append(f"{seconds(start_ns)} to {seconds(end_ns)} ({start_ns} to {end_ns} ns)")
    return ", ".join(said)


def _value(value: float, unit: str) -> str:
    if unit.startswith("fraction"):
        return percent(value)
    return f"{milliseconds(int(value))} ms" if unit == "ns" else f"{value:,}"
