"""Calls that initialise once: the context, a library, a module. A run pays for them at its start alone."""

from typing import Final

import numpy as np

from traces.account.calls import CallKind, call_kinds
from traces.columns import NULL, PROCESS_BITS, BoolArray, IntArray, distinct
from traces.limits import Limit
from traces.timeline import Activities, RankTimeline

LONG: Final = Limit(1_000_000, "ns", "ours: a launch that the system interrupts takes as long as less")
APART: Final = Limit(
    10, "times the next of its kind", "measurement.md: the longest call of its kind, over ten times the next"
)
_WAITS: Final = (CallKind.SYNC, CallKind.COPY, CallKind.INIT)
"""Their length is that of the work they wait for, or they are initialisation whatever their length."""


def kinds_of_calls(rank: RankTimeline) -> IntArray:
    """The `CallKind` of every call of a rank's columns; one that initialises once is `INIT`."""
    calls = rank.columns.calls
    kinds = call_kinds(rank.columns.call_names)[calls.name]
    return np.where(_one_time(rank, kinds), kinds.dtype.type(CallKind.INIT), kinds)


def _one_time(rank: RankTimeline, kinds: IntArray) -> BoolArray:
    """Which calls are over ten times as long as later ones of their kind, a mask over the calls.

    A launch has the kind of its kernel, whose first launch loads it. Other calls have that of their name:
    those in the first half of the launches are held against those in the second, where none need be left.
    """
    calls, launch_ns = rank.columns.calls, rank.activities.launch_ns
    length_ns = np.where(calls.start_ns == NULL, 0, calls.end_ns - calls.start_ns)
    once = (length_ns >= LONG.value) & ~np.isin(kinds, _WAITS)
    once &= (calls.thread_gid & PROCESS_BITS) == rank.process_gid
    launch_ns = launch_ns[launch_ns != NULL]
    if not once.any() or not len(launch_ns):
        return np.zeros(len(once), dtype=np.bool_)
    launches = kinds == CallKind.LAUNCH
    once[launches] = False
    once[_loading_launches(rank.activities, length_ns)] = True
    settled = calls.start_ns > np.partition(launch_ns, len(launch_ns) // 2)[len(launch_ns) // 2]
    once &= launches | ~settled
    for name in distinct(calls.name[once & ~launches]).tolist():
        mine = (calls.name == name) & ~launches
        once[mine] &= length_ns[mine] > APART.value * length_ns[mine & settled].max(initial=0)
    return once


def _loading_launches(rows: Activities, length_ns: IntArray) -> IntArray:
    """Rows of launch calls that are the first of their kernel, and far longer than its usual one."""
    named = np.flatnonzero((rows.name >= 0) & (rows.call >= 0))
    if not len(named):
        return named
    named = named[np.lexsort((rows.launch_ns[named], rows.name[named]))]
    name, call = rows.name[named], rows.call[named]
    first = np.flatnonzero(np.concatenate(([True], name[1:] != name[:-1])))
    until, usual_ns, found = np.append(first[1:], len(named)), np.median(length_ns[call]), []
    for begin, end in zip(first.tolist(), until.tolist(), strict=True):
        if length_ns[call[begin]] >= LONG.value:
            again_ns = np.median(length_ns[call[begin + 1 : end]]) if end > begin + 1 else usual_ns
            if length_ns[call[begin]] > APART.value * again_ns:
                found.append(call[begin])
    return np.array(found, dtype=np.int64)
