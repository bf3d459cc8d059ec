"""Maps of a run by step: a row a rank, a column a step, darker where it is larger."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from heuristics.result.result import Result
from reports.content.analysis.run import is_late, short_name, shown_ranks
from reports.content.blocks import Hue
from reports.write.plain import plain
from traces.missing import known
from traces.ranks.cause import Cause
from traces.sections.run import RankInRun, Run
from traces.spelling import counted, milliseconds

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
