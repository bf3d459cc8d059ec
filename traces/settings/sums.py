"""Whole-number arithmetic of `$(( ))`: plus, minus, times, division, remainder and parentheses."""

import re
from collections.abc import Callable
from typing import Final

from traces.limits import Limit

LARGEST: Final = Limit(10.0**15, "absolute value", "ours: no count of a script is larger")
DEEPEST: Final = Limit(20, "nested parentheses", "ours: no script nests them deeper")
_TOKEN: Final = re.compile(r"\s*(?:(\d{1,15})|\$?\{?([A-Za-z_]\w*)\}?|([-+*/%()]))")


def sum_of(text: str, number: Callable[[str], int | None]) -> int | None:
    """What an expression gives, with `number` for its names; None where a part is not a plain integer."""
    tokens: list[int | str] = []
    at, text = 0, text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        value = int(found[1]) if found[1] else number(found[2]) if found[2] else found[3]
        if value is None:
            return None
        tokens.append(value)
        at = found.end()
    try:
        result, rest = _terms(tokens, 0, 0)
    except (ValueError, IndexError, ZeroDivisionError):
        return None
    return result if rest == len(tokens) else None


def _terms(tokens: list[int | str], at: int, depth: int) -> tuple[int, int]:
    value, at = _factors(tokens, at, depth)
    while at < len(tokens) and tokens[at] in ("+", "-"):
        more, after = _factors(tokens, at + 1, depth)
        value, at = _bounded(value + more if tokens[at] == "+" else value - more), after
    return value, at


def _factors(tokens: list[int | str], at: int, depth: int) -> tuple[int, int]:
    value, at = _atom(tokens, at, depth)
    while at < len(tokens) and tokens[at] in ("*", "/", "%"):
        other, after = _atom(tokens, at + 1, depth)
        # as the shell: towards zero
        quotient = abs(value) // abs(other) if tokens[at] != "*" else 0
        quotient = quotient if (value < 0) == (other < 0) else -quotient
        change = {"*": value * other, "/": quotient, "%": value - quotient * other}
        value, at = _bounded(change[str(tokens[at])]), after
    return value, at


def _atom(tokens: list[int | str], at: int, depth: int) -> tuple[int, int]:
    token = tokens[at]
    if isinstance(token, int):
        return token, at + 1
    if token == "(" and depth < DEEPEST.value:
        value, at = _terms(tokens, at + 1, depth + 1)
        if tokens[at] != ")":
            raise ValueError
        return value, at + 1
    if token == "-" and isinstance(after := tokens[at + 1], int):
        return -after, at + 2
    raise ValueError


def _bounded(value: int) -> int:
    if abs(value) > LARGEST.value:
        raise ValueError
    return value
