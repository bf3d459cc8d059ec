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
_ORDERS: Final = {
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
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
ARITHMETIC: Final[Mapping[type[ast.operator], Compute]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}


def comparison(op: type[ast.cmpop]) -> Compute:
    if op in _COMPARISONS:
        return lambda left, right: _COMPARISONS[op](
            left, Version(str(right)) if isinstance(left, Version) else right
        )
    return partial(_ordered, _ORDERS[op])


def _ordered(compare: Compute, left: object, right: object) -> object:
    if left is NULL or right is NULL:
        return False
    if isinstance(left, Version):
        return compare(left, Version(str(right)))
    if isinstance(right, tuple | frozenset):
        return compare(as_set(left), as_set(right))
    if _is_number(left) and _is_number(right):
        return compare(left, right)
    return None


def computed(compute: Compute, left: object, right: object) -> object:
    kind = int if compute in (operator.mod, operator.floordiv) else int | float
    divides = compute in (operator.mod, operator.floordiv, operator.truediv)
    if not _is_number(left, kind) or not _is_number(right, kind) or (divides and not right):
        return None
    return compute(left, right)


def meet(left: object, right: object) -> bool:
    """Whether two sets share anything."""
    return not as_set(left).isdisjoint(as_set(right))


def as_set(value: object) -> frozenset[object]:
    if isinstance(value, tuple | frozenset):
        return frozenset(value)
    return frozenset()


def _is_number(value: object, kind: Any = int | float) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
