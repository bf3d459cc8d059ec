"""Kernels of two ranks side by side: slower, faster, new, gone, or the same name with another
grid.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby, zip_longest
from math import hypot, sqrt
from statistics import NormalDist
from typing import Final

from heuristics.comparison.difference.subject import same_capture
from heuristics.result.compared import Grid, KernelChange, KernelDelta
from traces.frozen import frozen
from traces.limits import LITTLE, WALL, Limit
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.section import copied
from traces.statistics.interval import LEVEL

BORDER: Final = Limit(
    1,
    "kernel a recording",
    "ours: one that runs across the border of the windows counts on one side only",
)
NO_PURPOSE: Final = frozenset({"comm.sendrecv_unresolved", "comm.ep_a2a", "comm.other_comm"})
"""Keys of kernels whose purpose one recording knows and another may not."""


@frozen
class Kernels:
    """Kernels of one name, key and grid on one side, over its used steps. `std_ns`: of their
    durations; `block`: None where it is not one.
    """

    name: str
    key: str
    grid: Grid | None
    count: int
    work_ns: int
    std_ns: float
    steps: int
    block: Grid | None = None

    @property
    def per_step(self) -> Fraction:
        return Fraction(self.count, self.steps)

    @property
    def work_per_step_ns(self) -> Fraction:
        return Fraction(self.work_ns, self.steps)

    @property
    def each_ns(self) -> Fraction:
        return Fraction(self.work_ns, self.count)

    @property
    def error_ns(self) -> float:
        """The standard error of their mean duration."""
        return self.std_ns / sqrt(max(self.count - 1, 1))


Pair = tuple[Kernels | None, Kernels | None]
Named = defaultdict[str, list[Kernels]]
"""Kernels of one side by name, or by key; none of one that it does not have."""


def compare_kernels(base: Rank, new: Rank) -> tuple[KernelDelta, ...]:
    """What is not the same on both sides; nothing where only one recorded what its CUDA graphs
    hold.
    """
    if not same_capture(base, new):
        return ()
    base_end_ns, new_end_ns = _smallest_listed_ns(base), _smallest_listed_ns(new)
    pairs = list(pair_kernels(base, new))
    errors = _errors(len(pairs))
    deltas = []
    for base_kernels, new_kernels in pairs:
        change: KernelChange | None = None
        if base_kernels and new_kernels and base_kernels.grid == new_kernels.grid:
            change = _moved(base_kernels, new_kernels, errors)
        elif _is_listed(base_kernels, new_end_ns) and _is_listed(new_kernels, base_end_ns):
            change = _apart(base_kernels, new_kernels)
        if change:
            deltas.append(_delta(base_kernels, new_kernels, change))
    return tuple(sorted(deltas, key=_place))


def _errors(kernels: int) -> float:
    """Beyond how many standard errors none of so many kernels moves by chance (Bonferroni)."""
    return NormalDist().inv_cdf(1 - (1 - LEVEL) / 2 / max(kernels, 1))


def _is_listed(kernels: Kernels | None, end_ns: Fraction) -> bool:
    """Whether so much work would stand in the list of the other side, which ends at `end_ns`."""
    return kernels is None or kernels.work_per_step_ns > end_ns


def _apart(base: Kernels | None, new: Kernels | None) -> KernelChange:
    if base is None:
        return "new"
    if new is None:
        return "gone"
    return "grid"


def _moved(base: Kernels, new: Kernels, errors: float) -> KernelChange | None:
    """What moved of the same kernels, of two things what moves more work; None where nothing
    did.
    """
    count_delta, longer_ns = new.per_step - base.per_step, new.each_ns - base.each_ns
    by_count_ns = by_each_ns = Fraction(0)
    count_moved = abs(count_delta) > Fraction(BORDER.whole, min(base.steps, new.steps))
    if count_moved:
        by_count_ns = abs(count_delta) * (base.each_ns + new.each_ns)
    if _duration_moved(base, new, errors, alone=not count_moved):
        by_each_ns = abs(longer_ns) * (base.per_step + new.per_step)
    if not by_count_ns and not by_each_ns:
        return None
    if by_count_ns > by_each_ns:
        if count_delta > 0:
            return "more"
        return "fewer"
    if longer_ns > 0:
        return "slower"
    return "faster"


def _duration_moved(base: Kernels, new: Kernels, errors: float, *, alone: bool) -> bool:
    """Whether one takes longer by more than its error, or clocks, tell. `alone`: their count is as
    before.
    """
    apart_ns, shorter_ns = abs(new.each_ns - base.each_ns), min(base.each_ns, new.each_ns)
    if alone and base.key.startswith("compute.") and apart_ns > WALL.value * shorter_ns:
        return True
    error_ns = errors * hypot(base.error_ns, new.error_ns)
    return apart_ns > max(error_ns, LITTLE.value * shorter_ns)


def _delta(base: Kernels | None, new: Kernels | None, change: KernelChange) -> KernelDelta:
    present = base or new
    assert present is not None
    nothing = replace(present, grid=None, block=None, count=0, work_ns=0)
    base_side, new_side = base or nothing, new or nothing
    return copied(
        KernelDelta,
        present,
        change=change,
        delta_ns=round(new_side.work_per_step_ns - base_side.work_per_step_ns),
        base_grid=base_side.grid,
        new_grid=new_side.grid,
        base_block=base_side.block,
        new_block=new_side.block,
        base_count=float(base_side.per_step),
        new_count=float(new_side.per_step),
        base_each_ns=round(base.each_ns) if base else None,
        new_each_ns=round(new.each_ns) if new else None,
    )


def _place(delta: KernelDelta) -> tuple[object, ...]:
    grids = sorted((delta.base_grid or (), delta.new_grid or ()))
    return -abs(delta.delta_ns), delta.name, delta.key, grids


def pair_kernels(base: Rank, new: Rank) -> Iterator[Pair]:
    """Kernels of both sides by name, key and grid; None where a side has none.

    Kernels with a grid on one side only are paired in order of their work, so that a changed grid
    is seen. A name whose grids change by themselves, or are not recorded on a side, is one pair
    without a grid. A kernel that one side could resolve and the other could not is paired by the
    first word of its key.
    """
    whole = not (base.kernel_table.left_out.rows or new.kernel_table.left_out.rows)
    base_named, new_named = _by_name(base), _by_name(new)
    for name in sorted(base_named.keys() | new_named.keys()):
        before, after = _same_keys(base_named[name], new_named[name])
        for key in sorted(before.keys() | after.keys()):
            mine, theirs = before[key], after[key]
            if _has_own_grids(mine) and _has_own_grids(theirs):
                yield from _by_grid(mine, theirs)
            elif whole:
                yield _added(mine), _added(theirs)


def _smallest_listed_ns(rank: Rank) -> Fraction:
    """Work per step of the last kernel listed, which those left out do not exceed; 0 if none is
    left out.
    """
    table = rank.kernel_table
    if not (table.rows and table.left_out.rows):
        return Fraction(0)
    return Fraction(table.rows[-1].work_ns, len(rank.lengths_ns))


def _by_name(rank: Rank) -> Named:
    named: Named = defaultdict(list)
    steps = len(rank.lengths_ns)
    for row in rank.kernel_table.rows:
        if row.count:
            figures = known(row.grid), row.count, row.work_ns, float(row.std_ns), steps
            named[row.name].append(Kernels(row.name, row.key, *figures, known(row.block)))
    return named


def _same_keys(base: list[Kernels], new: list[Kernels]) -> tuple[Named, Named]:
    """The sides by key, cut to its first word where only one of them could resolve the name.

    Then a key of `NO_PURPOSE` is on one side only, and another key has the kernels that it lacks.
    """
    base_keyed, new_keyed = _by_key(base), _by_key(new)
    keys = base_keyed.keys() | new_keyed.keys()
    if base and new and NO_PURPOSE & (base_keyed.keys() ^ new_keyed.keys()):
        moved = [key for key in keys if _per_step(base_keyed[key]) != _per_step(new_keyed[key])]
        if len(moved) > 1:
            return _by_key(_with_key_cut(base)), _by_key(_with_key_cut(new))
    return base_keyed, new_keyed


def _by_key(side: Iterable[Kernels]) -> Named:
    keyed: Named = defaultdict(list)
    for kernels in side:
        keyed[kernels.key].append(kernels)
    return keyed


def _per_step(side: Iterable[Kernels]) -> Fraction:
    return sum((kernels.per_step for kernels in side), Fraction(0))


def _with_key_cut(side: Iterable[Kernels]) -> Iterator[Kernels]:
    for _, same in groupby(sorted(side, key=_grid), key=_grid):
        whole = _sum([*same])
        yield replace(whole, key=whole.key.partition(".")[0])


def _grid(kernels: Kernels) -> tuple[int, ...]:
    return kernels.grid or ()


def _has_own_grids(side: Sequence[Kernels]) -> bool:
    """Whether grids are recorded and come again: with several, each about once a step or more
    often.
    """
    if any(kernels.grid is None for kernels in side):
        return False
    return len(side) < 2 or _per_step(side) >= len(side)


def _by_grid(base: Sequence[Kernels], new: Sequence[Kernels]) -> Iterator[Pair]:
    gone, came = list[Kernels](), {kernels.grid: kernels for kernels in new}
    for base_kernels in base:
        if base_kernels.grid in came:
            yield base_kernels, came.pop(base_kernels.grid)
        else:
            gone.append(base_kernels)
    yield from zip_longest(sorted(gone, key=_by_work), sorted(came.values(), key=_by_work))


def _by_work(kernels: Kernels) -> tuple[Fraction, tuple[int, ...]]:
    return -kernels.work_per_step_ns, _grid(kernels)


def _added(side: Sequence[Kernels]) -> Kernels | None:
    if side:
        return replace(_sum(side), grid=None, block=None)
    return None


def _sum(same: Sequence[Kernels]) -> Kernels:
    """Several rows as one, with the scatter in and between them."""
    first, *more = same
    if not more:
        return first
    count = work_ns = 0
    for kernels in same:
        count += kernels.count
        work_ns += kernels.work_ns
    mean_ns = Fraction(work_ns, count)
    squares = sum(row.count * (row.std_ns**2 + float(row.each_ns - mean_ns) ** 2) for row in same)
    return replace(first, count=count, work_ns=work_ns, std_ns=sqrt(squares / count))
