"""The top of the page: the wall, how sure, what bounds the run, and what each wall costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from reports.html.section import UNTOLD, Table, exact_ms, sentence, short_ms
from reports.sentences import origin, outcome_words, replay_sentences, verdict_sentences, wall_sentence, who
from reports.words import kind_words, percent, printable, seconds, wall_words

_SHOWN_KINDS: Final = 4
_SHOWN_TRACES: Final = 8
_SHOWN_DROPPED: Final = 4
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict in sentences, its walls in a table, and what else stands behind it."""

    wall: str
    said: tuple[str, ...]
    why: Table
    proofs: tuple[str, ...]
    evidence: Table


def _summed(document: Document) -> str:
    steps = sum(len(rank["steps"]["used"]) for rank in document["ranks"][:1])
    return f"the sum of {steps} steps" if steps > 1 else "of one step" if steps else "of the window"


def verdict_of(document: Document) -> Verdict:
    """Of the whole document."""
    walls = sorted(document["walls"], key=lambda one: -(one["cost_frac"] or 0))
    headers = ("Wall", "Outcome", "At most, ms", "Share")
    caption = f"What each wall costs at most, by replay without its handicap; {_summed(document)}"
    evidence = tuple(_evidence(wall, one) for wall in walls for one in wall["evidence"])
    return Verdict(
        wall=sentence(wall_sentence(document)),
        said=tuple(verdict_sentences(document)),
        why=Table(caption, headers, tuple(map(_wall, walls)), 2),
        proofs=(*_kinds(walls), *_untold(walls), *replay_sentences(document)),
        evidence=Table(
            "Evidence of each wall",
            ("Wall", "Measure", "Where", "Because", "Value", "Limit"),
            evidence,
            2,
        ),
    )


def titles(document: Document) -> tuple[str, ...]:
    """What was read: every trace, and how its first rank was cut into steps."""
    traces = document["traces"]
    named = [f"{printable(trace['name'], 80)}: {origin(trace)}." for trace in traces[:_SHOWN_TRACES]]
    if (more := len(traces) - _SHOWN_TRACES) > 0:
        named.append(f"And {more} more.")
    return (*named, _steps(document["ranks"][0], len(document["ranks"])))


def _steps(rank: dict[str, Any], count: int) -> str:
    steps, windows = rank["steps"], rank["windows_ns"]
    where = f"{seconds(windows[0][0])} to {seconds(windows[-1][1])}"
    of = f"{who(rank)}{f', the first of {count} ranks' if count > 1 else ''}"
    if not steps["used"]:
        return f"{of}: one window, {where}: {printable(steps['what'], 120)}."
    spread = ", ".join(f"{key} {short_ms(steps[f'{key}_ns'])}" for key in ("median", "min", "max"))
    left_out = [
        f"step {one['index']} left out ({one['reason']})" for one in steps["dropped"][:_SHOWN_DROPPED]
    ]
    if (more := len(steps["dropped"]) - _SHOWN_DROPPED) > 0:
        left_out.append(f"{more} more left out")
    if steps["slow"]:
        left_out.append(f"slow steps {', '.join(map(str, steps['slow']))} left out of the median")
    number = len(steps["used"])
    found = f"{number} step{'s' if number > 1 else ''} by {printable(steps['what'], 120)}"
    said = f"{of}: {found}: {spread} ms, {where}"
    return f"{'; '.join([said, *left_out])}."


def _wall(wall: dict[str, Any]) -> tuple[str, ...]:
    name, outcome = wall_words(wall["id"]), outcome_words(wall)
    if wall["cost_frac"] is None:
        return (name, outcome, UNTOLD, UNTOLD)
    return (name, outcome, exact_ms(wall["cost_ns"]), percent(wall["cost_frac"]))


def _untold(walls: list[dict[str, Any]]) -> Iterator[str]:
    """Why a cost is not told, and the price of what could be priced."""
    for wall in walls:
        if wall["cost_frac"] is None and wall["missing"]:
            price = [one["value"] for one in wall["evidence"] if one["measure"] == "cost_frac"]
            priced = f" Price: {percent(price[0])}." if price else ""
            name = sentence(wall_words(wall["id"])).removesuffix(".")
            yield f"{name}, not measurable: {'; '.join(wall['missing'])}.{priced}"


def _kinds(walls: list[dict[str, Any]]) -> Iterator[str]:
    for wall in walls:
        parts = sorted((wall["cost_by_kind_ns"] or {}).items(), key=lambda part: -part[1])
        if parts and wall["outcome"] == "finding":
            alone = "; ".join(f"{kind_words(kind)} {exact_ms(ns)}" for kind, ns in parts[:_SHOWN_KINDS])
            name = wall_words(wall["id"])
            yield f"{name[:1].upper()}{name[1:]}, each kind alone (they overlap), ms: {alone}."


def _evidence(wall: dict[str, Any], one: dict[str, Any]) -> tuple[str, ...]:
    said = [f"{key} {one[key]}" for key in ("rank", "step") if one[key] is not None]
    if one["start_ns"] is not None and one["end_ns"] is not None:
        said.append(f"{seconds(one['start_ns'])} to {seconds(one['end_ns'])}")
    limit = "" if one["limit"] is None else _value(one["limit"], one["unit"])
    because = f"{one['because']} ({one['unit']})"
    value = _value(one["value"], one["unit"])
    return (wall_words(wall["id"]), one["measure"], ", ".join(said), because, value, limit)


def _value(value: float, unit: str) -> str:
    if unit.startswith("fraction"):
        return percent(value)
    return f"{exact_ms(int(value))} ms" if unit == "ns" else f"{value:,}"
