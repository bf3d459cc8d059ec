"""The top of an analysis: what can be saved at most, how sure that is, and the four walls as cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from heuristics.result.judged import Wall
from heuristics.result.result import Result
from heuristics.result.told import known
from reports.content.quantities import milliseconds, percent, saving
from reports.words import wall_words

_STATES: Final = {
    "finding": "10 % or more: a bottleneck",
    "clear": "below 10 %",
    "unmeasurable": "cannot be told from this recording",
}


@dataclass(frozen=True, slots=True)
class Hero:
    """The large figure, what it is of, and the confidence."""

    most: str
    of: str
    confidence: str


@dataclass(frozen=True, slots=True)
class Card:
    """One wall; `severity` is its class in the style sheet, `width` its bar in percent."""

    id: str
    name: str
    most: str
    amount: str
    state: str
    severity: str
    width: str


def hero_of(result: Result) -> Hero | None:
    """Of the wall of the verdict, else of the largest; None where none could be measured."""
    costs = {wall.id: cost for wall in result.walls if (cost := known(wall.cost_frac)) is not None}
    if not costs:
        return None
    decided = known(result.verdict.wall)
    wall = decided if decided in costs else max(costs, key=lambda one: costs[one])
    of = f"of the time, if {wall_words(wall)} cost nothing"
    return Hero(saving(None, costs[wall]), of, known(result.verdict.confidence) or "unknown")


def cards_of(result: Result) -> list[Card]:
    """All walls, those that cost most first."""
    ordered = sorted(result.walls, key=lambda one: -(known(one.cost_frac) or -1))
    return [_card(result, wall) for wall in ordered]


def _card(result: Result, wall: Wall) -> Card:
    cost = known(wall.cost_frac)
    name = wall_words(wall.id).capitalize()
    most = "unknown" if cost is None else percent(cost)
    amount = "" if cost is None else _amount(result, cost)
    severity = wall.outcome
    if wall.outcome == "finding":
        severity = "severe" if wall.id == known(result.verdict.wall) else "notable"
    return Card(wall.id, name, most, amount, _STATES[wall.outcome], severity, f"{100 * (cost or 0):.2f}%")


def _amount(result: Result, cost_frac: float) -> str:
    """The same in ms per step, of the first rank."""
    rank = result.ranks[0]
    steps = len(rank.steps.used)
    time = milliseconds(cost_frac * rank.budget_ns.window / (steps or 1))
    return f"{time} ms per step" if steps else f"{time} ms"
