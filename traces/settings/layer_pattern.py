"""Which layers have experts: Megatron-LM's `([0]*3+[1]*58)`, one number a layer.

Megatron-LM evaluates it as Python (training/arguments.py, moe_freq_type); here it is only read.
"""

import re
from typing import Final

from traces.limits import Limit

LONGEST: Final = Limit(4096, "entries", "ours: no model has so many layers")
DEEPEST: Final = Limit(20, "nested parentheses", "ours: no pattern nests them deeper")


def pattern_of(text: str) -> list[int]:
    """The numbers that a pattern stands for.

    Raises:
        ValueError: it is none.
    """
    plain = re.sub(r"\s", "", text)
    numbers, end = _sum(plain, 0)
    if end != len(plain):
        raise ValueError
    return numbers


def _sum(text: str, at: int, depth: int = 0) -> tuple[list[int], int]:
    """`product + product ...`, with where it ends."""
    total, at = _product(text, at, depth)
    while at < len(text) and text[at] == "+":
        more, at = _product(text, at + 1, depth)
        total = _bounded(total + more)
    return total, at


def _product(text: str, at: int, depth: int) -> tuple[list[int], int]:
    """`[0,1]*3` or `(sum)*3`."""
    if depth > DEEPEST.value:
        raise ValueError
    if text[at : at + 1] == "(":
        found, at = _sum(text, at + 1, depth + 1)
        if text[at : at + 1] != ")":
            raise ValueError
        at += 1
    else:
        listed = re.compile(r"\[(\d(?:,\d)*)?,?\]").match(text, at)
        if listed is None:
            raise ValueError
        found, at = [int(one) for one in re.findall(r"\d", listed[0])], listed.end()
    while times := re.compile(r"\*(\d{1,4})").match(text, at):
        if len(found) * int(times[1]) > LONGEST.value:
            raise ValueError
        found, at = found * int(times[1]), times.end()
    return found, at


def _bounded(found: list[int]) -> list[int]:
    if len(found) > LONGEST.value:
        raise ValueError
    return found
