"""A map of all ranks: one column a rank, one row a figure, darker where it is larger."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from heuristics.result.result import Result
from reports.content.analysis.run import short_name
from reports.write.html.looks import length
from reports.write.plain import plain
from traces.missing import known
from traces.sections.run import RankInRun, Run
from traces.spelling import milliseconds, rounded

_MOST: Final = 256
"""Ranks that are drawn at most: with more, a column is narrower than a pixel or two."""


@dataclass(frozen=True, slots=True)
class Square:
    """One rank in one row: where it lies in percent, how dark it is, and what it says; no shade: unknown."""

    left: str
    shade: str
    said: str


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One figure of all ranks; `hue` is its colour, `range` its smallest and largest value."""

    name: str
    hue: str
    range: str
    squares: tuple[Square, ...]


@dataclass(frozen=True, slots=True)
class Heat:
    """The map. `width` is that of one column in percent; `left_out`: ranks that are not drawn."""

    rows: tuple[HeatRow, ...]
    width: str
    ends: tuple[str, str]
    left_out: int


def heat_of(result: Result) -> Heat | None:
    """The map of a run; None of one rank."""
    run = result.run
    if run is UNSET or len(run.ranks) < 2:
        return None
    shown = run.ranks[:_MOST]
    names = [plain(short_name(result, one.index)) for one in shown]
    rows = tuple(_row(name, hue, values, names) for name, hue, values in _figures(run, shown))
    ends = (names[0], names[-1])
    return Heat(rows, length(1 / len(shown)), ends, len(run.ranks) - len(shown))


def _figures(
    run: Run, shown: tuple[RankInRun, ...]
) -> Iterator[tuple[str, str, list[tuple[float, str] | None]]]:
    """Name, colour and values of each row, a value with its words."""

    def times(values: list[int | None]) -> list[tuple[float, str] | None]:
        return [None if one is None else (one, f"{milliseconds(one)} ms") for one in values]

    yield "step", "compute", times([known(one.step_ns) for one in shown])
    yield "waited", "communication", times([one.waited_ns for one in shown])
    yield "caused waiting", "communication", times([known(one.caused_ns) for one in shown])
    factors = [known(one.device_factor) for one in shown]
    yield "kernel time", "compute", [None if one is None else (one, f"{rounded(one)} x") for one in factors]


def _row(name: str, hue: str, values: list[tuple[float, str] | None], names: list[str]) -> HeatRow:
    there = sorted(one for one in values if one is not None)
    most = there[-1][0] if there else 0.0
    squares = tuple(
        Square(
            left=length(place / len(values)),
            shade="" if one is None else f"{one[0] / most if most else 0.0:.3f}",
            said=f"{names[place]}: {name} {'unknown' if one is None else one[1]}",
        )
        for place, one in enumerate(values)
    )
    low, high = (there[0][1], there[-1][1]) if there else ("unknown", "unknown")
    ends = low if low == high else f"{low.removesuffix(' ms')} to {high}"
    return HeatRow(name, hue, ends, squares)
