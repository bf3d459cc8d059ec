"""Ranks of a run side by side: a map by figure, maps by step, and any two as texts and bars.

A map has a column a rank or a row a rank, darker where a figure is larger; bars are parts of the largest
of all ranks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from heuristics.result.result import Result
from reports.content.analysis.run import is_late, short_name, shown_ranks
from reports.content.blocks import Hue
from reports.content.names import plain
from reports.write.html.timeline import length
from traces.missing import known
from traces.sections.cause import Cause
from traces.sections.rank import Rank
from traces.sections.run import RankInRun, Run
from traces.spelling import counted, milliseconds, rounded

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
    run = result.run
    if run is UNSET or len(run.ranks) < 2:
        return None
    shown = run.ranks[:_MOST]
    names = [plain(short_name(result, one.index)) for one in shown]
    rows = tuple(_row(name, hue, values, names) for name, hue, values in _heat_figures(run, shown))
    ends = (names[0], names[-1])
    return Heat(rows, length(1 / len(shown)), ends, len(run.ranks) - len(shown))


def _heat_figures(
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


_ROWS: Final = 32
"""Ranks of a map: the page stays under 1 MB."""
_TITLED: Final = 600
"""Squares that say their values: each takes 60 bytes more."""
_HUES: Final[Mapping[Cause, Hue]] = {
    Cause.SLOW_DEVICE: Hue.COMPUTE,
    Cause.SLOW_HOST: Hue.HOST,
    Cause.ROUTING_IMBALANCE: Hue.COMPUTE,
    Cause.ROTATING_JITTER: Hue.HOST,
    Cause.DATA_LOADER: Hue.HOST,
    Cause.PIPELINE_IMBALANCE: Hue.COMPUTE,
}
"""What the late rank is busy with, in the colours of all bars; of other causes communication."""

_BUSY: Final[Mapping[Hue, str]] = {
    Hue.COMPUTE: "late by compute",
    Hue.HOST: "late by its host",
    Hue.COMMUNICATION: "arrives last",
}


@dataclass(frozen=True, slots=True)
class MapRow:
    """One rank: its shade in each column, empty where unknown, and what each square says, or nothing."""

    name: str
    late: bool
    shades: tuple[str, ...]
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepMap:
    """One figure of all ranks; `range` is its smallest and largest value."""

    name: str
    hue: str
    range: str
    rows: tuple[MapRow, ...]


@dataclass(frozen=True, slots=True)
class StepMaps:
    """The maps of a run. `columns`: how many, and what one is; `left_out`: ranks that are not drawn."""

    maps: tuple[StepMap, ...]
    columns: int
    of: str
    left_out: int


Values = Sequence[int | None]


def step_maps_of(result: Result) -> StepMaps | None:
    """The maps; None of one rank, or of ranks that share no step."""
    run = result.run
    if run is UNSET or len(run.ranks) < 2 or not run.ranks[0].step_lengths_ns:
        return None
    shown = shown_ranks(run, _ROWS)
    columns = len(run.ranks[0].step_lengths_ns)
    each = (
        counted(run.steps, "step") if run.steps_per_column == 1 else f"means of {run.steps_per_column} steps"
    )
    maps = tuple(
        _map(result, run, shown, name, hue, from_least, values)
        for name, hue, from_least, values in _figures(run, shown)
    )
    return StepMaps(maps, columns, each, len(run.ranks) - len(shown))


def _figures(run: Run, shown: Sequence[RankInRun]) -> Iterator[tuple[str, Hue, bool, list[Values]]]:
    """Name, colour, whether no colour is the smallest value and not zero, and values of each rank."""
    late = known(run.late)
    hue = Hue.COMMUNICATION if late is None else _HUES.get(late.cause, Hue.COMMUNICATION)
    caused = [known(one.caused_by_step_ns) for one in shown]
    yield "waited", Hue.COMMUNICATION, False, [one.waited_by_step_ns for one in shown]
    if all(one is not None for one in caused):
        yield f"caused waiting ({_BUSY[hue]})", hue, False, [one or () for one in caused]
    yield "step", Hue.OTHER, True, [one.step_lengths_ns for one in shown]


def _map(
    result: Result,
    run: Run,
    shown: Sequence[RankInRun],
    name: str,
    hue: Hue,
    from_least: bool,
    values: Sequence[Values],
) -> StepMap:
    there = [one for row in values for one in row if one is not None]
    low, high = min(there, default=0), max(there, default=0)
    zero = low if from_least else 0
    titled = len(there) <= _TITLED
    rows = []
    for rank, row in zip(shown, values, strict=True):
        called = plain(short_name(result, rank.index))
        rows.append(
            MapRow(
                called,
                is_late(known(run.late), rank),
                tuple("" if one is None else f"{(one - zero) / max(1, high - zero):.2f}" for one in row),
                tuple(_said(called, name, place, one) for place, one in enumerate(row)) if titled else (),
            )
        )
    ends = f"{milliseconds(low)} to {milliseconds(high)} ms"
    return StepMap(name, hue.value, ends, tuple(rows))


def _said(rank: str, name: str, place: int, value: int | None) -> str:
    figure = "unknown" if value is None else f"{milliseconds(value)} ms"
    return f"{rank}, column {place + 1}: {name} {figure}"


_RANKS: Final = 256
"""Ranks that can be chosen."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The figures of all ranks that can be chosen, and the places of the two that are shown first."""

    names: tuple[str, ...]
    figures: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    shares: tuple[tuple[float, ...], ...]
    chosen: tuple[int, int]
    left_out: int

    @property
    def data(self) -> dict[str, object]:
        return {"texts": self.texts, "shares": self.shares}


