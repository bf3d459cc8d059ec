"""What the families of runs show: figures over scored runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.score import distance, grade
from bench.score.causes import CAUSES, KINDS
from bench.score.grade import Count, is_wall
from bench.score.lines import RESIDUAL_FREE
from bench.score.one import Result
from bench.score.truth import WALLS, verdict

SPELLING_NEAR: Final = 0.01


def spelled_alike(results: Sequence[Result]) -> Count:
    """Groups of one run in several spellings: in how many walls, verdict and shares agree."""
    groups = grouped(results)
    return Count(sum(_alike(group) for group in groups.values()), len(groups))


def grouped(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Results by their group."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.group, []).append(result)
    return groups


def _alike(group: Sequence[Result]) -> bool:
    """One verdict with what it is tied with, or, where the truths themselves differ, each its own."""
    if any(one.error for one in group) or spelling_spread(group) > SPELLING_NEAR:
        return False
    true = [verdict(one.true_frac, retries=one.retries, hidden=one.hidden).wall for one in group]
    named = {frozenset((one.wall, *one.tied_with)) for one in group}
    return len({one.wall for one in group}) == 1 or len(named) == 1 or [one.wall for one in group] == true


def spelling_spread(group: Sequence[Result]) -> float:
    """How far the costs of one run in several spellings lie apart, beyond what they truly do (a fraction).

    Spellings differ a little in truth: how the host learns the token counts is part of the spelling.
    """
    widest = 0.0
    for wall in WALLS:
        told = [
            found - one.true_frac[wall] for one in group if (found := one.found_frac.get(wall)) is not None
        ]
        widest = max(widest, max(told) - min(told)) if told else widest
    return widest


@dataclass(frozen=True, slots=True)
class FamilyScore:
    """A family, what it must show, and in how many of its runs or groups it does."""

    asked: str
    held: Count


def family_scores(results: Sequence[Result]) -> list[FamilyScore]:
    """What each family must show."""
    of = {name: [one for one in results if one.family == name] for name in _FAMILIES}
    blind = [one for one in of["broken"] if set(one.hidden) == set(WALLS)]
    partly = [one for one in of["broken"] if set(one.hidden) != set(WALLS)]
    return [
        FamilyScore("a tuned MoE run has no wall", _quiet(of["healthy"])),
        FamilyScore("a dense run has no wall", _quiet(of["dense"])),
        FamilyScore(
            "one run spelled with NCCL, DeepEP and HybridEP: one verdict, shares to 1 point",
            spelled_alike(of["spelled"]),
        ),
        FamilyScore("one model: H100 bound by communication, GB200 by the host", _two_gpus(of["two GPUs"])),
        FamilyScore(
            "hidden communication, a host that only waits, persistent kernels: no such wall",
            _each(of["harmless"], lambda one: one.told[one.group] != "finding"),
        ),
        FamilyScore(
            "captures without calls or graphs: all walls unmeasurable, or truly clear",
            _each(blind, lambda one: all(grade.unmeasurable_or_clear(one, wall) for wall in WALLS)),
        ),
        FamilyScore(
            "captures that hide a part: the hidden wall unmeasurable, or truly clear, no true wall clear",
            _each(partly, _honest),
        ),
    ]


@dataclass(frozen=True, slots=True)
class CauseScore:
    """A family of `CAUSES`: how often what is said of its runs is right. `costs`: by wall, to 1.5 points.

    `kinds`: of the runs with one true verdict of that wall; `hidden`: walls that must be unmeasurable.
    """

    family: str
    verdicts: Count
    kinds: Count
    hidden: Count
    steps: Count
    step_times: Count
    data: Count
    costs: Sequence[Count]
    rows: Count
    replays: Count


def cause_scores(results: Iterable[Result]) -> list[CauseScore]:
    """Every family of `CAUSES` that was run."""
    of = {family: [one for one in results if one.family == family] for family in CAUSES}
    return [_cause(family, runs) for family, runs in of.items() if runs]


def _cause(family: str, runs: Sequence[Result]) -> CauseScore:
    done = [one for one in runs if not one.error]
    priced = {wall: [one for one in done if distance.is_told(one, wall)] for wall in WALLS}
    near = [
        sum(distance.cost_error(one, wall) <= distance.COST_NEAR for one in priced[wall]) for wall in WALLS
    ]
    accounts = [off for one in done if (off := distance.rows_off(one)) is not None]
    errors = [error for one in done if (error := one.proofs["residual_free_error_frac"]) is not None]
    return CauseScore(
        family,
        Count(sum(map(grade.says_right, grade.told_runs(runs))), len(runs)),
        _kinds(family, done),
        Count(
            sum(one.told[wall] == "unmeasurable" for one in done for wall in one.hidden),
            sum(len(one.hidden) for one in runs),
        ),
        Count(sum(map(distance.steps_as_defined, done)), len(runs)),
        Count(sum(map(distance.step_time_near, done)), len(runs)),
        _data(runs),
        [
            Count(hits, sum(wall not in one.hidden for one in runs))
            for wall, hits in zip(WALLS, near, strict=True)
        ],
        Count(sum(not off for off in accounts), sum(not one.hidden for one in runs)),
        Count(sum(error <= RESIDUAL_FREE for error in errors), len(runs)),
    )


def _kinds(family: str, done: Sequence[Result]) -> Count:
    wall, kinds = KINDS.get(family, ("", frozenset()))
    walled = [one for one in done if grade.words_for(one) == {wall}]
    return Count(sum(one.wall == wall and one.kind in kinds for one in walled), len(walled))


def _data(runs: Sequence[Result]) -> Count:
    """Of the runs in which waiting for data truly costs a point and more."""
    waiting = [one for one in runs if one.data_frac[1] >= _SOME_FRAC]
    return Count(sum(map(distance.data_near, waiting)), len(waiting))


_SOME_FRAC: Final = 0.01
_FAMILIES: Final = ("healthy", "dense", "spelled", "two GPUs", "harmless", "broken")
_EXPECTED: Final = {"H100": "communication", "GB200": "host_overhead"}


def _each(results: Sequence[Result], holds: Callable[[Result], bool]) -> Count:
    return Count(sum(not one.error and holds(one) for one in results), len(results))


def _quiet(results: Sequence[Result]) -> Count:
    """Of the runs that truly have no wall, those in which none is found."""
    quiet = [one for one in results if not any(is_wall(one, wall) for wall in WALLS)]
    return _each(quiet, lambda one: one.wall is None and "finding" not in one.told.values())


def _two_gpus(results: Sequence[Result]) -> Count:
    groups = grouped(results).values()
    return Count(sum(all(one.wall == _EXPECTED[one.name] for one in group) for group in groups), len(groups))


def _honest(result: Result) -> bool:
    hidden = all(grade.unmeasurable_or_clear(result, wall) for wall in result.hidden)
    return hidden and not any(result.told[wall] == "clear" and is_wall(result, wall) for wall in WALLS)
