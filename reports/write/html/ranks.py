"""Ranks of a run side by side: a map by figure, maps by step, and any two as texts and bars.

A map has a column a rank or a row a rank, darker where a figure is larger; bars are parts of the
largest of all ranks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from heuristics.result.result import Result
from reports.content.analysis.called import short_name
from reports.content.analysis.late import Called
from reports.content.analysis.run import is_late, late_places, shown_ranks
from reports.content.blocks import Hue
from reports.content.names import optional, plain, told
from reports.measures import words_of
from reports.rows import each, known_of
from traces.frozen import frozen
from traces.missing import OrMissing, known
from traces.sections.rank import Rank
from traces.sections.run import RankInRun, Run
from traces.spelling import counted, in_ms, milliseconds, rounded
from traces.texts import Texts


@frozen
class Squares:
    """A row: how dark each square is, empty where unknown, and what each says, or nothing."""

    shades: Texts
    said: Texts
    name: str = ""
    late: bool = False


@frozen
class Map:
    """One figure of all ranks; `range` is its smallest and largest value."""

    name: str
    hue: str
    range: str
    rows: tuple[Squares, ...]


@frozen
class Maps:
    """The maps of a run. `columns`: how many, and what they are; `left_out`: ranks that are not
    drawn.

    `ticks`: columns that have a number, and that.
    """

    maps: tuple[Map, ...]
    columns: int
    of: str
    left_out: int
    ticks: tuple[tuple[int, str], ...] = ()


_MOST: Final = 256
"""Columns of a map, and ranks that can be chosen: with more, a column is narrower than a pixel or
two."""
_TICKS: Final = 16
"""Columns at most that have their number."""


def heat_of(run: Run, called: Called) -> Maps | None:
    """A row a figure and a column a rank, of many ranks a column for several; None of one rank."""
    if len(run.ranks) < 2:
        return None
    width = -(-len(run.ranks) // _MOST)
    parts = [run.ranks[first : first + width] for first in range(0, len(run.ranks), width)]
    names = []
    for part in parts:
        ends = map(called, (part[0].index, part[-1].index))
        names.append(" to ".join(dict.fromkeys(ends)))
    maps = tuple(_figure(names, parts, *figure) for figure in _OF_RANKS)
    by_rank = len(known_of(run.ranks, "rank")) == len(run.ranks)
    of = "one column a rank" if width == 1 else f"one column for {width} ranks, the largest of them"
    of += f", numbered {'by rank' if by_rank else 'from 0'}"
    tick_every, ticks = 1, []
    while -(-len(parts) // tick_every) > _TICKS:
        tick_every *= 2
    for column in range(0, len(parts), tick_every):  # of the first rank in it, else the place
        first = parts[column][0]
        ticks.append((column, f"{known(first.rank) if by_rank else first.index}"))
    return Maps(maps, len(parts), of, 0, tuple(ticks))


def _times(factor: float) -> str:
    return f"{rounded(factor)} x"


_OF_RANKS: Final = (
    ("step", Hue.COMPUTE, "step_ns", in_ms),
    ("waited", Hue.COMMUNICATION, "waited_ns", in_ms),
    ("caused waiting", Hue.COMMUNICATION, "caused_ns", in_ms),
    ("kernel time", Hue.COMPUTE, "device_factor", _times),
)
"""Figures of a rank: their names, hues and fields, and how they are written."""


def _figure(
    names: Sequence[str],
    parts: Sequence[Sequence[RankInRun]],
    name: str,
    hue: Hue,
    field: str,
    written: Callable[[float], str],
) -> Map:
    """One figure as a row: the largest value of the ranks of each column."""
    values = [max(known_of(part, field), default=None) for part in parts]
    known_values = [known_value for known_value in values if known_value is not None]
    most = max(known_values, default=0) or 1
    ends = "unknown"
    if known_values:
        low, ends = written(min(known_values)), written(max(known_values))
        if low != ends:
            ends = f"{low.removesuffix(' ms')} to {ends}"
    shades, titles = [], []
    for who, value in zip(names, values, strict=True):
        shades.append(optional("{:.3f}", value, lambda figure: figure / most))
        titles.append(f"{who}: {name} {told(value, written)}")
    return Map(name, hue.value, ends, (Squares(tuple(shades), tuple(titles)),))


_ROWS: Final = 32
"""Ranks of a map by step: the page stays under 1 MB."""
_TITLED: Final = 600
"""Squares that say their values: each takes 60 bytes more."""


def step_maps_of(run: Run, called: Called) -> Maps | None:
    """A map a figure, with a row a rank and a column a step; None of one rank, or without a common
    step.
    """
    if len(run.ranks) < 2 or not run.ranks[0].step_lengths_ns:
        return None
    shown, late = shown_ranks(run, _ROWS), known(run.late)
    ranks = [Squares((), (), called(rank.index), is_late(late, rank)) for rank in shown]
    hue = Hue.COMMUNICATION
    if late:
        hue = Hue(words_of("late_hue").get(late.cause, hue))
    maps = [_by_step("waited", Hue.COMMUNICATION, ranks, each(shown, "waited_by_step_ns"))]
    caused = known_of(shown, "caused_by_step_ns")
    if len(caused) == len(shown):
        name = f"caused waiting ({words_of('busy_with')[hue]})"
        maps.append(_by_step(name, hue, ranks, caused))
    maps.append(_by_step("step", Hue.OTHER, ranks, each(shown, "step_lengths_ns"), from_least=True))
    of = (
        f"means of {run.steps_per_column} steps"
        if run.steps_per_column > 1
        else counted(run.steps, "step")
    )
    return Maps(tuple(maps), len(run.ranks[0].step_lengths_ns), of, len(run.ranks) - len(shown))


def _by_step(
    name: str,
    hue: Hue,
    ranks: Sequence[Squares],
    values: Sequence[Sequence[int | None]],
    from_least: bool = False,
) -> Map:
    """`from_least`: no colour is the smallest value and not zero."""
    known_ns = [value_ns for value_ns in chain.from_iterable(values) if value_ns is not None]
    low, high = min(known_ns, default=0), max(known_ns, default=0)
    zero, rows = low if from_least else 0, []
    for rank, row in zip(ranks, values, strict=True):
        shades, titles = [], []
        for place, waited_ns in enumerate(row, start=1):
            shades.append(
                optional("{:.2f}", waited_ns, lambda ns: (ns - zero) / max(1, high - zero))
            )
            if len(known_ns) <= _TITLED:
                titles.append(f"{rank.name}, column {place}: {name} {told(waited_ns, in_ms)}")
        rows.append(replace(rank, shades=tuple(shades), said=tuple(titles)))
    return Map(name, hue.value, f"{milliseconds(low)} to {in_ms(high)}", tuple(rows))


@frozen
class RankPair:
    """The figures of all ranks that can be chosen, and the places of the two that are shown
    first.
    """

    names: Texts
    figures: Texts
    texts: Sequence[Sequence[str]]
    shares: Sequence[Sequence[float]]
    chosen: tuple[int, int]
    left_out: int


def pair_of(result: Result) -> RankPair | None:
    run = result.run
    if not run or len(run.ranks) < 2:
        return None
    shown = shown_ranks(run, _MOST)
    rows = [dict(_pair_figures(result.ranks[rank.index], rank)) for rank in shown]
    largest = dict.fromkeys(rows[0], 0.0)
    for row in rows:
        for name, value in row.items():
            largest[name] = max(largest[name], value or 0.0)
    texts = list[list[str]]()
    shares = list[list[float]]()
    for row in rows:
        texts.append([])
        shares.append([])
        for name, value in row.items():
            texts[-1].append(told(value, rounded if name == _TIMES else milliseconds))
            shares[-1].append(round((value or 0.0) / (largest[name] or 1.0), 4))
    # the late rank, or the one that others waited for the most; then one like it, that waited most
    places = late_places(run)
    first = max(shown, key=lambda rank: (rank.index in places, rank.caused_ns or 0))
    second = max(
        shown, key=lambda rank: (rank is not first, rank.group == first.group, rank.waited_ns)
    )
    chosen = shown.index(first), shown.index(second)
    names = tuple(plain(short_name(result, rank.index)) for rank in shown)
    return RankPair(names, tuple(rows[0]), texts, shares, chosen, len(run.ranks) - len(shown))


_TIMES: Final = "kernels, times those of ranks that do the same work"


def _pair_figures(rank: Rank, in_run: RankInRun) -> Iterator[tuple[str, OrMissing[float]]]:
    """What a mean step of a rank is made of."""
    steps, budget = max(1, len(rank.steps.used)), rank.budget_ns
    exposed_ns = known(budget.exposed_comm)
    yield "step, ms", in_run.step_ns
    yield "compute, ms", budget.compute / steps
    yield "exposed communication, ms", None if exposed_ns is None else exposed_ns / steps
    yield "exposed copies, ms", budget.exposed_copy / steps
    yield "nothing ran, ms", budget.idle / steps
    yield "waited for others, ms", in_run.waited_ns
    yield "others waited for it, ms", in_run.caused_ns
    yield _TIMES, in_run.device_factor