def pair_of(result: Result) -> Pair | None:
    """The figures of each rank; None of one rank. Those that are late stand first."""
    run = result.run
    if run is UNSET or len(run.ranks) < 2:
        return None
    shown = shown_ranks(run, _RANKS)
    rows = [dict(_pair_figures(result.ranks[one.index], one)) for one in shown]
    names = tuple(rows[0])
    largest = {name: max((row[name] or 0.0 for row in rows), default=0.0) for name in names}
    return Pair(
        names=tuple(plain(short_name(result, one.index)) for one in shown),
        figures=names,
        texts=tuple(tuple(_text(name, row[name]) for name in names) for row in rows),
        shares=tuple(
            tuple(round((row[name] or 0.0) / largest[name], 4) if largest[name] else 0.0 for name in names)
            for row in rows
        ),
        chosen=_first_two(run, shown),
        left_out=len(run.ranks) - len(shown),
    )


_TIMES: Final = "kernels, times those of like ranks"


def _pair_figures(rank: Rank, one: RankInRun) -> Iterator[tuple[str, float | None]]:
    """What a mean step of a rank is made of; None where it is unknown."""
    steps, budget = max(1, len(rank.steps.used)), rank.budget_ns
    exposed_ns = known(budget.exposed_comm)
    yield "step, ms", known(one.step_ns)
    yield "compute, ms", budget.compute / steps
    yield "exposed communication, ms", None if exposed_ns is None else exposed_ns / steps
    yield "exposed copies, ms", budget.exposed_copy / steps
    yield "nothing ran, ms", budget.idle / steps
    yield "waited for others, ms", one.waited_ns
    yield "others waited for it, ms", known(one.caused_ns)
    yield _TIMES, known(one.device_factor)


def _text(name: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    return rounded(value) if name == _TIMES else milliseconds(value)


def _first_two(run: Run, shown: list[RankInRun]) -> tuple[int, int]:
    """The late rank, or the one that others waited for the most; then one like it, that waited most."""
    late = known(run.late)
    places = range(len(shown))
    first = max(
        places,
        key=lambda place: (
            late is not None and shown[place].index == late.index,
            known(shown[place].caused_ns) or 0,
        ),
    )
    others = [place for place in places if place != first]
    second = max(others, key=lambda place: (shown[place].group == shown[first].group, shown[place].waited_ns))
    return first, second
