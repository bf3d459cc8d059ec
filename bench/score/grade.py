"""Verdicts and walls of scored runs -> figures: pure functions over results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.score.naive import largest, without_compute
from bench.score.one import Result
from bench.score.truth import WALL_FRAC, WALLS, Verdict, right_words, verdict

BINS: Final = ((0.0, 0.03), (0.03, 0.05), (0.05, 0.10), (0.10, 0.20), (0.20, 2.0))
"""Margins between the two largest true costs, as fractions of the steps."""
CLEAR_MARGIN: Final = 0.05
AT_LIMIT: Final = 0.015
"""A largest true cost that near the limit of a wall is a matter of the limit."""


@dataclass(frozen=True, slots=True)
class Count:
    """So many of so many."""

    hits: int
    of: int


@dataclass(frozen=True, slots=True)
class WallScore:
    """One wall over many runs. `abstained`: unmeasurable though the recording shows it."""

    wall: str
    precision: Count
    recall: Count
    abstained: int


@dataclass(frozen=True, slots=True)
class MarginScore:
    """Verdicts of runs of one margin. `at_limit`: of the wrong ones, those with a cost at a wall's limit."""

    low: float
    high: float
    right: Count
    abstained: int
    at_limit: int
    naive: int
    naive_without_compute: int


def true_verdict(result: Result) -> Verdict | None:
    """The true verdict over walls that the recording shows; None where it hides all."""
    if set(result.hidden) == set(WALLS):
        return None
    return verdict(result.true_frac, retries=result.retries, hidden=result.hidden)


def is_right(result: Result) -> bool:
    """Whether the verdict is the true one, or truly too near to it to tell apart."""
    truth = true_verdict(result)
    return truth is not None and (result.wall == truth.wall or result.wall in truth.near)


def words_for(result: Result) -> frozenset[str | None]:
    """Every verdict that is right for a run whose recording shows some wall."""
    return right_words(result.true_frac, retries=result.retries, hidden=result.hidden)


def clear_runs(results: Iterable[Result]) -> list[Result]:
    """Runs with one right verdict: 3 points before the next and from a wall's limit, or 3 points below it."""
    return [result for result in told_runs(results) if len(words_for(result)) == 1]


def close_runs(results: Iterable[Result]) -> list[Result]:
    """Runs with more than one."""
    return [result for result in told_runs(results) if len(words_for(result)) > 1]


def says_right(result: Result) -> bool:
    """Whether the verdict is right; where it is close, a right word among those it is tied with will do."""
    words = words_for(result)
    return result.wall in words or (len(words) > 1 and bool(words & set(result.tied_with)))


def next_told(results: Iterable[Result]) -> list[Result]:
    """Runs with a second wall, truly, of which a first was said."""
    return [result for result in results if _next_seen(result)]


def next_is_right(result: Result) -> bool:
    """Whether the wall said to come next is one that truly may, once the first is gone."""
    return result.next_wall in right_words(_next_seen(result))


def _next_seen(result: Result) -> dict[str, float]:
    return {wall: frac for wall, frac in result.next_frac.items() if wall not in result.hidden}


def abstained(result: Result, wall: str) -> bool:
    """Whether a wall was not judged. A memory wall whose price was told to be small was."""
    if result.told.get(wall) != "unmeasurable":
        return False
    price = result.found_frac.get(wall)
    return wall != "memory" or price is None or price >= WALL_FRAC


def is_wall(result: Result, wall: str) -> bool:
    """Whether a wall truly is one."""
    return result.true_frac[wall] >= WALL_FRAC or (wall == "memory" and result.retries)


def told_runs(results: Iterable[Result]) -> list[Result]:
    """Runs whose true verdict the recording can show; the rest is `hiding`."""
    kept = []
    for result in results:
        truth = true_verdict(result)
        if result.error or truth is None:
            continue
        if truth.wall in result.veiled and abstained(result, str(truth.wall)):
            continue
        kept.append(result)
    return kept


def by_margin(results: Sequence[Result], bins: Sequence[tuple[float, float]] = BINS) -> list[MarginScore]:
    """Verdicts by the margin between the two largest true costs."""
    told = [(result, truth) for result in told_runs(results) if (truth := true_verdict(result))]
    return [
        _margin(low, high, [one for one in told if low <= one[1].margin_frac < high]) for low, high in bins
    ]


