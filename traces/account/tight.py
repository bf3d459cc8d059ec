"""Producers that one occurrence gives away: work that starts as other work, on another stream, ends.

Some waits come once a step (gradients before the optimizer, a batch before the first layer), too seldom for
repetition to show. Where nothing known explains why work had to wait, its stream was told to wait for an
event, and it starts within a moment after other work has ended, that work is taken for its producer: marked
as inferred, like all that is not recorded.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from traces.columns import NULL, IntArray
from traces.limits import Limit
from traces.timeline import Activities, Source

UNEXPLAINED: Final = Limit(2_000, "ns", "ours: longer than any gap between dependent kernels")
TIGHT: Final = Limit(
    5_000, "ns", "measured on real recordings: gaps between dependent kernels are 0.5 to 4.2 us"
)


def tight_producers(rows: Activities, ended_ns: IntArray, told: IntArray | None) -> tuple[IntArray, IntArray]:
    """(consumer, producer) pairs; `ended_ns`, shape (n,): when all known producers of each had ended.

    `told`, shape (n,): for how many events each was told to wait, None where no such call was recorded.

    Only work counts whose launch was recorded and that waited, unexplained, for over 2 us.
    """
    # a copy may be waited for within its own call, which then returns after it
    within = (rows.source == Source.COPY) & (rows.launch_end_ns >= rows.start_ns)
    launched = np.where(within, rows.launch_ns, np.minimum(rows.launch_end_ns, rows.start_ns))
    since = np.maximum(ended_ns, launched)
    waited = (rows.launch_ns != NULL) & (rows.start_ns - since > UNEXPLAINED.value)
    waited &= True if told is None else told > 0
    by_end = np.argsort(rows.end_ns, kind="stable")
    ends = rows.end_ns[by_end]
    consumers, producers = [], []
    for place in np.flatnonzero(waited).tolist():
        found = _last_to_end(rows, by_end, ends, place, int(since[place]))
        if found >= 0:
            consumers.append(place)
            producers.append(found)
    return np.array(consumers, dtype=np.int64), np.array(producers, dtype=np.int64)


def _last_to_end(rows: Activities, by_end: IntArray, ends: IntArray, place: int, since_ns: int) -> int:
    """Work of another stream, launched before, that ended last before some work began; -1: none just then."""
    start_ns = int(rows.start_ns[place])
    low, high = np.searchsorted(ends, (max(since_ns, start_ns - int(TIGHT.value)), start_ns), side="right")
    for one in by_end[low:high][::-1].tolist():
        if rows.stream_id[one] != rows.stream_id[place] and rows.launch_ns[one] < rows.launch_ns[place]:
            return int(one)
    return -1
