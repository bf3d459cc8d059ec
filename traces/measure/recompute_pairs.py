"""Which first run of a module each recomputed run repeats.

Recompute comes in units: what runs forward again between two kernels that are backward by name. Units come
back in reverse order, a layer at a time, but within one the order is the first run's own.
"""

from dataclasses import dataclass

import numpy as np

from traces.columns import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class Pairs:
    """Passes run again and their first runs, places in `Activities`, shape (m,); -1 where none was found."""

    recomputed: IntArray
    original: IntArray


def pair_units(
    order: IntArray, module: IntArray, again: BoolArray, first: BoolArray, backward: BoolArray
) -> Pairs:
    """Pair every pass of `again` with one of `first`, each used once.

    `order`: places by launch; the others have shape (n,): the module of each pass, and masks. A unit takes
    the latest open stretch of first runs with the same modules in the same order; where there is none, each
    of its passes takes the latest open one of its module.
    """
    open_: list[tuple[int, int]] = []
    unit: list[tuple[int, int]] = []
    pairs: list[tuple[int, int]] = []
    some = order[(again | first | backward)[order]]
    kinds = zip(some.tolist(), module[some].tolist(), again[some].tolist(), first[some].tolist(), strict=True)
    for place, code, is_again, is_first in kinds:
        if is_again:
            unit.append((place, code))
        elif is_first:
            open_.append((place, code))
        else:
            pairs += _paired(unit, open_)
            unit = []
    pairs += _paired(unit, open_)
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Pairs(columns[:, 0], columns[:, 1])


def _paired(unit: list[tuple[int, int]], open_: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs of one unit; what they use is no longer open."""
    if not unit:
        return []
    modules, count = [code for _, code in unit], len(unit)
    for at in range(len(open_) - count, -1, -1):
        if open_[at][1] == modules[0] and [code for _, code in open_[at : at + count]] == modules:
            found = [place for place, _ in open_[at : at + count]]
            del open_[at : at + count]
            return list(zip((place for place, _ in unit), found, strict=True))
    return [(place, _latest(code, open_)) for place, code in unit]


def _latest(code: int, open_: list[tuple[int, int]]) -> int:
    for at in range(len(open_) - 1, -1, -1):
        if open_[at][1] == code:
            return open_.pop(at)[0]
    return -1
