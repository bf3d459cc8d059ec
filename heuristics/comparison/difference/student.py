"""Student's t: how far the mean of few values lies from the truth, in standard errors."""

from functools import cache
from math import atan, cos, pi, sin, sqrt, tan


@cache
def student(level: float, freedom: int) -> float:
    """What t stays below, whichever its sign, in `level` of all cases, for degrees of freedom from 1 on."""
    low, high = 0.0, pi / 2
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _held(middle, freedom) < level else (low, middle)
    return tan(high) * sqrt(freedom)


def held_within(t: float, freedom: int) -> float:
    """In how many of all cases |t| is no larger."""
    return _held(atan(t / sqrt(freedom)), freedom)


def _held(angle: float, freedom: int) -> float:
    """Its distribution is a finite sum for each whole number of degrees (Abramowitz and Stegun 26.7.3-4)."""
    is_odd = freedom % 2
    term, added = (cos(angle), 0.0) if is_odd else (1.0, 0.0)
    for power in range(1 + is_odd, freedom, 2):
        added += term
        term *= cos(angle) ** 2 * power / (power + 1)
    return (angle + sin(angle) * added) * 2 / pi if is_odd else sin(angle) * added
