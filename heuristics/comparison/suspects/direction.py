"""Which way a setting went: more of it, less of it, across some releases, or unknown."""

import re
from typing import Final, Literal

from heuristics.comparison.difference.subject import Value
from heuristics.result.compared import ComparedChange

Way = Literal[1, 0, -1]

_OFF: Final = (None, False, 0, 0.0, (), "", "none", "None", "null", "off", "false", "0")
_BITS: Final = {"fp4": 4, "fp8": 8, "16": 16, "32": 32}
"""Bits of a precision by what its name has in it; the narrower first, as in `bf16_with_mxfp8`."""
_FULLER: Final = {"selective": 1, "full": 2}


def way(change: ComparedChange) -> Way:
    """1 where the new side has more of it, -1 where less, 0 where that is unknown.

    Off (None, False, 0, nothing in a list, `none`) is less than on; numbers and lists are compared; of two
    precisions the narrower is more; full recompute is more than selective.
    """
    if change.withheld:
        return 0
    base, new = change.base, change.new
    bits = _bits(base), _bits(new)
    if None not in bits:
        return _compared(-(bits[0] or 0), -(bits[1] or 0))
    if is_off(base) or is_off(new):
        return _compared(int(not is_off(base)), int(not is_off(new)))
    if isinstance(base, int | float) and isinstance(new, int | float):
        return _compared(base, new)
    if isinstance(base, tuple) and isinstance(new, tuple):
        return _by_parts(frozenset(base), frozenset(new))
    return _compared(_FULLER.get(str(base), 0), _FULLER.get(str(new), 0))


def is_off(value: Value) -> bool:
    return any(value == off and type(value) is type(off) for off in _OFF)


def _bits(value: Value) -> int | None:
    if not isinstance(value, str):
        return None
    return next((bits for part, bits in _BITS.items() if part in value.lower()), None)


def _by_parts(base: frozenset[Value], new: frozenset[Value]) -> Way:
    if base < new:
        return 1
    return -1 if new < base else 0


def _compared(base: float, new: float) -> Way:
    if base == new:
        return 0
    return 1 if base < new else -1


def numbers(version: Value) -> tuple[int, ...] | None:
    found = re.findall(r"\d+", version) if isinstance(version, str) else []
    return tuple(map(int, found[:4])) or None
