"""How much kernels of one name cover: the same grids, or blocks that may hold as much."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import Final

from heuristics.comparison.difference.subject import same_count
from heuristics.comparison.same_work import NEAR, counts_of, per_step, shared_work_frac
from traces.limits import MOST, NEARLY_ALL, Limit
from traces.missing import known
from traces.names.kernels import classify_kernel, is_matrix_work
from traces.sections.rank import Rank

BODY: Final = Limit(8, "launches a step", "ours: one layer of a transformer multiplies six times")
_ROUTED: Final = frozenset({"permute", "router", "grouped_gemm", "activation", "quantize"})
"""Classes whose grids follow the tokens that a rank's experts get."""
_ONE_BLOCK: Final = (1, 1, 1)
Threads = tuple[int, int, int]
Shape = tuple[Threads, Threads | None]
"""Grid and block of a launch."""
Grids = Mapping[Shape, Fraction]
"""Launches a step by shape."""
Pair = tuple[Grids, Grids]


def covered_frac(base: Rank, new: Rank) -> float | None:
    """Of kernels of one name that both launch as often, with grids that come in each step: the
    part of the launches, or of what they cover, that is as much on both sides, whichever is less;
    None where they are too few, unless each of them is larger.
    """
    base_grids, new_grids = _steady_grids(base), _steady_grids(new)
    pairs = dict[str, Pair]()
    launches = whole = same = alike = Fraction(0)
    for name in base_grids.keys() & new_grids.keys():
        mine, theirs = base_grids[name], new_grids[name]
        counts = sum(mine.values()), sum(theirs.values())
        if same_count(*map(float, counts)):
            pairs[name] = mine, theirs
            launches += min(counts)
            whole += _elements(mine)[1] + _elements(theirs)[1]
            common, covered = _in_common(mine, theirs)
            alike += common
            same += covered
    if launches < BODY.value:
        turned = {name: pair[::-1] for name, pair in pairs.items()}
        if _is_larger(base, new, pairs) or _is_larger(new, base, turned):
            return 0.0
        return None
    return float(min(same / whole, alike / launches))


def in_pieces(base: Rank, new: Rank) -> bool:
    """Whether one side does in several passes what the other does in one: it runs nearly all
    kernels of one name the same whole number of times as often, and by most of those whose grids
    come in each step they cover as much.
    """
    sides = sorted((base, new), key=lambda rank: sum(counts_of(rank).values()))
    few, many = map(counts_of, sides)
    often = Counter[float]()
    for name in few.keys() & many.keys():
        often[many[name] / few[name]] += round(few[name])
    times = max(often, key=often.__getitem__, default=1.0)
    is_whole = times > 1 and times.is_integer()
    if not is_whole or often[times] < NEARLY_ALL.value * often.total():
        return False
    grids, many_grids = map(_steady_grids, sides)
    launches = alike = Fraction(0)
    for name in grids.keys() & many_grids.keys():
        number = sum(grids[name].values())
        launches += number
        alike += number * _may_cover_as_much(grids[name], many_grids[name])
    return launches >= BODY.value and alike > MOST.value * launches


def _is_larger(less: Rank, more: Rank, pairs: Mapping[str, Pair]) -> bool:
    """Whether each of these kernels covers more and takes longer, of the same program."""
    near = Fraction(NEAR.value)
    works, more_works = per_step(less), per_step(more)
    for name, (grids, more_grids) in pairs.items():
        covers_more = _elements(more_grids)[0] > near * _elements(grids)[1]
        if not covers_more or more_works[name].work_ns <= near * works[name].work_ns:
            return False
    return bool(pairs) and (shared_work_frac(less, more) or 0.0) >= NEARLY_ALL.value


def _in_common(mine: Grids, theirs: Grids) -> tuple[Fraction, Fraction]:
    """Launches of a side that have their like on the other, and what both sides cover by these."""
    if _blocks(mine).isdisjoint(_blocks(theirs)) and _may_cover_as_much(mine, theirs):
        return sum(mine.values(), Fraction(0)), _elements(mine)[1] + _elements(theirs)[1]
    grids, their_grids = _by_grid(mine), _by_grid(theirs)
    launches = covered = Fraction(0)
    for grid in grids.keys() & their_grids.keys():
        (often, covers), (their_often, their_covers) = grids[grid], their_grids[grid]
        common = min(often, their_often)
        launches += common
        covered += common * (covers / often + their_covers / their_often)
    return launches, covered


def _by_grid(launches: Grids) -> dict[Threads, tuple[Fraction, Fraction]]:
    """Launches by grid, and what they cover, in blocks of any size: what strides over its data
    covers as much.
    """
    by_grid = defaultdict[Threads, dict[Shape, Fraction]](dict)
    for (grid, block), number in launches.items():
        by_grid[grid][grid, block] = number
    return {grid: (sum(of.values(), Fraction(0)), _elements(of)[1]) for grid, of in by_grid.items()}


def _blocks(launches: Grids) -> set[Threads | None]:
    """Sizes of blocks; None among them where some are unknown."""
    return {block for _, block in launches}


def _may_cover_as_much(mine: Grids, theirs: Grids) -> bool:
    """Whether launches in blocks of another size may have as many elements: the last block of each
    row of a grid is anything between one thread and full.
    """
    (least, most), (their_least, their_most) = map(_elements, (mine, theirs))
    return least <= their_most and their_least <= most


def _elements(launches: Grids) -> tuple[Fraction, Fraction]:
    """How many elements launches cover at least and at most, a thread each."""
    least = most = Fraction(0)
    for (grid, block), number in launches.items():
        sides = list(zip(grid, block or _ONE_BLOCK, strict=True))
        least += number * prod((blocks - 1) * threads + 1 for blocks, threads in sides)
        most += number * prod(blocks * threads for blocks, threads in sides)
    return least, most


def _steady_grids(rank: Rank) -> dict[str, dict[Shape, Fraction]]:
    """Launches a step of each compute kernel but matrix products, by grid and block.

    Those whose grids follow the data are left out, and grids of one block, which cover anything.
    """
    steady = defaultdict[str, dict[Shape, Fraction]](lambda: defaultdict(Fraction))
    unsteady = set[str]()
    for kernel in rank.kernel_table.rows:
        grid, class_ = known(kernel.grid), kernel.key.removeprefix("compute.")
        if class_ == kernel.key or class_ in _ROUTED or grid == _ONE_BLOCK:
            continue
        if is_matrix_work(kernel.name, classify_kernel(kernel.name)):
            continue
        number = Fraction(kernel.count, len(rank.lengths_ns))
        if grid is None or number < Fraction(str(NEARLY_ALL.value)):
            unsteady.add(kernel.name)
        else:
            steady[kernel.name][grid, known(kernel.block)] += number
    for name in unsteady:
        steady.pop(name, None)
    return steady
