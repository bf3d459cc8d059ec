"""Times as a page shows them: of which rank, in ms per step, in tables that are alike in every part."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from heuristics.result.result import Result
from reports.content.blocks import Cell, Column, Hue, Quantity, Row, Table, Term, Words, words
from reports.content.names import gpu_of
from reports.measures import measures
from traces.missing import OrMissing, known
from traces.sections.rank import Rank, Steps
from traces.sections.section import Section
from traces.spelling import duration, gigabytes, milliseconds, percent, rounded


@dataclass(frozen=True, slots=True)
class Scale:
    """One rank and its number of used steps; without steps times are of the whole window."""

    rank: Rank
    step_count: int

    def ms(self, time_ns: float) -> str:
        return milliseconds(time_ns / max(1, self.step_count))

    @property
    def unit(self) -> str:
        return f"ms/{self.whole}" if self.step_count else "ms"

    @property
    def whole(self) -> str:
        """What shares are of."""
        return stretch_name(self.rank.steps) if self.step_count else "window"

    @property
    def length(self) -> str:
        """The mean step, or the window, with its unit."""
        return f"{self.ms(self.rank.budget_ns.window)} ms"


_UNITS: Final = {"step": "step", "block": "block", "replay": "graph replay", "window": "window"}


def stretch_name(steps: Steps) -> str:
    return _UNITS[steps.unit]


def scale_of(rank: Rank) -> Scale:
    return Scale(rank, len(rank.steps.used))


def telling_rank(result: Result) -> Rank:
    """The rank whose details are shown: the one that computes for the smallest part of its time."""
    return min(result.ranks, key=lambda rank: rank.budget_frac.compute)


def per_step_ns(result: Result, total_ns: float) -> float:
    """A total over all ranks, of one step of one rank."""
    return total_ns / sum(max(1, len(rank.steps.used)) for rank in result.ranks)


def gpus_of(rank: Rank, count: int) -> str:
    return f"{count} GPUs, model not recorded" if known(rank.gpu) is None else f"{count} x {gpu_of(rank)}"


@dataclass(frozen=True, slots=True)
class Time:
    """One row of a table of times: a key or words, its time, and what it is drawn as."""

    name: Words
    time_ns: int
    hue: Hue = Hue.OTHER
    depth: int = 0


def times_of(parts: Mapping[str, int], hue: Hue, depth: int = 0) -> Iterable[Time]:
    """Rows of what is not zero, largest first, by the names of their keys."""
    for key, time_ns in sorted(parts.items(), key=lambda part: -part[1]):
        if time_ns:
            yield Time((Term(key),), time_ns, hue, depth)


def times_table(
    title: str, scale: Scale, times: Iterable[Time], total: Time | None = None, note: Words = ()
) -> Table:
    columns = (Column(""), Column(scale.unit, number=True), Column("share", number=True))
    rows = tuple(_time_row(scale, time) for time in times)
    return Table(title, columns, rows, _time_row(scale, total) if total else None, note=note)


def _time_row(scale: Scale, time: Time) -> Row:
    share = time.time_ns / scale.rank.budget_ns.window
    cells = (time.name, Quantity(scale.ms(time.time_ns)), Quantity(percent(share), share, time.hue))
    return Row(cells, time.depth)


def figures_of(section: Section, *apart: str) -> Iterator[tuple[str, OrMissing[float]]]:
    """The measures of a section in the order of its fields, but for those shown apart, and newer than it."""
    for name in section.__struct_fields__:
        if name not in apart and (value := getattr(section, name)) is not UNSET:
            yield name, value


def figures_table(
    title: str, figures: Iterable[tuple[str, OrMissing[float]]], scale: Scale | None = None
) -> Table:
    """Measures and their values, each in its own unit; what is missing is said with its reason."""
    columns = (Column(""), Column("", number=True), Column(""))
    return Table(title, columns, tuple(_figure_row(key, value, scale) for key, value in figures))


def _figure_row(key: str, value: OrMissing[float], scale: Scale | None) -> Row:
    told = known(value)
    cells: tuple[Cell, ...]
    if told is None:
        why = value.reason if value is not None and not isinstance(value, float | int) else "does not apply"
        cells = (words(Term(key)), Quantity(""), words(f"unknown: {why}" if value is not None else why))
    else:
        cells = (words(Term(key)), Quantity(written(told, unit_of(key), scale)), ())
    return Row(cells)


def unit_of(key: str) -> str:
    measure = measures().get(key)
    return measure.unit if measure else ""


def written(value: float, unit: str, scale: Scale | None = None) -> str:
    """A value in the unit of its measure as people read it; times per step where a scale is given."""
    if unit.startswith("ns"):
        return duration(value) if scale is None else f"{scale.ms(value)} {scale.unit}"
    if unit.startswith("fraction"):
        return percent(value)
    if unit == "bytes":
        return gigabytes(value)
    if unit in ("", "count"):
        return f"{value:,}" if isinstance(value, int) or value.is_integer() else rounded(value)
    return f"{rounded(value)} {unit}"
