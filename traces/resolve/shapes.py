"""Launch shapes of activities, which `Activities` does not carry."""

from __future__ import annotations

import numpy as np

from traces.columns import NULL, IntArray
from traces.timeline import RankTimeline, Source


def grid_blocks(rank: RankTimeline) -> IntArray:
    """Blocks in the grid of each activity of the rank, shape (n,); NULL where it is no kernel or untold.

    Kernels and activities are the same rows in two orders; sorted alike they meet.
    """
    kernels, rows = rank.columns.kernels, rank.activities
    result = np.full(len(rows), NULL, dtype=np.int64)
    work = kernels.rows
    timed = (work.start_ns != NULL) & (work.end_ns != NULL) & ((work.start_ns != 0) | (work.end_ns != 0))
    ours = (work.process_gid == rank.process_gid) | (work.process_gid == NULL)
    place = np.flatnonzero(timed & ours & (work.device_id == rank.device))
    mine = np.flatnonzero(rows.source == Source.KERNEL)
    if len(place) != len(mine):
        return result
    place = place[np.lexsort((work.correlation_id[place], work.stream_id[place], work.start_ns[place]))]
    grid = kernels.grid[place]
    result[mine] = np.where((grid != NULL).all(axis=1), grid.prod(axis=1), NULL)
    return result
