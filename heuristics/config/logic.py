"""Three-valued logic: True, False, and None for what is unknown; and each of several things."""

from collections.abc import Iterable
from operator import not_
from typing import TypeVar

from traces.missing import of_known

_T = TypeVar("_T")


def all_of(*facts: bool | None) -> bool | None:
    """False where one is, else unknown where one is, else True."""
    if False in facts:
        return False
    if None in facts:
        return None
    return True


def any_of(*facts: bool | None) -> bool | None:
    if True in facts:
        return True
    if None in facts:
        return None
    return False


def negated(fact: bool | None) -> bool | None:
    return of_known(not_, fact)


def first_known(*facts: _T | None) -> _T | None:
    return next((fact for fact in facts if fact is not None), None)


def each_once(items: Iterable[_T]) -> tuple[_T, ...]:
    """In the order in which they come first."""
    return tuple(dict.fromkeys(items))
