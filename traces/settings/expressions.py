"""Expressions in scripts and configurations, by Python's own parser: sums of a shell, patterns of
layers.
"""

import ast
from collections.abc import Callable
from typing import Final

from traces.limits import Limit
from traces.patterns import compiled

LARGEST: Final = Limit(
    10.0**15, "absolute value", "ours: no count of a run is larger, and 64 bits hold it"
)
LONGEST_SUM: Final = Limit(1_000, "characters", "ours: no sum of a script is longer")
LONGEST: Final = Limit(4096, "entries or letters", "ours: no model has so many layers")
_OPERAND: Final = r"(?:\d{1,15}|[A-Za-z_]\w*)"
_SUM: Final = compiled(rf"(?:{_OPERAND}?[-+*/%()\s])*{_OPERAND}?")
_PATTERN: Final = compiled(r"(?:\[(?:\d(?:,\d)*,?)?\]|\*\d{1,4}|[+()])*")


def sum_of(text: str, number: Callable[[str], int | None]) -> int | None:
    """What an expression gives, with `number` for its names; None where a part is not a plain
    integer.
    """
    plain = compiled(r"\$\{?([A-Za-z_]\w*)\}?").sub(lambda match: match[1], text)
    if len(plain) > LONGEST_SUM.value or not _SUM.fullmatch(plain):
        return None
    try:
        return _result_of(ast.parse(f"({plain})", mode="eval").body, number)
    except (ArithmeticError, MemoryError, RecursionError, SyntaxError, ValueError):
        return None


def _result_of(node: ast.expr, number: Callable[[str], int | None]) -> int:
    match node:
        case ast.Constant(value=value):
            result = value if type(value) is int else None
        case ast.Name(id=name):
            result = number(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            result = -_result_of(operand, number)
        case ast.BinOp(left=left, op=op, right=right):
            result = _result(op, _result_of(left, number), _result_of(right, number))
        case _:
            result = None
    if result is None or abs(result) > LARGEST.value:
        raise ValueError
    return result


def _result(op: ast.operator, left: int, right: int) -> int | None:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():  # as the shell: towards zero; floats hold all quotients below LARGEST
            return int(left / right)
        case ast.Mod():
            return left - int(left / right) * right
    return None


def pattern_of(text: str) -> list[int]:
    """The digits that a pattern such as Megatron-LM's `([0]*3+[1]*58)` stands for.

    Raises:
        ValueError: it is none.
    """
    plain = compiled(r"\s").sub("", text)
    if not _PATTERN.fullmatch(plain):
        raise ValueError
    try:
        return _digits(ast.parse(plain, mode="eval").body)
    except (MemoryError, RecursionError, SyntaxError) as error:
        raise ValueError from error


def _digits(node: ast.expr) -> list[int]:
    match node:
        case ast.List():
            return list(ast.literal_eval(node))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            digits, times = _digits(left) + _digits(right), 1
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int(times))):
            digits = _digits(left)
        case _:
            raise ValueError
    if len(digits) * times > LONGEST.value:
        raise ValueError
    return digits * times
