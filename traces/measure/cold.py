"""A cold pass: a window without steps in which hardly any kernel comes again."""

import numpy as np

from traces.arrays import summed
from traces.groups import first_of, group_of
from traces.limits import FEWEST, MOST
from traces.steps.found import Steps
from traces.timeline import RankTimeline


def measure_cold(rank: RankTimeline, steps: Steps) -> int:
    """How many nanoseconds of the window kernels that run for the first time take, with what lies
    before each since those before it ended; 0 where steps were found, or most kernels are of names
    that come `FEWEST` times.
    """
    rows = rank.activities
    mine = np.flatnonzero(~rows.is_copy)
    group = group_of(rows.name[mine])
    seldom = np.bincount(group)[group] < FEWEST.value
    if steps.source != "none" or summed(seldom) <= MOST.value * len(mine):
        return 0
    until_ns = np.maximum.accumulate(rows.end_ns[mine])
    took_ns = np.diff(until_ns, prepend=steps.windows.start_ns[0])
    return summed(took_ns[first_of(group)])
