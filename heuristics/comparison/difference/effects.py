"""Why a row differs: more activities, longer ones, or less of them hidden. Three parts that add up to it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from heuristics.comparison.difference.matched import Matched


@dataclass(frozen=True, slots=True)
class Effects:
    """Parts of a difference, integers that add up to it. All None where they are unknown."""

    count_ns: int | None
    duration_ns: int | None
    overlap_ns: int | None


NOT_TOLD: Final = Effects(None, None, None)


def effects_of(row: Matched) -> Effects:
    """The parts of a row's rounded difference; unknown where a side has no work of it.

    With n activities of mean duration d a step on each side, the work differs by (difference of n x mean of
    both d) + (difference of d x mean of both n), exactly: taking the middle of both sides, neither is the
    reference. What the difference of wall time has beyond that is overlap. A row of one side is all count.
    """
    base, new = row.base, row.new
    if base.work_ns is None or new.work_ns is None:
        return NOT_TOLD
    if not (base.count and new.count):
        return Effects(round(row.delta_ns), 0, 0)
    base_each_ns, new_each_ns = base.work_ns / base.count, new.work_ns / new.count
    count_ns = (new.count - base.count) * (base_each_ns + new_each_ns) / 2
    duration_ns = (new_each_ns - base_each_ns) * (base.count + new.count) / 2
    return Effects(*whole_parts((count_ns, duration_ns, row.delta_ns - count_ns - duration_ns)))


def whole_parts(parts: tuple[Fraction, Fraction, Fraction]) -> tuple[int, int, int]:
    """Three parts rounded so that they add up to their rounded sum; the largest takes what is over.

    So a part that is nothing stays nothing, and negated parts give negated integers.
    """
    rounded = [round(part) for part in parts]
    largest = max(range(3), key=lambda place: abs(parts[place]))
    rounded[largest] += round(sum(parts)) - sum(rounded)
    return rounded[0], rounded[1], rounded[2]
