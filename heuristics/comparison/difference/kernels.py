"""Kernels of two ranks side by side: slower, faster, new, gone, or the same name with another grid."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby, zip_longest
from math import hypot, sqrt
from typing import Final

from heuristics.result.compared import Change, Grid, KernelDelta
from traces.limits import Limit
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.tables import Kernel

ERRORS: Final = Limit(
    3, "standard errors", "ours: of 4,732 kernels of 120 unchanged simulated pairs, 1 in 200 differs by more"
)
MOVED_FRAC: Final = Limit(0.01, "of the duration", "ours: one kernel a side has no scatter, clocks have")
COMPUTE_FRAC: Final = Limit(
    0.08,
    "of the duration",
    "ours: of 3,825 compute kernels of 120 unchanged simulated pairs, 1 differs by more; one name serves "
    "GEMMs of several sizes, whose scatter is not that of their mean",
)
BORDER: Final = Limit(
    1, "kernel a recording", "ours: one that runs across the border of the windows counts on one side only"
)
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


def compare_kernels(base: Rank, new: Rank) -> tuple[KernelDelta, ...]:
    """Kernels that differ, the largest difference first."""
    base_end_ns, new_end_ns = smallest_listed_ns(base), smallest_listed_ns(new)
    found = []
    for one, other in pair_kernels(base, new):
        if one is not None and other is not None and one.grid == other.grid:
            change = _moved(one, other)
        else:
            listed = (one is None or one.work_per_step_ns > new_end_ns) and (
                other is None or other.work_per_step_ns > base_end_ns
            )
            change = _apart(one, other) if listed else None
        if change is not None:
            found.append(_delta(one, other, change))
    return tuple(sorted(found, key=_place))


def _apart(base: Kernels | None, new: Kernels | None) -> Change:
    """What it is that is not the same on both sides."""
    if base is None:
        return "new"
    return "gone" if new is None else "grid"


def _moved(base: Kernels, new: Kernels) -> Change | None:
    """What moved of the same kernels, of two things what moves more work; None where nothing did."""
    more, apart_ns = new.per_step - base.per_step, new.each_ns - base.each_ns
    by_count_ns = abs(more) * (base.each_ns + new.each_ns) if _count_moved(base, new) else 0
    by_each_ns = abs(apart_ns) * (base.per_step + new.per_step) if _duration_moved(base, new) else 0
    if not by_count_ns and not by_each_ns:
        return None
    if by_count_ns > by_each_ns:
        return "more" if more > 0 else "fewer"
    return "slower" if apart_ns > 0 else "faster"


def _count_moved(base: Kernels, new: Kernels) -> bool:
    least = Fraction(int(BORDER.value), min(base.steps, new.steps))
    return abs(new.per_step - base.per_step) > least


def _duration_moved(base: Kernels, new: Kernels) -> bool:
    apart_ns, shorter_ns = abs(new.each_ns - base.each_ns), min(base.each_ns, new.each_ns)
    is_clear = base.key.startswith("compute.") and not _count_moved(base, new)
    if is_clear and apart_ns > COMPUTE_FRAC.value * shorter_ns:
        return True
    return apart_ns > max(ERRORS.value * _error_ns(base, new), MOVED_FRAC.value * shorter_ns)


def _error_ns(base: Kernels, new: Kernels) -> float:
    """Standard error of the difference of mean durations; one kernel alone shows no scatter."""
    return hypot(*(each.std_ns / sqrt(max(each.count - 1, 1)) for each in (base, new)))


def _delta(base: Kernels | None, new: Kernels | None, change: Change) -> KernelDelta:
    (there, *_) = [each for each in (base, new) if each is not None]
    work_ns = [each.work_per_step_ns if each else Fraction(0) for each in (base, new)]
    return KernelDelta(
        name=there.name,
        key=there.key,
        change=change,
        delta_ns=round(work_ns[1] - work_ns[0]),
        base_grid=base.grid if base else None,
        new_grid=new.grid if new else None,
        base_count=float(base.per_step) if base else 0.0,
        new_count=float(new.per_step) if new else 0.0,
        base_each_ns=round(base.each_ns) if base else None,
        new_each_ns=round(new.each_ns) if new else None,
    )


def _place(one: KernelDelta) -> tuple[object, ...]:
    grids = sorted((one.base_grid or (), one.new_grid or ()))
    return (-abs(one.delta_ns), one.name, one.key, grids)


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
