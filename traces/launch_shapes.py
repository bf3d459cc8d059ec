"""The distinct launch shapes of a trace's kernels: thousands of kernels share one."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from traces.columns import NULL, IntArray, LaunchShapes
from traces.groups import first_of, group_of

_GRID: Final = (2**31 - 1, 65_535, 65_535)
_THREADS: Final = 1024
_REGISTERS: Final = 65_536
_SHARED_BYTES: Final = 1 << 20
"""The most that any GPU takes of each: CUDA C++ Programming Guide, technical specifications per compute
capability; of shared memory four times the 227 kB of today."""


def distinct_shapes(
    grid: Sequence[IntArray],
    block: Sequence[IntArray],
    registers: IntArray,
    static_shared_bytes: IntArray,
    dynamic_shared_bytes: IntArray,
) -> tuple[IntArray, LaunchShapes]:
    """Of each kernel its place among the shapes, shape (n,), and the shapes.

    All columns are of shape (n,); grids and blocks have three. Numbers that no launch has are NULL.
    """
    columns = (*grid, *block, registers, static_shared_bytes, dynamic_shared_bytes)
    varied = [column for column in columns if (column != column[:1]).any()]
    shape = group_of(*(varied or columns[:1]))
    first = first_of(shape)
    return shape, LaunchShapes(
        np.stack([_possible(column[first], most) for column, most in zip(grid, _GRID, strict=True)], axis=1),
        np.stack([_possible(column[first], _THREADS) for column in block], axis=1),
        _possible(registers[first], _REGISTERS),
        _possible(static_shared_bytes[first], _SHARED_BYTES),
        _possible(dynamic_shared_bytes[first], _SHARED_BYTES),
    )


def _possible(numbers: IntArray, most: int) -> IntArray:
    return np.where((numbers < 0) | (numbers > most), NULL, numbers)


def grid_numbers(shapes: LaunchShapes) -> IntArray:
    """A number for each shape, shape (k,), the same where grids are; it rises with z, then y, then x."""
    return group_of(*shapes.grid.T)