def _margin(low: float, high: float, told: Sequence[tuple[Result, Verdict]]) -> MarginScore:
    wrong = [(result, truth) for result, truth in told if not is_right(result)]
    silent = sum(truth.wall is not None and abstained(result, truth.wall) for result, truth in wrong)
    at_limit = sum(abs(max(result.true_frac.values()) - WALL_FRAC) < AT_LIMIT for result, _ in wrong)
    naive = sum(largest(result.raw) in (truth.wall, *truth.near) for result, truth in told)
    fairer = sum(without_compute(result.raw) in (truth.wall, *truth.near) for result, truth in told)
    right = Count(len(told) - len(wrong), len(told))
    return MarginScore(low, high, right, silent, at_limit, naive, fairer)


def near_ties(results: Sequence[Result]) -> Count:
    """Runs with two walls of nearly equal true cost: in how many the verdict names all of them."""
    told = [(result, truth) for result in told_runs(results) if (truth := true_verdict(result))]
    tied = [(result, {truth.wall, *truth.near}) for result, truth in told if truth.near]
    return Count(sum(walls <= {result.wall, *result.tied_with} for result, walls in tied), len(tied))


def ties_said(results: Sequence[Result]) -> Count:
    """Of runs with a margin of 5 points and more, those in which the verdict says that another is tied."""
    clear = [
        result
        for result in told_runs(results)
        if (truth := true_verdict(result)) and truth.wall and truth.margin_frac >= CLEAR_MARGIN
    ]
    return Count(sum(bool(result.tied_with) for result in clear), len(clear))


def by_wall(results: Sequence[Result]) -> list[WallScore]:
    """Precision and recall of each wall, over runs whose recording shows it."""
    return [_wall(wall, [result for result in results if not result.error]) for wall in WALLS]


def _wall(wall: str, results: Sequence[Result]) -> WallScore:
    seen = [result for result in results if wall not in result.hidden]
    silent = [result for result in seen if abstained(result, wall)]
    excused = [result for result in silent if wall in result.veiled]
    found = [result for result in seen if result.told[wall] == "finding"]
    real = [result for result in seen if is_wall(result, wall) and result not in excused]
    return WallScore(
        wall,
        Count(sum(is_wall(result, wall) for result in found), len(found)),
        Count(sum(result.told[wall] == "finding" for result in real), len(real)),
        len(silent) - len(excused),
    )


def false_alarms(results: Sequence[Result]) -> Count:
    """Runs without any wall: in how many one was found all the same."""
    quiet = [
        result for result in results if not result.error and not any(is_wall(result, wall) for wall in WALLS)
    ]
    return Count(sum("finding" in result.told.values() for result in quiet), len(quiet))


def roomy(results: Sequence[Result]) -> Count:
    """Memory below the limit where its use was recorded: in how many runs it is said to be clear."""
    told = [
        result.told["memory"]
        for result in results
        if not result.error
        and result.recorded.get("memory") == "True"
        and "memory" not in (*result.hidden, *result.veiled)
        and not is_wall(result, "memory")
    ]
    return Count(told.count("clear"), len(told))


def hiding(results: Sequence[Result]) -> Count:
    """Walls that a recording hides whole: how many of them are said to be unmeasurable, or truly clear."""
    hidden = [(result, wall) for result in results if not result.error for wall in result.hidden]
    return Count(sum(unmeasurable_or_clear(*one) for one in hidden), len(hidden))


def unmeasurable_or_clear(result: Result, wall: str) -> bool:
    """Whether a wall is said to be unmeasurable, or clear where it truly is none: its bound may show that."""
    told = result.told[wall]
    return told == "unmeasurable" or (told == "clear" and not is_wall(result, wall))


def veiled_clear(results: Sequence[Result]) -> Count:
    """True walls that a recording hides in part: how many of them are said to be clear."""
    walls = [
        (result, wall)
        for result in results
        if not result.error
        for wall in result.veiled
        if wall not in result.hidden and is_wall(result, wall)
    ]
    return Count(sum(result.told[wall] == "clear" for result, wall in walls), len(walls))
