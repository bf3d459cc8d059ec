"""Scores of pairs -> markdown tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.compare_score.cases import SIZES, STEPS
from bench.compare_score.judge import Result


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
        *_by_cause([result for result in told if result.case.family == "one cause"]),
    ]
    return "\n".join(parts) + "\n"


def lines(results: Sequence[Result]) -> list[Line]:
    """Every figure that is asked for."""
    one, two, unchanged, versions = (
        [result for result in results if result.case.family == family]
        for family in ("one cause", "two causes", "unchanged", "versions")
    )
    few = [result for result in one if not result.enough_steps]
    many = [result for result in one if result.enough_steps]
    changed = [result for result in (*one, *two) if result.covers is not None]
    same = [result for result in unchanged if result.covers is not None]
    return [
        _line("fewer than 8 steps a side: undecided", "all", [one.verdict_right for one in few]),
        _line("8 and more: regression", "all", [one.verdict_right for one in many]),
        _line("8 and more: the right row first", "95 %", [one.rows_right for one in many]),
        *(_row_line(few, steps) for steps in STEPS if steps < STEPS[-1]),
        _line("two causes: both within the first three rows", "all", [one.rows_right for one in two]),
        _line("unchanged: no false alarm", "95 %", [one.verdict_right for one in unchanged]),
        _line("unchanged: the interval holds 0", "93 %", [bool(one.covers) for one in same]),
        _line("changed: the interval holds the truth", "93 %", [bool(one.covers) for one in changed]),
        _line("one run in two schemas: no change", "all", [one.verdict == "no_change" for one in versions]),
        _line("rows and their parts add up", "all", [one.adds_up for one in results]),
        _line("swapped sides mirror the document", "all", [one.mirrors for one in results]),
        _line("from JSON the same document", "all", [one.rereads for one in results]),
    ]


def _row_line(few: Sequence[Result], steps: int) -> Line:
    mine = [result.rows_right for result in few if result.case.step_count == steps]
    return _line(f"{steps} steps: the right row first all the same", "", mine)


def _line(what: str, asked: str, holds: Sequence[bool]) -> Line:
    return Line(what, sum(holds), len(holds), asked)


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
        yield f"said {result.verdict}"
    if result.case.causes and not result.rows_right:
        yield f"rows, expected {[sorted(rows) for rows in result.case.rows]}"
    if result.covers is False:
        yield f"interval {result.low_ns} to {result.high_ns} without the true {result.true_ns:.0f} ns"
    for name in ("adds_up", "mirrors", "rereads"):
        if not getattr(result, name):
            yield f"not {name}"
