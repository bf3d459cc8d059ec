"""Student's t: how far the mean of few values lies from the truth, in standard errors."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import ceil, cos, floor, pi, sin, sqrt, tan
from statistics import variance


@cache
def student(level: float, freedom: int) -> float:
    """What t stays below, whichever its sign, in `level` of all cases, for degrees of freedom from
    1 on.
    """
    low, high = 0.0, pi / 2
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _held(middle, freedom) < level else (low, middle)
    return tan(high) * sqrt(freedom)


def _held(angle: float, freedom: int) -> float:
    """In how many of all cases |t| is below the angle's tangent times the root of the degrees of
    freedom.

    A finite sum for each whole number of degrees (Abramowitz and Stegun 26.7.3-4).
    """
    is_odd = freedom % 2
    term, added = (cos(angle), 0.0) if is_odd else (1.0, 0.0)
    for power in range(1 + is_odd, freedom, 2):
        added += term
        term *= cos(angle) ** 2 * power / (power + 1)
    if is_odd:
        return (angle + sin(angle) * added) * 2 / pi
    return sin(angle) * added


def welch(first: Sequence[int], second: Sequence[int], level: float) -> tuple[int, int]:
    """Welch's interval of the mean of the first less that of the second, its degrees of freedom
    rounded down.

    Each side varies as its own values do.
    """
    square, other = _square(first), _square(second)
    delta = round(Fraction(sum(first), len(first)) - Fraction(sum(second), len(second)))
    total = square + other
    if not total:
        return delta, delta
    rest = square**2 / (len(first) - 1) + other**2 / (len(second) - 1)
    half = ceil(student(level, max(1, floor(total**2 / rest))) * sqrt(total))
    return delta - half, delta + half


def _square(values: Sequence[int]) -> Fraction:
    """The square of the standard error of their mean."""
    return Fraction(variance(map(Fraction, values))) / len(values)


def one_more(values: Sequence[Fraction], level: float) -> tuple[float, int]:
    """The standard deviation of values, and how far from their mean a further one of them lies at
    most.
    """
    spread = sqrt(variance(values))
    return spread, ceil(student(level, len(values) - 1) * spread * sqrt(1 + 1 / len(values)))
