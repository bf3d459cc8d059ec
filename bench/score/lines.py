"""What is asked of the diagnosis, line by line, and how often it holds: with step ranges and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.score import distance, grade
from bench.score.grade import Count
from bench.score.naive import largest, without_compute
from bench.score.one import Result
from bench.score.truth import WALLS

RESIDUAL_FREE: Final = 0.02
ELASTIC: Final = 0.40
"""A step that truly shrinks so much with half the GPU's work is bound by it."""
ELASTIC_NEAR: Final = 0.05
GRADED: Final = ("drawn", "steps", "scenarios")
"""Families that the lines are counted over: the others each show one thing of their own."""
ACCUMULATION: Final = ((1, 4), (5, 12), (13, 32))
_SPOILT: Final = "broken"
"""Scenarios whose captures hide walls: only what they hide is asked of them."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing asked, how often it must hold, and how often it does with step ranges recorded or not."""

    what: str
    asked: str
    ranges: Count
    bare: Count


def lines(results: Iterable[Result]) -> list[Line]:
    """Every line, over runs that were diagnosed."""
    runs = [one for one in results if one.family in GRADED and not one.error]
    whole = [one for one in runs if one.group != _SPOILT]
    clear, close = grade.clear_runs(whole), grade.close_runs(whole)
    return [
        _line("verdict, where it is clear", "99 %", clear, grade.says_right),
        _line("verdict, where it is close", "", close, grade.says_right),
        _line("naive, where it is clear: largest share", "under 75 %", clear, _naive(largest)),
        _line("the same without compute", "", clear, _naive(without_compute)),
        *_steps(whole),
        _line("costs of communication, host, memory, all in one trace", "95 %", *_near(whole, _CEILINGS)),
        *(_line(f"cost of {wall}", "95 %", *_near(whole, (wall,))) for wall in _CEILINGS),
        _line("cost of compute", "95 %", distance.compute_told(whole), distance.compute_is_ceiling),
        *_rows(whole),
        _line("next wall, where two are walls", "90 %", grade.next_told(whole), grade.next_is_right),
        _line("replay without unexplained waits within 2 %", "all", *_proved(whole)),
        _line("bound by the GPU: elastic, or no wall clear", "all", list(filter(_bound, whole)), _elastic),
        _line("elastic figure within 5 points", "", list(filter(_replayed, whole)), _elastic_near),
        _line("scenario truly as built", "all", _scenarios(runs), lambda one: one.as_built is True),
    ]  # fmt: skip


_CEILINGS: Final = tuple(wall for wall in WALLS if wall != "compute")
_Holds = Callable[[Result], bool]


def _line(what: str, asked: str, runs: Sequence[Result], holds: _Holds) -> Line:
    ranges = [one for one in runs if one.recorded["ranges"] != "none"]
    bare = [one for one in runs if one.recorded["ranges"] == "none"]
    return Line(what, asked, _count(ranges, holds), _count(bare, holds))


def _count(runs: Sequence[Result], holds: _Holds) -> Count:
    return Count(sum(map(holds, runs)), len(runs))


def _naive(rule: Callable[[dict[str, float]], str | None]) -> _Holds:
    return lambda one: rule(dict(one.raw)) in grade.words_for(one)


def _steps(whole: Sequence[Result]) -> list[Line]:
    """Runs without calls are left out: what a range launched cannot be told there."""
    runs = [one for one in whole if one.recorded["calls"] == "True"]
    groups: list[tuple[str, _Holds]] = [
        ("no wait at a step's end", lambda one: one.made["end of step"] == "none"),
        ("two optimizers", lambda one: one.made["optimizers"] != "adam"),
        *((f"accumulation {low} to {high}", _accumulated(low, high)) for low, high in ACCUMULATION),
        ("cut captures", lambda one: one.recorded["cut"] != "no"),
    ]
    return [
        _line("steps: every whole one, no other", "99 %", runs, distance.steps_exact),
        *(
            _line(f"steps: {name}", "99 %", list(filter(of, runs)), distance.steps_exact)
            for name, of in groups
        ),
    ]


def _accumulated(low: int, high: int) -> _Holds:
    return lambda one: low <= int(one.made["accumulation"]) <= high


def _near(whole: Sequence[Result], walls: Sequence[str]) -> tuple[list[Result], _Holds]:
    """Runs in which these walls can be and were priced, and whether all prices are near the truth."""
    told = [one for one in whole if all(distance.is_told(one, wall) for wall in walls)]
    return told, lambda one: all(distance.cost_error(one, wall) <= distance.COST_NEAR for wall in walls)


def _rows(whole: Sequence[Result]) -> list[Line]:
    """All rows of one account, and the row that is off most often."""
    told = [one for one in whole if distance.rows_off(one) is not None]
    off = Counter(row for one in told for row in distance.rows_off(one) or ())
    every = _line(
        "every row of the account within 2 points", "all", told, lambda one: not distance.rows_off(one)
    )
    worst = [row for row, _ in off.most_common(1)]
    return [every, *(_line(f"the worst row, {row}", "", told, _row_near(row)) for row in worst)]


def _row_near(row: str) -> _Holds:
    return lambda one: row not in (distance.rows_off(one) or ())


def _proved(whole: Sequence[Result]) -> tuple[list[Result], _Holds]:
    name = "residual_free_error_frac"
    told = [one for one in whole if one.proofs.get(name) is not None]
    return told, lambda one: (one.proofs[name] or 0.0) <= RESIDUAL_FREE


def _replayed(one: Result) -> bool:
    return one.proofs.get("elastic_frac") is not None


def _bound(one: Result) -> bool:
    return _replayed(one) and (one.proofs["true_elastic_frac"] or 0.0) >= ELASTIC


def _elastic(one: Result) -> bool:
    """A wall found all the same is at least as dear as that; none may be called clear."""
    found = one.proofs["elastic_frac"] or 0.0
    return found >= ELASTIC - ELASTIC_NEAR or "clear" not in one.told.values()


def _elastic_near(one: Result) -> bool:
    found, true = one.proofs["elastic_frac"] or 0.0, one.proofs["true_elastic_frac"] or 0.0
    return abs(found - true) <= ELASTIC_NEAR


def _scenarios(runs: Sequence[Result]) -> list[Result]:
    return [one for one in runs if one.as_built is not None]
