"""Times as a page shows them: of which rank, in ms per step, in tables that are alike in every
part.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from msgspec import UNSET

from heuristics.result.result import Result
from reports.content.analysis.late import leading
from reports.content.blocks import BlockRow, Hue, Quantity, Span, Table, Term, row
from reports.content.names import share_of
from reports.content.tables import shaped
from reports.measures import measures
from reports.rows import each, those
from traces.frozen import frozen
from traces.limits import WALL
from traces.missing import Missing, OrMissing
from traces.sections.addresses import GpuAddress
from traces.sections.rank import Rank
from traces.sections.section import Section
from traces.sections.steps import Steps
from traces.sections.tables import Kernel
from traces.spelling import duration, gigabytes, milliseconds, percent, rounded


@frozen
class Scale:
    """One rank and its number of used steps; without steps times are of the whole window."""

    rank: Rank
    step_count: int

    def ms(self, time_ns: float) -> str:
        """A total as ms per step, without its unit."""
        return milliseconds(time_ns / max(1, self.step_count))

    def share(self, time_ns: float, hue: Hue = Hue.OTHER) -> Quantity:
        """Its share of the window."""
        return share_of(time_ns / self.rank.budget_ns.window, hue)

    def work(
        self, kernel: Kernel | GpuAddress, hue: Hue = Hue.COMPUTE
    ) -> tuple[str, str, Quantity]:
        """Count, time and share of work."""
        return f"{kernel.count:,}", self.ms(kernel.work_ns), self.share(kernel.work_ns, hue)

    @property
    def unit(self) -> str:
        if self.step_count:
            return f"ms/{self.whole}"
        return "ms"

    @property
    def whole(self) -> str:
        if self.step_count:
            return stretch_name(self.rank.steps)
        return "window"

    @property
    def lengths(self) -> str:
        """The mean, and beside it the median step where that is another length.

        Of an even number of steps the median may lie between two; the length of the nearest stands
        for it.
        """
        mean_ns = mean_step_ns(self.rank)
        median_ns = self.rank.steps.median_ns or mean_ns
        nearest_ns = min(sorted(self.rank.lengths_ns), key=lambda ns: abs(ns - median_ns))
        return f"{self.length}{beside_mean(mean_ns, nearest_ns)}"

    @property
    def length(self) -> str:
        return f"{self.ms(self.rank.budget_ns.window)} ms"


def beside_mean(mean_ns: float, median_ns: float) -> str:
    """The median, where a mean alone would mislead who knows how long a usual step is."""
    if not mean_ns or abs(median_ns - mean_ns) < WALL.value * mean_ns:
        return ""
    return f", median {milliseconds(median_ns)}"


def stretch_name(steps: Steps) -> str:
    if steps.unit == "replay":
        return "graph replay"
    return steps.unit


def scale_of(rank: Rank) -> Scale:
    return Scale(rank, len(rank.steps.used))


def telling_rank(result: Result) -> Rank:
    """The rank whose details are shown: the one that the first wall costs most.

    Without a wall, or where a late rank leads the page, the one that computes for the smallest
    part.
    """
    for wall in those(result.walls, id=result.verdict.wall):
        for proof in those(wall.evidence, measure="cost_frac")[:1]:
            if proof.rank is not None and proof.rank < len(result.ranks) and not leading(result):
                return result.ranks[proof.rank]
    return min(result.ranks, key=lambda rank: rank.budget_frac.compute)


def mean_step_ns(rank: Rank) -> float:
    """A mean step of a rank; without steps its window."""
    return rank.budget_ns.window / max(1, len(rank.steps.used))


def all_windows_ns(result: Result) -> int:
    """The time of all ranks together."""
    return sum(each(result.ranks, "budget_ns.window"))


def per_step_ns(result: Result, total_ns: float) -> float:
    """A total over all ranks, of one step of one rank."""
    return total_ns / sum(max(1, len(rank.steps.used)) for rank in result.ranks)


@frozen
class Time:
    """One row of a table of times: a key or words, its time, and what it is drawn as."""

    name: Span
    time_ns: int
    hue: Hue = Hue.OTHER
    depth: int = 0


def times_of(parts: Mapping[str, int], hue: Hue, depth: int = 0) -> Iterable[Time]:
    """Rows of what is not zero, largest first, by the names of their keys."""
    for key, time_ns in sorted(parts.items(), key=lambda part: -part[1]):
        if time_ns:
            yield Time(Term(key), time_ns, hue, depth)


def times_table(
    title: str, scale: Scale, times: Iterable[Time], total: Time | None = None
) -> Table:
    """Times as ms per step with their share of the step."""
    made = shaped("times", map(partial(_time_row, scale), times), title=title, unit=scale.unit)
    if total:
        return replace(made, total=_time_row(scale, total))
    return made


def _time_row(scale: Scale, time: Time) -> BlockRow:
    cells = time.name, scale.ms(time.time_ns), scale.share(time.time_ns, time.hue)
    return replace(row(cells), depth=time.depth)


Figure = tuple[str, OrMissing[float]]
"""A measure and its value."""


def figures_of(section: Section, *apart: str) -> Iterator[Figure]:
    """The measures of a section in the order of its fields, but for those shown apart, and newer
    than it.
    """
    for name in section.__struct_fields__:
        if name not in apart and (value := getattr(section, name)) is not UNSET:
            yield name, value


def figures_table(title: str, figures: Iterable[Figure], scale: Scale | None = None) -> Table:
    """Measures and their values, each in its own unit; what is missing is said with its reason."""
    rows = []
    for key, value in figures:
        figure, why, measure = "", "", measures().get(key)
        if value is None:
            why = "does not apply"
        elif isinstance(value, Missing):
            why = f"unknown: {value.reason}"
        else:
            figure = written(value, measure.unit if measure else "", scale)
        rows.append((Term(key), figure, why))
    return shaped("figures", rows, title=title)


def written(value: float, unit: str, scale: Scale | None = None) -> str:
    """A value in the unit of its measure as people read it; times per step where a scale is
    given.
    """
    if unit.startswith("ns"):
        if not scale:
            return duration(value)
        return f"{scale.ms(value)} {scale.unit}"
    if unit.startswith("fraction"):
        return percent(value)
    if unit == "bytes":
        return gigabytes(value)
    if unit in ("", "count"):
        if isinstance(value, int) or value.is_integer():
            return f"{value:,}"
        return rounded(value)
    return f"{rounded(value)} {unit}"
