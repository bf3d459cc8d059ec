"""The host call behind each piece of GPU work, by process and correlation id; launch shapes, each
once.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from traces.arrays import PLACE, IntArray, distinct, last_at, nowhere, zeros
from traces.columns import NULL, PROCESS_BITS, Calls, LaunchShapes
from traces.groups import first_of, group_of, in_order

_GRID: Final = (2**31 - 1, 65_535, 65_535)
_THREADS: Final = 1024
_REGISTERS: Final = 65_536
_SHARED_BYTES: Final = 1 << 20
"""The most that any GPU takes of each: CUDA C++ Programming Guide, technical specifications per
compute capability; of shared memory four times the 227 kB of today."""


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
    x, y, z, *threads, registers, static_shared_bytes, dynamic_shared_bytes = (
        column[first] for column in columns
    )
    return shape, LaunchShapes(
        _possible(np.column_stack((x, y, z)), _GRID),
        _possible(np.column_stack(threads), _THREADS),
        _possible(registers, _REGISTERS),
        _possible(static_shared_bytes, _SHARED_BYTES),
        _possible(dynamic_shared_bytes, _SHARED_BYTES),
    )


def _possible(numbers: IntArray, most: int | tuple[int, ...]) -> IntArray:
    return np.where((numbers < 0) | (numbers > most), NULL, numbers)


def grid_numbers(shapes: LaunchShapes) -> IntArray:
    """A number for each shape, shape (k,), the same where grids are; it rises with z, then y, then
    x.
    """
    return group_of(*shapes.grid.T)


AMBIGUOUS: Final = -2
"""Stands for a call where several bear the same correlation id."""


def launching_rows(calls: Calls, process_gid: IntArray, correlation_id: IntArray) -> IntArray:
    """Rows in `Calls` of the calls that launched activities, arrays of shape (n,); -1 where none
    did.

    See `joined_rows`.
    """
    return np.maximum(joined_rows(calls, process_gid, correlation_id), PLACE(-1))


def joined_rows(calls: Calls, process_gid: IntArray, correlation_id: IntArray) -> IntArray:
    """As `launching_rows`, but `AMBIGUOUS` where several calls, one after the other, have the id of
    an activity.

    Correlation ids are unique within a process only, so an activity without a process joins
    nothing. One call may launch many activities (a graph). Where two calls share an id (a driver
    row inside a runtime row), the innermost counts: the one that starts last.
    """
    call = nowhere(len(process_gid))
    usable = (calls.correlation_id != NULL) & (calls.thread_gid != NULL) & (calls.start_ns != NULL)
    call_process = np.where(usable, calls.thread_gid & PROCESS_BITS, NULL)
    for gid in distinct(process_gid):
        theirs = np.flatnonzero(call_process == gid)
        mine = np.flatnonzero((process_gid == gid) & (correlation_id != NULL))
        if gid == NULL or not len(theirs) or not len(mine):
            continue
        theirs = in_order(theirs, calls.correlation_id, calls.start_ns)
        ids = calls.correlation_id[theirs]
        last = last_at(ids, correlation_id[mine])
        joined = (last >= 0) & (ids[last] == correlation_id[mine])
        first = theirs[np.searchsorted(ids, correlation_id[mine[joined]])]
        innermost = theirs[last[joined]]
        apart = calls.start_ns[innermost] > calls.end_ns[first]
        call[mine[joined]] = np.where(apart, AMBIGUOUS, innermost)
    return call


def of_call(column: IntArray, call: IntArray) -> IntArray:
    """A column of the calls by row, NULL where there is none."""
    values = column[call] if len(column) else zeros(len(call))
    values[call < 0] = NULL
    return values


def launches_a_graph(call_name: str) -> bool:
    """Whether a call of CUDA's runtime, its driver or HIP's replays a graph."""
    return call_name.startswith(("cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch"))
