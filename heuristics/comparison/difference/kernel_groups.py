"""Kernels of two ranks, paired: the same name and key on both sides, then grid by grid."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby, zip_longest
from math import sqrt
from typing import Final

from heuristics.result.compared import Grid
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.tables import Kernel

_UNRESOLVED: Final = frozenset({"comm.sendrecv_unresolved", "comm.ep_a2a", "comm.other_comm"})
"""Keys of kernels whose purpose one recording knows and another may not."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """Kernels of one name, key and grid on one side, over its used steps. `std_ns`: of their durations."""

    name: str
    key: str
    grid: Grid | None
    count: int
    work_ns: int
    std_ns: float
    steps: int

    @property
    def per_step(self) -> Fraction:
        """How many of them a step has."""
        return Fraction(self.count, self.steps)

    @property
    def work_per_step_ns(self) -> Fraction:
        """Their summed time in a step."""
        return Fraction(self.work_ns, self.steps)

    @property
    def each_ns(self) -> Fraction:
        """Mean duration of one."""
        return Fraction(self.work_ns, self.count)


Pair = tuple[Kernels | None, Kernels | None]


def pair_kernels(base: Rank, new: Rank) -> Iterator[Pair]:
    """Kernels of both sides by name, key and grid; None where a side has none.

    Kernels with a grid on one side only are paired in order of their work, so that a changed grid is seen. A
    name whose grids change by themselves, or are not recorded on a side, is one pair without a grid. A kernel
    that one side could resolve and the other could not is paired by the first word of its key.
    """
    whole = not (base.kernel_table.left_out.rows or new.kernel_table.left_out.rows)
    one, other = _by_name(base), _by_name(new)
    for name in sorted(one.keys() | other.keys()):
        sides = _same_keys(one.get(name, []), other.get(name, []))
        for key in sorted({each.key for side in sides for each in side}):
            mine, theirs = ([each for each in side if each.key == key] for side in sides)
            if _has_own_grids(mine) and _has_own_grids(theirs):
                yield from _by_grid(mine, theirs)
            elif whole:
                yield _added(mine), _added(theirs)


def smallest_listed_ns(rank: Rank) -> Fraction:
    """Work per step of the last kernel listed, which those left out do not exceed; 0 if none is left out."""
    table = rank.kernel_table
    if not (table.rows and table.left_out.rows):
        return Fraction(0)
    return Fraction(min(kernel.work_ns for kernel in table.rows), len(rank.lengths_ns))


def _by_name(rank: Rank) -> dict[str, list[Kernels]]:
    named: dict[str, list[Kernels]] = defaultdict(list)
    steps = len(rank.lengths_ns)
    for kernel in rank.kernel_table.rows:
        if kernel.count:
            named[kernel.name].append(_kernels(kernel, steps))
    return named


def _kernels(kernel: Kernel, steps: int) -> Kernels:
    count, work_ns, std_ns = kernel.count, kernel.work_ns, float(kernel.std_ns)
    return Kernels(kernel.name, kernel.key, known(kernel.grid), count, work_ns, std_ns, steps)


def _same_keys(base: list[Kernels], new: list[Kernels]) -> tuple[list[Kernels], list[Kernels]]:
    """The sides, with keys cut to their first word where only one of them could resolve the name.

    Then a key of `_UNRESOLVED` is on one side only, and another key has the kernels that it lacks.
    """
    counts = [_count_by_key(side) for side in (base, new)]
    on_one_side = counts[0].keys() ^ counts[1].keys()
    differing = [
        key for key in counts[0].keys() | counts[1].keys() if counts[0].get(key) != counts[1].get(key)
    ]
    if not (base and new and _UNRESOLVED & on_one_side and len(differing) > 1):
        return base, new
    cut = ([replace(each, key=each.key.partition(".")[0]) for each in side] for side in (base, new))
    first, second = ([_sum(list(same)) for _, same in _grouped_by_grid(side)] for side in cut)
    return first, second


def _count_by_key(side: Iterable[Kernels]) -> dict[str, Fraction]:
    counts: dict[str, Fraction] = defaultdict(Fraction)
    for each in side:
        counts[each.key] += each.per_step
    return counts


def _grouped_by_grid(side: Iterable[Kernels]) -> Iterator[tuple[tuple[int, ...], Iterator[Kernels]]]:
    return groupby(sorted(side, key=_grid), key=_grid)


def _grid(kernels: Kernels) -> tuple[int, ...]:
    return kernels.grid or ()


def _has_own_grids(side: Sequence[Kernels]) -> bool:
    """Whether grids are recorded and come again: with several, each about once a step or more often."""
    if any(each.grid is None for each in side):
        return False
    return len(side) < 2 or sum(each.count for each in side) >= len(side) * side[0].steps


def _by_grid(base: Sequence[Kernels], new: Sequence[Kernels]) -> Iterator[Pair]:
    one, other = ({each.grid: each for each in side} for side in (base, new))
    yield from ((one[grid], other[grid]) for grid in one if grid in other)
    alone = (
        [side[grid] for grid in side if grid not in against] for side, against in ((one, other), (other, one))
    )
    yield from zip_longest(
        *(sorted(side, key=lambda each: (-each.work_per_step_ns, _grid(each))) for side in alone)
    )


def _added(side: Sequence[Kernels]) -> Kernels | None:
    return replace(_sum(side), grid=None) if side else None


def _sum(same: Sequence[Kernels]) -> Kernels:
    """Several rows as one, with the scatter in and between them."""
    if len(same) == 1:
        return same[0]
    count, work_ns = sum(each.count for each in same), sum(each.work_ns for each in same)
    mean_ns = Fraction(work_ns, count)
    squares = sum(each.count * (each.std_ns**2 + float(each.each_ns - mean_ns) ** 2) for each in same)
    return replace(same[0], count=count, work_ns=work_ns, std_ns=sqrt(squares / count))
