"""Scores of pairs -> markdown tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from bench.compare_score.cases import SIZES, STEPS, Case, Family
from bench.compare_score.judge import Result
from traces.statistics.interval import MANY


@dataclass(frozen=True, slots=True)
class Line:
    """Of how many pairs something holds, and of how many it has to."""

    what: str
    hits: int
    of: int
    asked: str

    @property
    def text(self) -> str:
        """As a row of a table."""
        share = f"{self.hits / self.of * 100:.1f} % ({self.hits} of {self.of})" if self.of else "none"
        return f"| {self.what} | {self.asked} | {share} |"


def table(results: Sequence[Result], *, date: str, simulator: str, seed: int) -> str:
    """All figures as markdown. `date`: an ISO date; `simulator`: the hash of what simulated the runs."""
    told = [result for result in results if not result.error]
    parts = [
        f"Scored on {date}: {len(results)} pairs, first seed {seed}, simulator `{simulator}`; "
        f"{len(results) - len(told)} could not be compared.",
        "",
        "| what | asked | of the pairs |",
        "| --- | --- | --- |",
        *(line.text for line in lines(told)),
        "",
        *_by_kind([result for result in told if result.case.kind]),
        "",
        *_by_cause([result for result in told if result.case.family == "one cause"]),
    ]
    return "\n".join(parts) + "\n"


def lines(results: Sequence[Result]) -> list[Line]:
    """Every figure that is asked for."""
    families = {family: [one for one in results if one.case.family == family] for family in get_args(Family)}
    one, two = families["one cause"], families["two causes"]
    many = [result for result in one if result.case.step_count == STEPS[-1]]
    few = [result for result in (*one, *families["few steps"]) if result.case.changes and _is_few(result)]
    changed = [result for result in results if result.case.changes]
    same = [result for result in results if not result.case.changes and not _is_apart(result.case)]
    return [
        _line(
            "fewer than 4 steps a side: undecided",
            "all",
            [r.verdict_right for r in one if not r.enough_steps],
        ),
        _line("4 to 7, 5 % and more: decided, the right way", "95 %", [r.verdict_right for r in few]),
        _line("20: regression", "all", [r.verdict_right for r in many]),
        _line("20: the right row first", "95 %", [r.rows_right for r in many]),
        *(_row_line(one, steps) for steps in STEPS[:-1]),
        _line("two causes: both within the first three rows", "all", [r.rows_right for r in two]),
        *(_family_line(family, families[family]) for family in _KINDS),
        _line("compared, not refused", "all", [not r.refused for r in results]),
        _line("changed: the first suspect is not false", "98 %", [not r.suspect_false for r in changed]),
        _line("changed: a suspect is named", "", [bool(r.suspects) for r in changed]),
        _line("unchanged: no false alarm", "97 %", [not r.alarm for r in same]),
        _line("unchanged: the interval holds 0", "93 %", _held(same)),
        _line("changed: the interval holds the truth", "93 %", _held(changed)),
        _line("one run in two schemas: no change", "all", _no_change(families["versions"])),
        _line("rows and their parts add up", "all", [r.adds_up for r in results]),
        _line("swapped sides mirror the document", "all", [r.mirrors for r in results]),
        _line("from JSON the same document", "all", [r.rereads for r in results]),
    ]


_KINDS: Final = (
    "precision",
    "fusing",
    "renamed",
    "hiccups",
    "buckets",
    "loader",
    "start",
    "copies",
    "recompute",
    "again",
)
"""Families of kinds of pairs, in the order of the table."""


def _is_apart(case: Case) -> bool:
    """One run in two schemas; and what differs from run to run, which one pair alone cannot know of."""
    return case.family == "versions" or (case.family == "again" and not case.has_more)


def _is_few(result: Result) -> bool:
    return result.enough_steps and result.case.step_count < MANY.value


def _held(results: Sequence[Result]) -> list[bool]:
    return [bool(result.covers) for result in results if result.covers is not None]


def _no_change(results: Sequence[Result]) -> list[bool]:
    return [result.verdict == "no_change" for result in results]


def _family_line(family: str, results: Sequence[Result]) -> Line:
    asked = "" if family == "again" else "all"
    return _line(f"{family}: the right verdict", asked, [result.verdict_right for result in results])


def _row_line(one: Sequence[Result], steps: int) -> Line:
    mine = [result.rows_right for result in one if result.case.step_count == steps]
    return _line(f"{steps} steps: the right row first all the same", "", mine)


def _line(what: str, asked: str, holds: Sequence[bool]) -> Line:
    return Line(what, sum(holds), len(holds), asked)


def _by_kind(results: Sequence[Result]) -> Iterator[str]:
    """A row for every kind of pair: of how many what is right."""
    yield "| pairs | compared | verdict | size in interval | row first | first suspect not false | named |"
    yield "|" + " --- |" * 7
    for name in dict.fromkeys(one.case.kind for one in results):
        mine = [one for one in results if one.case.kind == name]
        changed = [one for one in mine if one.case.changes]
        columns = (
            [not one.refused for one in mine],
            [one.verdict_right for one in mine],
            _held(mine),
            [one.rows_right for one in mine if one.case.rows],
            [not one.suspect_false for one in changed],
            [bool(one.suspects) for one in changed],
        )
        cells = (f"{sum(one)} of {len(one)}" if one else "" for one in columns)
        yield f"| {name.replace('/', ': ')} | {' | '.join(cells)} |"


def _by_cause(results: Sequence[Result]) -> Iterator[str]:
    """What each cause was told as: a row per cause, a column per size and steps."""
    columns = [(place, steps) for place in range(len(SIZES)) for steps in STEPS]
    heads = [f"{SIZES[place] * 100:.0f} %, {steps} steps" for place, steps in columns]
    yield f"| cause | {' | '.join(heads)} |"
    yield "|".join(["", *(" --- " for _ in range(len(columns) + 1)), ""])
    for name in dict.fromkeys(result.case.name for result in results):
        mine = [result for result in results if result.case.name == name]
        cells = [
            ", ".join(_cell(one) for one in mine if (_size(mine, one), one.case.step_count) == column)
            for column in columns
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def _size(mine: Sequence[Result], result: Result) -> int:
    return sorted({one.case.frac for one in mine}).index(result.case.frac)


def _cell(result: Result) -> str:
    said = [] if result.verdict_right else [result.verdict]
    if not result.rows_right:
        said.append(f"first {result.rows[0][0] if result.rows else 'none'}")
    return "; ".join(said) or "right"


def wrong_ones(results: Sequence[Result]) -> Iterator[str]:
    """A line for every pair with something that does not hold, with its seed."""
    for result in results:
        case = result.case
        where = f"{case.family}: {case.name}, {case.frac:.0%}, {case.step_count} steps, seed {case.seed}"
        if result.error:
            yield f"{where}: {result.error}"
            continue
        wrong = list(_wrong(result))
        if wrong:
            first = ", ".join(f"{row} {delta_ns / 1000:+.0f} us" for row, delta_ns in result.rows[:4])
            yield f"{where}: {'; '.join(wrong)} (used {result.used}, rows {first})"


def _wrong(result: Result) -> Iterator[str]:
    if not result.verdict_right:
        yield f"said {result.verdict}, truly {result.true_frac:+.1%}"
    if result.case.changes and result.suspect_false:
        yield f"false: {result.suspects[0]}"
    if result.case.rows and not result.rows_right:
        yield f"rows, expected {[sorted(rows) for rows in result.case.rows]}"
    if result.covers is False:
        yield f"interval {result.low_ns} to {result.high_ns} without the true {result.true_ns:.0f} ns"
    for name in ("adds_up", "mirrors", "rereads"):
        if not getattr(result, name):
            yield f"not {name}"
