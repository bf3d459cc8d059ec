"""How fast a rank's host works: the time from one launch to the next, step by step."""

from typing import Final

import numpy as np

from traces.columns import NULL, IntArray
from traces.ranks import parts
from traces.ranks.summary import UNKNOWN
from traces.steps.found import Steps
from traces.timeline import RankTimeline

_LEAST: Final = 12
"""Launches of a step that follow another, from which on their median says something."""


def paces(rank: RankTimeline, steps: Steps) -> IntArray:
    """The median time from one launch of a thread to its next, of each used step's work, shape (k,).

    Half of the launches may wait for anything: the median is of those that only follow each other. `UNKNOWN`
    where too few launches were recorded.
    """
    rows, count = rank.activities, len(steps.used)
    step = steps.used_at(rows.start_ns) if count else np.empty(0, dtype=np.int64)
    mine = np.flatnonzero((step != UNKNOWN) & (rows.launch_ns != NULL)) if count else step
    thread, launch_ns, step = rows.launch_thread[mine], rows.launch_ns[mine], step[mine]
    order = np.lexsort((launch_ns, thread, step))
    thread, launch_ns, step = thread[order], launch_ns[order], step[order]
    apart_ns = np.diff(launch_ns)
    follows = (
        (np.diff(thread) == 0) & (np.diff(step) == 0) & (apart_ns > 0)
    )  # a graph's nodes have one launch
    apart_ns, step = apart_ns[follows], step[1:][follows]
    result = np.full(count, UNKNOWN, dtype=np.int64)
    first = parts.begins_of(step)
    result[step[first[:-1]]] = np.where(np.diff(first) >= _LEAST, parts.median(apart_ns, first), UNKNOWN)
    return result
