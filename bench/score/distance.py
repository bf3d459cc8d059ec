"""How far costs, rows of the account and steps are from the truth, over scored runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from bench.score.grade import BINS, CLEAR_MARGIN, Count, by_margin
from bench.score.one import Result
from bench.score.truth import WALLS

COST_NEAR: Final = 0.015
ROW_NEAR: Final = 0.02
STEP_TIME_NEAR: Final = 0.01
CEILING_TIMES: Final = 1.5
CEILING_SLACK: Final = 0.005
"""A ceiling may be so much below the truth, and so much above one under a point, of which half is nothing."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How far values are from the truth, as fractions: how many are `near`, median, 95th percentile, most."""

    near: Count
    middle: float
    p95: float
    most: float


def cost_errors(results: Sequence[Result], wall: str) -> Spread | None:
    """How far the cost of a wall is from the true one; None where none was told."""
    return _spread(_cost_errors(results, wall), COST_NEAR)


def _cost_errors(results: Sequence[Result], wall: str) -> list[float]:
    return [cost_error(result, wall) for result in results if is_told(result, wall)]


def is_told(result: Result, wall: str) -> bool:
    """Whether a wall that the recording shows was given a cost."""
    return wall not in result.hidden and result.found_frac.get(wall) is not None


def cost_error(result: Result, wall: str) -> float:
    """How far a cost that was told is from the truth."""
    return abs((result.found_frac[wall] or 0.0) - result.true_frac[wall])


def compute_told(results: Iterable[Result]) -> list[Result]:
    """Runs whose compute was given a ceiling."""
    return [result for result in results if is_told(result, "compute")]


def compute_is_ceiling(result: Result) -> bool:
    """Whether the true saving lies under the ceiling, and the ceiling at most half as much above it."""
    found, true = result.found_frac["compute"] or 0.0, result.true_frac["compute"]
    return true - CEILING_SLACK <= found <= max(CEILING_TIMES * true, true + CEILING_SLACK)


def rows_off(result: Result) -> list[str] | None:
    """Rows of the account that are more than 2 points off; None where the account was not told."""
    told = [(row, found, true) for row, (found, true) in result.rows.items() if found is not None]
    if set(result.hidden) == set(WALLS) or len(told) < len(result.rows) or not told:
        return None
    return [row for row, found, true in told if abs(found - true) > ROW_NEAR]


def steps_exact(result: Result) -> bool:
    """Whether every step that was recorded whole was found by its borders, and nothing else was used."""
    return result.steps_found == result.steps_true and not result.steps_wrong


def steps_as_defined(result: Result) -> bool:
    """The same, and every step was used but a first one that is warm-up; hiccups may be left out as well."""
    left_out = result.steps_usable - result.steps_used
    return steps_exact(result) and left_out in (0, result.steps_slow)


def step_time_near(result: Result) -> bool:
    """Whether the typical length of a step is true within 1 %."""
    found, true = result.step_ns
    return found is not None and abs(found - true) <= STEP_TIME_NEAR * true


def data_near(result: Result) -> bool:
    """Whether what waiting for data costs is true within 1.5 points."""
    found, true = result.data_frac
    return found is not None and abs(found - true) <= COST_NEAR


def row_errors(results: Sequence[Result], row: str) -> Spread | None:
    """How far a row of the account is from the true one, over recordings that hide no wall whole."""
    return _spread(_row_errors(results, row), ROW_NEAR)


def _row_errors(results: Sequence[Result], row: str) -> list[float]:
    told = [result.rows.get(row, (None, 0.0)) for result in results if set(result.hidden) != set(WALLS)]
    return [abs(found - true) for found, true in told if found is not None]


def _spread(errors: Sequence[float], near: float) -> Spread | None:
    if not errors:
        return None
    ordered = sorted(errors)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return Spread(
        Count(sum(error <= near for error in errors), len(errors)), median(ordered), p95, ordered[-1]
    )


@dataclass(frozen=True, slots=True)
class RecordedScore:
    """Scores of the runs with one thing recorded in one way. `verdicts`: margins of 5 points and more."""

    what: str
    how: str
    runs: int
    verdicts: Count
    costs: Count
    rows: Count


def by_recorded(results: Sequence[Result]) -> list[RecordedScore]:
    """The scores by every property of the view, in its order."""
    done = [result for result in results if not result.error]
    properties = list(done[0].recorded) if done else []
    scores = []
    for what in properties:
        for how in sorted({result.recorded[what] for result in done}, key=_as_version):
            scores.append(_recorded(what, how, [one for one in done if one.recorded[what] == how]))
    return scores


def _as_version(text: str) -> tuple[tuple[int, ...], str]:
    return tuple(int(part) for part in text.split(".") if part.isdigit()), text


def _recorded(what: str, how: str, results: Sequence[Result]) -> RecordedScore:
    costs = [error for wall in WALLS for error in _cost_errors(results, wall)]
    rows = [error for row in row_names(results) for error in _row_errors(results, row)]
    (margin,) = by_margin(results, [(CLEAR_MARGIN, BINS[-1][1])])
    return RecordedScore(
        what, how, len(results), margin.right, _within(costs, COST_NEAR), _within(rows, ROW_NEAR)
    )


def _within(errors: Sequence[float], near: float) -> Count:
    return Count(sum(error <= near for error in errors), len(errors))


def row_names(results: Iterable[Result]) -> list[str]:
    """All rows of the account, in order."""
    return list(dict.fromkeys(row for result in results for row in result.rows))


@dataclass(frozen=True, slots=True)
class StepScore:
    """Steps of runs found in one way: `exactly` all, `partly` some, else none; `used` of all true steps."""

    source: str
    exactly: Count
    partly: int
    used: Count


def by_step_source(results: Sequence[Result]) -> list[StepScore]:
    """Step counts by the way they were found; recordings without calls apart, for they hide launches."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        if not result.error:
            blind = "" if result.recorded.get("calls", "True") == "True" else ", no calls recorded"
            groups.setdefault(f"{result.step_source}{blind}", []).append(result)
    return [
        StepScore(
            source,
            Count(sum(map(steps_exact, group)), len(group)),
            sum(0 < one.steps_found < one.steps_true for one in group),
            Count(sum(one.steps_used for one in group), sum(one.steps_true for one in group)),
        )
        for source, group in sorted(groups.items())
    ]
