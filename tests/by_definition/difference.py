"""The difference of two steps by its definition (measurement, section 8): plain loops over fractions.

Nothing of `heuristics.comparison.difference` is used here. Ledgers are lists of (row, count, work, time by
step).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

Ledger = list[tuple[str, int, int, tuple[int, ...]]]


@dataclass(frozen=True)
class Parts:
    """New less base of one row, per step."""

    delta: Fraction
    count: Fraction
    duration: Fraction
    overlap: Fraction


def mean(values: tuple[int, ...]) -> Fraction:
    total = Fraction(0)
    for value in values:
        total += value
    return total / len(values)


def step_delta(base: Ledger, new: Ledger) -> Fraction:
    """Steps are what their rows add up to."""
    length = Fraction(0)
    for _, _, _, times in new:
        length += mean(times)
    for _, _, _, times in base:
        length -= mean(times)
    return length


def parts_by_row(base: Ledger, new: Ledger) -> dict[str, Parts]:
    """Every row of either side."""
    found = {}
    for name in {row[0] for row in base} | {row[0] for row in new}:
        before = [row for row in base if row[0] == name]
        after = [row for row in new if row[0] == name]
        if not before:
            found[name] = only(mean(after[0][3]))
        elif not after:
            found[name] = only(-mean(before[0][3]))
        else:
            found[name] = both(before[0], after[0])
    return found


def only(delta: Fraction) -> Parts:
    """A row of one side is there or not: that is count."""
    return Parts(delta, delta, Fraction(0), Fraction(0))


def both(
    before: tuple[str, int, int, tuple[int, ...]], after: tuple[str, int, int, tuple[int, ...]]
) -> Parts:
    """The mean of two ways: first the count moves and then the duration, or the other way round."""
    _, count_0, work_0, times_0 = before
    _, count_1, work_1, times_1 = after
    number_0, number_1 = Fraction(count_0, len(times_0)), Fraction(count_1, len(times_1))
    each_0, each_1 = Fraction(work_0, count_0), Fraction(work_1, count_1)
    between = number_1 * each_0  # the new number of base's activities
    other = number_0 * each_1  # the base's number of new activities
    start, end = number_0 * each_0, number_1 * each_1
    hidden_0 = Fraction(work_0, len(times_0)) - mean(times_0)
    hidden_1 = Fraction(work_1, len(times_1)) - mean(times_1)
    return Parts(
        delta=mean(times_1) - mean(times_0),
        count=((between - start) + (end - other)) / 2,
        duration=((end - between) + (other - start)) / 2,
        overlap=hidden_0 - hidden_1,
    )
