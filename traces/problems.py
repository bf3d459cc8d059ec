"""What operators multiply, as recorded: shapes, types and values of their arguments."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from traces.frozen import frozen
from traces.texts import Texts

Shape = tuple[int, ...]


@frozen
class OperatorProblem:
    """An operator with its arguments: shape, type and, of what is no tensor, value of each as
    recorded.

    Places of arguments that were not recorded as such are None, or empty texts.
    """

    operator: str
    shapes: tuple[Shape | None, ...]
    types: Texts
    values: Texts


@frozen
class Problems:
    """What operators multiply. `of_range`, as `Ranges`, is a place in `distinct`, -1 where none is
    known.
    """

    of_range: NDArray[np.signedinteger[Any]]
    distinct: tuple[OperatorProblem, ...]
