"""In which way kernels made a difference: more of them, longer ones, others; of a class, and of all
alike.

Counts of kernels say something only where both sides record them alike: a replay of a graph that is
recorded whole hides its own.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import mul
from typing import Final, Literal, get_args

from heuristics.comparison.causes.table import named, table
from heuristics.comparison.difference.rows import delta_ns, part_of
from heuristics.comparison.difference.subject import (
    SAME_COUNT,
    Subject,
    differing,
    rows_of_group,
    same_capture,
    same_count,
)
from heuristics.comparison.suspects.figures import CLASSES, pair
from heuristics.comparison.suspects.view import Patterns, View
from heuristics.facts.dictionary import fact
from heuristics.result.compared import (
    ComparedRow,
    Exchange,
    Grid,
    KernelChange,
    KernelDelta,
    Worked,
)
from heuristics.words import say
from traces.limits import FEWEST, HALF_A_WALL, MOST, QUARTER
from traces.missing import known
from traces.names.mangled import beside
from traces.spelling import in_ms
from traces.texts import Texts

Part = Literal["count", "duration", "overlap"]
_PARTS: Final[tuple[Part, ...]] = get_args(Part)


def same(name: str, view: View) -> bool:
    return same_count(*pair(name, view))


@fact
def seen_alike(view: View) -> bool:
    """Whether both sides record single kernels alike: as many replays recorded whole, as much in
    them.
    """
    return (
        same_capture(view.before.rank, view.after.rank)
        and same("replays", view)
        and ("compute.graph_replay" not in view.rows or same("kernels", view))
    )


@fact
def same_kernels(view: View) -> bool:
    """As many; of other work that is chance."""
    return (
        view.facts.comparable
        and seen_alike(view)
        and same("kernels", view)
        and pair("kernels", view)[0] > 0
    )


@fact
def same_products(view: View) -> bool:
    """As many of each class of matrix products."""
    return all(
        same_count(view.before.count(row), view.after.count(row)) for row in named("@products")
    )


def parts(rows: Iterable[ComparedRow]) -> dict[Part, int]:
    """What rows moved by number, by duration and by overlap; empty where that is unknown of one."""
    sums = dict[Part, int]()
    for row in rows:
        moved = known(row.count_ns), known(row.duration_ns), known(row.overlap_ns)
        for part, ns in zip(_PARTS, moved, strict=True):
            if ns is None:
                return {}
            sums[part] = sums.get(part, 0) + ns
    return sums


def main_part(patterns: Patterns, view: View) -> Part | None:
    """What makes most of what rows grew by; None where nothing does, or that is unknown."""
    rows = view.grew(patterns)
    moved = parts(rows)
    part = max(moved, key=moved.__getitem__, default=None)
    if part and moved[part] >= MOST.value * delta_ns(rows):
        return part
    return None


Way = Literal["more", "number", "exchanged", "blocks", "grid", "slower"]


def way_of(row_name: str, view: View) -> Way | None:
    """How a class of compute that grew got longer; None where it did not, or nothing proves how."""
    rows = view.grew([row_name])
    if not rows or not seen_alike(view):
        return None
    (row,) = rows
    work_ns = defaultdict[KernelChange | Literal["blocks"], float](float)
    for one in view.facts.kernels:
        if one.key == row_name:
            sides = (one.base_each_ns or 0) * one.base_count, (one.new_each_ns or 0) * one.new_count
            is_other = differing(one.base_block, one.new_block)
            work_ns["blocks" if is_other else one.change] += max(sides)
    gone = part_of(work_ns["gone"], row.base_ns) or 0.0
    came = part_of(work_ns["new"], row.new_ns) or 0.0
    if min(gone, came) >= QUARTER.value:
        return "exchanged"
    is_as_many = same_count(row.base_count, row.new_count)
    ways: tuple[Literal["blocks", "grid"], ...] = ("blocks", "grid")
    for way in ways:
        part_frac = part_of(work_ns[way], max(row.base_ns, row.new_ns)) or 0.0
        if is_as_many and part_frac >= QUARTER.value:
            return way
    part = main_part([row_name], view)
    if not is_as_many:
        if part == "duration":
            return "number"
        if part == "count":
            return "more"
        return None
    is_mixed = min(gone, came) > HALF_A_WALL.value or max(gone, came) >= QUARTER.value
    if part == "duration" and not is_mixed:
        return "slower"
    return None


def to_compare(row_name: str, view: View) -> str:
    """What decides why the same kernels of a class take longer: so little may be clocks alone."""
    row = view.rows[row_name]
    few_ns = HALF_A_WALL.value * row.base_ns
    return say(f"comparison.compare-{'clocks' if abs(row.delta_ns) <= few_ns else 'code'}")


def kernels_of(row_name: str, way: Way, view: View) -> Texts:
    sentences = [
        _kernel(view, kernel)
        for kernel in view.facts.kernels
        if kernel.key == row_name and kernel.change in table()["ways"][way]
    ]
    return tuple(sentences[:2])


def _kernel(view: View, kernel: KernelDelta) -> str:
    times = view.arrow(_time(kernel.base_each_ns), _time(kernel.new_each_ns))
    sentence = f"{kernel.name[:60]}: {times}"
    sides = {
        "grid": (kernel.base_grid, kernel.new_grid),
        "block": (kernel.base_block, kernel.new_block),
    }
    for what, (base, new) in sides.items():
        if base and new and base != new:
            sentence += f", {what}: {view.arrow(_grid(base), _grid(new))}"
    return sentence


def _grid(grid: Grid) -> str:
    return "x".join(map(str, grid))


def _time(ns: int | None) -> str:
    if ns is None:
        return "none"
    return in_ms(ns)


def _exchanges(view: View) -> tuple[Exchange, ...]:
    """What stands in the same places of both steps; nothing where these are not aligned."""
    if aligned := view.facts.exchanged:
        return aligned.rows
    return ()


def places_of(row_name: str, view: View) -> Texts:
    """What does the work of a class in the same places of both steps, by kernels of other names."""
    sentences = [
        view.arrow(
            _done(exchange.base, exchange.base_ns, exchange.new),
            _done(exchange.new, exchange.new_ns, exchange.base),
        )
        for exchange in _exchanges(view)
        if exchange.key == row_name and exchange.change == "exchanged"
    ]
    return tuple(sentences[:2])


def _done(kernels: Sequence[Worked], work_ns: int, others: Sequence[Worked]) -> str:
    if not kernels:
        return f"{in_ms(work_ns)} (none)"
    and_others = " and others" if len(kernels) > 1 else ""
    name = beside(kernels[0].name, others[0].name)
    return f"{in_ms(work_ns)} ({kernels[0].count:.0f} x {name}{and_others})"


def _works(side: Subject) -> dict[str, tuple[float, int]]:
    """Of each class the mean time of a kernel and the work of all."""
    return {
        row.row: (row.work_ns / row.count, row.work_ns)
        for row in rows_of_group(side.rank, "budget")
        if row.row in CLASSES and row.count and row.work_ns
    }


@fact
def slower_alike(view: View) -> str | None:
    """All large classes of compute that have as many kernels take longer by the same factor."""
    before, after = _works(view.before), _works(view.after)
    total_ns = sum(work_ns for _, work_ns in before.values())
    longer, works_ns = list[float](), list[int]()
    for name, (each_ns, work_ns) in before.items():
        is_same = same_count(view.before.count(name), view.after.count(name))
        if work_ns >= HALF_A_WALL.value * total_ns and name in after and is_same:
            longer.append(after[name][0] / each_ns - 1)
            works_ns.append(work_ns)
    if len(longer) < FEWEST.value or sum(works_ns) < MOST.value * total_ns:
        return None
    mean = sum(map(mul, longer, works_ns)) / sum(works_ns)
    if mean < SAME_COUNT.value or any(abs(factor - mean) > MOST.value * mean for factor in longer):
        return None
    return say(
        "comparison.slower-alike",
        classes=len(longer),
        mean_frac=mean,
        least_frac=min(longer),
        most_frac=max(longer),
    )


@fact
def more_work(view: View) -> bool:
    """All large classes have more kernels, alike, none has fewer, and the backward pass has more as
    well.
    """
    before, after = pair("kernels", view)
    if not 0 < before < after or same_count(before, after) or not seen_alike(view):
        return False
    mean, alike = after / before, list[bool]()
    for name, count in view.before.counts.items():
        if name in CLASSES and count >= 1:
            times = view.after.count(name) / count
            if times < 1:
                return False
            alike.append(abs(times - mean) <= MOST.value * (mean - 1))
    back, later_back = pair("backward", view)
    goes_back = not back or (later_back > back and not same_count(back, later_back))
    return len(alike) >= FEWEST.value and sum(alike) >= len(alike) - 1 and goes_back


@fact
def launches_more(view: View) -> bool:
    """Other work, of more kernels."""
    before, after = pair("kernels", view)
    return not view.facts.comparable and before < after and not same("kernels", view)


@fact
def unfused(view: View) -> bool | None:
    """Small kernels are gone where more of other names came, by their order, which alone tells what
    was added, where it is known; None where the list does not show it.
    """
    gone = came = 0.0
    for exchange in _exchanges(view):
        if exchange.key in named("@small") and exchange.change == "exchanged":
            gone, came = gone + exchange.base_count, came + exchange.new_count
    if known(view.facts.exchanged):
        return came > gone > 0
    for kernel in view.facts.kernels:
        if kernel.key in named("@small"):
            if kernel.change == "gone":
                gone += kernel.base_count
            elif kernel.change == "new":
                came += kernel.new_count
    return 0 < gone < came or None
