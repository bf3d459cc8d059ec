"""Shapes of operators' arguments, as PyTorch writes them beside an operator with `record_shapes`.

Source: torch/csrc/autograd/profiler_kineto.cpp. Values ("Concrete Inputs") are written since
PyTorch 2.2. A text stands for each distinct operator with its arguments, so that equal ones are
kept once.
"""

from typing import Final

import msgspec
import numpy as np

from traces.formats.tables import Texts
from traces.problems import OperatorProblem, Problems

_LARGEST: Final = 1 << 40
"""No tensor has a longer side."""
_ARGUMENTS: Final = 40
_SIDES: Final = 8
"""Tensors have up to five sides here, operators up to 20 arguments: what is far longer is no such
list."""
_LETTERS: Final = 64
"""Lists of numbers and words such as `True` are shorter."""
_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(OperatorProblem)


def problem_text(operator: str, dims: object, types: object, values: object) -> str | None:
    """One operator and its arguments as a text; None where no shape is known."""
    if not isinstance(dims, list) or len(dims) > _ARGUMENTS:
        return None
    shapes = tuple(map(_shape, dims))
    if not any(shapes):
        return None
    problem = OperatorProblem(operator, shapes, _texts(types, len(dims)), _texts(values, len(dims)))
    return _ENCODER.encode(problem).decode()


def problems(of_operators: Texts, annotation_count: int) -> Problems | None:
    """Of the ranges of a trace, annotations first and then operators; None where nothing was
    recorded.
    """
    codes, texts = of_operators
    if not texts:
        return None
    before = np.full(annotation_count, -1)
    return Problems(np.concatenate((before, codes)), tuple(map(_DECODER.decode, texts)))


def _shape(dims: object) -> tuple[int, ...] | None:
    """Sides of a tensor; None for a list of tensors, and what is none."""
    if not isinstance(dims, list) or len(dims) > _SIDES:
        return None
    if all(type(side) is int and 0 <= side < _LARGEST for side in dims):
        return tuple(dims)
    return None


def _texts(given: object, count: int) -> tuple[str, ...]:
    if not isinstance(given, list) or len(given) != count:
        return ("",) * count
    return tuple(text if isinstance(text, str) and len(text) <= _LETTERS else "" for text in given)
