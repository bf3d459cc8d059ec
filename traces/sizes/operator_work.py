"""What an operator multiplies and the least bytes it moves, from the shapes of its arguments.

FLOP counts a multiplication and an addition as two, as published peaks do. What no shape tells is
None: no size is guessed. Bytes are each input read once and each output written once: the real
traffic is more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Final

from traces.frozen import frozen
from traces.missing import sole
from traces.names.operators import DTYPES, Dtype, Rule, operators
from traces.patterns import compiled, numbers_in
from traces.problems import OperatorProblem, Shape

Places = tuple[int, ...]
"""Where an operator has the arguments that its rule asks for."""
Work = tuple[int, int]
"""FLOP, and elements that are read or written."""


@frozen
class OperatorWork:
    """`bytes_at_least`: each input and output once. `dtype`: of the inputs."""

    operator: str
    dtype: Dtype
    flop: int
    bytes_at_least: int


class _Unknown(Exception):
    """An argument that the rule needs is not recorded, or contradicts the others."""


def operator_work(problem: OperatorProblem) -> OperatorWork | None:
    """What one operator does; None where its arguments do not say, or not all alike."""
    row = operators().get(problem.operator)
    if row is None:
        return None
    try:
        flop, elements = _RULES[row.rule](problem, row.at)
    except _Unknown:
        return None
    count = 3 if row.rule in ("attention", "attention_backward", "convolution_backward") else 2
    only = sole({DTYPES.get(problem.types[place]) for place in row.at[:count]})
    if only is None:  # the tensors that multiply are not all of one type
        return None
    dtype, size = only
    return OperatorWork(problem.operator, dtype, flop, elements * size)


def _shape(problem: OperatorProblem, place: int, sides: int = 0) -> Shape:
    shape = problem.shapes[place] if place < len(problem.shapes) else None
    if not shape or (sides and len(shape) != sides):
        raise _Unknown
    return shape


def _shapes(problem: OperatorProblem, at: Places, sides: int = 0) -> list[Shape]:
    return [_shape(problem, place, sides) for place in at]


def _matrix(problem: OperatorProblem, at: Places) -> Work:
    (m, k), (same, n) = _shapes(problem, at, 2)
    return _product(1, m, k, same, n)


def _batched(problem: OperatorProblem, at: Places) -> Work:
    (count, m, k), (batch, same, n) = _shapes(problem, at, 3)
    if count != batch:
        raise _Unknown
    return _product(count, m, k, same, n)


def _linear(problem: OperatorProblem, at: Places) -> Work:
    *rows, k = _shape(problem, at[0])
    n, same = _shape(problem, at[1], 2)
    return _product(1, prod(rows), k, same, n)


def _product(count: int, m: int, k: int, same: int, n: int) -> Work:
    if k != same:
        raise _Unknown
    return 2 * count * m * k * n, count * (m * k + k * n + m * n)


def _attention(problem: OperatorProblem, at: Places) -> Work:
    pairs, width, elements = _scores(problem, at)
    return 2 * pairs * width, elements


def _attention_backward(problem: OperatorProblem, at: Places) -> Work:
    """Scores again, and the gradients of scores, query, key and value: five products for two."""
    query, value = _shape(problem, at[0], 4), _shape(problem, at[2], 4)
    pairs, _, elements = _scores(problem, at)
    return 2 * pairs * (3 * query[3] + 2 * value[3]), 2 * elements


def _scores(problem: OperatorProblem, at: Places) -> tuple[int, int, int]:
    """Pairs of a query and a key, over which sizes they are added up, elements of all four tensors.

    With a causal mask the pairs under it alone, where queries and keys are as many: else where it
    lies differs between kernels.
    """
    (batch, heads, queries, size), key, value = _shapes(problem, at[:3], 4)
    keys, causal = key[2], _is_true(problem, at[3])
    if key[3] != size or value[2] != keys or key[0] != batch or (causal and queries != keys):
        raise _Unknown
    per_head = queries * (queries + 1) // 2 if causal else queries * keys
    output = batch * heads * queries * value[3]
    elements = batch * heads * queries * size + prod(key) + prod(value) + output
    return batch * heads * per_head, size + value[3], elements


def _convolution(problem: OperatorProblem, at: Places) -> Work:
    inputs, weight = _shapes(problem, at[:2])
    stride, padding, dilation = (_numbers(problem, place, len(weight) - 2) for place in at[2:5])
    if len(inputs) != len(weight) or 0 in stride or _is_true(problem, at[5]):
        raise _Unknown
    sides = tuple(
        (side + 2 * pad - step * (width - 1) - 1) // jump + 1
        for side, width, jump, pad, step in zip(
            inputs[2:], weight[2:], stride, padding, dilation, strict=True
        )
    )
    _same_channels(problem, inputs, weight, at[6])
    if min(sides, default=0) < 1:
        raise _Unknown
    output = (inputs[0], weight[0], *sides)
    return 2 * prod(output) * prod(weight[1:]), prod(inputs) + prod(weight) + prod(output)


def _convolution_backward(problem: OperatorProblem, at: Places) -> Work:
    """A product as large as the forward one for each gradient that is asked for: of input, of
    weight.
    """
    output, inputs, weight = _shapes(problem, at[:3])
    gradients = compiled(r"True|False").findall(_value(problem, at[5]))
    if (
        len(gradients) != 3
        or _is_true(problem, at[3])
        or len(output) != len(weight)
        or output[1] != weight[0]
    ):
        raise _Unknown
    _same_channels(problem, inputs, weight, at[4])
    count = gradients[:2].count("True")
    moved = prod(output) + prod(inputs) + prod(weight)
    return count * 2 * prod(output) * prod(weight[1:]), count * moved


def _same_channels(problem: OperatorProblem, given: Shape, weight: Shape, groups: int) -> None:
    if weight[1] * _number(problem, groups) != given[1]:
        raise _Unknown


def _is_true(problem: OperatorProblem, place: int) -> bool:
    value = _value(problem, place)
    if value not in ("True", "False"):
        raise _Unknown
    return value == "True"


def _value(problem: OperatorProblem, place: int) -> str:
    if place < len(problem.values):
        return problem.values[place]
    return ""


def _number(problem: OperatorProblem, place: int) -> int:
    value = _value(problem, place)
    if not compiled(r"[1-9]\d{0,6}").fullmatch(value):
        raise _Unknown
    return int(value)


def _numbers(problem: OperatorProblem, place: int, count: int) -> list[int]:
    """A list of as many numbers as there are sides, or of one that stands for all."""
    value = _value(problem, place)
    if not compiled(r"\[\d{1,7}(?:, \d{1,7})*\]").fullmatch(value):
        raise _Unknown
    numbers = [*numbers_in(value)]
    if len(numbers) not in (1, count):
        raise _Unknown
    if len(numbers) == 1:
        return numbers * count
    return numbers


_RULES: Final[Mapping[Rule, Callable[[OperatorProblem, Places], Work]]] = {
    "matrix": _matrix,
    "batched": _batched,
    "linear": _linear,
    "attention": _attention,
    "attention_backward": _attention_backward,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
}
