"""The distinct launch shapes of a trace's kernels: thousands of kernels share one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traces.columns import IntArray, LaunchShapes
from traces.groups import first_of, group_of


def distinct_shapes(
    grid: Sequence[IntArray],
    block: Sequence[IntArray],
    registers: IntArray,
    static_shared_bytes: IntArray,
    dynamic_shared_bytes: IntArray,
) -> tuple[IntArray, LaunchShapes]:
    """Of each kernel its place among the shapes, shape (n,), and the shapes.

    All columns are of shape (n,); grids and blocks have three.
    """
    columns = (*grid, *block, registers, static_shared_bytes, dynamic_shared_bytes)
    varied = [column for column in columns if (column != column[:1]).any()]
    shape = group_of(*(varied or columns[:1]))
    first = first_of(shape)
    return shape, LaunchShapes(
        np.stack([column[first] for column in grid], axis=1),
        np.stack([column[first] for column in block], axis=1),
        registers[first],
        static_shared_bytes[first],
        dynamic_shared_bytes[first],
    )


def grid_numbers(shapes: LaunchShapes) -> IntArray:
    """A number for each shape, shape (k,), the same where grids are; it rises with z, then y, then x."""
    return group_of(*shapes.grid.T)
