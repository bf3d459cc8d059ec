"""Numbers of a trace's activities, exact and whole, one by one and as columns."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

import numpy as np

from traces.columns import NULL, IntArray

_LARGEST: Final = 2**61  # so that a start and a duration still add up in 64 bits


def whole(value: object, scale: int = 1) -> int:
    """A number, or a text that is one, times `scale` and rounded to an integer; NULL for all else."""
    if type(value) is int:
        scaled = value * scale
        return scaled if -_LARGEST < scaled < _LARGEST else NULL
    if not isinstance(value, str):
        return NULL
    try:
        exact = Decimal(value)
    except InvalidOperation:
        return NULL
    limit = _LARGEST // scale
    if not exact.is_finite() or not -limit < exact < limit:
        return NULL
    return int((exact * scale).to_integral_value())


def column(values: Sequence[object], scale: int = 1) -> IntArray:
    """`whole` of each value, shape (n,). Integers and plain decimals, nearly all, are read together."""
    kinds = set(map(type, values))
    together = _integers(values, scale) if kinds <= {int} else None
    if together is None and kinds <= {int, str}:
        together = _decimals(values, scale)
    if together is not None:
        return together
    return np.fromiter((whole(value, scale) for value in values), dtype=np.int64, count=len(values))


def _integers(values: Sequence[object], scale: int) -> IntArray | None:
    try:
        found = np.array(values, dtype=np.int64)
    except OverflowError:
        return None
    limit = (_LARGEST - 1) // scale
    return np.where((found >= -limit) & (found <= limit), found * scale, NULL)


def _decimals(values: Sequence[object], scale: int) -> IntArray | None:
    """Digits with at most so many decimals that `scale` leaves none; None where a value is anything else."""
    text = " ".join(map(str, values)) + " "
    if not text.isascii():
        return None
    letters = np.frombuffer(text.encode(), dtype=np.uint8)
    ends, points = np.flatnonzero(letters == ord(" ")), np.flatnonzero(letters == ord("."))
    digits = np.count_nonzero((letters >= ord("0")) & (letters <= ord("9")))
    if len(ends) != len(values) or digits + len(ends) + len(points) != len(letters):
        return None
    with_point = np.searchsorted(ends, points)
    before, after = points - np.append(-1, ends)[with_point] - 1, ends[with_point] - points - 1
    places = np.full(len(ends), len(str(scale)) - 1)
    places[with_point] -= after
    if (np.diff(ends, prepend=-1) < 2).any() or (np.diff(with_point) == 0).any():
        return None
    if (before < 1).any() or (after < 1).any() or (places < 0).any():
        return None
    found, power = np.fromstring(text.replace(".", ""), dtype=np.int64, sep=" "), 10**places
    return found * power if (found < _LARGEST // scale * scale // power).all() else None


def first_told(*columns: IntArray) -> IntArray:
    """Of each row the first value that is not NULL."""
    result = columns[0]
    for other in columns[1:]:
        result = np.where(result == NULL, other, result)
    return result
