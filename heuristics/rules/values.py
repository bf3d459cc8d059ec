"""Values of the language of conditions: null, what is true, what compares and adds up; else
unknown.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from packaging.version import Version

Compute = Callable[[Any, Any], object]
"""What two values come to."""


class _Null:
    """A knob that is said to be null."""

    def __bool__(self) -> bool:
        return False


NULL: Final = _Null()
_ORDERS: Final[Mapping[type[ast.cmpop], Compute]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_COMPARISONS: Final[Mapping[type[ast.cmpop], Compute]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, several: one in several,
    ast.NotIn: lambda one, several: one not in several,
}
ARITHMETIC: Final[Mapping[type[ast.operator], Compute]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}


def comparison(op: type[ast.cmpop], is_set: bool) -> Compute:
    if op in _COMPARISONS:
        return lambda one, other: _COMPARISONS[op](
            one, Version(str(other)) if isinstance(one, Version) else other
        )
    if is_set:
        return lambda one, other: _ORDERS[op](as_set(one), other)
    return partial(_ordered, _ORDERS[op])


def _ordered(compare: Compute, one: object, other: object) -> object:
    if one is NULL or other is NULL:
        return False
    if isinstance(one, Version):
        return compare(one, Version(str(other)))
    if isinstance(other, tuple | frozenset):
        return compare(as_set(one), as_set(other))
    if _is_number(one) and _is_number(other):
        return compare(one, other)
    return None


def computed(compute: Compute, one: object, other: object) -> object:
    kind = int if compute in (operator.mod, operator.floordiv) else int | float
    divides = compute in (operator.mod, operator.floordiv, operator.truediv)
    if not _is_number(one, kind) or not _is_number(other, kind) or (divides and not other):
        return None
    return compute(one, other)


def meet(one: object, other: object) -> bool:
    """Whether two sets share anything."""
    return not as_set(one).isdisjoint(as_set(other))


def as_set(value: object) -> frozenset[object]:
    if isinstance(value, tuple | frozenset):
        return frozenset(value)
    return frozenset()


def _is_number(value: object, kind: Any = int | float) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
