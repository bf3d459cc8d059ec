"""Values of a trace's activities as columns: exact times, whole numbers, names."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

import numpy as np

from traces.columns import NULL, IntArray
from traces.formats.kineto_json import Event

_LARGEST: Final = 2**61  # so that a start and a duration still add up in 64 bits
_NS_PER_US: Final = 1000


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
    """`whole` of each value, shape (n,)."""
    return np.fromiter((whole(value, scale) for value in values), dtype=np.int64, count=len(values))


def field(events: Sequence[Event], key: str) -> IntArray:
    """A whole number that stands in the events themselves, shape (n,)."""
    return column([event.get(key) for event in events])


def arguments(events: Sequence[Event]) -> list[Event]:
    """The arguments of each event; none where they are absent or no object."""
    found = (event.get("args") for event in events)
    return [given if isinstance(given, dict) else {} for given in found]


def argument(given: Sequence[Event], key: str) -> IntArray:
    """A whole number of each event's arguments, shape (n,)."""
    return column([one.get(key) for one in given])


def times_ns(events: Sequence[Event]) -> tuple[IntArray, IntArray]:
    """Start and end of each event, shape (n,) each; NULL where not told. An end may precede its start."""
    start_ns = column([event.get("ts") for event in events], _NS_PER_US)
    length_ns = column([event.get("dur") for event in events], _NS_PER_US)
    told = (start_ns != NULL) & (length_ns != NULL)
    return start_ns, np.where(told, start_ns + np.where(told, length_ns, 0), NULL)


def first_told(*columns: IntArray) -> IntArray:
    """Of each row the first value that is not NULL."""
    result = columns[0]
    for other in columns[1:]:
        result = np.where(result == NULL, other, result)
    return result


def names(events: Sequence[Event]) -> tuple[IntArray, tuple[str, ...]]:
    """Names as an index into the distinct ones; -1 where an event has none."""
    codes: dict[str, int] = {}
    found = [event.get("name") for event in events]
    code = [codes.setdefault(name, len(codes)) if isinstance(name, str) else -1 for name in found]
    return np.array(code, dtype=np.int64), tuple(codes)
