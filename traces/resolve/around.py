"""The ranges that were open on the launching thread as work was launched."""

import numpy as np

from traces.columns import NULL, IntArray, distinct
from traces.timeline import Activities, RankTimeline


def innermost(rank: RankTimeline, rows: Activities, of_text: IntArray, silent: int) -> IntArray:
    """Value of the innermost range around the launch of each of some rows whose text has one, shape (m,).

    `of_text`: the value of each range text, `silent` where it has none; it ends with that of no text.
    """
    ranges = rank.columns.ranges
    value = of_text[ranges.text]
    telling = (value != silent) & (ranges.thread_gid != NULL)
    result = np.full(len(rows), silent, dtype=np.int64)
    if not telling.any():
        return result
    start, end = ranges.start_ns[telling], ranges.end_ns[telling]
    thread, value = ranges.thread_gid[telling], value[telling]
    for gid in distinct(rows.launch_thread[rows.launch_thread != NULL]):
        here = thread == gid
        mine = np.flatnonzero(rows.launch_thread == gid)
        found = _stab(start[here], end[here], rows.launch_ns[mine])
        result[mine] = np.where(found >= 0, value[here][found] if here.any() else silent, silent)
    return result


def _stab(start_ns: IntArray, end_ns: IntArray, time_ns: IntArray) -> IntArray:
    """Of each time the innermost of the nested intervals that holds it, -1 where none does.

    Ranges of one thread nest. Those of one depth are disjoint, so each depth is one binary search.
    """
    order = np.lexsort((-end_ns, start_ns))
    start, end = start_ns[order], end_ns[order]
    depth = np.arange(len(order)) - np.searchsorted(np.sort(end), start, side="right")
    found = np.full(len(time_ns), -1, dtype=np.int64)
    for level in distinct(depth):
        level_places = np.flatnonzero(depth == level)
        at = np.searchsorted(start[level_places], time_ns, side="right") - 1
        inside = (at >= 0) & (time_ns < end[level_places[np.maximum(at, 0)]])
        found[inside] = order[level_places[at[inside]]]
    return found
