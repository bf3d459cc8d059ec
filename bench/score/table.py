"""Scores -> the markdown tables of the README."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.score import distance, grade, shown
from bench.score.distance import Spread
from bench.score.grade import Count, MarginScore
from bench.score.lines import lines
from bench.score.one import Result
from bench.score.truth import WALLS

_TOP = grade.BINS[-1][1]


def table(results: Sequence[Result], *, date: str, simulator: str, seeds: str) -> str:
    """All figures as markdown. `date` is an ISO date, `simulator` the hash of what simulated the runs."""
    drawn = [result for result in results if result.family == "drawn"]
    parts = [
        f"Scored on {date}: {len(drawn)} drawn runs, seeds {seeds}, simulator `{simulator}`; with "
        f"{_of(results, 'steps')} runs whose steps are hard to find and "
        f"{_of(results, 'scenarios')} of scenarios.",
        "",
        *_lines(results),
        "What follows is of the drawn runs alone.",
        "",
        *_head(drawn),
        *_verdicts(drawn),
        *_walls(drawn),
        *_rows(drawn),
        *_steps(drawn),
        *_recorded(drawn),
        *_families(results),
        *_causes(results),
    ]
    return "\n".join(parts) + "\n"


def _of(results: Sequence[Result], family: str) -> int:
    return sum(result.family == family for result in results)


def _lines(results: Sequence[Result]) -> Iterator[str]:
    yield from _header("asked", "of the runs", "with step ranges", "without")
    for line in lines(results):
        yield _line(line.what, line.asked, _count(line.ranges), _count(line.bare))
    yield ""


def _head(drawn: Sequence[Result]) -> Iterator[str]:
    alarms, hidden = grade.false_alarms(drawn), grade.hiding(drawn)
    veiled, ties, said = grade.veiled_clear(drawn), grade.near_ties(drawn), grade.ties_said(drawn)
    failed = [result for result in drawn if result.error]
    yield f"- False alarms: {_count(alarms)} of the runs in which nothing costs a tenth of the step."
    yield f"- Near ties (two walls, under 3 points apart) named as ties: {_count(ties)}."
    yield f"- Called tied at a true margin of 5 points and more: {_count(said)}."
    yield f"- Walls that the recording hides said to be unmeasurable, or truly clear: {_count(hidden)}."
    yield f"- True walls that it hides in part said to be clear: {_count(veiled)}."
    roomy = grade.roomy(drawn)
    yield f"- Memory below the limit, its use recorded, said to be clear: {_count(roomy)}."
    yield f"- Runs that could not be diagnosed: {len(failed)}."
    yield ""


def _verdicts(drawn: Sequence[Result]) -> Iterator[str]:
    yield from _header(
        "margin, points of the step", "verdict right", "abstained", "wrong, but at the 10 % limit",
        "naive: largest share", "naive, compute left out",
    )  # fmt: skip
    for score in grade.by_margin(drawn):
        high = "" if score.high >= _TOP else f" to {score.high * 100:.0f}"
        yield _margin(f"{score.low * 100:.0f}{high}" if high else f"over {score.low * 100:.0f}", score)
    (clear,) = grade.by_margin(drawn, [(grade.CLEAR_MARGIN, _TOP)])
    yield _margin("**5 and more**", clear)
    (every,) = grade.by_margin(drawn, [(0.0, _TOP)])
    yield _margin("all", every)
    yield ""


def _margin(name: str, score: MarginScore) -> str:
    of = score.right.of
    return _line(
        name, _count(score.right), str(score.abstained), str(score.at_limit),
        _count(Count(score.naive, of)), _count(Count(score.naive_without_compute, of)),
    )  # fmt: skip


def _walls(drawn: Sequence[Result]) -> Iterator[str]:
    yield from _header(
        "wall", "precision", "recall", "abstained", "cost within 1.5 points", "median", "95th percentile"
    )
    for score in grade.by_wall(drawn):
        spread = distance.cost_errors(drawn, score.wall)
        yield _line(
            score.wall, _count(score.precision), _count(score.recall), str(score.abstained), *_spread(spread)
        )
    yield ""


def _rows(drawn: Sequence[Result]) -> Iterator[str]:
    yield from _header("row of the account", "within 2 points", "median", "95th percentile")
    for row in distance.row_names(drawn):
        yield _line(row, *_spread(distance.row_errors(drawn, row)))
    yield ""


def _steps(drawn: Sequence[Result]) -> Iterator[str]:
    yield from _header("steps found by", "all of them", "some of them", "steps used")
    for score in distance.by_step_source(drawn):
        yield _line(score.source, _count(score.exactly), str(score.partly), _count(score.used))
    yield ""


def _recorded(drawn: Sequence[Result]) -> Iterator[str]:
    yield from _header(
        "recorded", "runs", "verdict right (5 points and more)", "costs within 1.5", "rows within 2"
    )
    for score in distance.by_recorded(drawn):
        name = f"{score.what} {score.how}"
        yield _line(
            name, str(score.runs), _count(score.verdicts), _percent(score.costs), _percent(score.rows)
        )
    yield ""


def _families(results: Sequence[Result]) -> Iterator[str]:
    yield from _header("family", "holds")
    for score in shown.family_scores(results):
        yield _line(score.asked, f"{score.held.hits} of {score.held.of}")


def _causes(results: Sequence[Result]) -> Iterator[str]:
    scores = shown.cause_scores(results)
    if scores:
        yield ""
        yield from _header(
            "cause",
            "verdict",
            "kind",
            "unmeasurable",
            "steps",
            "step time",
            "data",
            *WALLS,
            "account",
            "replay",
        )
    for score in scores:
        counts = (
            score.verdicts, score.kinds, score.hidden, score.steps, score.step_times, score.data,
            *score.costs, score.rows, score.replays,
        )  # fmt: skip
        yield _line(score.family, *(f"{count.hits} of {count.of}" if count.of else "" for count in counts))


def _header(*names: str) -> Iterator[str]:
    yield _line(*names)
    yield _line(*("---" for _ in names))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _percent(count: Count) -> str:
    return f"{count.hits / count.of * 100:.1f} %" if count.of else "none"


def _count(count: Count) -> str:
    return f"{_percent(count)} ({count.hits} of {count.of})" if count.of else "none"


def _spread(spread: Spread | None) -> tuple[str, str, str]:
    if spread is None:
        return "none", "", ""
    return _count(spread.near), f"{spread.middle * 100:.2f}", f"{spread.p95 * 100:.2f}"


def wrong_ones(results: Sequence[Result]) -> Iterator[str]:
    """A line for every run whose verdict is wrong, with the costs that were found and are true."""
    for result in results:
        if result.error:
            yield f"{result.name}: {result.error}"
            continue
        truth = grade.true_verdict(result)
        if truth is None or grade.says_right(result):
            continue
        costs = ", ".join(f"{wall} {_cost(result, wall)}" for wall in WALLS)
        yield f"{result.family} {result.name}: said {result.wall}, true {truth.wall}; {costs}"


def _cost(result: Result, wall: str) -> str:
    found = result.found_frac[wall]
    said = "-" if found is None else f"{found * 100:.1f}"
    return f"{said}/{result.true_frac[wall] * 100:.1f}"
