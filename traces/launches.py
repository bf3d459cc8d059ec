"""The host call behind each piece of GPU work, joined on process and correlation id."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import NULL, PLACE, PROCESS_BITS, Calls, IntArray, distinct

AMBIGUOUS: Final = -2
"""Stands for a call where several bear the same correlation id."""


@dataclass(frozen=True, slots=True)
class Launches:
    """Of each activity the launching call: start, end, thread (NULL where none) and row in `Calls` (-1).

    Arrays of shape (n,).
    """

    start_ns: IntArray
    end_ns: IntArray
    thread_gid: IntArray
    call: IntArray


def join_launches(calls: Calls, process_gid: IntArray, correlation_id: IntArray) -> Launches:
    """Join rows, arrays of shape (n,), to the calls of theirs; see `launching_rows`."""
    call = launching_rows(calls, process_gid, correlation_id)
    columns = calls.start_ns, calls.end_ns, calls.thread_gid
    start_ns, end_ns, thread_gid = (of_call(column, call) for column in columns)
    return Launches(start_ns, end_ns, thread_gid, call)


def launching_rows(calls: Calls, process_gid: IntArray, correlation_id: IntArray) -> IntArray:
    """Rows in `Calls` of the calls that launched activities, arrays of shape (n,); -1 where none did.

    See `joined_rows`.
    """
    return np.maximum(joined_rows(calls, process_gid, correlation_id), PLACE(-1))


def joined_rows(calls: Calls, process_gid: IntArray, correlation_id: IntArray) -> IntArray:
    """The same, but `AMBIGUOUS` where calls one after the other bear the id: none of them is known for it.

    Correlation ids are unique within a process only, so an activity without a process joins nothing. One call
    may launch many activities (a graph). Where two calls share an id (a driver row inside a runtime row), the
    innermost counts: the one that starts last.
    """
    call = np.full(len(process_gid), -1, dtype=PLACE)
    usable = (calls.correlation_id != NULL) & (calls.thread_gid != NULL) & (calls.start_ns != NULL)
    call_process = np.where(usable, calls.thread_gid & PROCESS_BITS, NULL)
    for gid in distinct(process_gid):
        theirs = np.flatnonzero(call_process == gid)
        mine = np.flatnonzero((process_gid == gid) & (correlation_id != NULL))
        if gid == NULL or not len(theirs) or not len(mine):
            continue
        theirs = theirs[np.lexsort((calls.start_ns[theirs], calls.correlation_id[theirs]))]
        ids = calls.correlation_id[theirs]
        last = np.searchsorted(ids, correlation_id[mine], side="right") - 1
        joined = (last >= 0) & (ids[last] == correlation_id[mine])
        first = theirs[np.searchsorted(ids, correlation_id[mine[joined]])]
        found = theirs[last[joined]]
        apart = calls.start_ns[found] > calls.end_ns[first]
        call[mine[joined]] = np.where(apart, AMBIGUOUS, found)
    return call


def of_call(column: IntArray, call: IntArray) -> IntArray:
    """A column of the calls by row, NULL where there is none."""
    found = column[call] if len(column) else np.empty(len(call), dtype=np.int64)
    found[call < 0] = NULL
    return found


def launches_a_graph(call_name: str) -> bool:
    """Whether a CUDA runtime or driver call replays a graph."""
    return call_name.startswith(("cudaGraphLaunch", "cuGraphLaunch"))
